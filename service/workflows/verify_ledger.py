"""The entries replayed: their chain, what each says of itself, and everybody's spent, held against the pages."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.core.units import CHARGE_UNITS_MAX
from service.engine.pages import PAGE_SLOTS, PageTotals, pages_for, slots_on
from service.workflows.answering import exact_sum
from service.workflows.journal import JournalAct
from service.workflows.ledger import LedgerEntry, chain_hash, private_digest
from service.workflows.pieces import pieces_digest
from service.workflows.records import DatasetRecord, Head, Individuals, StoredPage
from service.workflows.verify_accounts import NAMED_MAX
from service.workflows.verify_journal import Integers, Standing
from service.workflows.verify_participation import Participation, Priced

_UNKNOWN = -1


class LedgerReplay:
    """One pass over one ledger. `spent` (slots,) is in units, `worst_cases` by analyst.

    `charged` and `left_out` (slots,) count queries.
    """

    def __init__(
        self,
        record: DatasetRecord,
        head: Head,
        pages: Mapping[int, StoredPage],
        accounts: Individuals,
        standing: Standing,
        acts: Sequence[JournalAct],
    ) -> None:
        """Nothing is replayed yet. `standing` is what all of the `acts` decide."""
        self.findings: list[str] = []
        self.entries = self.last_seq = self.worst_case_units = 0
        self.spent: Integers = np.zeros(standing.slots, dtype=np.int64)
        self.charged, self.left_out = np.zeros((2, standing.slots), dtype=np.uint32)
        self.worst_cases: dict[UUID, int] = defaultdict(int)
        self._record, self._head, self._pages = record, head, pages
        self._last_hash = record.genesis
        self._participation = Participation(record, acts)
        self._limits: Integers = np.full(standing.slots, _UNKNOWN, dtype=np.int64)
        is_held = accounts.slots < standing.slots
        self._limits[accounts.slots[is_held]] = accounts.limits[is_held]
        self._limits[~standing.are_plain] = _UNKNOWN
        self._compare_pages(seq=0)

    def apply(self, entry: LedgerEntry) -> None:
        """Check the next entry, and debit it."""
        self.findings += [
            f"ledger row {missing}: is missing"
            for missing in range(self.last_seq + 1, min(entry.seq, self.last_seq + 1 + NAMED_MAX))
        ]
        wrong = list(self._wrong_with_place(entry))
        try:
            priced = Priced.of(entry)
        except (ValueError, IndexError):  # lengths that do not go together
            wrong.append("its charges cannot be read")
        else:
            wrong += _wrong_with_charges(entry, priced)
            wrong += self._debit(entry, priced)
        self.findings += [f"ledger row {entry.seq}: {each}" for each in wrong]
        self.entries, self.last_seq, self._last_hash = self.entries + 1, entry.seq, entry.hash
        self.worst_case_units = entry.worst_case_total_units
        if entry.kind == "query":
            self.worst_cases[entry.analyst_id] += entry.worst_case_units
        self._compare_pages(seq=entry.seq)

    def end(self, stored_worst_cases: Mapping[UUID, int]) -> None:
        """Compare with the head, with the worst cases as stored, and with pages that are ahead."""
        head, place = self._head, f"heads row {self._record.id}"
        if head.seq != self.last_seq:
            self.findings.append(f"{place}: says seq {head.seq}, the ledger ends at {self.last_seq}")
        elif head.hash != self._last_hash:
            self.findings.append(f"{place}: its hash is not that of the last ledger row")
        if head.worst_case_units != self.worst_case_units:
            said = f"says worst_case_units {head.worst_case_units}"
            self.findings.append(f"{place}: {said}, the ledger gives {self.worst_case_units}")
        for page in self._pages.values():
            if page.seq > head.seq:
                ahead = f"at sequence {page.seq}, which the ledger has not reached"
                self.findings.append(f"pages row {page.number}: {ahead}")
        for analyst in sorted({*self.worst_cases, *stored_worst_cases}):
            held, given = stored_worst_cases.get(analyst, 0), min(self.worst_cases[analyst], CHARGE_UNITS_MAX)
            if held != given:
                self.findings.append(f"worst_cases row {analyst}: says {held} units, the ledger gives {given}")

    def _wrong_with_place(self, entry: LedgerEntry) -> Iterator[str]:
        if entry.seq == self.last_seq + 1 and entry.previous_hash != self._last_hash:
            yield "does not continue the row before"
        if chain_hash(entry) != entry.hash:
            yield "its contents do not give its hash"
        if entry.format != 1 and hashlib.sha256(entry.values).digest() != entry.values_digest:
            yield "its values do not give its values_digest"
        if entry.format != 1 and private_digest(entry) != entry.private_digest:
            yield "its private part does not give its private_digest"
        if entry.format != 1 and pieces_digest(entry.pieces) != entry.pieces_digest:
            yield "its pieces do not give its pieces_digest"
        if entry.worst_case_total_units != min(self.worst_case_units + entry.worst_case_units, CHARGE_UNITS_MAX):
            yield "its worst_case_total_units is not the sum of worst cases so far"

    def _debit(self, entry: LedgerEntry, priced: Priced) -> Iterator[str]:
        """Add the charges; no individual may be left out who could have paid."""
        touched_last = int(priced.touched[-1]) if priced.touched.size else -1
        if touched_last >= self.spent.size:
            yield f"touches slot {touched_last}, which nobody has"
            return
        yield from self._participation.wrong_with(entry, priced, self.spent)
        left_out = priced.left_out
        could_pay = left_out[self._limits[left_out] - self.spent[left_out] >= priced.of_left_out]
        for slot in could_pay[:NAMED_MAX].tolist():
            yield f"leaves out slot {slot}, whose limit affords it"
        self.spent[priced.charged] += priced.charges
        if entry.kind == "query":
            self.charged[priced.charged] += 1
            self.left_out[left_out] += 1

    def _compare_pages(self, *, seq: int) -> None:
        """The pages that stand at `seq`, which a replay has reached: those that say so, and at the checkpoint all."""
        for number in range(pages_for(self.spent.size)):
            page = self._pages.get(number)
            own_seq = 0 if page is None else page.seq
            if own_seq != seq and (own_seq > seq or seq != self._head.checkpoint_seq):
                continue
            kept = PageTotals.zero() if page is None else page.totals
            columns = (
                ("holds {} units", kept.spent, self.spent),
                ("counts {} queries that charged it", kept.charged, self.charged),
                ("counts {} queries that left it out", kept.left_out, self.left_out),
            )
            for says, stored, replayed in columns:
                self.findings += [f"pages row {number}: {each}" for each in _unlike(says, number, stored, replayed)]


def _unlike(says: str, page: int, stored: NDArray[Any], replayed: NDArray[Any]) -> Iterator[str]:
    """The slots of which a page (PAGE_SLOTS,) says something else than the replay (slots,), or than zero beyond it."""
    given, held = np.zeros_like(stored), replayed[slots_on(page)]
    given[: held.size] = held
    for place in np.flatnonzero(stored != given)[:NAMED_MAX].tolist():
        yield f"slot {page * PAGE_SLOTS + place} {says.format(stored[place])}, the ledger gives {given[place]}"


def _wrong_with_charges(entry: LedgerEntry, priced: Priced) -> Iterator[str]:
    charges = priced.charges
    if (entry.charged_count, entry.left_out_count) != (priced.charged.size, priced.left_out.size):
        yield "counts do not agree with its charges"
    if entry.charged_units != exact_sum(charges) or bool((charges < 0).any()):
        yield "the total does not agree with its charges"
    if bool((charges > entry.worst_case_units).any()):
        yield "a charge above the public worst case"
