"""Settings: read once from the environment, refused by the variable's name, and documented one by one."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from service.settings import VARIABLES, Settings, SettingsError
from tests.architecture.source import ROOT

DOCUMENT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
HOME = Path("/srv")
SECRET = "correct-horse"


def row(variable: str, field: FieldInfo) -> str:
    """The line of the document's table for a declaration: variable, default, description."""
    default = "" if field.default is None or field.default_factory is not None else field.default
    shown = f"`{int(default) if isinstance(default, bool) else default}`" if default != "" else ""
    return f"| `{variable}` | {shown} | {field.description} |".replace("|  |", "| |")


def test_the_document_has_the_table_of_the_declarations() -> None:
    """Variable, default and description of every setting, in their order, and no other row."""
    rows = [line for line in DOCUMENT.splitlines() if line.startswith(("| `SPARING_", "| `DATABASE_", "| `REDIS_"))]
    assert rows == [row(variable, field) for variable, field in VARIABLES.items()]


def test_every_declaration_is_whole() -> None:
    """A variable of the field's name, a default and a sentence for each, so that a traceback and the document agree."""
    for name, field in Settings.model_fields.items():
        assert str(field.validation_alias).removeprefix("SPARING_").lower() == name
        assert not field.is_required()
        assert (field.description or "").endswith(".")


def test_an_empty_environment_gives_the_defaults() -> None:
    """And an empty variable is as good as none."""
    empty = Settings.of(dict.fromkeys(VARIABLES, ""), home=HOME)
    assert empty == Settings.of({}, home=HOME)
    assert (empty.release_slot_ms, empty.request_deadline_ms, empty.metrics_port) == (2, 30_000, None)
    assert (empty.preload, empty.metrics_host, empty.database_url) == (True, "127.0.0.1", None)
    assert (empty.home, empty.witness, empty.migrations) == (HOME, HOME / "witness", ROOT / "migrations")


def test_only_the_mapping_that_is_given_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the process's environment nor a file of variables in its folder, nor a variable in small letters."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("SPARING_WORKERS=3\n", encoding="utf-8")
    monkeypatch.setenv("SPARING_WORKERS", "2")
    assert Settings.of({"sparing_workers": "4", "workers": "5", "PATH": "/bin"}).workers == 1
    assert Settings({}).workers == 1


def test_every_variable_is_read_into_its_field() -> None:
    """Each with a value other than its default."""
    environ = {variable: "7" for variable, field in VARIABLES.items() if "ge" in str(field.metadata)}
    environ |= {variable: f"/{variable}" for variable in ("SPARING_WITNESS", "SPARING_MIGRATIONS", "SPARING_HOME")}
    environ |= {"DATABASE_URL": "postgresql://db", "REDIS_URL": "redis://cache", "SPARING_METRICS_HOST": "::1"}
    environ |= {"SPARING_PEPPER": "ab" * 32, "SPARING_PRELOAD": "0", "SPARING_FORWARD_URL": "http://{hostname}:81"}
    given = Settings.of(environ)
    assert environ.keys() == VARIABLES.keys()
    assert given.model_fields_set == Settings.model_fields.keys()
    read = {str(Settings.model_fields[name].validation_alias): value for name, value in given}
    assert read == {variable: 7 if text == "7" else text for variable, text in environ.items()} | {
        "SPARING_PEPPER": b"\xab" * 32,
        "SPARING_PRELOAD": False,
    } | {variable: Path(f"/{variable}") for variable in ("SPARING_WITNESS", "SPARING_MIGRATIONS", "SPARING_HOME")}


def test_the_home_of_the_command_line_wins() -> None:
    """Over the variable's, whose ~ is expanded."""
    environ = {"SPARING_HOME": "~/elsewhere"}
    assert Settings.of(environ).home == Path.home() / "elsewhere"
    assert Settings.of(environ, home=HOME).home == HOME
    assert Settings.of({}).home == Path.home() / ".local/share/sparing"
    assert Settings.of(environ, home=Path("~")).home == Path("~").absolute()


