"""A dataset's own tables: typed columns, one row per individual or event, addressed by slot and never by key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.query.schema import EventsTable, Schema
from service.store.postgres.column_types import Codes, StoredColumn, copy_in

_SLOT = "_slot"  # declared names begin with a letter
BLOCKS_AT_ONCE: Final = 2**14
"""Of 8 KiB: what one statement packs is far below the gibibyte that a value may have."""
ROWS_AT_ONCE: Final = 2**24
"""So many rows at most, for the same reason, where rows are read by their slots."""
SLOTS_AT_ONCE: Final = 2**16
"""So that what is done with one statement's rows is soon done."""


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
