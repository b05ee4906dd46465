"""A continual count of the exhausted: the tick at which each slot was counted first, and the release of one tick.

The first tick of a slot is replayed from the ledger as counters are, and stays for ever. A slot that is emptied and
filled again, or that has more left again, does not begin a second time. All that one slot adds to ticks is a part of
one column of the coefficients (`service.accounting.monitor`), whatever decides when the slot begins and where it
pauses.

Each tick looks at all slots in the same steps, however many are counted. Nobody is charged.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from service.arrays import Integers, Mask, narrowest
from service.core.release import Participants, Release
from service.core.renyi_filter import Touched
from service.engine.memory import DatasetMemory
from service.engine.pages import FirstTicks
from service.query.division import PAGE_SLOTS

NO_TICKS: Final[FirstTicks] = np.zeros(0, dtype=np.uint16)


class TickCounts:
    """The first tick of each slot, 0 for none yet, in two bytes. One writer thread owns them."""

    def __init__(self, coefficients: Integers, threshold_units: int) -> None:
        """Begin without slots; an individual adds `coefficients[n]` (ticks,) steps n ticks after its first tick.

        An individual that has less than `threshold_units` left is counted from the next tick on.
        """
        self._first = NO_TICKS
        self._threshold_units = threshold_units
        self._steps = np.concatenate([[0], coefficients])  # by the ticks since the first, that one included

    def grow(self, size: int) -> None:
        """Make room for `size` slots."""
        self._first = np.concatenate([self._first, np.zeros(size - self._first.size, dtype=np.uint16)])

    def reset(self) -> None:
        """Begin with nobody counted."""
        self._first[:] = 0

    def set(self, slots: slice, first: FirstTicks) -> None:
        """Set the first ticks of some slots, after a load; an empty `first` sets 0."""
        self._first[slots] = first if first.size > 0 else 0

    def of(self, slots: slice) -> FirstTicks:
        """A copy of the first ticks of some slots."""
        return self._first[slots].copy()

    def mark(self, touched: Touched, active: Mask, number: int) -> None:
        """Make `number` the first tick of each place of `touched` that is `active` (p,) and has no first tick."""
        first = self._first[touched.index]
        self._first[touched.index] = np.where(active & (first == 0), number, first)

    def take_back(self, touched: Touched, number: int) -> None:
        """Undo tick `number`, the last tick of the places `touched` (p,)."""
        first = self._first[touched.index]
        self._first[touched.index] = np.where(first == number, 0, first)

    def release(self, memory: DatasetMemory, number: int, noise: Integers) -> Release:
        """Release tick `number`: the steps of all individuals that are counted by now, added to the `noise` (1,).

        Individuals that are counted for the first time are marked. An individual adds nothing while it has paused, or
        if its limit is no more than the monitor's reserve, so that its limit here is 0.
        """
        blocks = tuple(self._blocks(memory, number, noise))
        count = sum(block.count for block in blocks)
        return Release(
            values=noise, blocks=blocks, one_norm=False, charged_count=count, left_out_count=0, charged_units=0
        )

    def _blocks(self, memory: DatasetMemory, number: int, total: Integers) -> Iterator[Participants]:
        """The individuals that add something, page by page; adds their steps to `total`."""
        narrow = narrowest(int(self._steps.max()) ** 2)
        for start in range(0, max(memory.slots_used, 1), PAGE_SLOTS):
            slots = slice(start, min(start + PAGE_SLOTS, memory.slots_used))
            accounts, first = memory.accounts, self._first[slots]
            takes_part = memory.people.present[slots] & ~accounts.paused[slots] & (accounts.limits[slots] > 0)
            is_below = np.less(accounts.room[slots], self._threshold_units)
            first[...] = np.where(takes_part & is_below & (first == 0), number, first)
            marks = takes_part & (first > 0)
            steps = self._steps[np.where(marks, number + 1 - first.astype(np.int64), 0)]
            total[0] += steps.sum()
            yield Participants(
                touched=Touched(slots, marks),
                active=marks,
                norms_squared=(steps * steps).astype(narrow),
                count=int(np.count_nonzero(marks)),
            )
