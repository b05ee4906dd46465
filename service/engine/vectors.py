"""A column of vectors in memory: blocks of 4,096 slots, each replaced whole and never written to.

A reader that has taken blocks goes on reading the vectors of that time. A block without a vector is not kept. While a
change is built and put in place, a block may be in memory twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from service.arrays import Codes, Integers
from service.query.vector_columns import VectorCoding

BLOCK_SLOTS: Final = 2**12

Replaced = Mapping[int, Codes | None]
"""New blocks (BLOCK_SLOTS, width) by number; None for a block without a vector."""


@dataclass(frozen=True, slots=True)
class VectorView:
    """The vectors as they were when the view was taken."""

    _blocks: Mapping[int, Codes]

    def parts(self, slots: slice | Integers) -> Iterator[tuple[int, Codes | None]]:
        """The rows of a stretch or a list of slots, block by block: the number of slots, and their codes or None.

        In a list, the slots of one block stand together.
        """
        if not isinstance(slots, slice):
            yield from self._listed(slots)
            return
        start, stop = slots.start, slots.stop
        while start < stop:
            number, first = divmod(start, BLOCK_SLOTS)
            count = min(stop - start, BLOCK_SLOTS - first)
            block = self._blocks.get(number)
            yield count, None if block is None else block[first : first + count]
            start += count

    def _listed(self, slots: Integers) -> Iterator[tuple[int, Codes | None]]:
        numbers, places = np.divmod(slots, BLOCK_SLOTS)
        begins = np.flatnonzero(np.diff(numbers, prepend=-1))
        for begin, end in pairwise([*begins.tolist(), slots.size]):
            block = self._blocks.get(int(numbers[begin]))
            yield end - begin, None if block is None else block.take(places[begin:end], axis=0)


class VectorBlocks:
    """The vectors of individuals by slot, as rows of codes (service.query.vector_columns)."""

    def __init__(self, coding: VectorCoding) -> None:
        self.coding = coding
        self._blocks: Mapping[int, Codes] = {}

    @property
    def kept_bytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.nbytes for block in self._blocks.values())

    def view(self) -> VectorView:
        """The vectors as they are now."""
        return VectorView(self._blocks)

    def changed(self, emptied: Integers, slots: Integers, rows: Codes) -> dict[int, Codes | None]:
        """The blocks that change when the slots `emptied` (increasing) are emptied and `slots` (n,) get `rows`.

        Changes nothing.
        """
        changed: dict[int, Codes | None] = {}
        order = np.argsort(slots, kind="stable")
        slots = slots[order]
        for number in np.union1d(emptied // BLOCK_SLOTS, slots // BLOCK_SLOTS).tolist():
            held = self._blocks.get(number)
            came, gone = _within(slots, number), _within(emptied, number)
            block = self.coding.missing(BLOCK_SLOTS) if held is None else held.copy()
            block[emptied[gone] % BLOCK_SLOTS] = 0
            block[slots[came] % BLOCK_SLOTS] = rows[order[came]]
            changed[number] = block if block[:, 0].any() else None
        return {number: block for number, block in changed.items() if block is not None or number in self._blocks}

    def put(self, changed: Replaced) -> None:
        """Set blocks that `changed` has built in the place of the old ones."""
        blocks = {**self._blocks, **changed}
        self._blocks = {number: block for number, block in blocks.items() if block is not None}


def _within(slots: Integers, number: int) -> slice:
    """The place in `slots` (n,), which increase, of those that lie in a block."""
    return slice(*np.searchsorted(slots, [number * BLOCK_SLOTS, (number + 1) * BLOCK_SLOTS]))


def check_rows(name: str, rows: Codes, coding: VectorCoding, count: int) -> None:
    """Refuse rows that are not the codes of `count` vectors of a column. Raises ValueError."""
    if rows.shape != (count, coding.width) or rows.dtype != coding.dtype:
        raise ValueError(f"column {name} must hold {coding.width} {coding.dtype} for each slot")
    if rows.size > 0 and (int(rows[:, 0].max()) > 1 or int(rows.max()) > max(coding.span, 1)):
        raise ValueError(f"column {name} holds a code that stands for nothing")
