"""Many equal numbers in the room of one: an array whose stride is zero, and which so says that all of it is equal."""

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

_ORDER: Final[Literal["little", "big"]] = "little" if np.little_endian else "big"


def uniform(value: int, count: int) -> NDArray[np.int64]:
    """`count` times `value`: an int64 array (count,), read-only. Raises OverflowError beyond int64.

    What `np.broadcast_to` gives, in a tenth of its time: a query of few individuals makes six of them.
    """
    return np.ndarray((count,), np.int64, value.to_bytes(8, _ORDER, signed=True), strides=(0,))


def is_uniform(array: NDArray[np.generic]) -> bool:
    """Whether the array (k,) says of itself that all its elements are equal; another's may be equal by chance."""
    return array.strides == (0,)
