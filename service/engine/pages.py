"""The page, the unit in which everything by slot grows and is checkpointed, and two counters beside each account.

One counter counts the queries that charged an individual, and the other counts those that left it out. Both are
replayed from the ledger as spent totals are, so that a count need not read all entries. The counters are here and not
in the core because no charge and no limit depends on them. In a dataset with the drop rule the second counter decides
who takes part (`have_been_left_out`). In other datasets no answer depends on it.

A query that touches a whole stretch is counted in one byte for each slot and counter: adding marks to bytes takes a
fifth of the time of adding them to wider numbers. The bytes of a page are added to its totals before they overflow. A
byte of the second counter that is not zero never becomes zero by this. So this byte alone tells whether a slot was ever
left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from service.arrays import FEW, Integers, Mask
from service.core.renyi_filter import Touched
from service.query.division import PAGE_SLOTS

Counts = NDArray[np.uint32]
FirstTicks = NDArray[np.uint16]
PAGE_BITS: Final = PAGE_SLOTS.bit_length() - 1
"""The number of bits of a slot's place on its page: 16, so that a uint16 holds exactly these places."""
_CHARGED, _LEFT_OUT = 0, 1
_RECENT_MAX: Final = 254
"""The most queries that are counted in the bytes of a page. One more may stay in a byte, which holds 255."""
_PAGES_APART: Final = 37  # pages overflow at different queries


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageTotals:
    """The replay of the ledger for one page: `spent` units, and how many queries `charged` each slot or `left_out` it.

    `ticks` are the ticks of the monitor at which each slot was counted first, 0 for none. Each array is (PAGE_SLOTS,).
    `spent` is int64, the counters are uint32 and `ticks` are uint16. An empty array `ticks` stands for zeros.
    """

    spent: Integers
    charged: Counts
    left_out: Counts
    ticks: FirstTicks = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))

    @classmethod
    def zero(cls) -> Self:
        """The totals of a page that no entry has touched."""
        charged, left_out = np.zeros((2, PAGE_SLOTS), dtype=np.uint32)
        return cls(spent=np.zeros(PAGE_SLOTS, dtype=np.int64), charged=charged, left_out=left_out)


def slots_on(page: int) -> slice:
    """The slots of a page."""
    return slice(page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS)


