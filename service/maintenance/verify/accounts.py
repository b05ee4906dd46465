"""Accounts by the journal and the ledger: the limits and tombstones now, and at each entry who could pay for it then.

The journal decides limits and pauses, the ledger gives the spent totals. Where uploads state limits the journal only
bounds them: no individual may be charged beyond the bound, and whether one was left out rightly is unknown.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.priced import Priced
from service.ledger.model.rows import DatasetRecord, Head, SlotsInUse
from service.maintenance.journal_state import JournalState

NAMED_MAX: Final = 5
"""The most rows named in findings of one kind; the rest are counted."""


def named(slots: Integers, sentence: Callable[[int], str]) -> Iterator[str]:
    """A finding for each of the first NAMED_MAX slots, and the number of the others."""
    for slot in slots[:NAMED_MAX].tolist():
        yield f"individuals row {slot}: {sentence(slot)}"
    if slots.size > NAMED_MAX:
        yield f"individuals: the same of {slots.size - NAMED_MAX} more rows"


def check_accounts(head: Head, accounts: SlotsInUse, journal_state: JournalState, spent: Integers) -> Iterator[str]:
    """Findings: rows that are missing or too many, limits, tombstones, and what was spent beyond a limit."""
    handed_out = journal_state.slots if journal_state.is_told else head.slots
    yield from named(np.setdiff1d(np.arange(handed_out), accounts.slots), lambda _: "is missing")
    yield from named(accounts.slots[accounts.slots >= handed_out], lambda _: "its slot was never handed out")
    order = np.argsort(accounts.slots)
    is_known = accounts.slots[order] < min(journal_state.slots, spent.size)
    order = order[is_known]
    slots, limits, present = accounts.slots[order], accounts.limits[order], accounts.present[order]
    yield from _limits(slots, limits, journal_state)
    yield from _presence(slots, present, journal_state)
    yield from _spent(accounts, journal_state, spent)


def _limits(slots: Integers, limits: Integers, journal_state: JournalState) -> Iterator[str]:
    given, are_exact = journal_state.limits[slots], journal_state.are_exact[slots]
    held = dict(zip(slots.tolist(), limits.tolist(), strict=True)).__getitem__

    def other(slot: int) -> str:
        return f"its limit is {held(slot)} units, the journal gives {journal_state.limits[slot]}"

    def beyond(slot: int) -> str:
        return f"its limit is {held(slot)} units, the journal allows {journal_state.limits[slot]} at most"

    yield from named(slots[are_exact & (limits != given)], other)
    yield from named(slots[~are_exact & (limits > given)], beyond)


def _presence(slots: Integers, present: NDArray[np.bool_], journal_state: JournalState) -> Iterator[str]:
    if not journal_state.is_told:
        return
    given = journal_state.are_present[slots]
    yield from named(slots[present & ~given], lambda _: "has a key, the journal says that it was erased")
    yield from named(slots[~present & given], lambda _: "is a tombstone, the journal says that it is present")


def _spent(accounts: SlotsInUse, journal_state: JournalState, spent: Integers) -> Iterator[str]:
    """Findings where a spent total exceeds the present limit, or the largest that was ever in force."""
    order = np.argsort(accounts.slots)
    order = order[accounts.slots[order] < spent.size]
    slots, limits = accounts.slots[order], accounts.limits[order]
    held = dict(zip(slots.tolist(), limits.tolist(), strict=True)).__getitem__
    over = slots[spent[slots] > limits]
    yield from named(over, lambda slot: f"has spent {spent[slot]} units, its limit is {held(slot)}")
    count = min(journal_state.slots, spent.size)
    largest = np.full(spent.size, journal_state.budget_units, dtype=np.int64)
    largest[:count] = journal_state.largest[:count]
    over = np.flatnonzero(spent > largest)
    yield from named(over, lambda slot: f"has spent {spent[slot]} units, its largest limit ever was {largest[slot]}")


def _of(slots: Integers, which: NDArray[np.bool_], said: str) -> Iterator[str]:
    """A finding for each of the first NAMED_MAX slots (k,) of those marked in `which` (k,)."""
    yield from (said.format(slot) for slot in slots[which][:NAMED_MAX].tolist())


class Participation:
    """The filter's decisions made again, entry by entry, with the acts in between."""

    def __init__(self, record: DatasetRecord, acts: Sequence[JournalAct]) -> None:
        self._then = JournalState.of(record)
        self._acts = deque(acts)
        self._drops = record.rule == "drop"

    def until(self, entry: LedgerEntry) -> JournalState:
        """The state at an entry, after the acts before it."""
        for _ in self._then.follow(self._acts, before=entry.seq):
            pass
        return self._then

    def wrong_with(
        self,
        entry: LedgerEntry,
        priced: Priced,
        spent: Integers,
        left_out: NDArray[np.uint32],
        *,
        is_known: NDArray[np.bool_],
    ) -> Iterator[str]:
        """Findings against the entry from limits and pauses before it, `spent` totals, and how often each was left out.

        Unknown totals are lower bounds. Under the drop rule those left out before are to be left out again, and those
        that have paused are not to be touched.
        """
        then = self.until(entry)
        is_told = priced.touched < then.slots
        slots, active, shortened = priced.touched[is_told], priced.active[is_told], priced.is_shortened[is_told]
        can_pay = spent[slots] + priced.asked[is_told] <= then.limits[slots]
        fits = spent[slots] + priced.prices[is_told] <= then.limits[slots]
        yield from _of(slots, active & ~fits, "charges slot {} beyond its limit")
        yield from _of(priced.touched, priced.is_longer, "counts more of slot {} than there is")
        if entry.kind != "query":
            return
        have_paused, is_certain = then.have_paused[slots], then.are_exact[slots] & is_known[slots]
        yield from _of(slots, active & have_paused, "charges slot {}, which has paused")
        is_out = have_paused
        if self._drops:
            is_out = left_out[slots] > 0
            yield from _of(slots, active & is_out, "charges slot {}, which was left out before")
            yield from _of(slots, ~active & have_paused, "leaves out slot {}, which has paused")
        yield from _of(slots, ~active & ~is_out & can_pay & is_certain, "leaves out slot {}, which could pay")
        yield from _of(slots, shortened & can_pay & is_certain, "shortens the vector of slot {}, which could pay")
