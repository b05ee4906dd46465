"""Arrays for small queries: constant ones stored once, indexing that keeps the GIL, and sums beyond 64 bits.

Many of numpy's operations release the GIL, for one element as for a million. On a busy server another thread then takes
the GIL on another core. An operation of a microsecond waits until that thread releases it, and finds its caches cold.
Up to FEW elements, numpy's arithmetic and indexing keep the GIL, and the functions here use these alone. This affects
time alone: the results are the same for few elements and for many.
"""

from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

FEW: Final = 500
"""The bound of numpy, beyond which its arithmetic and indexing release the GIL too."""

_ORDER: Final[Literal["little", "big"]] = "little" if np.little_endian else "big"

HALF_BITS: Final = 32
_SUMMED_MAX: Final = 2**62

Element = TypeVar("Element", bound=np.generic)
Codes = NDArray[np.unsignedinteger[Any]]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]


def take(array: NDArray[Element], places: NDArray[np.integer[Any]] | slice) -> NDArray[Element]:
    """The elements of `array` (n,) at `places`, in their order: (k,) for places (k,), a view for a slice.

    Raises IndexError for a place in a list that is beyond the array. For many places numpy's `take` is quicker.
    """
    if isinstance(places, slice) or places.size <= FEW:
        return array[places]
    return array.take(places)


def compress(array: NDArray[Element], mask: NDArray[np.bool_]) -> NDArray[Element]:
    """The elements of `array` (n,) marked in `mask` (n,), in their order. Raises IndexError for other shapes.

    For many elements numpy's `take` is several times quicker than the mask, unless the mask has runs.
    """
    elements: NDArray[Element] = array[mask] if mask.size <= FEW else array.take(np.flatnonzero(mask))
    return elements


def uniform(value: int, count: int) -> NDArray[np.int64]:
    """A constant array stored as one element with stride 0: int64 (count,), read-only. Raises OverflowError.

    `np.broadcast_to` gives the same array in ten times the time, and a query of few individuals makes six of them.
    """
    return np.ndarray((count,), np.int64, value.to_bytes(8, _ORDER, signed=True), strides=(0,))


def is_uniform(array: NDArray[np.generic]) -> bool:
    """Tell in O(1) whether the array (k,) is stored as one element. Another array may still be constant by chance."""
    return array.strides == (0,)


def first(array: NDArray[np.int64]) -> int:
    """The first element, or 0 of an empty array."""
    return int(array[0]) if array.size > 0 else 0


def narrowest(largest: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The narrowest unsigned type, of 1, 2, 4 or 8 bytes, that holds all numbers from 0 to `largest`."""
    return np.dtype(np.min_scalar_type(largest))


def kept(mask: NDArray[np.bool_], elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """The elements marked in `mask`, (k,): a view where all or none are marked, uniform exactly where `elements` is."""
    count = int(np.count_nonzero(mask))
    if count in {0, mask.size} or is_uniform(elements):
        return elements[:count]
    return compress(elements, mask)


def exact_sum(units: NDArray[np.int64]) -> int:
    """The sum of non-negative `units` (n,) as a Python int. Many units near 2^62 would not fit 64 bits."""
    if int(units.max(initial=0)) * units.size < _SUMMED_MAX:
        return int(units.sum())
    return (int((units >> HALF_BITS).sum()) << HALF_BITS) + int((units & (2**HALF_BITS - 1)).sum())


def halves(squares: NDArray[np.integer[Any]], firsts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sums (k,) of 64-bit squares, each as high * 2^32 + low with low below 2^32; at most 2^31 squares a vector."""
    low = np.add.reduceat(squares & squares.dtype.type(2**HALF_BITS - 1), firsts).astype(np.int64)
    high = np.add.reduceat(squares >> squares.dtype.type(HALF_BITS), firsts).astype(np.int64)
    return high + (low >> HALF_BITS), low & (2**HALF_BITS - 1)
