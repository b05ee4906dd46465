"""Amended entries, in every store: one slot reads as untouched, all else as before, and the hash holds."""

from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.ledger.model.amendments import Amendment, Rewritten
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import STRETCH_SLOTS, WHOLE
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import Store
from service.ledger.ports.transaction import LongAct
from service.query.keys import Key
from tests.contracts.stores import entry, ledger, priced_entry

SLOT = STRETCH_SLOTS + 1
ERASURE = 3


def written(store: Store, record: DatasetRecord) -> list[LedgerEntry]:
    """Entries of units and of norms, of one piece and of several, with the slot charged, left out and neither."""
    many = dict.fromkeys(range(2 * STRETCH_SLOTS), 5)
    made: list[LedgerEntry] = []
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(*people(4))
        transaction.journal("rows", {}, slots=200_000)
        for number in range(5):
            head = transaction.head
            made.append(
                [
                    entry(head, {0: 7, SLOT: 9}),
                    priced_entry(head, {0: 7, SLOT: 9}),
                    priced_entry(head, {0: 7}, (SLOT,)),
                    priced_entry(head, many | {SLOT: 11}),
                    priced_entry(head, {0: 7}),
                ][number]
            )
            transaction.append(made[-1:], [], {UUID(int=1): 1})
        transaction.commit()
    return made


def people(count: int) -> tuple[NDArray[np.int64], list[Key], NDArray[np.int64]]:
    """Slots, keys and limits."""
    slots = np.arange(count)
    return slots, [Key(f"p{slot}") for slot in slots.tolist()], np.full(count, 10**9)


def rewritten(transaction: LongAct, *, erasure: int = ERASURE) -> list[Rewritten]:
    """Rewrite every part that holds the slot, and return the parts."""
    parts = [part.without(SLOT, erasure=erasure) for part in transaction.own_parts(SLOT, after=0, to=5)]
    found = [part for part in parts if part is not None]
    transaction.amend(found)
    return found


def amended(store: Store, record: DatasetRecord) -> list[Amendment]:
    """Amend and commit; the amendments."""
    with store.long_act(record.id) as transaction:
        found = [part.amendment for part in rewritten(transaction)]
        transaction.lock()
        transaction.commit()
    return found


def test_an_amended_slot_reads_as_untouched_and_every_hash_holds(store: Store, record: DatasetRecord) -> None:
    """Entries change in no other slot and in no size."""
    before = written(store, record)
    noted = amended(store, record)
    assert [(each.seq, each.number) for each in noted] == [(1, WHOLE), (2, WHOLE), (3, WHOLE), (4, 1)]
    with store.transaction(record.id, lock=False) as transaction:
        after = list(transaction.entries(after=0))
        assert list(transaction.amendments()) == noted
        assert [
            each.part and each.part.outcome for each in transaction.own_charges(SLOT, before=9, limit=9, bytes_max=9999)
        ] == 5 * ["untouched"]
    for old, new in zip(before, after, strict=True):
        assert new.is_itself
        assert new.quantities().own(SLOT, new.law).outcome == "untouched"
        charged, charges, left_out = old.decode()
        still, paid, out = new.decode()
        assert dict(zip(still.tolist(), paid.tolist(), strict=True)) == {
            slot: units for slot, units in zip(charged.tolist(), charges.tolist(), strict=True) if slot != SLOT
        }
        assert out.tolist() == [slot for slot in left_out.tolist() if slot != SLOT]
        assert [len(piece.content) for piece in new.pieces] == [len(piece.content) for piece in old.pieces]
    assert after[4] == before[4]


def test_a_second_erasure_finds_nothing_of_the_same_slot(store: Store, record: DatasetRecord) -> None:
    """The digest of the first version of the entry is still stored."""
    before = written(store, record)
    amended(store, record)
    with store.long_act(record.id) as transaction:
        assert rewritten(transaction, erasure=ERASURE + 1) == []
        parts = list(transaction.own_parts(0, after=0, to=5))
    assert [part.seq for part in parts] == [1, 2, 3, 4, 5]
    assert parts[0].piece.bound_digest == before[0].pieces[0].digest


def test_without_a_commit_nothing_is_amended(store: Store, record: DatasetRecord) -> None:
    """A process that ends in the middle has amended nothing."""
    before = written(store, record)
    with store.long_act(record.id) as transaction:
        assert len(rewritten(transaction)) == 4
    assert ledger(store, record) == before
    with store.transaction(record.id, lock=False) as transaction:
        assert list(transaction.amendments()) == []
