"""The guard with two replicas: the connections and locks each holds while it reads and writes the witness."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from service.engine.pages import PageTotals
from service.ledger.model.errors import Fenced
from service.ledger.model.rows import Asked, Checkpoint, DatasetRecord, Head, WitnessRecord
from service.ledger.ports.store import Store, StoreUnavailable
from service.store.postgres.store import PostgresStore
from service.store.witness.file import FileWitness
from service.writer.rollback.guard import RollbackGuard, witness_name
from tests.contracts.stores import dataset
from tests.factories import SeededEntropy, analyst, ask, open_replica, register, upload
from tests.keys import LEDGER_KEY
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction


class InterruptedWitness(MemoryWitness):
    """A witness that runs an action right after it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], object]] = []

    def history(self, dataset: str) -> list[WitnessRecord]:
        known = super().history(dataset)
        while self.then:
            self.then.pop()()
        return known


class OneConnectionStore(MemoryStore):
    """A store with one connection: the holder of a transaction cannot open a second one."""

    def __init__(self) -> None:
        super().__init__()
        self._connection = threading.Semaphore(1)

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        if not self._connection.acquire(blocking=False):
            raise StoreUnavailable("no connection is free")
        try:
            with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
                yield transaction
        finally:
            self._connection.release()


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store with one connection."""
    if request.param == "memory":
        yield OneConnectionStore()
        return
    opened = PostgresStore(request.getfixturevalue("database_url"), LEDGER_KEY, connections_max=1)
    yield opened
    opened.close()


@pytest.fixture
def record(store: Store) -> DatasetRecord:
    """A dataset without a witness record."""
    return store.add_dataset(dataset())


def act(guard: RollbackGuard) -> Head:
    """Commit an act without writing the witness."""
    with guard.transaction(lock=True) as transaction:
        transaction.journal("act", {})
        transaction.commit()
    return transaction.head


@pytest.mark.parametrize("is_told", [False, True])
def test_replicas_that_meet_for_the_first_time_need_one_connection_each(
    store: Store, record: DatasetRecord, *, is_told: bool
) -> None:
    """The first finds no witness record; before it has the lock, the second has begun and witnessed all of it or less.

    A replica that then waited for a second connection could wait for replicas that do the same.
    """
    witness = InterruptedWitness()
    here, there = (RollbackGuard(record=record, store=store, witness=witness) for _ in range(2))
    witness.then = [lambda: there.confirm_recorded(act(there)) if is_told else act(there)]
    head = act(here)
    assert head.data_version == store.head(record.id).data_version == 2
    here.confirm_recorded(head)
    assert (here.recheck(), there.recheck()) == (None, None)
    assert witness.history(witness_name(record))[-1] == WitnessRecord.of(head)


def test_a_clone_that_began_meanwhile_closes_this_one(store: Store, record: DatasetRecord) -> None:
    """The clone's witness record is not in the ledger that is locked here: the operation is refused."""
    witness, elsewhere = InterruptedWitness(), MemoryStore()
    elsewhere.add_dataset(dataset())
    here, there = (RollbackGuard(record=record, store=each, witness=witness) for each in (store, elsewhere))
    witness.then = [lambda: there.confirm_recorded(act(there))]
    with pytest.raises(Fenced):
        act(here)
    assert here.code == here.recheck() == "ledger-rollback"
    assert store.head(record.id).data_version == 0


class WatchedStore(MemoryStore):
    """Counts transactions, and records the pages that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.transactions = 0
        self.written: list[int] = []

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.transactions += 1
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        self.written.append(page)
        super().write_page(dataset_id, checkpoint, page)


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_checkpoint_is_checked_when_it_begins_and_before_it_ends(*, is_closed: bool) -> None:
    """Pages are not checked singly: a check costs several round trips, and each page is bound to its entry anyway."""
    store, witness = WatchedStore(), MemoryWitness()
    record = store.add_dataset(dataset())
    guard, pages = RollbackGuard(record=record, store=store, witness=witness), range(5)
    head = act(guard)
    if is_closed:
        guard.confirm_recorded(replace(head, hash=b"x" * 32))  # as if another history had been witnessed
        guard = RollbackGuard(record=record, store=store, witness=witness)
    copied = {page: PageTotals.zero() for page in pages}
    checkpoint, before = Checkpoint(since=0, seq=0, hash=head.hash, pages=copied), store.transactions
    if is_closed:
        with pytest.raises(Fenced):
            guard.write_checkpoint(checkpoint)
        assert store.written == []
    else:
        guard.write_checkpoint(checkpoint)
        assert store.written == list(pages)
        assert store.transactions - before == 2


def test_two_replicas_with_one_connection_each_begin_six_datasets_at_once(database_url: str, tmp_path: Path) -> None:
    """Twelve writers on two connections: a waiting writer holds no connection."""
    with ExitStack() as opened:
        stores = [
            opened.enter_context(closing(PostgresStore(database_url, LEDGER_KEY, connections_max=1))) for _ in range(2)
        ]
        replicas = [
            opened.enter_context(open_replica(store, SeededEntropy(n), FileWitness(tmp_path / "witness")))
            for n, store in enumerate(stores)
        ]
        names = [f"survey{n}" for n in range(6)]
        for name in names:
            register(replicas[0], name)
        who = analyst(replicas[0])

        def begin(place: tuple[int, str]) -> int:
            number, name = place
            upload(replicas[number], "people", [(f"p{number}", "NO", 30, 1)], name)
            return ask(replicas[number], who, f"k{number}", name, reuse=False).sequence

        with ThreadPoolExecutor(12) as pool:
            sequences = list(pool.map(begin, [(number, name) for name in names for number in range(2)]))
        assert sorted(sequences) == [1] * 6 + [2] * 6
        assert [replica.readiness.check_witnesses() for replica in replicas] == [[], []]
