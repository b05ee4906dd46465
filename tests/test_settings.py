"""Settings: read once from the environment, refused by the variable's name, and documented one by one."""

from dataclasses import fields
from pathlib import Path

import pytest

from service.settings import SETTINGS, Settings, SettingsError
from tests.architecture.source import ROOT

DOCUMENT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "default", "sentence"), SETTINGS, ids=[name for name, _, _ in SETTINGS])
def test_every_setting_is_documented(name: str, default: str, sentence: str) -> None:
    """With its default, in the words that the reference has."""
    assert sentence.endswith(".")
    assert f"| `{name}` | {f'`{default}`' if default else ''} | {sentence} |".replace("|  |", "| |") in DOCUMENT


def test_nothing_else_is_documented_as_a_setting() -> None:
    """A row for each, and no row for what is not read."""
    rows = [line for line in DOCUMENT.splitlines() if line.startswith(("| `SPARING_", "| `DATABASE_", "| `REDIS_"))]
    assert len(rows) == len(SETTINGS)


def test_an_empty_environment_gives_the_defaults() -> None:
    """And an empty variable is as good as none."""
    empty = Settings.of({name: "" for name, _, _ in SETTINGS}, home=Path("/srv"))
    assert empty == Settings.of({}, home=Path("/srv"))
    assert (empty.release_slot_ms, empty.request_deadline_ms, empty.metrics_port) == (10, 30_000, None)
    assert empty.metrics_host == "127.0.0.1"


def test_the_deadline_is_shorter_than_the_database_may_take_and_longer_than_a_lock() -> None:
    """What waits for a lock is refused by the database; what is copied for minutes is waited for by nobody."""
    defaults = Settings.of({})
    assert defaults.lock_timeout_ms < defaults.request_deadline_ms < defaults.statement_timeout_ms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPARING_RELEASE_SLOT_MS", "-1"),
        ("SPARING_RELEASE_SLOT_MS", "1.5"),
        ("SPARING_REQUEST_DEADLINE_MS", "0"),
        ("SPARING_DRAIN_NOTICE_MS", "soon"),
        ("SPARING_DRAIN_MS", "0"),
        ("SPARING_STATEMENT_TIMEOUT_MS", "0"),
        ("SPARING_LOCK_TIMEOUT_MS", "never"),
        ("SPARING_METRICS_PORT", "65536"),
        ("SPARING_METRICS_PORT", "http"),
        ("SPARING_PRELOAD", "yes"),
        ("SPARING_CONNECTIONS_MAX", "0"),
        ("SPARING_WORKERS", "0"),
        ("SPARING_PEPPER", "00"),
        ("SPARING_FORWARD_URL", "10.0.0.1:80"),
        ("SPARING_FORWARD_URL", "https://10.0.0.1"),
        ("SPARING_FORWARD_URL", "http://:80"),
        ("SPARING_FORWARD_URL", "http://10.0.0.1:port"),
        ("SPARING_FORWARD_URL", "http://10.0.0.1:0"),
        ("SPARING_FORWARD_URL", "http://10.0.0.1/path"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(name: str, value: str) -> None:
    """In one line that names the variable."""
    with pytest.raises(SettingsError, match=name):
        Settings.of({name: value})


def test_zero_switches_off_what_may_be_switched_off() -> None:
    """Slots for a benchmark, the notice where no balancer needs one; port 0 is any port."""
    off = Settings.of({"SPARING_RELEASE_SLOT_MS": "0", "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_METRICS_PORT": "0"})
    assert (off.release_slot_ms, off.drain_notice_ms, off.metrics_port) == (0, 0, 0)


def test_every_field_is_read_from_a_variable_of_its_name() -> None:
    """So that a traceback, the documentation and the environment say the same word."""
    named = {name.removeprefix("SPARING_").lower() for name, _, _ in SETTINGS}
    assert {each.name for each in fields(Settings)} == named
