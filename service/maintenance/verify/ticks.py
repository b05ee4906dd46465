"""The ticks of a monitor checked: their order and noise, what each individual has added, and who had to be counted.

An individual's first tick is known from the entries, or from a page where it was erased; of one that is not known
nothing is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.accounting.monitor import GRID_LOG2, Monitor, coefficients
from service.arrays import Integers
from service.engine.pages import FirstTicks
from service.ledger.model.ledger_entry import LedgerEntry
from service.maintenance.journal_state import JournalState

_NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BeforeTick:
    """The accounts before a tick, by slot (slots,): `spent` units and `first` ticks, certain where they are `known`."""

    ticks: int
    spent: Integers
    first: FirstTicks
    known: NDArray[np.bool_]


def wrong_with_tick(
    entry: LedgerEntry, monitor: Monitor | None, before: BeforeTick, then: JournalState
) -> Iterator[str]:
    """Findings against a tick, from the accounts `before` it and the acts until `then`."""
    if monitor is None:
        yield "is a tick, and its dataset has no monitor"
        return
    if entry.tick != before.ticks + 1 or entry.tick > monitor.ticks:
        yield f"says tick {entry.tick}, and {before.ticks} of {monitor.ticks} came before"
        return
    if then.fence > 1:
        yield "is a tick after a reconciliation, which has ended the monitor"
    if (entry.sigma, entry.grid_log2, entry.worst_case_units) != (monitor.sigma, GRID_LOG2, 0):
        yield "its noise or its worst case is not that of the monitor"
    yield from _wrong_with_people(entry, monitor, before, then)


def _wrong_with_people(entry: LedgerEntry, monitor: Monitor, before: BeforeTick, then: JournalState) -> Iterator[str]:
    count = min(then.slots, before.spent.size)
    known, first = before.known[:count], before.first[:count].astype(np.int64)
    added: Integers = np.zeros(count, dtype=np.int64)
    quantities = entry.quantities()
    is_told = quantities.touched < count
    added[quantities.touched[is_told]] = np.where(quantities.active, quantities.amounts, 0)[is_told]
    limits = then.limits[:count]
    certain = known & then.are_exact[:count]
    is_below = limits - before.spent[:count] < monitor.threshold_units
    takes_part = then.are_present[:count] & ~then.have_paused[:count] & (limits > 0)
    is_counted = takes_part & ((first > 0) | is_below)
    since = np.where(first > 0, entry.tick - first, 0)
    wanted = np.where(is_counted, coefficients(monitor.ticks)[since] ** 2, 0)
    yield from _of(certain & then.is_told & (added == 0) & (wanted > 0), "leaves out slot {}, which is counted")
    yield from _of(certain & then.is_told & (added > 0) & (wanted == 0), "counts slot {}, which is not to be counted")
    wrong = known & (added > 0) & (added != coefficients(monitor.ticks)[since] ** 2)
    yield from _of(wrong, "counts slot {} by another number than its first tick gives")


def _of(wrong: NDArray[np.bool_], said: str) -> Iterator[str]:
    yield from (said.format(slot) for slot in np.flatnonzero(wrong)[:_NAMED_MAX].tolist())
