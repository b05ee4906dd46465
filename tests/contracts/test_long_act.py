"""Long acts on both stores: they write records without the dataset's lock, one act after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import Store
from service.query.keys import Key
from tests.contracts.stores import answer, dataset, entry, join
from tests.waiting import PATIENCE_S


def joined(store: Store, record: DatasetRecord) -> list[str]:
    """The keys of the individuals present."""
    with store.transaction(record.id, lock=False) as transaction:
        return [key for _, key in transaction.keys_of(after_slot=-1, limit=10, bytes_max=1000)]


def test_queries_and_limits_go_on_while_a_long_act_writes(store: Store, record: DatasetRecord) -> None:
    """Its writes show after its commit and not before, on top of everything committed meanwhile."""
    join(store, record, {"ann": 9})
    with store.long_act(record.id) as act:
        assert act.head.slots == 1
        assert act.slots_of([Key("ann"), Key("bob")]).tolist() == [0, -1]
        act.add_individuals(np.array([1]), [Key("bob")], np.array([7]))
        act.add_records("visits", np.array([0, 1]), {"item": np.array([3, 4], dtype=np.uint32)})
        act.hasten()
        with store.transaction(record.id, lock=True) as transaction:
            following = entry(transaction.head, {0: 5})
            transaction.append([following], [answer(following)], {})
            transaction.set_limit(0, 6)
            transaction.journal("limit", {"slot": 0, "limit_units": "6"})
            transaction.commit()
        assert joined(store, record) == ["ann"]
        act.lock()
        assert (act.head.seq, act.head.data_version) == (1, 2)
        act.journal("rows", {"rows": 2}, slots=2)
        act.commit()
    head = store.head(record.id)
    assert (head.seq, head.data_version, head.slots) == (1, 3, 2)
    assert joined(store, record) == ["ann", "bob"]
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.records("visits")[0].tolist() == [0, 1]
        assert transaction.individuals(of=np.array([0, 1])).limits.tolist() == [6, 7]
        assert [act.act for act in transaction.acts(after=0)] == ["rows", "limit", "rows"]


@pytest.mark.parametrize("is_locked", [False, True])
def test_an_abandoned_long_act_has_written_nothing(store: Store, record: DatasetRecord, is_locked: bool) -> None:
    """Left before or after it took its lock: the next act finds the dataset unchanged and unlocked."""
    with store.long_act(record.id) as act:
        act.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
        if is_locked:
            act.lock()
            act.journal("rows", {}, slots=1)
    assert joined(store, record) == []
    with store.long_act(record.id) as act:
        act.add_individuals(np.array([0]), [Key("bob")], np.array([9]))
        act.lock()
        act.journal("rows", {}, slots=1)
        act.commit()
    assert joined(store, record) == ["bob"]


def test_one_long_act_waits_for_the_other(store: Store, record: DatasetRecord) -> None:
    """The second act assigns slots after those of the first."""
    is_waiting = threading.Event()

    def second() -> list[int]:
        is_waiting.set()
        with store.long_act(record.id) as act:
            return [act.head.slots, *act.slots_of([Key("ann")]).tolist()]

    with ThreadPoolExecutor(1) as pool, store.long_act(record.id) as act:
        found = pool.submit(second)
        assert is_waiting.wait(PATIENCE_S)
        act.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
        act.lock()
        act.journal("rows", {}, slots=1)
        assert not found.done()
        act.commit()
    assert found.result(PATIENCE_S) == [1, 0]


def test_long_acts_of_two_datasets_do_not_wait(store: Store, record: DatasetRecord) -> None:
    """Each dataset has a lock of its own."""
    other = store.add_dataset(dataset("other"))
    with store.long_act(record.id), store.long_act(other.id) as act:
        assert act.head.slots == 0


def test_erasing_after_the_rows_were_deleted_leaves_the_account(store: Store, record: DatasetRecord) -> None:
    """The long part deletes the rows, the short part the key."""
    join(store, record, {"ann": 9, "bob": 8})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_records("visits", np.array([0, 1, 0]), {"item": np.array([1, 2, 3], dtype=np.uint32)})
        transaction.commit()
    with store.long_act(record.id) as act:
        act.delete_records(0)
        assert act.slots_of([Key("ann")]).tolist() == [0]
        act.lock()
        act.erase(0, b"x" * 32)
        act.journal("erase", {"slot": 0})
        act.commit()
    assert joined(store, record) == ["bob"]
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.records("visits")[0].tolist() == [1]
        assert transaction.slots_of_tombstones([b"x" * 32]).tolist() == [0]
