"""A dataset's own tables: typed columns, one row per individual or event, addressed by slot and never by key."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.query.schema import Schema
from service.store.postgres.columns import Codes, StoredColumn, copy_in, copy_out

_SLOT = "_slot"  # declared names begin with a letter


@dataclass(frozen=True, slots=True)
class RecordsTable:
    """One table of one dataset, in the schema `records`."""

    name: str
    columns: tuple[StoredColumn, ...]

    def create(self) -> sql.Composed:
        """Its definition."""
        columns = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.sql_type)) for c in self.columns]
        return sql.SQL("CREATE TABLE {} ({})").format(
            self._identifier,
            sql.SQL(", ").join([sql.SQL("{} integer NOT NULL").format(sql.Identifier(_SLOT)), *columns]),
        )

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

    def select(self) -> sql.Composed:
        """Every row at fixed width, NULL by its stand-in."""
        return sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join([sql.Identifier(_SLOT), *map(_selected, self.columns)]), self._identifier
        )

    def read(self, data: bytes) -> tuple[NDArray[np.int64], Codes]:
        """(slots, codes by column) of what `select` copied out."""
        return copy_out(data, self.columns)

    def delete(self) -> sql.Composed:
        """One slot's rows."""
        return sql.SQL("DELETE FROM {} WHERE {} = %s").format(self._identifier, sql.Identifier(_SLOT))

    def count(self) -> sql.Composed:
        """How many rows."""
        return sql.SQL("SELECT count(*) FROM {}").format(self._identifier)

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
        )
        for name, table in schema.tables.items()
    }


def _selected(column: StoredColumn) -> sql.Composed:
    value = sql.SQL("{}::integer") if column.kind == "boolean" else sql.SQL("{}")
    return sql.SQL("coalesce({}, {})").format(value.format(sql.Identifier(column.name)), sql.SQL(column.null_on_wire))
