"""Settings: read once from the environment, refused by the variable's name, and documented one by one."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from service.settings.oidc_settings import OidcGrant
from service.settings.settings import SECRETS, VARIABLES, Settings, SettingsError
from tests.architecture.source import ROOT

DOCUMENT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
HOME = Path("/srv")
ESCAPED = "an @ in a password is written %40, a / %2F, a ? %3F and a # %23"
SECRET = "correct-horse"
OIDC = {
    "SPARING_OIDC_CLIENT_ID": "sparing",
    "SPARING_OIDC_ORIGIN": "https://sparing.example",
    "SPARING_OIDC_ROLES": '{"staff": {"role": "curator", "dataset": "care"}}',
    "SPARING_OIDC_ISSUER": "https://id.example/realms/town",
}


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
    assert (empty.home, empty.witness) == (HOME, HOME / "witness")


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
    environ |= {variable: f"/{variable}" for variable in ("SPARING_WITNESS", "SPARING_HOME")}
    environ |= {"DATABASE_URL": "postgresql://db", "REDIS_URL": "redis://cache", "SPARING_METRICS_HOST": "::1"}
    environ |= {"SPARING_LOG": "json", "SPARING_RAY_ADDRESS": "10.0.0.1:6379"}
    environ |= OIDC | {"SPARING_OIDC_INDIVIDUAL_CLAIM": "patient", "SPARING_OIDC_TITLE": "the town"}
    environ |= {f"SPARING_OIDC_{name}": name for name in ("CLIENT_SECRET", "NAME_CLAIM", "ROLE_CLAIM", "SCOPE")}
    environ |= {"SPARING_PEPPER": "ab" * 32, "SPARING_PRELOAD": "0", "SPARING_FORWARD_URL": "http://{hostname}:81"}
    given = Settings.of(environ)
    assert environ.keys() == VARIABLES.keys()
    assert given.model_fields_set == Settings.model_fields.keys()
    read = {str(Settings.model_fields[name].validation_alias): value for name, value in given}
    assert read == {variable: 7 if text == "7" else text for variable, text in environ.items()} | {
        "SPARING_PEPPER": b"\xab" * 32,
        "SPARING_PRELOAD": False,
        "SPARING_OIDC_ROLES": {"staff": OidcGrant(role="curator", dataset="care")},
    } | {variable: Path(f"/{variable}") for variable in ("SPARING_WITNESS", "SPARING_HOME")}


def test_the_home_of_the_command_line_wins() -> None:
    """Over the variable's, whose ~ is expanded."""
    environ = {"SPARING_HOME": "~/elsewhere"}
    assert Settings.of(environ).home == Path.home() / "elsewhere"
    assert Settings.of(environ, home=HOME).home == HOME
    assert Settings.of({}).home == Path.home() / ".local/share/sparing"
    assert Settings.of(environ, home=Path("~")).home == Path("~").absolute()


