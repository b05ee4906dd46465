"""Participation decided again, entry by entry: in a query by the filter, in a tick by the monitor.

The journal decides limits and pauses, the ledger gives the spent totals. Where uploads state limits the journal only
bounds them: no individual may be charged beyond the bound, but it cannot be told who was rightly left out.
"""

from collections.abc import Iterator

import numpy as np

from service.accounting.monitor import GRID_LOG2, Monitor, coefficients
from service.arrays import Integers, Mask
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.priced import Priced
from service.maintenance.journal_state import JournalState
from service.maintenance.verify.accounts import NAMED_MAX
from service.maintenance.verify.totals import ReplayedTotals


def wrong_with_participants(
    entry: LedgerEntry, priced: Priced, before: ReplayedTotals, then: JournalState, *, drops: bool
) -> Iterator[str]:
    """Findings against a query or a burn, from the totals `before` it and the acts until `then`.

    A total that is not known is a lower bound. Under the drop rule (`drops`) an individual that was left out before
    must be left out again, and one that has paused must not be touched.
    """
    is_told = priced.touched < then.slots
    slots, active, shortened = priced.touched[is_told], priced.active[is_told], priced.is_shortened[is_told]
    spent, limits = before.spent[slots], then.limits[slots]
    can_pay, fits = spent + priced.asked[is_told] <= limits, spent + priced.prices[is_told] <= limits
    yield from named_in(slots[active & ~fits], "charges slot {} beyond its limit")
    yield from named_in(priced.touched[priced.is_longer], "counts more of slot {} than there is")
    if entry.kind != "query":
        return
    have_paused, is_certain = then.have_paused[slots], then.are_exact[slots] & before.is_known[slots]
    yield from named_in(slots[active & have_paused], "charges slot {}, which has paused")
    is_out = have_paused
    if drops:
        is_out = before.left_out[slots] > 0
        yield from named_in(slots[active & is_out], "charges slot {}, which was left out before")
        yield from named_in(slots[~active & have_paused], "leaves out slot {}, which has paused")
    yield from named_in(slots[~active & ~is_out & can_pay & is_certain], "leaves out slot {}, which could pay")
    yield from named_in(slots[shortened & can_pay & is_certain], "shortens the vector of slot {}, which could pay")


def wrong_with_tick(
    entry: LedgerEntry,
    priced: Priced,
    before: ReplayedTotals,
    then: JournalState,
    *,
    monitor: Monitor | None,
    ticks_before: int,
) -> Iterator[str]:
    """Findings against a tick: its order and noise, what each individual has added, and who had to be counted.

    An individual's first tick is known from the entries; if it was erased, from a page. There are no findings about an
    individual whose first tick is not known.
    """
    if monitor is None:
        yield "is a tick, and its dataset has no monitor"
        return
    if entry.tick != ticks_before + 1 or entry.tick > monitor.ticks:
        yield f"says tick {entry.tick}, and {ticks_before} of {monitor.ticks} came before"
        return
    if then.fence > 1:
        yield "is a tick after a reconciliation, which has ended the monitor"
    if (entry.sigma, entry.grid_log2, entry.worst_case_units) != (monitor.sigma, GRID_LOG2, 0):
        yield "its noise or its worst case is not that of the monitor"
    count = then.slots
    known, first = before.is_known[:count], before.ticks[:count].astype(np.int64)
    added: Integers = np.zeros(count, dtype=np.int64)
    is_told = priced.touched < count
    added[priced.touched[is_told]] = np.where(priced.active, priced.quantities.amounts, 0)[is_told]
    since = np.where(first > 0, entry.tick - first, 0)
    number = coefficients(monitor.ticks)[since] ** 2
    wanted = _is_counted(before, then, first, monitor.threshold_units)
    certain = known & then.are_exact[:count] & then.is_told
    yield from named_in(np.flatnonzero(certain & (added == 0) & wanted), "leaves out slot {}, which is counted")
    yield from named_in(np.flatnonzero(certain & (added > 0) & ~wanted), "counts slot {}, which is not to be counted")
    other = np.flatnonzero(known & (added > 0) & (added != number))
    yield from named_in(other, "counts slot {} by another number than its first tick gives")


def _is_counted(before: ReplayedTotals, then: JournalState, first: Integers, threshold_units: int) -> Mask:
    """Marks (k,) of the slots that a tick counts: those with an earlier `first` tick (k,), or with little left."""
    limits = then.limits[: first.size]
    is_below = limits - before.spent[: first.size] < threshold_units
    takes_part = then.are_present[: first.size] & ~then.have_paused[: first.size] & (limits > 0)
    return takes_part & ((first > 0) | is_below)


def named_in(slots: Integers, said: str) -> Iterator[str]:
    """A finding for each of the first NAMED_MAX slots."""
    yield from (said.format(slot) for slot in slots[:NAMED_MAX].tolist())
