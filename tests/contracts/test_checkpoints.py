"""Checkpoints, in memory and on Postgres: written page by page, only forward, and only of the stored ledger."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from service.engine.pages import PageTotals
from service.ledger.model.rows import Checkpoint, DatasetRecord
from service.ledger.ports.store import Store
from service.query.division import PAGE_SLOTS
from tests.contracts.stores import answer, append, entry


def charge(store: Store, record: DatasetRecord, count: int) -> list[bytes]:
    """Append `count` entries that charge slot 0 one unit each; their hashes."""
    return [append(store, record, {0: 1}).hash for _ in range(count)]


def checkpoint(seq: int, digest: bytes, pages: Mapping[int, int], *, since: int = 0) -> Checkpoint:
    """A checkpoint of pages that hold one number everywhere; each counter tells the page."""
    return Checkpoint(since=since, seq=seq, hash=digest, pages={page: full(page, pages[page]) for page in pages})


def full(page: int, units: int) -> PageTotals:
    """A page that holds one number everywhere."""
    spent = np.full(PAGE_SLOTS, units, dtype=np.int64)
    charged, left_out = (np.full(PAGE_SLOTS, count, dtype=np.uint32) for count in (units % 2**32, 2**32 - 1 - page))
    return PageTotals(spent=spent, charged=charged, left_out=left_out)


def kept(store: Store, record: DatasetRecord) -> tuple[int, dict[int, tuple[int, list[int]]]]:
    """The checkpoint's sequence, and by page its own sequence and the numbers in it."""
    with store.transaction(record.id, lock=False) as transaction:
        found = list(transaction.pages())
        for page in found:
            right = full(page.number, int(page.totals.spent[0]))
            assert page.totals.charged.dtype == page.totals.left_out.dtype == np.dtype(np.uint32)
            np.testing.assert_array_equal(page.totals.charged, right.charged)
            np.testing.assert_array_equal(page.totals.left_out, right.left_out)
        pages = {page.number: (page.seq, np.unique(page.totals.spent).tolist()) for page in found}
        assert list(pages) == sorted(pages)
        return transaction.head.checkpoint_seq, pages


def test_pages_are_durable_one_by_one_and_count_once_the_checkpoint_is_finished(
    store: Store, record: DatasetRecord
) -> None:
    """Each page reads back as written, with its sequence; the head does not mention them until all are written."""
    hashes = charge(store, record, 3)
    written = checkpoint(2, hashes[1], {0: 5, 7: 2**61})
    store.write_page(record.id, written, 7)
    assert kept(store, record) == (0, {7: (2, [2**61])})
    assert not store.finish_checkpoint(record.id, written)
    assert kept(store, record)[0] == 0
    store.write_page(record.id, written, 0)
    assert store.finish_checkpoint(record.id, written)
    assert kept(store, record) == (2, {0: (2, [5]), 7: (2, [2**61])})
    assert not store.finish_checkpoint(record.id, written)
    assert store.finish_checkpoint(record.id, checkpoint(3, hashes[2], {}, since=2))
    assert kept(store, record)[0] == 3


def test_a_page_moves_only_forward(store: Store, record: DatasetRecord) -> None:
    """A late writer of older totals changes no page, and may still finish: the stored pages are newer."""
    hashes = charge(store, record, 3)
    late, early = checkpoint(2, hashes[1], {0: 2, 1: 9}), checkpoint(3, hashes[2], {0: 3})
    store.write_page(record.id, early, 0)
    for page in late.pages:
        store.write_page(record.id, late, page)
    assert kept(store, record) == (0, {0: (3, [3]), 1: (2, [9])})
    assert store.finish_checkpoint(record.id, late)
    assert store.head(record.id).checkpoint_seq == 2


@pytest.mark.parametrize("seq", [2, 3, 9])
def test_pages_of_another_history_are_not_stored(store: Store, record: DatasetRecord, seq: int) -> None:
    """For an entry of another hash, or a missing one, neither pages nor the finished checkpoint are stored."""
    charge(store, record, 3)
    forged = checkpoint(seq, b"x" * 32, {0: 1})
    store.write_page(record.id, forged, 0)
    assert kept(store, record) == (0, {})
    assert not store.finish_checkpoint(record.id, checkpoint(seq, b"x" * 32, {}))
    assert kept(store, record) == (0, {})


def test_a_checkpoint_is_finished_only_on_top_of_the_one_that_it_was_copied_after(
    store: Store, record: DatasetRecord
) -> None:
    """Changes before `since` were not copied, so a database at an earlier sequence lacks them. Pages never go back."""
    hashes = charge(store, record, 3)
    assert not store.finish_checkpoint(record.id, checkpoint(3, hashes[2], {}, since=1))
    assert store.finish_checkpoint(record.id, checkpoint(2, hashes[1], {}))
    assert not store.finish_checkpoint(record.id, checkpoint(1, hashes[0], {}))
    assert store.finish_checkpoint(record.id, checkpoint(3, hashes[2], {}, since=1))
    assert store.head(record.id).checkpoint_seq == 3


def test_a_page_is_written_without_the_datasets_lock(store: Store, record: DatasetRecord) -> None:
    """It is written while a transaction holds the dataset's lock, and survives that one's commit or rollback."""
    [digest] = charge(store, record, 1)
    written = checkpoint(1, digest, {0: 1, 1: 4})
    with store.transaction(record.id, lock=True) as transaction:
        store.write_page(record.id, written, 0)
        following = entry(transaction.head, {0: 1})
        transaction.append([following], [answer(following, "other")], {})
        transaction.commit()
    with store.transaction(record.id, lock=True):
        store.write_page(record.id, written, 1)
    assert store.finish_checkpoint(record.id, written)
    assert kept(store, record) == (1, {0: (1, [1]), 1: (1, [4])})
    assert store.head(record.id).seq == 2


def test_two_concurrent_checkpoint_writers_leave_the_newest(store: Store, record: DatasetRecord) -> None:
    """In any order of their writes, every page and the head end as the newest checkpoint says."""
    hashes = charge(store, record, 12)

    def write(seqs: range) -> None:
        for seq in seqs:
            made = checkpoint(seq, hashes[seq - 1], {0: seq, 1: seq})
            for page in made.pages:
                store.write_page(record.id, made, page)
            store.finish_checkpoint(record.id, made)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, range(first, 13, 2)) for first in (1, 2)]:
            done.result()
    assert kept(store, record) == (12, {0: (12, [12]), 1: (12, [12])})
