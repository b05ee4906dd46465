"""Start checks in the background: a damaged dataset is closed and named in the log; other datasets are unaffected."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from service.workflows.maintenance import job_queue, start_check
from service.workflows.maintenance.start_check import StartChecks
from service.workflows.model.errors import LedgerDamaged
from service.workflows.model.rows import Asked
from service.workflows.model.views import Principal
from service.workflows.ports.store import StoreUnavailable
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.workflows.replicas import eventually

NAMES = ("one", "two")


class FaultyStore(MemoryStore):
    """Raises the errors in its list when a transaction is opened, the last one first."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Exception] = []
        self.begun = 0

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.begun += 1
        if self.faults:
            raise self.faults.pop()
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction


@pytest.fixture
def store() -> FaultyStore:
    """Two datasets of one individual, each with two entries; the first ledger is damaged."""
    made = FaultyStore()
    with open_replica(made) as replica:
        for name in NAMES:
            register(replica, name)
            upload(replica, "people", [("ann", "NO", 44, 10)], name)
            who = analyst(replica)
            for key in ("a", "b"):
                ask(replica, who, key, name, reuse=False)
    kept = made.kept[1]
    damaged = replace(kept.entries[0], values=b"\1" * 8)
    made.kept[1] = replace(kept, entries=(damaged, *kept.entries[1:]))
    return made


@pytest.fixture
def replica(store: FaultyStore) -> Iterator[Replica]:
    """A replica of another process."""
    with open_replica(store) as opened:
        yield opened


@pytest.fixture
def checks(replica: Replica, store: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> StartChecks:
    """The checks of that replica, stepped by the test, without delays."""
    monkeypatch.setattr(job_queue, "RETRY_S", 0.0)
    monkeypatch.setattr(start_check, "LOOK_EVERY_S", 0.0)
    checks = StartChecks(store)
    replica.registry._background.append(checks)  # without its thread
    return checks


def opened(replica: Replica, name: str) -> None:
    """Open a dataset's writer and load the dataset."""
    replica.registry.writer(replica.registry.record(name)).catch_up()


def code(replica: Replica, name: str) -> str | None:
    """The code of the reason why a dataset is closed, if it is."""
    return replica.registry.guard(replica.registry.record(name)).code


def test_a_damaged_dataset_is_closed_and_the_other_is_not(
    replica: Replica, checks: StartChecks, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the row once; readiness, the metric and the guard report it from then on."""
    for name in NAMES:
        opened(replica, name)
    with caplog.at_level(logging.ERROR):
        for _ in NAMES:
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    (line,) = caplog.messages
    assert line.startswith("incident start check of dataset 1: ledger row 1: its contents do not give its hash error=")
    assert (replica.fenced(), replica.readiness.problems()) == (1, ["ledger-damaged"])
    assert replica.readiness.check_witnesses() == ["ledger-damaged"]
    who = analyst(replica)
    ask(replica, who, "c", "two")
    with pytest.raises(LedgerDamaged):
        ask(replica, who, "c", "one")


def everything(replica: Replica, who: Principal) -> None:
    """Check that every request to the first dataset is refused."""
    refused: list[Callable[[], object]] = [
        lambda: ask(replica, who, "new", "one", reuse=False),
        lambda: ask(replica, who, "a", "one"),
        lambda: replica.curators.open_epoch("one"),
        lambda: upload(replica, "people", [("bob", "NO", 4, 1)], "one"),
        lambda: replica.curators.erase_individual("one", "ann"),
        lambda: replica.curators.budgets("one", cursor=None, limit=5),
        lambda: replica.auditors.ledger("one", cursor=None, limit=5),
    ]
    for each in refused:
        with pytest.raises(LedgerDamaged):
            each()


def test_every_operation_on_a_damaged_dataset_is_refused(
    replica: Replica, checks: StartChecks, store: FaultyStore
) -> None:
    """A query is refused even if its head was confirmed recorded, so that it needs no transaction before its commit."""
    who = analyst(replica)
    for key in ("c", "d"):
        ask(replica, who, key, "one", reuse=False)
    before = store.kept[1]
    assert replica.registry.guard(replica.registry.record("one")).is_confirmed(before.head)
    assert checks.step()
    everything(replica, who)
    assert store.kept[1] is before


def test_an_unavailable_store_is_tried_again(
    replica: Replica, checks: StartChecks, store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Other datasets have their turn meanwhile, and a lasting fault is logged once."""
    for name in NAMES:
        opened(replica, name)
    with caplog.at_level(logging.ERROR):
        store.faults = [StoreUnavailable()]
        for _ in range(2):
            assert checks.step()
        assert [code(replica, name) for name in NAMES] == [None, None]
        store.faults = [StoreUnavailable() for _ in range(start_check.SILENT_RETRIES)]
        for _ in range(start_check.SILENT_RETRIES - 2):
            assert checks.step()
        assert caplog.messages == []
        for _ in range(3):
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    assert ["cannot be read; retrying" in each for each in caplog.messages] == [True, False]


def test_an_error_affects_that_check_alone(
    replica: Replica, checks: StartChecks, store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It is an incident without the error's text, and closes no dataset."""
    for name in NAMES[::-1]:
        opened(replica, name)
    store.faults = [RuntimeError("ann is forty-four")]
    with caplog.at_level(logging.ERROR):
        for _ in NAMES:
            assert checks.step()
    assert [code(replica, name) for name in NAMES] == ["ledger-damaged", None]
    assert "start check of dataset 2 error=builtins.RuntimeError" in caplog.messages[0]
    assert "forty-four" not in caplog.text


def test_a_check_waits_a_bounded_time_for_the_load(replica: Replica, checks: StartChecks) -> None:
    """Loading for waiting clients comes first; a dataset that is never loaded is checked all the same."""
    record, guard = replica.registry.record("one"), replica.registry.guard(replica.registry.record("one"))
    loading = iter([False, False, True, True])
    checks.ask(record, guard, is_loaded=lambda: next(loading))
    assert checks.step()
    assert (list(loading), guard.code) == ([True], "ledger-damaged")
    never = iter([False] * (start_check.LOOKS + 1))
    checks.ask(record, guard, is_loaded=lambda: next(never))
    assert checks.step()
    assert list(never) == [False]


def test_closing_ends_the_checks(replica: Replica, checks: StartChecks, store: FaultyStore) -> None:
    """Neither queued checks nor one that waits for a load are carried out."""
    record, guard = replica.registry.record("one"), replica.registry.guard(replica.registry.record("one"))

    def close_meanwhile() -> bool:
        checks.close()
        return False

    for _ in range(2):
        checks.ask(record, guard, is_loaded=close_meanwhile)
    begun = store.begun
    assert checks.step()
    assert not checks.step()
    assert (store.begun, guard.code) == (begun, None)


def test_a_replica_checks_opened_datasets_on_its_own_thread(replica: Replica) -> None:
    """After `check_ledgers` was called."""
    opened(replica, "one")
    replica.registry.let_go([1])
    replica.check_ledgers()
    replica.preload()
    eventually(lambda: code(replica, "one") == "ledger-damaged")
    assert code(replica, "two") is None
