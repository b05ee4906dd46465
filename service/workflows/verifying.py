"""`ledger verify`: replay every entry from the genesis and compare with everything that was derived from it.

A finding names the row. The checks: sequence dense, chain unbroken, counts and sums as the charges say (double entry),
pages equal to the replay at their own sequence and, unless that is later, at the checkpoint's, nobody above a limit,
the head equal to the last entry, everything witnessed outside the database in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.engine.pages import PAGE_SLOTS, pages_for
from service.workflows.answering import exact_sum
from service.workflows.ledger import LedgerEntry, chain_hash
from service.workflows.ports import Store, Transaction, Witness, WitnessUnavailable
from service.workflows.records import DatasetRecord, WitnessRecord
from service.workflows.witnessing import judge, unaccounted, witness_name


@dataclass(slots=True)
class Report:
    """What replaying one dataset's ledger found."""

    dataset: str
    entries: int = 0
    findings: list[str] = field(default_factory=list)


def verify_all(store: Store, witness: Witness | None = None) -> Iterator[Report]:
    """Replay every dataset, each in one snapshot, and hold it against what is witnessed of it."""
    for record in store.datasets():
        history = None if witness is None else _history(witness, record)  # before the snapshot, which holds all of it
        with store.transaction(record.id, lock=False) as transaction:
            report = _Replay(record, transaction).run()
            if witness is not None:
                report.findings.extend(_behind(record, transaction, history))
        yield report


def _history(witness: Witness, record: DatasetRecord) -> list[WitnessRecord] | None:
    try:
        return witness.history(witness_name(record))
    except WitnessUnavailable:
        return None


def _behind(record: DatasetRecord, transaction: Transaction, history: list[WitnessRecord] | None) -> list[str]:
    if history is None:
        return ["witness: cannot be read"]
    verdict = judge(record, transaction, history)
    if verdict is None:
        return []
    if not history:
        return [f"witness: nothing is left that could say whether sequence {transaction.head.seq} is the last"]
    lost, head = unaccounted(record, transaction, history)[-1], transaction.head
    seen = f"sequence {lost.seq} under fence {lost.fence} and {lost.acts} acts"
    return [f"witness: has seen {seen}; here are {head.seq} under {head.fence} and {head.data_version}"]


class _Replay:
    """One pass over one ledger."""

    def __init__(self, record: DatasetRecord, transaction: Transaction) -> None:
        self._record, self._transaction = record, transaction
        self._report = Report(record.name)
        self._accounts = transaction.individuals()
        self._spent: NDArray[np.int64] = np.zeros(transaction.head.slots, dtype=np.int64)
        self._pages = {page.number: page for page in transaction.pages()}

    def run(self) -> Report:
        head, previous = self._transaction.head, self._record.genesis
        self._compare_pages(seq=0)
        for entry in self._transaction.entries(after=0):
            self._report.entries += 1
            self._check(entry, previous)
            self._debit(entry)
            previous = entry.hash
            self._compare_pages(seq=entry.seq)
        for page in self._pages.values():
            if page.seq > head.seq:
                self._find(f"pages row {page.number}: at sequence {page.seq}, which the ledger has not reached")
        if (head.seq, head.hash) != (self._report.entries, previous):
            self._find(f"head: says sequence {head.seq}, the ledger ends at {self._report.entries} with another hash")
        for place in np.flatnonzero(self._spent[self._accounts.slots] > self._accounts.limits):
            self._find(f"individuals slot {self._accounts.slots[place]}: spent more than the limit")
        return self._report

    def _check(self, entry: LedgerEntry, previous: bytes) -> None:
        place = f"ledger row {entry.seq}"
        charged, charges, left_out = entry.charges.decode()
        if entry.seq != self._report.entries:
            self._find(f"{place}: row {self._report.entries} was expected")
        if entry.previous_hash != previous:
            self._find(f"{place}: does not continue the row before")
        if chain_hash(entry) != entry.hash:
            self._find(f"{place}: its contents do not give its hash")
        if (entry.charged_count, entry.left_out_count) != (charged.size, left_out.size):
            self._find(f"{place}: counts do not agree with its charges")
        if entry.charged_units != exact_sum(charges) or bool((charges < 0).any()):
            self._find(f"{place}: the total does not agree with its charges")
        if bool((charges > entry.worst_case_units).any()):
            self._find(f"{place}: a charge above the public worst case")

    def _debit(self, entry: LedgerEntry) -> None:
        charged, charges, _ = entry.charges.decode()
        if charged.size and int(charged[-1]) >= self._spent.size:
            self._find(f"ledger row {entry.seq}: charges slot {int(charged[-1])}, which nobody has")
            return
        self._spent[charged] += charges

    def _compare_pages(self, *, seq: int) -> None:
        """The pages that stand at `seq`, which a replay has reached: those that say so, and at the checkpoint all."""
        for number in range(pages_for(self._spent.size)):
            page = self._pages.get(number)
            own_seq = 0 if page is None else page.seq
            if own_seq != seq and (own_seq > seq or seq != self._transaction.head.checkpoint_seq):
                continue
            start = number * PAGE_SLOTS
            replayed = self._spent[start : start + PAGE_SLOTS]
            kept = np.zeros(PAGE_SLOTS, dtype=np.int64) if page is None else page.spent
            for slot in np.flatnonzero(kept[: replayed.size] != replayed)[:5].tolist():
                says = f"slot {start + slot} holds {kept[slot]} units, the ledger gives {replayed[slot]}"
                self._find(f"pages row {number}: {says}")

    def _find(self, finding: str) -> None:
        self._report.findings.append(finding)
