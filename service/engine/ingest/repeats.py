"""Rows that an upload holds twice.

Two rows are the same if their keys and all their stored values are the same. So whether a row repeats an earlier row
depends on the rows of its own individual alone.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from service.arrays import Codes, Integers, Mask

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


def repeated_rows(keys: pa.ChunkedArray, columns: Sequence[Codes | Integers]) -> Mask:
    """The mask (n,) of rows that repeat an earlier row, from n keys, none missing, and the n values of each column.

    A number mixed from the whole row is compared first, so that only rows that share this number are sorted.
    """
    whose = np.asarray(keys.combine_chunks().dictionary_encode().indices.fill_null(-1)).astype(np.int64)
    repeated = np.zeros(whose.size, dtype=np.bool_)
    mixed = _mixed([whose, *columns])
    ordered = np.sort(mixed)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if shared.size == 0:
        return repeated
    candidates = np.flatnonzero(np.isin(mixed, np.unique(shared)))
    compared = [column[candidates] for column in (*columns, whose)]
    order = np.lexsort(compared)  # stable: of equal rows the first stays first
    is_same = np.ones(order.size - 1, dtype=np.bool_)
    for column in compared:
        is_same &= column[order[1:]] == column[order[:-1]]
    repeated[candidates[order[1:][is_same]]] = True
    return repeated


def told_apart(rows: Codes) -> Integers:
    """A number for each of `rows` (n, width) of a column of vectors: equal for equal rows, and for no others."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)
    numbers: Integers = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    return numbers


def _mixed(columns: Sequence[Codes | Integers]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A number for each row (n,): the same number for equal rows, and seldom the same for different rows."""
    mixed = np.zeros(columns[0].size, dtype=np.uint64)
    for column in columns:
        mixed ^= column.astype(np.uint64)
        mixed *= _ODD
        mixed ^= mixed >> _SHIFT
    return mixed
