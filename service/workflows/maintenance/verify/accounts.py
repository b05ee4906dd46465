"""Everybody's account, held against the journal, which decides limits, and against the ledger, which gives the spent.

Where the journal does not tell a limit, because people bring limits of their own with their rows, it still bounds it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.workflows.maintenance.verify.journal import Integers, Standing
from service.workflows.model.rows import Head, Individuals

NAMED_MAX: Final = 5
"""Of the rows that are wrong in one way; the rest are counted."""


def named(slots: Integers, sentence: Callable[[int], str]) -> Iterator[str]:
    """A finding for each of the first slots, and the number of the others."""
    for slot in slots[:NAMED_MAX].tolist():
        yield f"individuals row {slot}: {sentence(slot)}"
    if slots.size > NAMED_MAX:
        yield f"individuals: the same of {slots.size - NAMED_MAX} more rows"


def check_accounts(head: Head, accounts: Individuals, standing: Standing, spent: Integers) -> Iterator[str]:
    """Findings: rows that are missing or too many, limits, tombstones, and what was spent beyond a limit."""
    handed_out = standing.slots if standing.is_told else head.slots
    yield from named(np.setdiff1d(np.arange(handed_out), accounts.slots), lambda _: "is missing")
    yield from named(accounts.slots[accounts.slots >= handed_out], lambda _: "its slot was never handed out")
    order = np.argsort(accounts.slots)
    is_known = accounts.slots[order] < min(standing.slots, spent.size)
    order = order[is_known]
    slots, limits, present = accounts.slots[order], accounts.limits[order], accounts.present[order]
    yield from _limits(slots, limits, standing)
    yield from _presence(slots, present, standing)
    yield from _spent(accounts, standing, spent)


def _limits(slots: Integers, limits: Integers, standing: Standing) -> Iterator[str]:
    given, are_exact = standing.limits[slots], standing.are_exact[slots]
    held = dict(zip(slots.tolist(), limits.tolist(), strict=True)).__getitem__

    def other(slot: int) -> str:
        return f"its limit is {held(slot)} units, the journal gives {standing.limits[slot]}"

    def beyond(slot: int) -> str:
        return f"its limit is {held(slot)} units, the journal allows {standing.limits[slot]} at most"

    yield from named(slots[are_exact & (limits != given)], other)
    yield from named(slots[~are_exact & (limits > given)], beyond)


def _presence(slots: Integers, present: NDArray[np.bool_], standing: Standing) -> Iterator[str]:
    if not standing.is_told:
        return
    given = standing.are_present[slots]
    yield from named(slots[present & ~given], lambda _: "has a key, the journal says that it was erased")
    yield from named(slots[~present & given], lambda _: "is a tombstone, the journal says that it is present")


def _spent(accounts: Individuals, standing: Standing, spent: Integers) -> Iterator[str]:
    """Held against the limit of now, and against the largest that was ever in force, whatever the row says now."""
    order = np.argsort(accounts.slots)
    order = order[accounts.slots[order] < spent.size]
    slots, limits = accounts.slots[order], accounts.limits[order]
    held = dict(zip(slots.tolist(), limits.tolist(), strict=True)).__getitem__
    over = slots[spent[slots] > limits]
    yield from named(over, lambda slot: f"has spent {spent[slot]} units, its limit is {held(slot)}")
    count = min(standing.slots, spent.size)
    largest = np.full(spent.size, standing.budget_units, dtype=np.int64)
    largest[:count] = standing.largest[:count]
    over = np.flatnonzero(spent > largest)
    yield from named(over, lambda slot: f"has spent {spent[slot]} units, its largest limit ever was {largest[slot]}")
