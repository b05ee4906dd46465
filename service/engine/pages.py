"""The unit in which everything by slot grows and is checkpointed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import FEW
from service.query.working_memory import PAGE_SLOTS

__all__ = ["PAGE_BITS", "PAGE_SLOTS", "PageTotals", "pages_for", "pages_of", "slots_on", "union"]

PAGE_BITS: Final = PAGE_SLOTS.bit_length() - 1
"""A slot within its page is exactly a uint16."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageTotals:
    """The replay of the ledger for one page: `spent` units, and how many queries `charged` each slot or `left_out` it.

    All are (PAGE_SLOTS,); spent is int64, the counters are uint32.
    """

    spent: NDArray[np.int64]
    charged: NDArray[np.uint32]
    left_out: NDArray[np.uint32]

    @classmethod
    def zero(cls) -> Self:
        """Of a page that no entry has touched."""
        charged, left_out = np.zeros((2, PAGE_SLOTS), dtype=np.uint32)
        return cls(spent=np.zeros(PAGE_SLOTS, dtype=np.int64), charged=charged, left_out=left_out)


def slots_on(page: int) -> slice:
    """The slots of a page."""
    return slice(page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS)


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
