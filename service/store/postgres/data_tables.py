"""A dataset's own tables: typed columns, one row per individual or event, addressed by slot and never by key.

Rows are written by COPY in binary. Columns of fixed width without NULL are one numpy array of structures, a hundred
times faster than row by row. Rows with NULLs are grouped by which of their columns are NULL, so that each group is
again of fixed width.

Rows are read in aggregates: one value for each column of a stretch of rows. A client that gets a million single rows,
by COPY or otherwise, spends five times as long on taking them as Postgres does on reading them. Values are as narrow as
the column's domain allows, because most of the time goes into putting the bytes together. Vectors come in pieces
bounded by the bytes of the vectors, because these are not stored in the blocks of their rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.ledger.model.rows import ColumnCodes
from service.query.columns import DIGEST, DIGEST_CODING
from service.query.schema import EventsTable, Schema, Table
from service.store.postgres.stored_columns import AnyStored, StoredColumn, StoredVectors, packed, stored

COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_TRAILER: Final = b"\xff\xff"
COPIED_AT_ONCE: Final = 2**13
"""The most rows whose bytes are put together at once, so that this never holds the GIL for long."""
COPIED_BYTES: Final = 2**23
"""The bytes of rows with vectors that are put together at once."""
_SLOT = "_slot"  # declared names begin with a letter
BLOCKS_AT_ONCE: Final = 2**14
"""The blocks of 8 KiB that one statement reads; their rows pack into far less than a value's limit of one gibibyte."""
VECTOR_BYTES_AT_ONCE: Final = 2**25
"""The bytes of vectors that one statement reads; most vectors are stored outside the blocks of their rows."""
BLOCK_ROWS_MAX: Final = 226
"""The most rows in a block of 8 KiB: each row takes 36 bytes or more, of which 28 are Postgres' own."""
ROWS_AT_ONCE: Final = 2**24
"""The most rows that one statement reads by their slots; they too pack into far less than one gibibyte."""
SLOTS_AT_ONCE: Final = 2**16
"""The most slots that one statement reads, so that its rows are worked on in a short time."""


