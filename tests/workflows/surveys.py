"""A replica with the dataset `survey`, and the parts of it that tests of workflows read."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.views import LedgerRow
from service.ledger.ports.store import Store
from service.ledger.ports.witness import Witness
from service.maintenance.verify.report import verify_all
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.threads import WriterThread
from tests.factories import THREE_PEOPLE, open_replica, register, upload, witness_of
from tests.memory.shards import only_shard
from tests.waiting import PATIENCE_S

on_both_stores = pytest.mark.parametrize("store", ["memory", "postgres"], indirect=True)
"""For tests that also show what a database has to do; what each method of a store promises, its contract shows."""

NORWAY: dict[str, Any] = {"where": {"eq": [{"col": "country"}, "NO"]}}
"""The part of a query that leaves Bob out."""


@contextmanager
def surveyed(
    store: Store | None = None,
    people: Sequence[Sequence[object]] = THREE_PEOPLE,
    *,
    entropy: Any = None,
    witness: Witness | None = None,
    options: ReplicaOptions | None = None,
    **registration: Any,
) -> Iterator[Replica]:
    """A replica with the dataset of these people, closed at the end."""
    with open_replica(store, entropy, witness, options) as replica:
        register(replica, **registration)
        if people:
            upload(replica, "people", people)
        yield replica


def fill(store: Store, people: Sequence[Sequence[object]] = THREE_PEOPLE, **registration: Any) -> None:
    """Register the dataset of these people by a replica that is closed again."""
    with surveyed(store, people, **registration):
        pass


def writer_of(replica: Replica) -> WriterThread:
    """The writer of the dataset."""
    return replica.registry.writer(replica.registry.record("survey"))


def spent_of(replica: Replica) -> list[int]:
    """The spent totals of three individuals in the memory of the writer, by slot."""
    writer = writer_of(replica)
    writer.catch_up()
    return writer.look(lambda state: only_shard(state).memory.accounts.spent[:3].tolist())


def newest(replica: Replica) -> LedgerRow:
    """The newest entry as an auditor reads it."""
    return replica.auditors.ledger("survey", cursor=None, limit=1).items[0]


def counts_of(replica: Replica) -> list[tuple[int, int]]:
    """How many individuals each of the last hundred entries has charged and has left out, in order."""
    items = replica.auditors.ledger("survey", cursor=None, limit=100).items
    return [(row.charged, row.left_out) for row in reversed(items)]


@contextmanager
def held(writer: WriterThread) -> Iterator[None]:
    """Hold a writer during a block, so that all that is submitted waits and is taken up together."""
    gate, reached = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        reached.set()
        assert gate.wait(PATIENCE_S)

    holder = writer.submit_look(hold)
    assert reached.wait(PATIENCE_S)
    yield
    gate.set()
    holder.result(timeout=PATIENCE_S)


def entries_of(store: Store) -> list[LedgerEntry]:
    """The ledger of the one dataset."""
    with store.transaction(1, lock=False) as transaction:
        return list(transaction.entries(after=0))


def findings(store: Store, witness: Witness | None = None) -> list[str]:
    """The findings of `ledger verify` over the one dataset."""
    (report,) = verify_all(store, witness or witness_of(store))
    return report.findings
