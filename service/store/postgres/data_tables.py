"""A dataset's own tables: typed columns, one row per individual or event, addressed by slot and never by key.

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
from psycopg import sql

from service.query.columns import Coding, coding_of
from service.query.schema import Column, EventsTable, Schema

COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_TRAILER: Final = b"\xff\xff"
COPIED_AT_ONCE: Final = 2**13
"""So that putting their bytes together never keeps the GIL for long."""
Codes = Mapping[str, NDArray[np.unsignedinteger]]
_SLOT = "_slot"  # declared names begin with a letter
BLOCKS_AT_ONCE: Final = 2**14
"""Of 8 KiB: what one statement packs is far below the gibibyte that a value may have."""
ROWS_AT_ONCE: Final = 2**24
"""The most rows, for the same reason, where rows are read by their slots."""
SLOTS_AT_ONCE: Final = 2**16
"""So that what is done with one statement's rows is soon done."""


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


@dataclass(frozen=True, slots=True)
class RecordsTable:
    """One table of one dataset, in the schema `records`."""

    name: str
    columns: tuple[StoredColumn, ...]
    rows_per_slot: int = 1

    def create(self) -> sql.Composed:
        """Its definition."""
        columns = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.sql_type)) for c in self.columns]
        return sql.SQL("CREATE TABLE {} ({})").format(
            self._identifier,
            sql.SQL(", ").join([sql.SQL("{} integer NOT NULL").format(sql.Identifier(_SLOT)), *columns]),
        )

    def add_column(self, column: StoredColumn) -> sql.Composed:
        """One column more, which is NULL in the rows that are there."""
        return sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(
            self._identifier, sql.Identifier(column.name), sql.SQL(column.sql_type)
        )

    def rename(self, name: str) -> sql.Composed:
        """The same table under another name."""
        return sql.SQL("ALTER TABLE {} RENAME TO {}").format(self._identifier, sql.Identifier(name))

    def drop(self) -> sql.Composed:
        """The table and all rows of it, gone."""
        return sql.SQL("DROP TABLE {}").format(self._identifier)

    def truncate(self) -> sql.Composed:
        """All rows of it, gone."""
        return sql.SQL("TRUNCATE {}").format(self._identifier)

    def index(self) -> sql.Composed:
        """Rows are erased by slot."""
        return sql.SQL("CREATE INDEX ON {} ({})").format(self._identifier, sql.Identifier(_SLOT))

    def copy(self) -> sql.Composed:
        """The statement that `encode` feeds."""
        return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            self._identifier, sql.SQL(", ").join(map(sql.Identifier, [_SLOT, *(c.name for c in self.columns)]))
        )

    def encode(self, slots: NDArray[np.int64], codes: Codes) -> Iterator[bytes]:
        """Rows for COPY."""
        return copy_in(slots, codes, self.columns)

    def blocks(self) -> sql.Composed:
        """How many blocks the table has."""
        return sql.SQL("SELECT pg_relation_size({}) / current_setting('block_size')::bigint").format(
            sql.Literal(self._identifier.as_string())
        )

    @property
    def slots_at_once(self) -> int:
        """Of how many slots one statement `selects_some` may read the rows."""
        return min(max(ROWS_AT_ONCE // self.rows_per_slot, 1), SLOTS_AT_ONCE)

    def selects_some(self) -> sql.Composed:
        """A statement for the rows of some runs of slots, of which it takes the first and the last slots."""
        return sql.SQL(
            "SELECT {} FROM unnest(%s::integer[], %s::integer[]) AS runs (first_slot, last_slot)"
            " JOIN {} ON {} >= first_slot AND {} <= last_slot"
        ).format(self._packed_columns, self._identifier, sql.Identifier(_SLOT), sql.Identifier(_SLOT))

    def selects(self, blocks: int) -> list[sql.Composed]:
        """Statements for the rows of `blocks` blocks; each gives one row of packed columns, NULL by its stand-in."""
        return [
            sql.SQL("SELECT {} FROM {} WHERE ctid >= {}::tid AND ctid < {}::tid").format(
                self._packed_columns, self._identifier, f"({first},0)", f"({first + BLOCKS_AT_ONCE},0)"
            )
            for first in range(0, blocks, BLOCKS_AT_ONCE)
        ]

    def read(self, parts: Sequence[Sequence[bytes | None]]) -> tuple[NDArray[np.int64], Codes]:
        """(slots, codes by column) of what all `selects` gave."""
        slots, *values = unpacked(parts, [np.dtype(">i4"), *(column.out.dtype for column in self.columns)])
        codes = {column.name: column.codes(value) for column, value in zip(self.columns, values, strict=True)}
        return slots.astype(np.int64), codes

    def delete(self) -> sql.Composed:
        """One slot's rows."""
        return sql.SQL("DELETE FROM {} WHERE {} = %s").format(self._identifier, sql.Identifier(_SLOT))

    def count(self) -> sql.Composed:
        """How many rows."""
        return sql.SQL("SELECT count(*) FROM {}").format(self._identifier)

    @property
    def _packed_columns(self) -> sql.Composed:
        return sql.SQL(", ").join([packed("int4send", sql.Identifier(_SLOT)), *map(_packed, self.columns)])

    @property
    def _identifier(self) -> sql.Identifier:
        return sql.Identifier("records", self.name)


def records_tables(dataset_id: int, schema: Schema) -> dict[str, RecordsTable]:
    """Every table of a dataset by its declared name; limits live with the accounts, not among the data.

    Tables are numbered in the order in which jsonb gives back the names, which need not be that of the declaration.
    """
    places = {name: place for place, name in enumerate(sorted(schema.tables, key=lambda name: (len(name), name)))}
    return {
        name: RecordsTable(
            f"d{dataset_id}_{name[:48]}_{places[name]}",
            tuple(StoredColumn.of(c, column) for c, column in table.columns.items() if column.type != "budget"),
            rows_per_slot=table.rows_per_individual if isinstance(table, EventsTable) else 1,
        )
        for name, table in schema.tables.items()
    }


def copy_in(slots: NDArray[np.int64], codes: Codes, columns: Sequence[StoredColumn]) -> Iterator[bytes]:
    """The bytes of a binary COPY of (slot, columns...) rows."""
    yield COPY_HEADER
    for rows, present in _by_null_pattern(codes, columns, slots.size):
        for start in range(0, rows.size, COPIED_AT_ONCE):
            yield _group(slots, codes, columns, rows[start : start + COPIED_AT_ONCE], present)
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


def in_pieces(slots: NDArray[np.int64], *, slots_max: int = SLOTS_AT_ONCE) -> Iterator[tuple[str, str]]:
    """The runs of consecutive slots among `slots` (n,), which increase, for several statements: firsts and lasts.

    As literals of arrays: psycopg takes ten times as long over a list of numbers as over their text.
    """
    for start in range(0, slots.size, slots_max):
        piece = slots[start : start + slots_max]
        ends = np.flatnonzero(np.diff(piece) > 1)
        yield _literal(piece[[0, *(ends + 1)]]), _literal(piece[[*ends, -1]])


def runs_in(slots: NDArray[np.int64]) -> int:
    """How many runs of consecutive slots there are among `slots` (n,), which increase."""
    return int(np.count_nonzero(np.diff(slots) > 1)) + 1


def chosen(slots: NDArray[np.int64], codes: Codes, of: NDArray[np.int64]) -> tuple[NDArray[np.int64], Codes]:
    """The rows of some slots."""
    is_chosen = np.zeros(max(int(slots.max(initial=-1)), int(of.max(initial=-1))) + 1, dtype=np.bool_)
    is_chosen[of] = True
    rows = np.flatnonzero(is_chosen[slots])
    return slots[rows], {name: values[rows] for name, values in codes.items()}


def _literal(numbers: NDArray[np.int64]) -> str:
    return f"{{{','.join(map(str, numbers.tolist()))}}}"


def packed(sql_bytes: str, value: sql.Composable) -> sql.Composed:
    """A value of every row, one after the other."""
    return sql.SQL("string_agg({}({}), ''::bytea)").format(sql.SQL(sql_bytes), value)


def unpacked(
    parts: Sequence[Sequence[bytes | None]], wires: Sequence[np.dtype[np.generic]]
) -> list[NDArray[np.generic]]:
    """The values of each of several packed columns, part after part; of no rows a part holds NULL."""
    columns = zip(*parts, strict=True) if parts else [()] * len(wires)
    return [
        np.frombuffer(b"".join(part or b"" for part in column), dtype=wire)
        for column, wire in zip(columns, wires, strict=True)
    ]


def _packed(column: StoredColumn) -> sql.Composed:
    name, out = sql.Identifier(column.name), column.out
    value = sql.SQL("{}::integer").format(name) if column.kind == "boolean" else name
    present = sql.SQL("coalesce({}, {})::{}").format(value, sql.SQL(column.null_out), sql.SQL(out.sql_type))
    return packed(out.sql_bytes, present)
