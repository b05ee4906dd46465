"""A declared column at rest: its SQL type, and the way between unsigned codes in memory and typed values in the table.

Rows go in by COPY in binary. Fixed-width columns without NULL are one numpy array of structures, a hundred times faster
than row by row; rows that do hold NULLs are grouped by which columns are NULL, so that each group is again of fixed
width. They come out aggregated: one value for each column of a stretch of rows, because a client that is handed a
million rows, by COPY or otherwise, spends five times as long on taking them as Postgres does on reading them; and as
narrow as the column's domain allows, because most of the time goes into putting the bytes together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.query.columns import Coding, coding_of
from service.query.schema import Column

COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_TRAILER: Final = b"\xff\xff"
ROWS_AT_ONCE: Final = 2**13
"""So that putting their bytes together never keeps the GIL for long."""
Codes = Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True, slots=True)
class WireOut:
    """A fixed width at which values come back: the SQL type, and the function that gives such a value's bytes."""

    dtype: np.dtype[np.generic]
    sql_type: str
    sql_bytes: str

    def holds(self, value: int) -> bool:
        """Whether a whole number fits."""
        reach = 1 << (8 * self.dtype.itemsize - 1)
        return -reach <= value < reach


_WHOLE: Final = (
    WireOut(np.dtype(">i2"), "smallint", "int2send"),
    WireOut(np.dtype(">i4"), "integer", "int4send"),
    WireOut(np.dtype(">i8"), "bigint", "int8send"),
)
_DOUBLE: Final = WireOut(np.dtype(">f8"), "double precision", "float8send")


_SQL_TYPES: Final = {
    "category": "integer",
    "boolean": "boolean",
    "integer": "bigint",
    "date": "integer",
    "datetime": "bigint",
    "real": "double precision",
}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column of a records table."""

    name: str
    kind: str
    coding: Coding

    @classmethod
    def of(cls, name: str, column: Column) -> "StoredColumn":
        """The stored form of a declared column."""
        return cls(name, column.type, coding_of(column))

    @property
    def sql_type(self) -> str:
        """Reals are doubles on the column's own power-of-two grid, everything else is whole: exact both ways."""
        return _SQL_TYPES[self.kind]

    @property
    def wire(self) -> np.dtype[np.generic]:
        """The big-endian form that COPY carries."""
        return np.dtype({"boolean": "u1", "integer": ">i4", "bigint": ">i8", "double precision": ">f8"}[self.sql_type])

    @property
    def out(self) -> "WireOut":
        """The form in which values come back: the narrowest that holds the domain and what stands for NULL."""
        if self.kind == "real":
            return _DOUBLE
        lowest, null = self.coding.offset, self.coding.offset + self.coding.null_code
        return next(out for out in _WHOLE if out.holds(lowest) and out.holds(null))

    @property
    def null_out(self) -> str:
        """An SQL literal outside the domain, standing for NULL when values come back at fixed width."""
        return "'NaN'" if self.kind == "real" else str(self.coding.offset + self.coding.null_code)

    def values(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.generic]:
        """Codes, none of them NULL, as typed values in wire form."""
        steps = codes.astype(np.int64) + self.coding.offset
        if self.kind == "real":
            return np.ldexp(steps.astype(np.float64), self.coding.step_log2).astype(self.wire)
        return steps.astype(self.wire)

    def codes(self, values: NDArray[np.generic]) -> NDArray[np.unsignedinteger]:
        """Typed values in wire form, NULL by its stand-in, as codes."""
        if self.kind != "real":
            return (values.astype(np.int64) - self.coding.offset).astype(self.coding.dtype)
        steps = np.ldexp(values.astype(np.float64), -self.coding.step_log2)
        is_null = np.isnan(steps)
        return np.where(
            is_null, self.coding.null_code, np.where(is_null, 0, steps).astype(np.int64) - self.coding.offset
        ).astype(self.coding.dtype)


def copy_in(slots: NDArray[np.int64], codes: Codes, columns: Sequence[StoredColumn]) -> Iterator[bytes]:
    """The bytes of a binary COPY of (slot, columns...) rows."""
    yield COPY_HEADER
    for rows, present in _by_null_pattern(codes, columns, slots.size):
        for start in range(0, rows.size, ROWS_AT_ONCE):
            yield _group(slots, codes, columns, rows[start : start + ROWS_AT_ONCE], present)
    yield COPY_TRAILER


def _group(
    slots: NDArray[np.int64],
    codes: Codes,
    columns: Sequence[StoredColumn],
    rows: NDArray[np.int64],
    present: Sequence[bool],
) -> bytes:
    """The rows in which exactly the columns not `present` are NULL."""
    fields: list[tuple[str, object]] = [("count", ">i2"), ("n", ">i4"), ("slot", ">i4")]
    for place, column in enumerate(columns):
        fields.append((f"n{place}", ">i4"))
        if present[place]:
            fields.append((f"v{place}", column.wire))
    out = np.empty(rows.size, dtype=np.dtype(fields))
    out["count"], out["n"], out["slot"] = len(columns) + 1, 4, slots[rows]
    for place, column in enumerate(columns):
        out[f"n{place}"] = column.wire.itemsize if present[place] else -1
        if present[place]:
            out[f"v{place}"] = column.values(codes[column.name][rows])
    return out.tobytes()


def _by_null_pattern(
    codes: Codes, columns: Sequence[StoredColumn], count: int
) -> Iterator[tuple[NDArray[np.int64], list[bool]]]:
    """(row numbers, which columns are present) for each pattern of NULLs that occurs."""
    groups = [(np.arange(count), [True] * 0)]
    for column in columns:
        split: list[tuple[NDArray[np.int64], list[bool]]] = []
        for rows, present in groups:
            is_null = codes[column.name][rows] == column.coding.null_code
            split += [(rows[~is_null], [*present, True]), (rows[is_null], [*present, False])]
        groups = [group for group in split if group[0].size]
    yield from groups