@dataclass(frozen=True)
class RecordsTable:
    """One table of one dataset, in the schema `records`."""

    name: str
    columns: tuple[AnyStored, ...]
    rows_per_slot: int = 1

    def create(self) -> sql.Composed:
        """The statement that creates the table."""
        columns = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.sql_type)) for c in self.columns]
        return sql.SQL("CREATE TABLE {} ({})").format(
            self._identifier,
            sql.SQL(", ").join([sql.SQL("{} integer NOT NULL").format(sql.Identifier(_SLOT)), *columns]),
        )

    def add_column(self, column: AnyStored) -> sql.Composed:
        """The statement that adds a column, which is NULL in the rows that exist."""
        return sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(
            self._identifier, sql.Identifier(column.name), sql.SQL(column.sql_type)
        )

    def rename(self, name: str) -> sql.Composed:
        """The statement that gives the table another name."""
        return sql.SQL("ALTER TABLE {} RENAME TO {}").format(self._identifier, sql.Identifier(name))

    def drop(self) -> sql.Composed:
        """The statement that drops the table with all its rows."""
        return sql.SQL("DROP TABLE {}").format(self._identifier)

    def truncate(self) -> sql.Composed:
        """The statement that deletes all rows of the table."""
        return sql.SQL("TRUNCATE {}").format(self._identifier)

    def index(self) -> sql.Composed:
        """The statement that creates an index by slot, by which rows are erased."""
        return sql.SQL("CREATE INDEX ON {} ({})").format(self._identifier, sql.Identifier(_SLOT))

    def copy(self) -> sql.Composed:
        """The statement that `copy_in` feeds."""
        return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            self._identifier, sql.SQL(", ").join(map(sql.Identifier, [_SLOT, *(c.name for c in self.columns)]))
        )

    def blocks(self) -> sql.Composed:
        """The statement that gives the table's number of blocks."""
        return sql.SQL("SELECT pg_relation_size({}) / current_setting('block_size')::bigint").format(
            sql.Literal(self._identifier.as_string())
        )

    @property
    def slots_at_once(self) -> int:
        """The most slots whose rows one statement `selects_some` may read."""
        by_bytes = VECTOR_BYTES_AT_ONCE // max(self.vector_bytes, 1)
        return max(min(ROWS_AT_ONCE // self.rows_per_slot, by_bytes, SLOTS_AT_ONCE), 1)

    @property
    def blocks_at_once(self) -> int:
        """The number of blocks that one statement of `selects` reads."""
        return max(min(VECTOR_BYTES_AT_ONCE // max(BLOCK_ROWS_MAX * self.vector_bytes, 1), BLOCKS_AT_ONCE), 1)

    @cached_property
    def vector_bytes(self) -> int:
        """The bytes of all vectors in a row."""
        return _vector_bytes(self.columns)

    def selects_some(self) -> sql.Composed:
        """The statement that reads the rows of some runs of slots. Takes the first and the last slots of the runs."""
        return sql.SQL(
            "SELECT {} FROM unnest(%s::integer[], %s::integer[]) AS runs (first_slot, last_slot)"
            " JOIN {} ON {} >= first_slot AND {} <= last_slot"
        ).format(self._packed_columns, self._identifier, sql.Identifier(_SLOT), sql.Identifier(_SLOT))

    def selects(self, blocks: int) -> list[sql.Composed]:
        """Statements that read `blocks` blocks. Each gives one row of packed columns, with stand-ins for NULL."""
        return [
            sql.SQL("SELECT {} FROM {} WHERE ctid >= {}::tid AND ctid < {}::tid").format(
                self._packed_columns, self._identifier, f"({first},0)", f"({first + self.blocks_at_once},0)"
            )
            for first in range(0, blocks, self.blocks_at_once)
        ]

    def read(self, parts: Sequence[Sequence[bytes | None]]) -> tuple[NDArray[np.int64], ColumnCodes]:
        """(slots, codes by column) from the results of all statements of `selects` or `selects_some`."""
        slots, *values = unpacked(parts, [np.dtype(">i4"), *(column.out for column in self.columns)])
        codes = {column.name: column.codes(value) for column, value in zip(self.columns, values, strict=True)}
        return slots.astype(np.int64), codes

    def delete(self) -> sql.Composed:
        """The statement that deletes the rows of one slot."""
        return sql.SQL("DELETE FROM {} WHERE {} = %s").format(self._identifier, sql.Identifier(_SLOT))

    def count(self) -> sql.Composed:
        """The statement that gives the number of rows."""
        return sql.SQL("SELECT count(*) FROM {}").format(self._identifier)

    @property
    def _packed_columns(self) -> sql.Composed:
        return sql.SQL(", ").join(
            [packed("int4send", sql.Identifier(_SLOT)), *(column.packed for column in self.columns)]
        )

    @property
    def _identifier(self) -> sql.Identifier:
        return sql.Identifier("records", self.name)


def records_tables(dataset_id: int, schema: Schema) -> dict[str, RecordsTable]:
    """Every table of a dataset by its declared name. Limits are stored with the accounts, not in these tables.

    Tables are numbered in the order in which jsonb returns the names, which may differ from the order of declaration.
    """
    places = {name: place for place, name in enumerate(sorted(schema.tables, key=lambda name: (len(name), name)))}
    return {
        name: RecordsTable(
            f"d{dataset_id}_{name[:48]}_{places[name]}",
            _columns(table, is_of_individuals=name == schema.individuals_name),
            rows_per_slot=table.rows_per_individual if isinstance(table, EventsTable) else 1,
        )
        for name, table in schema.tables.items()
    }


def _columns(table: Table, *, is_of_individuals: bool) -> tuple[AnyStored, ...]:
    """The stored form of the declared columns, without the limits; the table of individuals also has a digest."""
    columns = tuple(stored(name, column) for name, column in table.columns.items() if column.type != "budget")
    return (*columns, StoredColumn(DIGEST, "integer", DIGEST_CODING)) if is_of_individuals else columns


def _vector_bytes(columns: Sequence[AnyStored]) -> int:
    return sum(column.coding.row_bytes for column in columns if isinstance(column, StoredVectors))


def copy_in(slots: NDArray[np.int64], codes: ColumnCodes, columns: Sequence[AnyStored]) -> Iterator[bytes]:
    """The bytes of a binary COPY of (slot, columns...) rows."""
    at_once = min(max(COPIED_BYTES // max(_vector_bytes(columns), 1), 1), COPIED_AT_ONCE)
    yield COPY_HEADER
    for rows, present in _by_null_pattern(codes, columns, slots.size):
        for start in range(0, rows.size, at_once):
            yield _group(slots, codes, columns, rows[start : start + at_once], present)
    yield COPY_TRAILER


def _group(
    slots: NDArray[np.int64],
    codes: ColumnCodes,
    columns: Sequence[AnyStored],
    rows: NDArray[np.int64],
    present: Sequence[bool],
) -> bytes:
    """The rows, in binary, of which exactly the columns not `present` are NULL."""
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
    codes: ColumnCodes, columns: Sequence[AnyStored], count: int
) -> Iterator[tuple[NDArray[np.int64], list[bool]]]:
    """(row numbers, which columns are present) for each pattern of NULLs that occurs."""
    groups = [(np.arange(count), [True] * 0)]
    for column in columns:
        is_null, split = column.is_null(codes[column.name]), list[tuple[NDArray[np.int64], list[bool]]]()
        for rows, present in groups:
            split += [(rows[~is_null[rows]], [*present, True]), (rows[is_null[rows]], [*present, False])]
        groups = [group for group in split if group[0].size]
    yield from groups


def in_pieces(slots: NDArray[np.int64], *, slots_max: int = SLOTS_AT_ONCE) -> Iterator[tuple[str, str]]:
    """The runs of consecutive slots in `slots` (n,), increasing, in parts for several statements: (firsts, lasts).

    Both are literals of arrays: psycopg takes ten times as long over a list of numbers as over their text.
    """
    for start in range(0, slots.size, slots_max):
        piece = slots[start : start + slots_max]
        ends = np.flatnonzero(np.diff(piece) > 1)
        yield _literal(piece[[0, *(ends + 1)]]), _literal(piece[[*ends, -1]])


def runs_in(slots: NDArray[np.int64]) -> int:
    """The number of runs of consecutive slots among `slots` (n,), which increase."""
    return int(np.count_nonzero(np.diff(slots) > 1)) + 1


def chosen(
    slots: NDArray[np.int64], codes: ColumnCodes, of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], ColumnCodes]:
    """The rows of the slots `of`, with their slots and codes."""
    is_chosen = np.zeros(max(int(slots.max(initial=-1)), int(of.max(initial=-1))) + 1, dtype=np.bool_)
    is_chosen[of] = True
    rows = np.flatnonzero(is_chosen[slots])
    return slots[rows], {name: values[rows] for name, values in codes.items()}


def _literal(numbers: NDArray[np.int64]) -> str:
    return f"{{{','.join(map(str, numbers.tolist()))}}}"


def unpacked(
    parts: Sequence[Sequence[bytes | None]], wires: Sequence[np.dtype[np.generic]]
) -> list[NDArray[np.generic]]:
    """The values of each of several packed columns, part after part. A part without rows holds NULL."""
    columns = zip(*parts, strict=True) if parts else [()] * len(wires)
    return [
        np.frombuffer(b"".join(part or b"" for part in column), dtype=wire)
        for column, wire in zip(columns, wires, strict=True)
    ]
