"""Preloading: datasets are in memory before the first query, and one that cannot be loaded does not stop the others."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Fenced
from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.store import StoreUnavailable
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.replication.ownership import Ownership
from tests.factories import analyst, ask, open_replica, register, upload
from tests.memory.cache import MemoryLeases
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction

NAMES = ("one", "two", "three")


@pytest.fixture
def store() -> MemoryStore:
    """Three datasets of one individual each."""
    made = MemoryStore()
    with open_replica(made) as replica:
        for name in NAMES:
            register(replica, name)
            upload(replica, "people", [("ann", "NO", 44, 10)], name)
            ask(replica, analyst(replica), "k", name)
    return made


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """A replica of another process."""
    with open_replica(store) as opened:
        yield opened


def loaded(replica: Replica) -> set[str]:
    """The names of the loaded datasets."""
    return {name for name in NAMES if replica.registry.writer(replica.registry.record(name)).position}


def test_every_dataset_is_preloaded(replica: Replica) -> None:
    """The first query finds its dataset loaded."""
    assert loaded(replica) == set()
    replica.preload()
    assert {name for name in NAMES if replica.registry.writer(replica.registry.record(name)).position} == set(NAMES)


def test_preloading_completes_the_witness(replica: Replica, store: MemoryStore) -> None:
    """The entry of a process that died between COMMIT and the witness is witnessed before the first query."""
    guard = replica.registry.guard(replica.registry.record("one"))
    assert not guard.is_confirmed(store.head(1))
    replica.preload()
    assert guard.is_confirmed(store.head(1))
    assert guard._told == guard._known


def test_a_closed_dataset_does_not_stop_preloading(replica: Replica, store: MemoryStore) -> None:
    """It is not loaded; a query gets the refusal."""
    other = MemoryStore()
    with open_replica(other) as empty:
        register(empty, "one")
    store.kept[1] = next(iter(other.kept.values()))
    replica.preload()
    assert replica.registry.writer(replica.registry.record("two")).position
    with pytest.raises(Fenced):
        replica.curators.open_epoch("one")


@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), RuntimeError("ann is forty-four")], ids=["store", "ours"])
def test_an_error_while_loading_affects_that_dataset_alone(
    replica: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    """An error of the service is an incident whose log shows no record."""
    real = MemoryTransaction.individuals

    def faulty(transaction: MemoryTransaction) -> object:
        if transaction._dataset_id == 1:
            raise fault
        return real(transaction)

    monkeypatch.setattr(MemoryTransaction, "individuals", faulty)
    with caplog.at_level(logging.ERROR):
        replica.preload()
    assert [bool(replica.registry.writer(replica.registry.record(name)).position) for name in NAMES] == [
        False,
        True,
        True,
    ]
    assert ("loading of dataset 1" in caplog.text) == isinstance(fault, RuntimeError)
    assert "forty-four" not in caplog.text


def test_a_replica_that_closes_stops_loading(replica: Replica) -> None:
    """No dataset is opened after the close."""
    replica.close()
    replica.preload()
    assert replica.registry.opened() == []


def test_preloading_ignores_an_unavailable_store(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preloading logs nothing; the first query gets the error."""

    def gone(_store: MemoryStore) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(MemoryStore, "datasets", gone)
    replica.preload()
    assert replica.registry.opened() == []


def test_processes_that_own_datasets_load_no_others(store: MemoryStore) -> None:
    """A dataset is loaded by the process that claimed it, and by no other."""
    leases, pepper = MemoryLeases(), Pepper(bytes(32))
    replicas = [ReplicaAddress(id=UUID(int=n), url=f"http://127.0.0.1:{n}") for n in (1, 2)]
    owners = [Ownership(leases=leases, replica=replica, pepper=pepper) for replica in replicas]
    with ExitStack() as opened:
        options = [ReplicaOptions(ownership=owner) for owner in owners]
        one, other = (opened.enter_context(open_replica(store, options=each)) for each in options)
        owners[0].claim(2)
        other.preload()
        one.preload()
        assert in_memory(other) == {"one", "three"}
        assert in_memory(one) == {"two"}


def in_memory(replica: Replica) -> set[str]:
    """The datasets in a process's memory; opens none."""
    return {writer.committer.state.record.name for writer in replica.registry.opened() if writer.position is not None}
