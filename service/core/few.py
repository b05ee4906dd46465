"""Working on few elements without giving up the interpreter's lock.

Around many of its operations numpy gives the lock up, for one element as for a million. On a busy server another thread
then takes it, on another core: an operation of a microsecond has to wait until that thread has come to its own next
pause, and finds its caches cold. Up to FEW elements, arithmetic and indexing keep the lock, and what is done here is
made of these alone. It is a matter of time only: few elements come out as many would.
"""

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

FEW: Final = 500
"""numpy's own bound, beyond which its arithmetic and its indexing give the lock up too."""

Element = TypeVar("Element", bound=np.generic)


def take(array: NDArray[Element], places: NDArray[np.integer[Any]]) -> NDArray[Element]:
    """The elements of `array` (n,) at `places` (k,), in their order: (k,). Raises IndexError for a place beyond it.

    Of many, `take` is the quicker way.
    """
    elements: NDArray[Element] = array[places] if places.size <= FEW else array.take(places)
    return elements


def compress(array: NDArray[Element], mask: NDArray[np.bool_]) -> NDArray[Element]:
    """The elements of `array` (n,) marked in `mask` (n,), in their order. Raises IndexError for other shapes.

    Of many, and on a mask without runs, `take` is several times quicker.
    """
    elements: NDArray[Element] = array[mask] if mask.size <= FEW else array.take(np.flatnonzero(mask))
    return elements