def pages_for(slots: int) -> int:
    """The number of pages that hold slots 0 to `slots` - 1."""
    return -(-slots // PAGE_SLOTS)


def union(parts: Sequence[Integers]) -> Integers:
    """The slots that are in any of `parts`, none negative: increasing, each once.

    np.unique gives the same, and takes fifty times as long for a million slots.
    """
    is_in = np.zeros(max((int(part.max(initial=-1)) for part in parts), default=-1) + 1, dtype=np.bool_)
    for part in parts:
        is_in[part] = True
    return np.flatnonzero(is_in)


def pages_of(slots: Integers) -> Integers:
    """The pages that hold `slots` (n,), which may be in any order: increasing, each page once."""
    pages = slots >> PAGE_BITS
    if pages.size <= FEW:
        return np.array(sorted(set(pages.tolist())), dtype=np.int64)
    return np.flatnonzero(np.bincount(pages))


class Counters:
    """Two counters for each slot, 10 bytes in all: the queries that charged it, and the queries that left it out.

    One writer thread owns the counters.
    """

    def __init__(self, slots_max: int = 0) -> None:
        """Begin without slots. Room for `slots_max` slots is reserved; unused room takes no memory."""
        self._size = 0
        self._totals: Counts = np.zeros((2, slots_max), dtype=np.uint32)
        self._recent = np.zeros((2, slots_max), dtype=np.uint8)
        self._queries: list[int] = []  # counted in the bytes of a page, at most

    @property
    def size(self) -> int:
        """The number of slots."""
        return self._size

    def charged_of(self, slots: Integers | slice) -> Counts:
        """The number of queries that charged each of `slots` (k,), (k,), as a copy."""
        return self._of(_CHARGED, slots)

    def left_out_of(self, slots: Integers | slice) -> Counts:
        """The number of queries that left out each of `slots` (k,), (k,), as a copy."""
        return self._of(_LEFT_OUT, slots)

    def have_been_left_out(self, touched: Touched) -> NDArray[np.uint8]:
        """A number for each place (p,) of `touched`, positive where any query has left out the individual.

        Raises IndexError for a slot beyond the counters.
        """
        if touched.end > self._size:
            raise IndexError("slots must be within the counters")
        ever: NDArray[np.uint8] = self._recent[_LEFT_OUT][touched.index]
        return ever

    def set(self, slots: slice, charged: Counts | int, left_out: Counts | int) -> None:
        """Set the counters of some slots, after a load."""
        ever = np.greater(left_out, 0).astype(np.uint8)
        self._totals[_CHARGED, slots], self._totals[_LEFT_OUT, slots] = charged, left_out - ever
        self._recent[_CHARGED, slots], self._recent[_LEFT_OUT, slots] = 0, ever

    def grow(self, size: int) -> None:
        """Use counters for `size` slots, from the reserved room if it is large enough, else from larger room."""
        missing = size - self._totals.shape[1]
        if missing > 0:
            self._totals = np.concatenate([self._totals, np.zeros((2, missing), dtype=np.uint32)], axis=1)
            self._recent = np.concatenate([self._recent, np.zeros((2, missing), dtype=np.uint8)], axis=1)
        self._size = size
        pages = range(len(self._queries), pages_for(size))
        self._queries += [page * _PAGES_APART % _RECENT_MAX for page in pages]

    def make_room(self, slots: slice) -> None:
        """Bring the counters of slots that are not given yet into physical memory. They are zero before and after."""
        self._totals[:, slots] = self._recent[:, slots] = 0

    def count(self, touched: Touched, active: Mask) -> None:
        """Count one more query: it charged the places `active` (p,) of `touched`, and left out the other touched ones.

        Raises IndexError for a slot beyond the counters.
        """
        if touched.end > self._size:
            raise IndexError("slots must be within the counters")
        left_out = touched.among(~active)
        if not isinstance(touched.index, slice):
            charged_totals, left_out_totals = self._totals  # rows: numpy picks from one without releasing the GIL
            charged_totals[touched.index[active]] += 1
            out, recent = touched.index[left_out], self._recent[_LEFT_OUT]
            left_out_totals[out] += recent[out] > 0
            recent[out] = np.maximum(recent[out], 1)
            return
        self._spare(touched.index)
        for number, counted in ((_CHARGED, active), (_LEFT_OUT, left_out)):
            recent = self._recent[number, touched.index]
            recent += counted.view(np.uint8)

    def take_back(self, touched: Touched, active: Mask) -> None:
        """Undo the count of a query: the last one, or an earlier one."""
        for page in range(len(self._queries)):
            self._settle(page)
        self._totals[_CHARGED, touched.slots(active)] -= 1
        out = touched.slots(touched.among(~active))
        are_more = self._totals[_LEFT_OUT, out] > 0
        self._totals[_LEFT_OUT, out] -= are_more
        self._recent[_LEFT_OUT, out] = are_more

    def _of(self, number: int, slots: Integers | slice) -> Counts:
        """The values of one of the two counters for `slots`; of a slice only the slots that exist."""
        counted: Counts = self._totals[number, : self._size][slots] + self._recent[number, : self._size][slots]
        return counted

    def _spare(self, stretch: slice) -> None:
        """Make sure that the bytes of a stretch's pages can count one more query."""
        for page in range(stretch.start >> PAGE_BITS, pages_for(stretch.stop)):
            if self._queries[page] == _RECENT_MAX:
                self._settle(page)
            self._queries[page] += 1

    def _settle(self, page: int) -> None:
        """Add the bytes of a page to its totals."""
        slots = slots_on(page)
        charged, left_out = self._recent[:, slots]
        ever = left_out > 0
        self._totals[_CHARGED, slots] += charged
        self._totals[_LEFT_OUT, slots] += left_out - ever
        charged[:], left_out[:] = 0, ever
        self._queries[page] = 0
