"""A replica's memory of a dataset after an error half way."""

from typing import NoReturn

import numpy as np
import pytest

from service.arrays import Codes
from service.engine.inverted import Inverted
from service.ledger.ports.store import StoreUnavailable
from service.query.columns import Coding
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.workflows.replica import Replica
from service.writer.state import DatasetState
from tests.contracts.stores import answer, burn, dataset, entry, priced_entry
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica, register, upload
from tests.memory.cache import MemoryWitness
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.workflows.surveys import surveyed


def follow(state: DatasetState, store: MemoryStore) -> None:
    """Bring a memory to where the store stands."""
    state.catch_up(MemoryTransaction(store, 1, lock=False))


def loaded(store: MemoryStore) -> DatasetState:
    """The memory of a replica that begins."""
    state = DatasetState(store.datasets()[0])
    follow(state, store)
    return state


class CutTransaction(MemoryTransaction):
    """A transaction whose connection breaks while the records are read."""

    def records(self, table: str, *, of: object = None) -> NoReturn:
        raise StoreUnavailable


def test_a_load_cut_short_is_begun_again() -> None:
    """Even if the version to load is the one held before: half a load is not a version."""
    store = MemoryStore()
    with open_replica(store) as replica:
        register(replica)
        older = store.kept[1]
        upload(replica, "people", TWO_PEOPLE)
    record = store.datasets()[0]
    state = DatasetState(record)
    follow(state, store)
    newest, store.kept[1] = store.kept[1], older
    with pytest.raises(StoreUnavailable):
        state.catch_up(CutTransaction(store, 1, lock=False))
    store.kept[1] = newest
    state.catch_up(MemoryTransaction(store, 1, lock=True))
    assert int(only_shard(state).memory.people.present.sum()) == len(TWO_PEOPLE)


@pytest.mark.parametrize("more", [0, 2])
def test_acts_of_another_history_are_not_followed(more: int) -> None:
    """A backup without the last acts, after which as many or more others were done: their numbers prove nothing."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE) as replica:
        older = store.kept[1]
        replica.curators.erase_individual("survey", "ann")
        upload(replica, "people", TWO_PEOPLE[:1])
    state = loaded(store)
    store.kept[1] = older
    with open_replica(store, witness=MemoryWitness()) as replica:
        upload(replica, "people", [("eve", "NO", 71, 0)])
        replica.curators.erase_individual("survey", "ann")
        for _ in range(more):
            replica.curators.open_epoch("survey")
    follow(state, store)
    assert np.flatnonzero(only_shard(state).memory.people.present).tolist() == [1, 2]
    assert state.data_version == store.head(1).data_version


def test_a_memory_far_behind_reads_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many acts may take longer to follow than a load does."""
    monkeypatch.setattr("service.writer.replication.act_changes.ACTS_MAX", 2)
    store, read = MemoryStore(), list[int]()
    with surveyed(store, TWO_PEOPLE) as replica:
        state = DatasetState(store.datasets()[0])
        for acts in (2, 3):
            follow(state, store)
            memory = only_shard(state).memory
            for _ in range(acts):
                replica.curators.open_epoch("survey")
            follow(state, store)
            read.append(only_shard(state).memory is not memory)
    assert read == [False, True]


