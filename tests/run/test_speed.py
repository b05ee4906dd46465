"""The speed of a machine: measured at a home's first start, kept, and compared with what commits take later."""

import json
import logging
import stat
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from service.query.cost import Speed
from service.run.speed import calibrate, speed_of
from service.settings.settings import Settings
from tests.logged import records_of


class Commits:
    """A store whose commits are counted by the size of their payload."""

    def __init__(self) -> None:
        self.payloads: list[int] = []

    def probe_commit(self, payload: bytes) -> None:
        """Take no time."""
        self.payloads.append(len(payload))


class Refusing(Commits):
    """A store that is away."""

    def probe_commit(self, payload: bytes) -> None:
        """Fail."""
        raise ConnectionError(f"{len(payload)}")


KEPT = Speed(query=123.0, commit=1000.0)
MEASURED = Speed(query=77.0)
EARLIER = json.dumps({name: value for name, value in asdict(KEPT).items() if name != "scalar_entry"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is calibrated already."""
    (tmp_path / "speed.json").write_text(json.dumps(asdict(KEPT)))
    return tmp_path


def settings(home: Path, **environ: str) -> Settings:
    """With the default slots unless told otherwise."""
    return Settings.of(environ, home=home)


def test_a_call_to_shards_on_ray_is_priced_higher(home: Path) -> None:
    """The rest is as measured."""
    there = speed_of(settings(home, SPARING_SHARDS="2", SPARING_RAY_ADDRESS="127.0.0.1:6379"), Commits())
    assert there == replace(speed_of(settings(home, SPARING_SHARDS="2"), Commits()), shard_round_trip=5_000_000)
    assert there.shard_round_trip > Speed().shard_round_trip


def test_a_kept_speed_is_read_and_only_small_commits_are_measured(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without a word where a commit takes less than a slot, however small its constant is.

    The slot is a minute, since the disk may be busy: its writes are part of what is measured.
    """
    store = Commits()
    assert speed_of(settings(home, SPARING_RELEASE_SLOT_MS="60000"), store) == KEPT
    assert set(store.payloads) == {0}
    assert records_of(caplog, "sparing") == []


def test_commits_that_take_longer_than_a_slot_are_warned_of(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line, with what to do."""
    monkeypatch.setattr("service.run.speed.measured_commit_ns", lambda _: 5e6)
    assert speed_of(settings(home, SPARING_RELEASE_SLOT_MS="1"), Commits()) == KEPT
    assert [(record.name, record.levelno) for record in records_of(caplog, "sparing")] == [
        ("sparing.speed", logging.WARNING)
    ]
    assert "sparing calibrate" in caplog.text


def test_without_slots_nothing_is_measured(tmp_path: Path) -> None:
    """The default constants still bound memory and decide turns."""
    store = Commits()
    assert speed_of(settings(tmp_path, SPARING_RELEASE_SLOT_MS="0"), store) == Speed()
    assert (store.payloads, list(tmp_path.iterdir())) == ([], [])


def test_an_error_of_the_store_ends_the_start(home: Path) -> None:
    """A start must not go on as if commits took no time."""
    with pytest.raises(ConnectionError):
        speed_of(settings(home), Refusing())


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[Speed]:
    """Measurements that cost nothing: each finds the same, and is kept here."""
    made: list[Speed] = []

    def measured(*_: object) -> Speed:
        made.append(MEASURED)
        return MEASURED

    monkeypatch.setattr("service.run.speed.measured_speed", measured)
    return made


def test_a_first_start_measures_and_keeps_what_it_found(tmp_path: Path, measurements: list[Speed]) -> None:
    """In a home that it makes, and in a file that is the home's own; `tests/maintenance` measures really."""
    home = tmp_path / "new"
    assert [speed_of(settings(home), Commits()) for _ in range(2)] == [MEASURED] * 2
    assert stat.S_IMODE((home / "speed.json").stat().st_mode) == 0o600
    assert len(measurements) == 1


@pytest.mark.parametrize("before", ["not JSON", "{}", EARLIER])
def test_a_file_that_cannot_be_used_is_replaced(tmp_path: Path, measurements: list[Speed], before: str) -> None:
    """One that cannot be read, or lacks a constant; once."""
    (tmp_path / "speed.json").write_text(before)
    assert [speed_of(settings(tmp_path), Commits()) for _ in range(2)] == [MEASURED] * 2
    assert len(measurements) == 1


@pytest.mark.usefixtures("measurements")
def test_calibrating_again_replaces_what_was_kept(home: Path) -> None:
    """For every content."""
    assert calibrate(settings(home), Commits()) == MEASURED
    assert speed_of(settings(home), Commits()) == MEASURED
