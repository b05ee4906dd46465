"""The audit where it cannot be carried out; its runs are tests/e2e/test_audit.py."""

import sys
from pathlib import Path

import pytest

from service.run.audit import AuditUndone, Tell, audit, own_environment

FEW = 120


@pytest.fixture
def told() -> list[str]:
    """The lines that an audit has told."""
    return []


@pytest.fixture
def tell(told: list[str]) -> Tell:
    """Keeps them."""
    return told.append


@pytest.mark.parametrize("missing", ["sparing", "sparing_audit"])
def test_a_missing_package_is_named_with_the_way_to_install_it(
    missing: str, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, before anything is asked."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(AuditUndone, match=f"the audit needs {missing}: .*clients/python"):
        audit(url="http://127.0.0.1:9", curator_key="key", victims=FEW, tell=tell)


@pytest.mark.parametrize(("url", "key"), [("http://127.0.0.1:9", None), (None, "key")])
def test_an_address_and_a_key_go_together(url: str | None, key: str | None, tell: Tell) -> None:
    """Neither alone says what to audit."""
    with pytest.raises(AuditUndone, match="--curator-key"):
        audit(url=url, curator_key=key, victims=FEW, tell=tell)


def test_a_service_that_is_not_there_is_one_line(tell: Tell) -> None:
    """No traceback of a socket."""
    with pytest.raises(AuditUndone) as caught:
        audit(url="http://127.0.0.1:9", curator_key="key", victims=FEW, tell=tell)
    assert len(str(caught.value).splitlines()) == 1


def test_a_service_that_does_not_start_is_told_with_its_last_line(
    tell: Tell, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its folder is removed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("service.run.audit._COMMAND", (sys.executable, "-c", "raise SystemExit('no disk is left')"))
    with pytest.raises(AuditUndone, match="did not start: no disk is left"):
        audit(url=None, curator_key=None, victims=FEW, tell=tell)
    assert told == ["Starting Postgres, Valkey and the service …"]
    assert list(tmp_path.iterdir()) == []


def test_a_throw_away_service_has_no_settings_of_another() -> None:
    """Neither a database nor a home: the audit's datasets would be registered there for good."""
    kept = own_environment(
        {"DATABASE_URL": "x", "REDIS_URL": "x", "SPARING_HOME": "x", "SPARING_PEPPER": "x", "PATH": "/bin"}
    )
    assert kept == {"PATH": "/bin", "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_RELEASE_SLOT_MS": "0"}