def test_pages_that_have_gone_back_are_loaded_again() -> None:
    """A backup from before the checkpoint may hold every entry; the pages changed since are then unknown."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        ask(replica, who, "k")
        before = store.kept[1]
    assert store.head(1).checkpoint_seq == 1
    state = loaded(store)
    assert state.checkpoint().pages == {}
    store.kept[1] = before
    follow(state, store)
    assert state.is_tail_long(entries=1)
    assert list(state.checkpoint().pages) == [0]


def test_a_tail_is_long_by_the_bytes_of_its_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entries that charge many people take as long to replay as many entries; a copy begins the count anew."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        state = DatasetState(store.datasets()[0])
        assert not state.is_tail_long(entries=0)  # before the first load
        for n in range(3):
            ask(replica, who, f"k{n}", reuse=False)
        follow(state, store)
    assert state.is_tail_long(entries=3)
    assert not state.is_tail_long(entries=4)
    entries = MemoryTransaction(store, 1, lock=False).entries(after=0)
    tail_bytes = sum(len(piece.content) for entry in entries for piece in entry.pieces)
    monkeypatch.setattr("service.writer.state.TAIL_BYTES_FOR_A_SLOT", 0)
    for bytes_max, is_long in ((tail_bytes, True), (tail_bytes + 1, False)):
        monkeypatch.setattr("service.writer.state.TAIL_BYTES_MAX", bytes_max)
        assert state.is_tail_long(entries=4) == is_long
    monkeypatch.setattr("service.writer.state.TAIL_BYTES_MAX", 0)
    for bytes_for_a_slot, is_long in ((tail_bytes, False), (0, True)):
        monkeypatch.setattr("service.writer.state.TAIL_BYTES_FOR_A_SLOT", bytes_for_a_slot)
        assert state.is_tail_long(entries=4) == is_long
    state.checkpoint()
    assert not state.is_tail_long(entries=1)


@pytest.mark.parametrize("is_priced", [False, True])
def test_counters_are_those_of_the_ledger(*, is_priced: bool) -> None:
    """Also pages on which a query only leaves people out; burns are not counted, and no entry counts twice."""
    store, made = MemoryStore(), priced_entry if is_priced else entry
    store.add_dataset(dataset())
    with store.transaction(1, lock=True) as transaction:
        slots = np.array([0, 1, PAGE_SLOTS])
        transaction.add_individuals(slots, [Key("a"), Key("b"), Key("c")], np.full(3, 2**50))
        transaction.journal("rows", {}, slots=PAGE_SLOTS + 1)
        transaction.commit()
    for number in range(3):
        with store.transaction(1, lock=True) as transaction:
            asked = made(transaction.head, {0: 5}, (1, PAGE_SLOTS))
            transaction.append([asked], [answer(asked, f"k{number}")], {})
            transaction.append([burn(transaction.head, {0: 7, 1: 7})], [], {})
            transaction.commit()
    copied = loaded(store)
    written = copied.checkpoint()
    assert sorted(written.pages) == [0, 1]
    store.write_page(1, written, 1)
    fresh = loaded(store)
    for state in (copied, fresh):
        counters = only_shard(state).memory.counters
        assert (counters.charged_of(slice(None))[slots].tolist(), counters.charged_of(slice(None)).sum()) == (
            [3, 0, 0],
            3,
        )
        assert (counters.left_out_of(slice(None))[slots].tolist(), counters.left_out_of(slice(None)).sum()) == (
            [0, 3, 3],
            6,
        )


def test_an_entry_that_touches_no_slot_is_read_again() -> None:
    """The totals in memory cannot be relied on, and are those of the pages again after the next catch-up."""
    store = MemoryStore()
    record = store.add_dataset(dataset())
    with store.transaction(1, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), [Key("a")], np.array([10**9]))
        transaction.journal("rows", {}, slots=1)
        transaction.commit()
    state = DatasetState(record)
    for charged, left_out in (({0: 5}, (PAGE_SLOTS,)), ({0: 5, PAGE_SLOTS: 5}, ())):
        follow(state, store)
        with pytest.raises(IndexError):
            state.apply(entry(store.head(1), charged, left_out))
        assert state.position is None
        follow(state, store)
        assert not only_shard(state).memory.accounts.spent.any()
        assert not only_shard(state).memory.counters.charged_of(slice(None)).any()
        assert state.seq == 0


@pytest.mark.parametrize("is_loaded", [False, True], ids=["appended", "loaded"])
def test_categories_are_indexed_before_the_first_query(monkeypatch: pytest.MonkeyPatch, *, is_loaded: bool) -> None:
    """By the append, and by the load of a later replica."""
    store, made = MemoryStore(), list[int]()
    with surveyed(store, TWO_PEOPLE[:1]) as replica:
        if not is_loaded:
            upload(replica, "people", TWO_PEOPLE[1:])
            _count_indexes(monkeypatch, made)
            _ask_by_country(replica)
    if is_loaded:
        with open_replica(store) as replica:
            replica.preload()
            _count_indexes(monkeypatch, made)
            _ask_by_country(replica)
    assert made == []


def _count_indexes(monkeypatch: pytest.MonkeyPatch, made: list[int]) -> None:
    """Note the size of every index that is made from now on."""
    real = Inverted.of

    def of(codes: Codes, coding: Coding) -> Inverted:
        made.append(codes.size)
        return real(codes, coding)

    monkeypatch.setattr(Inverted, "of", of)


def _ask_by_country(replica: Replica) -> None:
    ask(replica, analyst(replica), "by-country", where={"eq": [{"col": "country"}, "NO"]})