def test_settings_are_frozen_and_reach_another_process() -> None:
    """They arrive unchanged, secrets included; their repr shows no secret."""
    given = {"SPARING_PEPPER": "ab" * 32, "DATABASE_URL": f"postgresql://u:{SECRET}@db"}
    settings = Settings.of(given, home=HOME)
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
        ("SPARING_LOG", "xml", "must be json or console, got 'xml'"),
        ("SPARING_RAY_ADDRESS", "auto", "must be host:port"),
        ("SPARING_RAY_ADDRESS", "ray://10.0.0.1:10001", "must be host:port"),
        ("SPARING_RAY_ADDRESS", "10.0.0.1:none", "must be host:port"),
        ("SPARING_RELEASE_SLOT_MS", "-1", "must be a whole number of at most 2147483647, got '-1'"),
        ("SPARING_RELEASE_SLOT_MS", "1.5", "must be a whole number of at most 2147483647, got '1.5'"),
        ("SPARING_RELEASE_SLOT_MS", "1.0", "must be a whole number of at most 2147483647, got '1.0'"),
        ("SPARING_RELEASE_SLOT_MS", "1_000", "must be a whole number of at most 2147483647, got '1_000'"),
        ("SPARING_RELEASE_SLOT_MS", " 1", "must be a whole number of at most 2147483647, got ' 1'"),
        ("SPARING_REQUEST_DEADLINE_MS", "0", "must be a positive whole number of at most 2147483647, got '0'"),
        ("SPARING_DRAIN_NOTICE_MS", "soon", "must be a whole number of at most 2147483647, got 'soon'"),
        ("SPARING_DRAIN_MS", "0", "must be a positive whole number of at most 2147483647, got '0'"),
        ("SPARING_STATEMENT_TIMEOUT_MS", "0", "must be a positive whole number of at most 2147483647, got '0'"),
        ("SPARING_LOCK_TIMEOUT_MS", "never", "must be a positive whole number of at most 2147483647, got 'never'"),
        ("SPARING_RATE_LIMIT", "1000001", "must be a whole number of at most 1000000, got '1000001'"),
        ("SPARING_METRICS_PORT", "65536", "must be a whole number of at most 65535, got '65536'"),
        ("SPARING_METRICS_PORT", "http", "must be a whole number of at most 65535, got 'http'"),
        ("SPARING_PRELOAD", "yes", "must be 0 or 1, got 'yes'"),
        ("SPARING_CONNECTIONS_MAX", "0", "must be a positive whole number, got '0'"),
        (
            "SPARING_TCP_TIMEOUT_MS",
            "2147483648",
            "must be a positive whole number of at most 2147483647, got '2147483648'",
        ),
        ("SPARING_WORKERS", "257", "must be a positive whole number of at most 256, got '257'"),
        ("SPARING_WORKERS", "0", "must be a positive whole number of at most 256, got '0'"),
        ("SPARING_PEPPER", "00", "must be 64 hexadecimal digits"),
        ("SPARING_PEPPER", SECRET, "must be 64 hexadecimal digits"),
        *[
            ("REDIS_URL", url, "must be redis://host:port, rediss://host:port or unix:///path")
            for url in (SECRET, f"http://:{SECRET}@cache", f"redis://:{SECRET}", "redis://cache:port", "unix://")
        ],
        *[
            ("REDIS_URL", url, f"must be redis://host:port, rediss://host:port or unix:///path; {ESCAPED}")
            for url in (f"redis://:a@{SECRET}@cache", f"redis://me:1/{SECRET}@cache", f"redis://me:1#{SECRET}@cache")
        ],
        *[
            ("DATABASE_URL", url, f"must be postgresql://name:password@host:port/database; {ESCAPED}")
            for url in (
                f"mysql://u:{SECRET}@db",
                f"host=db password={SECRET}",
                f"postgresql://u:a@{SECRET}@db/care",
                f"postgresql://u:1/{SECRET}@db/care",
                f"postgresql://u:1?{SECRET}@db/care",
                f"postgresql://u:1#{SECRET}@db/care",
                f"postgresql://u:{SECRET}@db:port/care",
                f"postgresql://u:{SECRET}@[::1/care",
            )
        ],
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


def test_an_address_of_several_hosts_or_a_socket_is_a_databases() -> None:
    """The library libpq reads both."""
    for url in ("postgresql://u:p%40ss@one:1,two:2/care", "postgres://u@/care?host=%2Frun%2Fpostgres&port=5432"):
        assert Settings.of({"DATABASE_URL": url}).database_url == url


INDIVIDUAL = '{"x": {"role": "individual", "dataset": "care"}}'
URL_WORDS = "must be an https URL without a user, query or fragment (http on loopback alone)"
ORIGIN_WORDS = "must be https://host or https://host:port (http on loopback alone)"
ROLES_WORDS = "must be a JSON object of roles by value of the claim: "


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *[
            ("ISSUER", url, URL_WORDS)
            for url in ("id.example", "http://id.example", f"https://u:{SECRET}@id.example", "https://id.example?a")
        ],
        *[
            ("ISSUER", url, URL_WORDS)
            for url in ("https://id.example#a", "https://", "https://id.example:0", "ftp://x")
        ],
        *[("ORIGIN", url, ORIGIN_WORDS) for url in ("https://a/", "https://a/b", "http://a", "a", "https://a:x")],
        ("CLIENT_ID", "", "SPARING_OIDC_ISSUER needs SPARING_OIDC_CLIENT_ID"),
        ("ORIGIN", "", "SPARING_OIDC_ISSUER needs SPARING_OIDC_ORIGIN"),
        ("ROLES", "", "SPARING_OIDC_ISSUER needs SPARING_OIDC_ROLES"),
        ("ROLES", INDIVIDUAL, "SPARING_OIDC_ISSUER needs SPARING_OIDC_INDIVIDUAL_CLAIM, because a role is individual"),
        ("ROLES", "{}", "must name at least one value of the claim"),
        ("ROLES", '{"x": {"role": "individual"}}', "x: the role individual needs a dataset"),
        ("ROLES", '{"x": {"role": "auditor", "purpose": "a"}}', "x: allowance_rho, organisation and purpose are an"),
        (
            "ROLES",
            '{"x": {"role": "analyst", "purpose": "a\\n"}}',
            "x: purpose must hold no character that cannot be seen",
        ),
        ("ROLES", '{"x": {"role": "root"}}', f"{ROLES_WORDS}x.role: Input should be"),
        ("ROLES", '{"x": {"role": "curator", "more": 1}}', f"{ROLES_WORDS}x.more: Extra inputs are not permitted"),
        ("ROLES", '{"x": {"role": "analyst", "allowance_rho": "-1"}}', f"{ROLES_WORDS}x.allowance_rho: Input should"),
        ("ROLES", '{"": {"role": "auditor"}}', f"{ROLES_WORDS}.[key]: String should have at least 1 character"),
        ("ROLES", "staff=curator", f"{ROLES_WORDS}: Invalid JSON"),
    ],
)
def test_a_provider_is_configured_whole_or_refused(name: str, value: str, said: str) -> None:
    """By the variable, and where roles are wrong by their place."""
    variable = f"SPARING_OIDC_{name}"
    with pytest.raises(SettingsError) as refused:
        Settings.of(OIDC | {variable: value})
    told = str(refused.value)
    assert told.startswith(said if said.startswith("SPARING") else f"{variable} {said}")
    assert SECRET not in told


