"""Two counters beside each account: the queries that charged an individual, and the queries that left it out.

They are replayed from the ledger as spent totals are, so that counting does not read all entries. They stand
here and not in the core: no charge, no limit and no answer depends on them.
"""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint32]
Slots = NDArray[np.int64]


class Counters:
    """`charged` and `left_out` (n,) queries, by slot: 8 bytes for each. Owned by one writer thread."""

    def __init__(self, slots_max: int = 0) -> None:
        """For no slot. Room for `slots_max` is reserved; unused, it takes no memory."""
        self._room: Counts = np.zeros((2, slots_max), dtype=np.uint32)
        self.charged, self.left_out = self._room[:, :0]

    def grow(self, size: int) -> None:
        """Have counters for `size` slots: more of the room, or of a larger room."""
        missing = size - self._room.shape[1]
        if missing > 0:
            self._room = np.concatenate([self._room, np.zeros((2, missing), dtype=np.uint32)], axis=1)
        self.charged, self.left_out = self._room[:, :size]

    def make_room(self, slots: slice) -> None:
        """Have the counters of slots not given yet in physical memory. They are zero before and after."""
        self._room[:, slots] = 0

    def count(self, charged: Slots, left_out: Slots) -> None:
        """One more query: the slots that it charged and those that it left out, each (k,) strictly increasing.

        Raises IndexError for a slot beyond the counters.
        """
        for counts, slots in ((self.charged, charged), (self.left_out, left_out)):
            if slots.size > 0:
                counts[_reach(slots, counts.size)] += 1

    def take_back(self, charged: Slots, left_out: Slots) -> None:
        """The query that was counted last, or any earlier one, has never been."""
        for counts, slots in ((self.charged, charged), (self.left_out, left_out)):
            if slots.size > 0:
                counts[_reach(slots, counts.size)] -= 1


def _reach(slots: Slots, size: int) -> Slots | slice:
    """The slots as an index: a slice where they are consecutive, which numpy changes without copying."""
    first, last = int(slots[0]), int(slots[-1])
    if first < 0 or last >= size:
        raise IndexError("slots must be within the counters")
    return slice(first, last + 1) if last - first + 1 == slots.size else slots
