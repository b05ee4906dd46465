"""The unit in which everything by slot grows, is evaluated and is checkpointed."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.core.few import FEW

PAGE_BITS: Final = 16
PAGE_SLOTS: Final = 2**PAGE_BITS
"""Slots in a page: a slot within its page is exactly a uint16."""


def pages_for(slots: int) -> int:
    """How many pages hold slots 0 to `slots` - 1."""
    return -(-slots // PAGE_SLOTS)


def pages_of(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pages that hold `slots` (n,), in any order: increasing, each once."""
    pages = slots >> PAGE_BITS
    if pages.size <= FEW:
        return np.array(sorted(set(pages.tolist())), dtype=np.int64)
    return np.flatnonzero(np.bincount(pages))