def test_a_provider_on_this_machine_needs_no_tls() -> None:
    """For trials; off by default."""
    local = {"SPARING_OIDC_ORIGIN": "http://127.0.0.1:8000", "SPARING_OIDC_ISSUER": "http://localhost:9000"}
    assert Settings.of(OIDC | local).oidc_issuer == "http://localhost:9000"
    assert Settings.of({}).oidc_issuer is None


@pytest.mark.parametrize("variable", sorted(SECRETS))
def test_a_secret_may_be_in_a_file(tmp_path: Path, variable: str) -> None:
    """Without the line break at its end; the value is as good as the variable's own."""
    values = {
        "DATABASE_URL": f"postgresql://u:{SECRET}@db",
        "REDIS_URL": f"rediss://:{SECRET}@cache:6380/0",
        "SPARING_PEPPER": "ab" * 32,
        "SPARING_OIDC_CLIENT_SECRET": SECRET,
    }
    text = values[variable]
    (tmp_path / "secret").write_text(f"{text}\n", encoding="utf-8")
    from_file = Settings.of({f"{variable}_FILE": str(tmp_path / "secret")}, home=HOME)
    assert from_file == Settings.of({variable: text}, home=HOME)


def test_only_secrets_are_read_from_files(tmp_path: Path) -> None:
    """A variable that is none means nothing with _FILE at its end."""
    (tmp_path / "workers").write_text("3", encoding="utf-8")
    assert "SPARING_WORKERS" not in SECRETS
    assert Settings.of({"SPARING_WORKERS_FILE": str(tmp_path / "workers")}).workers == 1


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, {}, "SPARING_PEPPER_FILE cannot be read: {file}: No such file or directory"),
        (b"\xff", {}, "SPARING_PEPPER_FILE cannot be read: {file}: it is not text"),
        (b"\n", {}, "SPARING_PEPPER_FILE names a file with nothing in it: {file}"),
        (b"00", {}, "SPARING_PEPPER must be 64 hexadecimal digits"),
        (b"00", {"SPARING_PEPPER": "ab"}, "SPARING_PEPPER and SPARING_PEPPER_FILE are both set: set one of them"),
    ],
    ids=["missing", "no text", "empty", "unusable", "both"],
)
def test_a_file_that_cannot_be_used_is_refused_by_its_variable(
    tmp_path: Path, content: bytes | None, more: dict[str, str], said: str
) -> None:
    """In one line, without what the file holds."""
    file = tmp_path / "pepper"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        Settings.of({"SPARING_PEPPER_FILE": str(file), **more})
    assert str(refused.value) == said.format(file=file)


def test_the_first_of_several_refusals_is_told() -> None:
    """In the order of the declarations."""
    with pytest.raises(SettingsError, match=r"^SPARING_WORKERS "):
        Settings.of({"SPARING_METRICS_PORT": "x", "SPARING_WORKERS": "x"})


def test_every_time_has_the_most_that_postgres_takes() -> None:
    """Beyond it no session would be opened."""
    for variable in (variable for variable in VARIABLES if variable.endswith("_MS")):
        with pytest.raises(SettingsError, match="of at most 2147483647"):
            Settings.of({variable: "2147483648"})


def test_zero_switches_off_what_may_be_switched_off() -> None:
    """Slots for a benchmark, the notice where no balancer needs one; port 0 is any port."""
    off = Settings.of({"SPARING_RELEASE_SLOT_MS": "0", "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_METRICS_PORT": "0"})
    assert (off.release_slot_ms, off.drain_notice_ms, off.metrics_port) == (0, 0, 0)
