"""Dates and times of an upload, as whole days and seconds since 1970-01-01 in UTC."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from service.core.arrays import Mask
from service.engine.ingest.wrong import Report, WrongType, nulls_of
from service.query.calendar import DAY_S, days_of, seconds_of

_UNITS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def whole_times(array: pa.Array, report: Report, *, is_date: bool, is_text: bool) -> tuple[NDArray[np.int64], Mask]:
    """Days or seconds (n,), rounded down, 0 where missing or wrong; and which are missing. Raises WrongType.

    Text is ISO 8601. An array of times with a zone holds instants, which count in UTC; without one it is in UTC.
    """
    kind = array.type
    if is_text or pa.types.is_string(kind):
        return _of_text(array, report, is_date=is_date)
    nulls = nulls_of(array)
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return days if is_date else days * DAY_S, nulls
    if pa.types.is_timestamp(kind):
        counts = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return counts // (_UNITS_A_SECOND[kind.unit] * (DAY_S if is_date else 1)), nulls
    raise WrongType(f"the column holds {kind}, not {'dates' if is_date else 'times'}")


def _of_text(text: pa.Array, report: Report, *, is_date: bool) -> tuple[NDArray[np.int64], Mask]:
    """Each different text is read once: a column of a million days holds a few thousand of them."""
    read: Callable[[str], int | None] = days_of if is_date else seconds_of
    encoded = pc.dictionary_encode(text)
    values = [read(each) for each in encoded.dictionary.to_pylist()]
    numbers = pa.array(values, type=pa.int64()).take(encoded.indices)
    nulls = nulls_of(text)
    wrong = nulls_of(numbers) & ~nulls
    report(wrong, f"not a {'date: write it as 2026-03-31' if is_date else 'time: write it as 2026-03-31T23:59:59Z'}")
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), nulls
