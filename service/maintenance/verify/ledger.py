"""The entries checked: their chain, their fields, and every individual's totals, compared with the pages.

Entries may no longer hold everything. In place of pruned entries the stored totals count, which the last `prune` act
binds. An amendment takes one erased individual out of one entry, whose charge for it is then unknown. Two checks remain
for amendments. Every changed content must follow from its amendments, which acts bind. All entries together must miss
as many units as the accounts of erased individuals hold beyond the replay.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from uuid import UUID

import numpy as np

from service.arrays import Integers, exact_sum
from service.core.charge import CHARGE_UNITS_MAX
from service.engine.pages import PageTotals, pages_for
from service.ledger.model.amendments import Amendment, amendments_digest
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry, chain_hash, private_digest
from service.ledger.model.pieces import pieces_digest
from service.ledger.model.priced import Priced
from service.ledger.model.rows import DatasetRecord, Head, StoredPage
from service.ledger.ports.transaction import Transaction
from service.maintenance.journal_state import JournalState
from service.maintenance.replay import Visitor
from service.maintenance.verify.accounts import NAMED_MAX
from service.maintenance.verify.participation import named_in, wrong_with_participants, wrong_with_tick
from service.maintenance.verify.totals import ReplayedTotals, totals_digest

_UNKNOWN = -1


class LedgerCheck(Visitor):
    """Checks the entries one by one, with the accounts before each.

    `accounts` are those stored, `totals` every individual's so far, `worst_cases` by analyst in units. The first
    `findings` are about amendments and about the pruning.
    """

    def __init__(
        self,
        record: DatasetRecord,
        transaction: Transaction,
        *,
        acts: Sequence[JournalAct],
        last_state: JournalState,
        totals_at: int | None = None,
    ) -> None:
        """`last_state` is the journal's state after all `acts`. At the sequence `totals_at` the totals are copied."""
        self._record, self._head, self._totals_at = record, transaction.head, totals_at
        self._stored_worst_cases = transaction.worst_cases()
        self._pages = {page.number: page for page in transaction.pages()}
        self.accounts = accounts = transaction.individuals()
        self._amended = Amended(transaction.amendments(), acts)
        self._pruned = PrunedLedger.of(self._head, acts, transaction.pruned_totals())
        self.findings: list[str] = [*self._amended.findings, *self._pruned.findings]
        self.entries = self.last_seq = self.worst_case_units = self._ticks = 0
        self.totals = ReplayedTotals(last_state.slots, erased=self._amended.slots)
        self.worst_cases: dict[UUID, int] = defaultdict(int)
        self._last_hash = record.genesis
        self._limits: Integers = np.full(last_state.slots, _UNKNOWN, dtype=np.int64)
        is_held = accounts.slots < last_state.slots
        self._limits[accounts.slots[is_held]] = accounts.limits[is_held]
        self._limits[~last_state.are_plain] = _UNKNOWN
        self._compare_pages(seq=0)

    def entry(self, entry: LedgerEntry, then: JournalState) -> None:
        """Check the next entry, and add it to the totals."""
        self.findings += [
            f"ledger row {missing}: is missing"
            for missing in range(self.last_seq + 1, min(entry.seq, self.last_seq + 1 + NAMED_MAX))
        ]
        wrong = list(self._wrong_with_place(entry))
        if entry.seq > self._pruned.seq:
            wrong += self._wrong_with_quantities(entry, then)
        elif entry.seq == self._pruned.seq:
            wrong += self._begin_with_totals(entry)
        self.findings += [f"ledger row {entry.seq}: {each}" for each in wrong]
        self.entries, self.last_seq, self._last_hash = self.entries + 1, entry.seq, entry.hash
        self.worst_case_units, self._ticks = entry.worst_case_total_units, entry.tick or self._ticks
        if entry.kind == "query":
            self.worst_cases[entry.analyst_id] += entry.worst_case_units
        if entry.seq >= self._pruned.seq:
            self._compare_pages(seq=entry.seq)
        if entry.seq == self._totals_at:
            self.totals.copy(seq=entry.seq, digest=entry.hash)

    def end(self) -> None:
        """Compare the replay with the head and the stored worst cases. Report pages that the ledger has not reached."""
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
        if self.totals.missing_units != 0:
            said = f"{self.totals.missing_units} units more than the accounts of erased individuals hold"
            self.findings.append(f"amendments: the entries that were amended miss {said}")
        for analyst in sorted({*self.worst_cases, *self._stored_worst_cases}):
            held, given = self._stored_worst_cases.get(analyst, 0), min(self.worst_cases[analyst], CHARGE_UNITS_MAX)
            if held != given:
                self.findings.append(f"worst_cases row {analyst}: says {held} units, the ledger gives {given}")

    def _wrong_with_place(self, entry: LedgerEntry) -> Iterator[str]:
        if entry.seq == self.last_seq + 1 and entry.previous_hash != self._last_hash:
            yield "does not continue the row before"
        if chain_hash(entry) != entry.hash:
            yield "its contents do not give its hash"
        if hashlib.sha256(entry.values).digest() != entry.values_digest:
            yield "its values do not give its values_digest"
        if private_digest(entry) != entry.private_digest:
            yield "its private part does not give its private_digest"
        if not entry.is_pruned and pieces_digest(entry.pieces) != entry.pieces_digest:
            yield "its pieces do not give its pieces_digest"
        yield from self._amended.wrong_with(entry)
        if entry.worst_case_total_units != min(self.worst_case_units + entry.worst_case_units, CHARGE_UNITS_MAX):
            yield "its worst_case_total_units is not the sum of worst cases so far"

    def _begin_with_totals(self, entry: LedgerEntry) -> Iterator[str]:
        """Begin with the stored totals: the entries up to this one are pruned and cannot be replayed."""
        if entry.hash.hex() != self._pruned.hash:
            yield "its hash is not the one that the journal gives for the pruned ledger's end"
        self.totals.begin_with(self._pruned.pages, ahead_units=self._pruned.ahead_units)

    def _wrong_with_quantities(self, entry: LedgerEntry, then: JournalState) -> Iterator[str]:
        """Findings about the charges, which are added up. An individual that could have paid must not be left out."""
        try:
            priced = entry.priced()
        except (ValueError, IndexError):  # lengths that do not match
            yield "its charges cannot be read"
            return
        mechanisms = self._record.accounting.mechanisms.values()
        if entry.kind == "query" and not entry.tick and all(entry.mechanism != each.name for each in mechanisms):
            yield f"says mechanism {entry.mechanism}, which the accounting of its dataset does not price"
        missing_units = entry.charged_units - exact_sum(priced.charges)
        yield from self._wrong_with_numbers(entry, priced, missing_units)
        touched_last = int(priced.touched[-1]) if priced.touched.size else -1
        if touched_last >= self.totals.spent.size:
            yield f"touches slot {touched_last}, which no individual has"
            return
        totals, monitor, drops = self.totals, self._record.monitor, self._record.rule == "drop"
        if entry.tick:
            yield from wrong_with_tick(entry, priced, totals, then, monitor=monitor, ticks_before=self._ticks)
        else:
            yield from wrong_with_participants(entry, priced, totals, then, drops=drops)
        left_out = priced.left_out
        can_pay = self._limits[left_out] - totals.spent[left_out] >= priced.of_left_out
        if drops:
            can_pay &= totals.left_out[left_out] == 0
        yield from named_in(left_out[can_pay & totals.is_known[left_out]], "leaves out slot {}, whose limit affords it")
        self.totals.add(priced, is_counted=entry.is_counted, missing_units=missing_units, tick=entry.tick)

    def _compare_pages(self, *, seq: int) -> None:
        """Compare the pages written at `seq` with the replay after that entry.

        At the checkpoint, compare earlier pages too.
        """
        for number in range(pages_for(self.totals.spent.size)):
            page = self._pages.get(number)
            own_seq = 0 if page is None else page.seq
            if own_seq != seq and (own_seq > seq or seq != self._head.checkpoint_seq):
                continue
            if page is not None:
                self.totals.settle(page)
            stored = PageTotals.zero() if page is None else page.totals
            self.findings += [f"pages row {number}: {each}" for each in self.totals.unlike(number, stored)]

    def _wrong_with_numbers(self, entry: LedgerEntry, priced: Priced, missing_units: int) -> Iterator[str]:
        """Findings if an entry's counts and units do not agree with its charges and with what was amended away."""
        charges, amended = priced.charges, self._amended.count(entry)
        charged, left_out = entry.charged_count - priced.charged.size, entry.left_out_count - priced.left_out.size
        if min(charged, left_out) < 0 or charged + left_out != amended:
            yield "counts do not agree with its charges"
        if not 0 <= missing_units <= charged * entry.worst_case_units or bool((charges < 0).any()):
            yield "the total does not agree with its charges"
        if bool((charges > entry.worst_case_units).any()):
            yield "a charge above the public worst case"


