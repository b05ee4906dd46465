"""Pruning: the quantities of entries up to a verified sequence are dropped; the chain, all totals and answers stay.

The whole ledger is verified first. The totals at the sequence, which cannot be replayed later, are stored, and an
act of the journal binds them under a salt. Then charges and pieces are dropped in ranges of entries: if the process
ends in the middle, the ledger counts as pruned, and the next pruning drops the remaining bytes.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from service.core.noise import Entropy
from service.failpoints import reach
from service.ledger.model.errors import InvalidRequest, Unavailable
from service.ledger.model.ledger_entry import SALT_BYTES
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import CommitUnclear, HeadMoved, Store, StoreUnavailable, registered
from service.ledger.ports.transaction import Transaction
from service.ledger.ports.witness import Witness
from service.maintenance.verify.report import Report, verified
from service.maintenance.verify.totals import Totals, totals_digest
from service.writer.rollback.guard import RollbackGuard

STRETCH_ENTRIES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The outcome: entries up to `seq` have no quantities now; those up to `seq_before` had none before."""

    seq: int
    seq_before: int


class Damaged(Exception):
    """The ledger does not verify, so nothing may be dropped; `report` has the findings."""

    def __init__(self, report: Report) -> None:
        super().__init__("the ledger does not verify")
        self.report = report


def prune(store: Store, witness: Witness, dataset: str, *, before: int | datetime, entropy: Entropy) -> Pruned:
    """Drop the quantities of entries with seq < `before`, or asked before that time, up to the last checkpoint.

    Safe to repeat after any failure, and while the service runs. Raises NotFound, Damaged, InvalidRequest where nothing
    can be pruned, Unavailable.
    """
    record = registered(store, dataset)
    guard = RollbackGuard(record=record, store=store, witness=witness)
    try:
        with guard.transaction(lock=False) as transaction:
            seq_before, seq = transaction.head.pruned_seq, _last(transaction, before)
            totals = None if seq <= seq_before else _verified(record, transaction, seq)
        if totals is not None:
            _begin(guard, totals, seq_before=seq_before, salt=entropy(SALT_BYTES // 8).tobytes())
        elif seq_before == 0:
            raise InvalidRequest.of("before", "no checkpoint covers an entry that could be pruned")
        seq = max(seq, seq_before)
        for after in range(0, seq, STRETCH_ENTRIES):
            _drop(guard, after=after, to=min(after + STRETCH_ENTRIES, seq))
    except (CommitUnclear, HeadMoved, StoreUnavailable) as fault:
        raise Unavailable("the outcome of a commit is not known; run the command again") from fault
    return Pruned(seq=seq, seq_before=seq_before)


def _last(transaction: Transaction, before: int | datetime) -> int:
    """The last sequence that `before` allows, at most the checkpoint's."""
    low, high = 0, transaction.head.checkpoint_seq
    if not isinstance(before, datetime):
        return min(before - 1, high)
    while low < high:  # sequences are ordered by time
        middle = (low + high + 1) // 2
        (entry,) = transaction.entry_records(before=middle + 1, limit=1, bytes_max=1)
        low, high = (middle, high) if entry.asked_at < before else (low, middle - 1)
    return low


def _verified(record: DatasetRecord, transaction: Transaction, seq: int) -> Totals:
    """Every individual's totals at `seq`. Raises Damaged unless the whole ledger verifies."""
    report, totals = verified(record, transaction, totals_at=seq)
    if report.findings:
        raise Damaged(report)
    return totals.copied()


def _begin(guard: RollbackGuard, totals: Totals, *, seq_before: int, salt: bytes) -> None:
    """Store, journal and witness the totals. From here on no quantity of an entry up to their sequence is read.

    Raises HeadMoved if the ledger was pruned since it was verified.
    """
    detail = {
        "seq": totals.seq,
        "hash": totals.hash.hex(),
        "salt": salt.hex(),
        "totals": totals_digest(salt, totals.pages).hex(),
        "ahead_units": str(totals.ahead_units),
    }
    with guard.long_act() as transaction:
        if transaction.head.pruned_seq != seq_before:
            raise HeadMoved
        transaction.keep_totals(totals.pages)
        reach("totals-kept")
        guard.lock(transaction)
        transaction.journal("prune", detail)
        transaction.prune(totals.seq)
        transaction.commit()
        head = transaction.head
    reach("prune-committed")
    guard.confirm_recorded(head)


def _drop(guard: RollbackGuard, *, after: int, to: int) -> None:
    with guard.long_act() as transaction:
        transaction.drop_quantities(after=after, to=to)
        reach("dropping")
        guard.lock(transaction)
        transaction.commit()
    reach("dropped")
