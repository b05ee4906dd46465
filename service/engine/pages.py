"""The unit in which everything by slot grows and is checkpointed."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.core.few import FEW
from service.query.working_memory import PAGE_SLOTS

__all__ = ["PAGE_BITS", "PAGE_SLOTS", "pages_for", "pages_of", "union"]

PAGE_BITS: Final = PAGE_SLOTS.bit_length() - 1
"""A slot within its page is exactly a uint16."""


def pages_for(slots: int) -> int:
    """How many pages hold slots 0 to `slots` - 1."""
    return -(-slots // PAGE_SLOTS)


def union(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The slots that any of `parts` has, none negative: increasing, each once.

    As np.unique of all of them would give, which takes fifty times as long for a million.
    """
    is_in = np.zeros(max((int(part.max(initial=-1)) for part in parts), default=-1) + 1, dtype=np.bool_)
    for part in parts:
        is_in[part] = True
    return np.flatnonzero(is_in)


def pages_of(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pages that hold `slots` (n,), in any order: increasing, each once."""
    pages = slots >> PAGE_BITS
    if pages.size <= FEW:
        return np.array(sorted(set(pages.tolist())), dtype=np.int64)
    return np.flatnonzero(np.bincount(pages))
