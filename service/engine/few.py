"""Working on few rows without giving up the interpreter's lock.

Around many of its operations numpy gives the lock up, for one element as for a million. On a busy server another thread
then takes it, on another core: an operation of a microsecond has to wait until that thread has come to its own next
pause, and finds its caches cold. Up to FEW elements, arithmetic and indexing keep the lock, and what is done here is
made of these alone.
"""

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

FEW: Final = 500
"""numpy's own bound, beyond which its arithmetic and its indexing give the lock up too."""

Element = TypeVar("Element", bound=np.generic)


def picked(array: NDArray[Element], places: NDArray[np.integer[Any]]) -> NDArray[Element]:
    """The elements of `array` (n,) at `places` (k,), in their order. Of many, `take` is the quicker way."""
    chosen: NDArray[Element] = array[places] if places.size <= FEW else array.take(places)
    return chosen


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different ones of `numbers` (n,), small and not negative: increasing, each once."""
    if numbers.size <= FEW:
        return np.array(sorted(set(numbers.tolist())), dtype=np.int64)
    return np.flatnonzero(np.bincount(numbers))
