"""Factories for tests of the whole service: a replica over the in-memory store, with repeatable entropy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import orjson
from numpy.typing import NDArray

from service.core.noise import Entropy
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import Asked, DatasetRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitRejected, Store
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.ledger.ports.witness import Witness
from service.query.parse import parse_query
from service.workflows.datasets import Registration
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.queue import WriterQueue
from service.writer.rollback.guard import RollbackGuard
from tests.digests import known_salt
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.memory.transaction import CHECK_VIOLATION, MemoryTransaction
from tests.waiting import PATIENCE_S

CLOCK = datetime(2026, 11, 21, 9, 30, 15, 123456, tzinfo=UTC)
PEOPLE = {
    "kind": "individuals",
    "key": "person_id",
    "columns": {
        "country": {"type": "category", "categories": ["NO", "SE"]},
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "spend": {"type": "real", "lower": 0, "upper": 500},
    },
}
_WITNESSES: WeakKeyDictionary[Store, MemoryWitness] = WeakKeyDictionary()
REJECTED_SIGMA = 13.0
TWO_PEOPLE = [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5)]
THREE_PEOPLE = [*TWO_PEOPLE, ("eve", "NO", 71, 0)]
VISITS = {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": 50}}}


class SeededEntropy:
    """Repeatable words; every draw is remembered so that it can be replayed."""

    def __init__(self, seed: int = 5) -> None:
        self._source = np.random.default_rng(seed)
        self.drawn: list[NDArray[np.uint64]] = []

    def __call__(self, count: int) -> NDArray[np.uint64]:
        words = self._source.integers(0, 2**64, size=count, dtype=np.uint64)
        self.drawn.append(words)
        return words


def witness_of(store: Store) -> MemoryWitness:
    """The witness that every replica on this store shares."""
    return _WITNESSES.setdefault(store, MemoryWitness())


class RejectingStore(MemoryStore):
    """The in-memory store with one more constraint: no entry has REJECTED_SIGMA."""

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            transaction.commit = lambda: _commit(transaction)  # type: ignore[method-assign]
            yield transaction


def _commit(transaction: MemoryTransaction) -> None:
    if any(entry.sigma == REJECTED_SIGMA for entry in transaction.entries(after=0)):
        raise CommitRejected(CHECK_VIOLATION)
    MemoryTransaction.commit(transaction)


class PassiveReplica(Replica):
    """A replica on the store of another, whose one line moves only when it is stepped."""

    writer: WriterQueue

    def __init__(self, store: Store, entropy: Entropy, telemetry: Telemetry = NULL_TELEMETRY) -> None:
        super().__init__(
            store=store,
            witness=witness_of(store),
            pepper=Pepper(bytes(32)),
            entropy=entropy,
            clock=lambda: CLOCK,
            options=ReplicaOptions(telemetry=telemetry),
        )

    def _open_writer(self, record: DatasetRecord, guard: RollbackGuard) -> WriterQueue:  # type: ignore[override]
        telemetry = self._options.telemetry
        self.writer = WriterQueue(record=record, guard=guard, entropy=self._entropy, telemetry=telemetry)
        return self.writer


@contextmanager
def open_replica(
    store: Store | None = None,
    entropy: Any = None,
    witness: Witness | None = None,
    options: ReplicaOptions | None = None,
    clock: Callable[[], datetime] = lambda: CLOCK,
) -> Iterator[Replica]:
    """A replica that is closed at the end."""
    store = store or MemoryStore()
    replica = Replica(
        store=store,
        witness=witness or witness_of(store),
        pepper=Pepper(bytes(32)),
        entropy=entropy or SeededEntropy(),
        clock=clock,
        options=options,
    )
    replica.curators.new_salt = known_salt
    yield replica
    replica.close()


def register(replica: Replica, name: str = "survey", *, rho: str = "0.5", **more: Any) -> None:
    """A dataset of people and visits."""
    document = {
        "name": name,
        "guarantee": {"rho": rho},
        "capacity": 100_000,
        "tables": {"people": PEOPLE, "visits": VISITS},
    }
    replica.curators.register(Registration.model_validate(document | more))


def upload(replica: Replica, table: str, rows: Sequence[Sequence[object]], name: str = "survey") -> None:
    """Rows as CSV, the header from the table; columns out of their domains are accepted."""
    header = {"people": "person_id,country,age,spend", "visits": "person_id,item"}[table]
    lines = [header, *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    body = BytesIO("\n".join(lines).encode() + b"\n")
    replica.curators.append_rows(name, table, "text/csv", body, accept=header.split(",")[1:])


def analyst(replica: Replica, name: str = "ana", **more: Any) -> Principal:
    """An analyst without an allowance."""
    return replica.principals.create(role="analyst", name=name, **more)[0]


def individual_named(replica: Replica, key: str, dataset: str = "survey") -> Principal:
    """The principal of an individual of the dataset."""
    return replica.principals.create(role="individual", name=key, dataset=dataset, individual=key)[0]


def ask(replica: Replica, who: Principal, key: str, dataset: str = "survey", **query: Any) -> StoredAnswer:
    """Ask and wait."""
    document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}} | query
    return replica.analysts.submit(who, dataset, key, parse_query(orjson.dumps(document))).result(timeout=PATIENCE_S)


def values(answer: StoredAnswer) -> list[float]:
    """The released values."""
    shown: list[float] = orjson.loads(answer.body)["values"]
    return shown
