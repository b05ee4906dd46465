"""From lists of numbers to the rows of codes of a column of vectors (service.query.vector_columns), a batch at a time.

As in other columns, bounds clip. A list that cannot be a vector is reported by row: it has another length, or a number
in it is missing, not finite or not whole.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from service.arrays import Codes, Integers, Mask
from service.engine.ingest.columns import Coded, Report, WrongType, nulls_of
from service.query.schema import VectorColumn
from service.query.vector_columns import VectorCoding, vector_coding

_INT64_MAX: Final = 2**63 - 1
LISTED: Final = pa.list_(pa.float64())
"""The type of lists that were written out as JSON."""


def is_listed(kind: pa.DataType) -> bool:
    """Tell whether a type is a list of numbers, in a layout whose bytes can be counted before it is expanded."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return is_list and bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def code_vectors(column: VectorColumn, array: pa.Array, report: Report) -> Coded:
    """Code a batch of lists: rows (n, length + 1). A wrong value is passed to `report`. Raises WrongType."""
    coding = vector_coding(column)
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), LISTED)
    if not is_listed(array.type):
        raise WrongType(f"the column holds {array.type}, not lists of numbers")
    nulls = nulls_of(array)
    lengths = pc.list_value_length(array).fill_null(column.length).to_numpy(zero_copy_only=False)
    report(lengths != column.length, f"must be a list of {column.length} numbers")
    good = ~nulls & (lengths == column.length)
    values = (array if good.all() else array.filter(pa.array(good))).flatten()
    rows = np.flatnonzero(good)
    steps = _whole_numbers(values, rows, nulls.size, column.length, report)
    codes, outside = _clipped(steps, coding)
    coded = coding.missing(nulls.size)
    coded[rows, 0] = 1
    coded[rows, 1:] = codes
    return Coded(codes=coded, clipped=outside, nulls=int(nulls.sum()))


def listed_numbers(values: Sequence[object]) -> tuple[pa.Array, list[int]]:
    """Lists of JSON as an array; and the places of lists that hold anything but numbers, which are NULL there."""
    wrong = [at for at, value in enumerate(values) if isinstance(value, list) and not set(map(type, value)) <= _NUMBERS]
    refused = set(wrong)
    rows = [
        list(map(float, value)) if isinstance(value, list) and at not in refused else None
        for at, value in enumerate(values)
    ]
    return pa.array(rows, type=LISTED), wrong


_NUMBERS: Final = {int, float}


def _whole_numbers(values: pa.Array, rows: Integers, count: int, length: int, report: Report) -> NDArray[np.integer]:
    """The numbers (k, length) of the vectors in k of `count` rows, zero where wrong."""

    def told(wrong: Mask, message: str) -> None:
        of_all = np.zeros(count, dtype=np.bool_)
        of_all[rows] = wrong.reshape(-1, length).any(axis=1)
        report(of_all, message)

    missing = nulls_of(values) if values.null_count else np.zeros(0, dtype=np.bool_)
    if missing.any():
        told(missing, "a number of the list is missing")
        values = values.fill_null(0)
    numbers = values.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind == "f":
        infinite = ~np.isfinite(numbers)
        told(infinite, "a number of the list is not finite")
        numbers = np.where(infinite, 0, numbers).astype(np.float64)
        told(numbers != np.rint(numbers), "a number of the list is not whole: it counts steps")
        numbers = np.clip(numbers, -(2.0**62), 2.0**62).astype(np.int64)
    elif numbers.dtype == np.uint64:
        numbers = np.minimum(numbers, np.uint64(_INT64_MAX)).astype(np.int64)
    whole: NDArray[np.integer] = numbers.reshape(-1, length)
    return whole


def _clipped(steps: NDArray[np.integer], coding: VectorCoding) -> tuple[Codes, int]:
    """The codes (k, length) of numbers, and how many vectors have a number out of bounds."""
    lower, upper = coding.offset, coding.offset + coding.span
    if steps.size == 0 or lower <= int(steps.min()) <= int(steps.max()) <= upper:
        if lower == 0:
            return steps.astype(coding.dtype, copy=False), 0
        return np.subtract(steps, lower, dtype=np.int64).astype(coding.dtype), 0
    outside = ((steps < lower) | (steps > upper)).any(axis=1)
    codes = np.clip(steps.astype(np.int64), lower, upper) - lower
    return codes.astype(coding.dtype), int(outside.sum())
