"""Pruned entries, in every store: quantities are dropped, digests and hashes stay, totals are kept."""

import numpy as np
import pytest

from service.engine.pages import PageTotals
from service.ledger.model.rows import Checkpoint, DatasetRecord, StoredPage
from service.ledger.ports.store import Store
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from tests.contracts.stores import entry, priced_entry

ENTRIES = 4
PRUNED = 3


def totals(seq: int, spent: int) -> list[StoredPage]:
    """One page on which slot 0 has spent `spent` units."""
    zero = PageTotals.zero()
    zero.spent[0] = spent
    zero.charged[0] = 2
    return [StoredPage(number=0, seq=seq, totals=zero)]


def written(store: Store, record: DatasetRecord) -> list[bytes]:
    """Entries of one piece and of several, and a checkpoint at the last; their hashes."""
    many = dict.fromkeys(range(PAGE_SLOTS), 5)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.arange(2), [Key("a"), Key("b")], np.full(2, 10**9))
        transaction.journal("rows", {}, slots=200_000)
        made = []
        for number in range(ENTRIES):
            head = transaction.head
            kinds = [
                entry(head, {0: 7}),
                priced_entry(head, many),
                priced_entry(head, {0: 7}),
                priced_entry(head, {0: 3}),
            ]
            made.append(kinds[number])
            transaction.append(made[-1:], [], {})
        transaction.commit()
    last = made[-1]
    checkpoint = Checkpoint(since=0, seq=last.seq, hash=last.hash, pages={0: totals(ENTRIES, 9)[0].totals})
    store.write_page(record.id, checkpoint, 0)
    assert store.finish_checkpoint(record.id, checkpoint)
    return [each.hash for each in made]


def pruned(store: Store, record: DatasetRecord, *, seq: int = PRUNED, spent: int = 6) -> None:
    """Move the head; nothing is dropped yet."""
    with store.long_act(record.id) as transaction:
        transaction.keep_totals(totals(seq, spent))
        transaction.lock()
        transaction.journal("prune", {"seq": seq})
        transaction.prune(seq)
        transaction.commit()


def dropped(store: Store, record: DatasetRecord, *, after: int = 0, to: int = PRUNED) -> None:
    """Drop the quantities of pruned entries."""
    with store.long_act(record.id) as transaction:
        transaction.drop_quantities(after=after, to=to)
        transaction.lock()
        transaction.commit()


@pytest.mark.parametrize("drops", [0, 1, 2])
def test_pruned_entries_keep_their_hash_and_hold_no_individual(store: Store, record: DatasetRecord, drops: int) -> None:
    """Reads are the same with the bytes not dropped yet, dropped in part, or dropped twice."""
    hashes = written(store, record)
    pruned(store, record)
    for _ in range(drops):
        dropped(store, record, after=1)
        dropped(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.head.pruned_seq == PRUNED
        entries = list(transaction.entries(after=0))
        assert [each.hash for each in entries] == hashes
        assert all(each.is_itself for each in entries)
        assert [each.is_pruned for each in entries] == [True, True, True, False]
        assert all(each.pieces == () for each in entries[:PRUNED])
        receipts = transaction.own_charges(0, before=9, limit=9, bytes_max=9999)
        assert [(each.seq, each.part and each.part.outcome) for each in receipts] == [
            (4, "charged"),
            *((seq, None) for seq in (3, 2, 1)),
        ]
        assert transaction.account_of(0).spent == 9  # the page's


def test_dropping_frees_space(store: Store, record: DatasetRecord) -> None:
    """Entries of every kind shrink; the last entry keeps its bytes."""
    written(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        before = dict(transaction.entry_sizes(before=9, limit=9))
    pruned(store, record)
    dropped(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        after = dict(transaction.entry_sizes(before=9, limit=9))
    values_bytes = 16
    assert after == {1: values_bytes, 2: values_bytes, 3: values_bytes, 4: before[4]}
    assert before[4] > values_bytes


def test_totals_take_the_place_of_earlier_ones(store: Store, record: DatasetRecord) -> None:
    """They read back as they were stored."""
    written(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        assert list(transaction.pruned_totals()) == []
    pruned(store, record, seq=1, spent=4)
    pruned(store, record)
    with store.transaction(record.id, lock=False) as transaction:
        (page,) = transaction.pruned_totals()
    assert (page.number, page.seq, int(page.totals.spent[0]), int(page.totals.charged[0])) == (0, PRUNED, 6, 2)


def test_without_a_commit_nothing_is_pruned(store: Store, record: DatasetRecord) -> None:
    """Neither the head nor the totals change."""
    written(store, record)
    with store.long_act(record.id) as transaction:
        transaction.keep_totals(totals(PRUNED, 6))
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.head.pruned_seq == 0
        assert list(transaction.pruned_totals()) == []
        assert not any(each.is_pruned for each in transaction.entries(after=0))
