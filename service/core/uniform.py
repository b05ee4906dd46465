"""Many equal numbers in the room of one: an array whose stride is zero, and which so says that all of it is equal."""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from service.core.few import compress

_ORDER: Final[Literal["little", "big"]] = "little" if np.little_endian else "big"


def uniform(value: int, count: int) -> NDArray[np.int64]:
    """`count` times `value`: an int64 array (count,), read-only. Raises OverflowError beyond int64.

    What `np.broadcast_to` gives, in a tenth of its time: a query of few individuals makes six of them.
    """
    return np.ndarray((count,), np.int64, value.to_bytes(8, _ORDER, signed=True), strides=(0,))


def is_uniform(array: NDArray[np.generic]) -> bool:
    """Whether the array (k,) says of itself that all its elements are equal; another's may be equal by chance."""
    return array.strides == (0,)


def first(array: NDArray[np.int64]) -> int:
    """The first element, and of none 0: the number of which a uniform array holds none."""
    return int(array[0]) if array.size > 0 else 0


def kept(mask: NDArray[np.bool_], elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """elements[mask], (k,), as a view where it is all of them or none; what is uniform stays so, nothing becomes so."""
    count = int(np.count_nonzero(mask))
    if count in {0, mask.size} or is_uniform(elements):
        return elements[:count]
    return compress(elements, mask)