Place = tuple[int, int]
"""Sequence and number of an amended part."""


class _Stretch(NamedTuple):
    """Entries with `after` < seq <= `to`, whose amendments for the act `erasure` have this `digest`."""

    erasure: int
    after: int
    to: int
    digest: str


class Amended:
    """All amendments of a dataset.

    `findings` are about their rows; `slots` (n,) are the erased individuals', increasing.
    """

    def __init__(self, amendments: Iterable[Amendment], acts: Sequence[JournalAct]) -> None:
        self.findings: list[str] = []
        self._by_place: dict[Place, list[Amendment]] = defaultdict(list)
        self._by_erasure: dict[int, list[Amendment]] = defaultdict(list)
        for each in amendments:
            self._by_place[each.seq, each.number].append(each)
            self._by_erasure[each.erasure].append(each)
        stretches = [each for act in acts if act.act == "amend" for each in self._stretch(act)]
        erased = {act.number: act.detail.get("slot") for act in acts if act.act == "erase"}
        slots = {erased.get(each.erasure) for each in stretches}
        self.slots: Integers = np.array(sorted(each for each in slots if isinstance(each, int)), dtype=np.int64)
        self._check_rows(stretches)

    def count(self, entry: LedgerEntry) -> int:
        """The number of individuals taken out of an entry."""
        return sum(len(self._by_place.get((entry.seq, number), ())) for number, _, _ in _parts(entry))

    def wrong_with(self, entry: LedgerEntry) -> Iterator[str]:
        """Findings if an entry's content is not the one that its amendments lead to."""
        for number, written, held in _parts(entry):
            leads_to = written
            for each in self._by_place.get((entry.seq, number), ()):
                if each.old_digest != leads_to:
                    yield f"its part {number} was amended from something else"
                leads_to = each.new_digest
            if leads_to != held:
                yield f"its part {number} is not the one that its amendments lead to"

    def _stretch(self, act: JournalAct) -> Iterator[_Stretch]:
        try:
            erasure, after, to = (int(act.detail[name]) for name in ("erasure", "after", "to"))
            yield _Stretch(erasure, after, to, str(act.detail["digest"]))
        except (KeyError, ValueError, TypeError) as error:
            self.findings.append(f"journal row {act.number}: its detail makes no sense ({type(error).__name__})")

    def _check_rows(self, stretches: Sequence[_Stretch]) -> None:
        told = 0
        for erasure, after, to, digest in stretches:
            rows = [each for each in self._by_erasure[erasure] if after < each.seq <= to]
            told += len(rows)
            if amendments_digest(rows).hex() != digest:
                named = f"rows {after + 1} to {to} of act {erasure}"
                self.findings.append(f"amendments: {named} are not those of the journal")
        if told != sum(map(len, self._by_erasure.values())):
            self.findings.append("amendments: there are rows of which no act tells")


