"""Accounts by the journal and the ledger: their rows, limits and tombstones, and what was spent."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from service.arrays import Integers
from service.ledger.model.rows import Head, SlotsInUse
from service.maintenance.journal_state import JournalState

NAMED_MAX: Final = 5
"""How many rows the findings of one kind name at most; the others are counted."""


def check_accounts(head: Head, accounts: SlotsInUse, last_state: JournalState, spent: Integers) -> Iterator[str]:
    """Findings: rows that are missing or too many, limits, tombstones, and what was spent beyond a limit."""
    handed_out = last_state.slots if last_state.is_told else head.slots
    yield from _named(np.setdiff1d(np.arange(handed_out), accounts.slots), "is missing")
    yield from _named(accounts.slots[accounts.slots >= handed_out], "its slot was never handed out")
    order = np.argsort(accounts.slots)
    order = order[accounts.slots[order] < spent.size]
    slots, limits, present = accounts.slots[order], accounts.limits[order], accounts.present[order]
    given, are_exact = last_state.limits[slots], last_state.are_exact[slots]
    other, beyond = are_exact & (limits != given), ~are_exact & (limits > given)
    yield from _named(slots[other], "its limit is {} units, the journal gives {}", limits[other], given[other])
    said = "its limit is {} units, the journal allows {} at most"
    yield from _named(slots[beyond], said, limits[beyond], given[beyond])
    if last_state.is_told:
        is_here = last_state.are_present[slots]
        yield from _named(slots[present & ~is_here], "has a key, the journal says that it was erased")
        yield from _named(slots[~present & is_here], "is a tombstone, the journal says that it is present")
    over, largest = spent[slots] > limits, last_state.largest
    yield from _named(slots[over], "has spent {} units, its limit is {}", spent[slots[over]], limits[over])
    ever = np.flatnonzero(spent > largest)
    yield from _named(ever, "has spent {} units, its largest limit ever was {}", spent[ever], largest[ever])


def _named(slots: Integers, said: str, *columns: Integers) -> Iterator[str]:
    """A finding for each of the first NAMED_MAX slots (k,), with its numbers in `columns` (k,).

    One more finding counts the other slots.
    """
    for place, slot in enumerate(slots[:NAMED_MAX].tolist()):
        yield f"individuals row {slot}: {said.format(*(column[place] for column in columns))}"
    if slots.size > NAMED_MAX:
        yield f"individuals: the same of {slots.size - NAMED_MAX} more rows"