def test_settings_are_frozen_and_reach_another_process() -> None:
    """The same, secrets included; their repr shows none."""
    settings = Settings.of({"SPARING_PEPPER": "ab" * 32, "DATABASE_URL": f"postgresql://u:{SECRET}@db"}, home=HOME)
    with pytest.raises(ValidationError, match="frozen"):
        settings.workers = 2  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own bytes
    assert SECRET not in repr(settings) + str(settings)
    assert "pepper" not in repr(settings)


def test_the_deadline_is_shorter_than_the_database_may_take_and_longer_than_a_lock() -> None:
    """A wait for a lock is refused by the database; nothing waits for a copy of minutes."""
    defaults = Settings.of({})
    assert defaults.lock_timeout_ms < defaults.request_deadline_ms < defaults.statement_timeout_ms


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("SPARING_HOME", "~no-such-account/home", "must be a path, and the account after its ~ must exist"),
        ("SPARING_RELEASE_SLOT_MS", "-1", "must be a whole number, got '-1'"),
        ("SPARING_RELEASE_SLOT_MS", "1.5", "must be a whole number, got '1.5'"),
        ("SPARING_RELEASE_SLOT_MS", "1.0", "must be a whole number, got '1.0'"),
        ("SPARING_RELEASE_SLOT_MS", "1_000", "must be a whole number, got '1_000'"),
        ("SPARING_RELEASE_SLOT_MS", " 1", "must be a whole number, got ' 1'"),
        ("SPARING_REQUEST_DEADLINE_MS", "0", "must be a positive whole number, got '0'"),
        ("SPARING_DRAIN_NOTICE_MS", "soon", "must be a whole number, got 'soon'"),
        ("SPARING_DRAIN_MS", "0", "must be a positive whole number, got '0'"),
        ("SPARING_STATEMENT_TIMEOUT_MS", "0", "must be a positive whole number, got '0'"),
        ("SPARING_LOCK_TIMEOUT_MS", "never", "must be a positive whole number, got 'never'"),
        ("SPARING_RATE_LIMIT", "1000001", "must be a whole number of at most 1000000, got '1000001'"),
        ("SPARING_METRICS_PORT", "65536", "must be a whole number of at most 65535, got '65536'"),
        ("SPARING_METRICS_PORT", "http", "must be a whole number of at most 65535, got 'http'"),
        ("SPARING_PRELOAD", "yes", "must be 0 or 1, got 'yes'"),
        ("SPARING_CONNECTIONS_MAX", "0", "must be a positive whole number, got '0'"),
        ("SPARING_WORKERS", "0", "must be a positive whole number, got '0'"),
        ("SPARING_PEPPER", "00", "must be 64 hexadecimal digits"),
        ("SPARING_PEPPER", SECRET, "must be 64 hexadecimal digits"),
        *[
            ("SPARING_FORWARD_URL", url, "must be http://host or http://host:port")
            for url in (
                "10.0.0.1:80",
                "https://10.0.0.1",
                "http://:80",
                "http://10.0.0.1:port",
                "http://10.0.0.1:0",
                "http://10.0.0.1/path",
                f"http://user:{SECRET}@10.0.0.1",
            )
        ],
    ],
)
def test_an_unusable_value_is_refused_by_name_and_by_what_is_allowed(name: str, value: str, allowed: str) -> None:
    """In one line, and neither the error nor one that led to it holds a secret, be it of a variable that is right."""
    environ: Mapping[str, str] = {"DATABASE_URL": f"postgresql://u:{SECRET}@db", name: value}
    with pytest.raises(SettingsError) as refused:
        Settings.of(environ)
    assert str(refused.value) == f"{name} {allowed}"
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_the_first_of_several_refusals_is_told() -> None:
    """In the order of the declarations."""
    with pytest.raises(SettingsError, match=r"^SPARING_WORKERS "):
        Settings.of({"SPARING_METRICS_PORT": "x", "SPARING_WORKERS": "x"})


def test_zero_switches_off_what_may_be_switched_off() -> None:
    """Slots for a benchmark, the notice where no balancer needs one; port 0 is any port."""
    off = Settings.of({"SPARING_RELEASE_SLOT_MS": "0", "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_METRICS_PORT": "0"})
    assert (off.release_slot_ms, off.drain_notice_ms, off.metrics_port) == (0, 0, 0)