def _parts(entry: LedgerEntry) -> Iterator[tuple[int, bytes, bytes]]:
    """(number, digest as written, digest of what is held) of each part."""
    for piece in entry.pieces:
        yield piece.number, piece.bound_digest, piece.digest


@dataclass(slots=True, kw_only=True)
class PrunedLedger:
    """The pruned part of a ledger: entries up to `seq`, the last with the hash `hash`; `seq` is 0 if nothing is pruned.

    `pages` hold every individual's totals at `seq`, which include `ahead_units` of later entries.
    """

    seq: int = 0
    hash: str = ""
    ahead_units: int = 0
    pages: tuple[StoredPage, ...] = ()
    findings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, head: Head, acts: Sequence[JournalAct], pages: Iterable[StoredPage]) -> Self:
        """The pruned part by the journal, with findings where the head or the stored totals differ from it."""
        made = cls(pages=tuple(pages))
        for act in acts:
            if act.act == "prune":
                made._take(act)
        if head.pruned_seq != made.seq:
            made.findings.append(f"heads: says pruned_seq {head.pruned_seq}, the journal gives {made.seq}")
        return made

    def _take(self, act: JournalAct) -> None:
        """Read a `prune` act; the last one counts."""
        self.findings.clear()
        try:
            self.seq, self.hash = int(act.detail["seq"]), str(act.detail["hash"])
            self.ahead_units = int(act.detail["ahead_units"])
            digest = totals_digest(bytes.fromhex(act.detail["salt"]), self.pages).hex()
            if digest != act.detail["totals"]:
                self.findings.append("pruned_totals: its rows are not those of the journal")
        except (KeyError, ValueError, TypeError) as error:
            self.findings.append(f"journal row {act.number}: its detail makes no sense ({type(error).__name__})")
