"""Accounts by the journal and the ledger: their rows, limits and tombstones, and what was spent."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers
from service.ledger.model.rows import Head, SlotsInUse
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
