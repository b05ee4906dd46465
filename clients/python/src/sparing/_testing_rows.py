"""Rows of a fake dataset, read from the form that a test gives into the codes that the service holds."""

import datetime as dt
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._expressions import plain
from sparing._models import KeyComparison
from sparing._records import records_of
from sparing._rooms.fake import (
    BooleanColumn,
    CategoryColumn,
    Coding,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    Key,
    Table,
    VectorCoding,
    VectorColumn,
    codings_of,
    compared,
    seconds_of,
    units_down,
    vectors_of,
    written_day_of,
)

_KINDS: Mapping[str, str] = {
    "boolean": "true or false",
    "budget": "a rho that is not negative",
    "integer": "an integer",
    "real": "a number",
    "date": "a date",
    "datetime": "a date or a time",
    "category": "a category",
    "vector": "a list of whole numbers, as long as declared",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRows:
    """Rows of one table: keys, codes by column, and limits in units, where -1 stands for the dataset's budget."""

    keys: Sequence[Key]
    codes: Mapping[str, NDArray[np.unsignedinteger[Any]]]
    limits: NDArray[np.int64]

    def of(self, individuals: Container[Key]) -> "CodedRows":
        """The rows whose keys are among these individuals."""
        kept = np.array([key in individuals for key in self.keys], dtype=np.bool_)
        keys = [key for key in self.keys if key in individuals]
        return CodedRows(keys=keys, codes={n: codes[kept] for n, codes in self.codes.items()}, limits=self.limits[kept])


def coded(name: str, table: Table, rows: object, comparison: KeyComparison) -> CodedRows:
    """Rows (mappings from column to value, or a data frame) as an upload would store them.

    Missing columns and undeclared categories become NULL; numbers outside their bounds are clipped. Raises ValueError,
    which names the table, the row and the column, for a wrong value.
    """
    keys: list[Key] = []
    read: dict[str, list[int]] = {each: [] for each in table.columns}
    codings, vectors = codings_of(table.columns), vectors_of(table.columns)
    listed: dict[str, list[NDArray[np.unsignedinteger[Any]]]] = {each: [] for each in vectors}
    for number, row in enumerate(_records(rows), start=1):
        place = f"{name}, row {number}"
        for each in row.keys() - {table.key, *table.columns}:
            raise ValueError(f"{place}: the column {each} is not declared")
        key = plain(row.get(table.key))
        if key is None:
            raise ValueError(f"{place}: the key {table.key} is missing")
        keys.append(_key(place, str(key), comparison))
        for each, column in table.columns.items():
            try:
                if isinstance(column, VectorColumn):
                    listed[each].append(_vector(vectors[each], row.get(each)))
                else:
                    read[each].append(_number(column, codings.get(each), plain(row.get(each))))
            except (ArithmeticError, TypeError, ValueError):
                raise ValueError(f"{place}: {each} must be {_KINDS[column.type]}, not {row[each]!r}") from None
    limits = next((read[each] for each, column in table.columns.items() if column.type == "budget"), [-1] * len(keys))
    return CodedRows(
        keys=keys,
        codes={each: np.array(read[each], dtype=coding.dtype) for each, coding in codings.items()}
        | {each: np.concatenate([coding.missing(0), *listed[each]]) for each, coding in vectors.items()},
        limits=np.array(limits, dtype=np.int64),
    )


def _key(place: str, text: str, comparison: KeyComparison) -> Key:
    if text != text.strip():
        raise ValueError(f"{place}: the key begins or ends with a blank")
    try:
        return compared(text, comparison)
    except ValueError as unfit:
        raise ValueError(f"{place}: {unfit}") from None


def _number(column: Column, coding: Coding | None, value: Any) -> int:  # noqa: ANN401 - any value of a row
    """The code of a value, or a limit in units. Raises ArithmeticError, TypeError or ValueError for a wrong value."""
    is_missing = value is None or value != value  # noqa: PLR0124 - NaN and NaT
    if coding is None:  # of a column of limits
        return -1 if is_missing else units_down(Fraction(str(value)))
    if is_missing:
        return coding.null_code
    match column:
        case CategoryColumn():
            code = _category(column, value)
            return coding.null_code if code is None else code
        case BooleanColumn():
            if value not in (0, 1):
                raise ValueError
            return int(value)
        case DateColumn() | DatetimeColumn():
            found = (written_day_of if isinstance(column, DateColumn) else seconds_of)(_iso(value))
            if found is None:
                raise ValueError
            value = found
        case _:
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise TypeError
            if isinstance(column, IntegerColumn) and value != int(value):
                raise ValueError
            value = int(value) if isinstance(column, IntegerColumn) else float(value)
    return min(max(coding.code_of(value), 0), coding.span)


def _vector(coding: VectorCoding, value: Any) -> NDArray[np.unsignedinteger[Any]]:  # noqa: ANN401 - any value of a row
    """The row of codes (1, width) of a list or an array of numbers. Raises ValueError for any other value."""
    row = coding.missing(1)
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return row
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf" or numbers.shape != (coding.length,) or not np.all(numbers == np.rint(numbers)):
        raise ValueError
    row[0, 0] = 1
    row[0, 1:] = np.clip(numbers.astype(np.float64), coding.offset, coding.offset + coding.span) - coding.offset
    return row


def _category(column: CategoryColumn, value: object) -> int | None:
    """The code of a category, found by its text if categories are listed; None if it is not declared."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if column.categories is None:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        return column.code_of(int(str(value)))
    return next((code for category, code in column.codes.items() if str(category) == str(value)), None)


def _iso(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if not isinstance(value, str):
        raise TypeError
    return value


def _records(rows: object) -> Iterable[Mapping[str, Any]]:
    """Rows as mappings, from a frame of pandas, polars or pyarrow, or from other rows."""
    for method, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):
        convert = getattr(rows, method, None)
        if convert is not None:
            return records_of(convert(*arguments))
    return records_of(rows)
