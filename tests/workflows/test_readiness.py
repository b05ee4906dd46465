"""Which problems keep a whole process from serving, and which only one dataset."""

from datetime import timedelta
from queue import SimpleQueue

import pytest

from service.ledger.model.views import Principal
from service.workflows.replica import Replica
from tests.factories import analyst, ask, register
from tests.logged import lines_of
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S, until


@pytest.fixture(autouse=True)
def _looks_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.workflows.readiness.READY_FOR", timedelta(0))


def close(replica: Replica, name: str) -> None:
    """Close a dataset, as a check does that finds damage."""
    replica.registry.guard(replica.registry.record(name)).close_for_damage()


def test_one_closed_dataset_keeps_no_other_from_being_served(replica: Replica, ana: Principal) -> None:
    """The process is ready, and tells the code of the one; the other answers."""
    register(replica, "town")
    assert replica.readiness.report().counts() == {}
    close(replica, "town")
    report = replica.readiness.report()
    assert (report.codes, report.counts()) == ([], {"ledger-damaged": 1})
    assert replica.readiness.is_ready()
    assert ask(replica, ana, "a").sequence == 1


def test_without_an_open_dataset_the_process_is_not_ready(replica: Replica) -> None:
    """Until another process has registered one that is open."""
    close(replica, "survey")
    assert replica.readiness.report().codes == ["ledger-damaged"]
    assert not replica.readiness.is_ready()
    register(replica, "town")
    assert replica.readiness.report().codes == []
    replica.curators.delete("town")
    assert replica.readiness.report().codes == ["ledger-damaged"]


def test_a_process_without_datasets_is_ready(store: MemoryStore, replica: Replica) -> None:
    """A curator has to reach it to register the first."""
    replica.curators.delete("survey")
    assert store.datasets() == []
    assert replica.readiness.is_ready()


def test_a_key_is_told_of_its_datasets_alone(replica: Replica, ana: Principal) -> None:
    """A bound principal of its own, any other of all."""
    register(replica, "town")
    close(replica, "town")
    assert replica.readiness.datasets_for(ana) == {"survey": "open", "town": "ledger-damaged"}
    bound = analyst(replica, "ben", dataset="survey")
    assert replica.readiness.datasets_for(bound) == {"survey": "open"}


def test_problems_of_the_store_come_before_all_others(
    replica: Replica, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They concern every dataset."""
    close(replica, "survey")
    monkeypatch.setattr(store, "problems", lambda: ["database-disk-full"])
    report = replica.readiness.report()
    assert (report.codes, report.counts()) == (["database-disk-full"], {})


def test_a_witness_that_is_gone_keeps_the_process_from_serving(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """It is noticed without a request, and is one line of the log, and one more when the witness is back."""
    witness = replica.registry.witness
    assert isinstance(witness, MemoryWitness)
    caplog.set_level("WARNING", "sparing.witness")
    assert replica.readiness.report().codes == []
    witness.is_gone = True
    assert [replica.readiness.report().codes for _ in range(3)] == [["witness-unavailable"]] * 3
    witness.is_gone = False
    assert replica.readiness.is_ready()
    told = lines_of(caplog, "sparing.witness")
    assert told == ["the witness cannot be used, and no answer leaves: ENOENT", "the witness can be used again"]


def test_a_scrape_waits_for_one_look_alone(
    replica: Replica, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result counts, also where it took longer than a report is remembered; a second look might never end."""
    looks: list[list[str]] = []

    def problems() -> list[str]:
        looks.append([])
        return looks[-1]

    monkeypatch.setattr(store, "problems", problems)  # READY_FOR is 0 here, so that no report is remembered
    assert replica.readiness.is_ready()
    assert len(looks) == 1


def test_a_look_that_does_not_end_counts_as_not_ready(
    replica: Replica, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next scrape waits for the same look, and begins another one once it has ended."""
    monkeypatch.setattr("service.workflows.readiness.LOOK_S", 0.01)
    answers: SimpleQueue[list[str]] = SimpleQueue()
    monkeypatch.setattr(store, "problems", lambda: answers.get(timeout=PATIENCE_S))
    assert not replica.readiness.is_ready()
    answers.put([])
    until(replica.readiness.is_ready)
    answers.put([])
