"""Arrays for small queries: constant ones stored once, indexing that keeps the GIL, and the individuals touched.

Around many of its operations numpy releases the GIL, for one element as for a million. On a busy server another thread
then takes it on another core, and an operation of a microsecond waits for that thread's next pause and finds its caches
cold. Up to FEW elements, arithmetic and indexing keep the GIL, and the functions here use these alone. Only time is at
stake: few elements come out as many would.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

FEW: Final = 500
"""numpy's own bound, beyond which its arithmetic and its indexing release the GIL too."""

_ORDER: Final[Literal["little", "big"]] = "little" if np.little_endian else "big"

Element = TypeVar("Element", bound=np.generic)
Codes = NDArray[np.unsignedinteger[Any]]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def take(array: NDArray[Element], places: NDArray[np.integer[Any]] | slice) -> NDArray[Element]:
    """The elements of `array` (n,) at `places` (k,), in their order: (k,), for a slice a view.

    Raises IndexError for a place in a list that is beyond the array. Of many, `take` is the quicker way.
    """
    if isinstance(places, slice) or places.size <= FEW:
        return array[places]
    return array.take(places)


def compress(array: NDArray[Element], mask: NDArray[np.bool_]) -> NDArray[Element]:
    """The elements of `array` (n,) marked in `mask` (n,), in their order. Raises IndexError for other shapes.

    Of many, and on a mask without runs, `take` is several times quicker.
    """
    elements: NDArray[Element] = array[mask] if mask.size <= FEW else array.take(np.flatnonzero(mask))
    return elements


def uniform(value: int, count: int) -> NDArray[np.int64]:
    """A constant array stored as one element with stride 0: int64 (count,), read-only. Raises OverflowError.

    `np.broadcast_to` gives the same in ten times the time, and a query of few individuals makes six of them.
    """
    return np.ndarray((count,), np.int64, value.to_bytes(8, _ORDER, signed=True), strides=(0,))


def is_uniform(array: NDArray[np.generic]) -> bool:
    """Whether the array (k,) is stored as one element, recognised in O(1); other arrays may be constant by chance."""
    return array.strides == (0,)


def first(array: NDArray[np.int64]) -> int:
    """The first element, or 0 of an empty array."""
    return int(array[0]) if array.size > 0 else 0


def narrowest(largest: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The narrowest unsigned type, of 1, 2, 4 or 8 bytes, that holds all numbers from 0 to `largest`."""
    return np.dtype(np.min_scalar_type(largest))


def kept(mask: NDArray[np.bool_], elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """elements[mask], (k,): a view where all or none are kept. Uniform stays uniform, and nothing else becomes so."""
    count = int(np.count_nonzero(mask))
    if count in {0, mask.size} or is_uniform(elements):
        return elements[:count]
    return compress(elements, mask)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The individuals of a block that a query touches: slots by place (p of them), and which of these are touched.

    A list of slots where these are few, a stretch of slots where many. Arrays "by place" have one element for each
    listed slot, or for each slot of the stretch; elements at places that are not marked mean nothing. Over a stretch
    every operation is one pass through memory in order, and no list of slots is ever made. The form of a block decides
    about time alone (tests/laws/test_forms.py).

    `index` is a strictly increasing list of slots (p,) int64, or a slice of p slots with step 1; `marks` (p,) are True
    at the touched ones, and None where all of a list are. Raises IndexError for slots out of order or below zero,
    ValueError for marks of another shape or type, and for a stretch without marks.
    """

    index: NDArray[np.int64] | slice
    marks: NDArray[np.bool_] | None = None
    size: int = field(init=False)  # places
    begin: int = field(init=False)  # the first slot that a place is for; 0 without places
    end: int = field(init=False)  # the slot after the last; 0 without places

    def __post_init__(self) -> None:
        """Refuse slots of which one could be charged twice: a repeated one would be let through on the same balance."""
        index = self.index
        if isinstance(index, slice):
            if self.marks is None or index.step is not None or not 0 <= index.start <= index.stop:
                raise ValueError("a stretch has a start, a stop and marks")
            begin, end, size = index.start, index.stop, index.stop - index.start
        else:
            size = index.size
            begin, end = (int(index[0]), int(index[-1]) + 1) if size > 0 else (0, 0)
            if begin < 0 or not (index[1:] > index[:-1]).all():
                raise IndexError("slots must be strictly increasing and not negative")
        if self.marks is not None and (self.marks.shape != (size,) or self.marks.dtype != np.bool_):
            raise ValueError("one mark for each place")
        for name, value in (("size", size), ("begin", begin), ("end", end)):
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """The number of slots that are touched."""
        return self.size if self.marks is None else int(np.count_nonzero(self.marks))

    def among(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the places `which` (p,) that are touched, (p,)."""
        return which if self.marks is None else np.logical_and(which, self.marks)

    def slots(self, which: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The touched slots, or those of the places `which` (p,): strictly increasing."""
        marks = self.marks if which is None else which
        if not isinstance(self.index, slice):
            return self.index if marks is None else compress(self.index, marks)
        slots = np.flatnonzero(np.asarray(marks))
        slots += self.begin
        return slots
