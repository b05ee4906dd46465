"""The DB-API 2.0 compliance suite, on `sparing.dbapi` over SQLite in place of the service.

The suite makes tables and fills them, which the service never does. So a statement, once its parameters are in it, goes
to SQLite. Parameters, fetching, description and life cycle are those of the client. `loadtests.compliance` runs it.
"""

import sqlite3
import sys
import unittest
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import dbapi20
import pytest

import sparing
from sparing import dbapi
from sparing._sql_tables import Table


class Cursor(dbapi.Cursor):
    """A cursor that asks SQLite."""

    def execute(self, operation: str, parameters: Sequence[object] = (), *, idempotency_key: str | None = None) -> Self:
        """Execute as the client does. A statement without rows, which the service does not have, leaves no result."""
        super().execute(operation, parameters, idempotency_key=idempotency_key)
        if not self.connection.asked.description:  # type: ignore[attr-defined]
            self._forget()
        return self

    def _ask(self, text: str, idempotency_key: str | None) -> Table:  # noqa: ARG002 - SQLite has none
        done = self.connection.asked = self.connection.database.execute(text)  # type: ignore[attr-defined]
        rows, names = done.fetchall(), tuple(column[0] for column in done.description or ())
        samples = rows[0] if rows else ("",) * len(names)  # the suite's columns are texts
        return Table(names=names, rows=rows, samples=samples)


class Connection(dbapi.Connection):
    """A connection to SQLite, with a new database in memory for each test."""

    database: sqlite3.Connection
    asked: sqlite3.Cursor

    def cursor(self) -> Cursor:
        """A cursor that asks SQLite."""
        self.check_open()
        return Cursor(self)


class Compliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    """The suite. A test that does not apply states its reason here."""

    lower_func = None  # there are no procedures
    connect_kw_args: ClassVar = {"dataset": "d", "sigma": 1, "base_url": "https://sparing.test", "api_key": "k"}

    def setUp(self) -> None:
        """Make a database in memory for each test."""
        database = sqlite3.connect(":memory:")
        self.addCleanup(database.close)

        def connect(**options: Any) -> Connection:  # noqa: ANN401 - of `connect`
            made = sparing.connect(**options)
            made.__class__ = Connection
            made.database = database  # type: ignore[attr-defined]
            return made  # type: ignore[return-value]

        self.driver = SimpleNamespace(**{**vars(dbapi), "connect": connect})

    def test_non_idempotent_close(self) -> None:
        """Check that a second `close` is harmless; the suite leaves this open."""
        connection = self._connect()
        connection.close()
        connection.close()
        with pytest.raises(dbapi.InterfaceError):
            connection.cursor()

    def test_executemany(self) -> None:
        """Check that `executemany` is refused, as it is only for statements without rows."""
        with pytest.raises(dbapi.NotSupportedError):
            self._connect().cursor().executemany("select ?", [(1,), (2,)])

    def test_nextset(self) -> None:
        """Leave out an optional part that the client does not have."""
        assert not hasattr(dbapi.Cursor, "nextset")

    def test_setoutputsize(self) -> None:
        """Check that a size, with and without a column, changes no rows."""
        cursor = self._connect().cursor()
        cursor.setoutputsize(1)
        cursor.setoutputsize(1, 0)
        assert cursor.execute("select 'longer'").fetchall() == [("longer",)]


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
