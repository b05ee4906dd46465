"""A session with Postgres: a connection that extends ledgers by a statement of its own, prepared once.

The statements of every commit go straight through libpq, which waits for the reply without the GIL: a cursor of
psycopg's costs four times what the statement does.
"""

from collections.abc import Sequence
from itertools import chain, count
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.errors import IntegrityError, error_from_result
from psycopg.pq import ExecStatus, Format, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from service.store.postgres.append import EXTEND, LAYOUTS, MORE_PIECES, LedgerAppend, RowTypes

Connection = psycopg.Connection[tuple[Any, ...]]

_ROW_TYPES: Final = "SELECT " + ", ".join(f"'{table}'::regtype::oid" for table in LAYOUTS)
_NAMES: Final = count()
_CANCEL_S: Final = 5.0


class Session(Connection):
    """A connection of the pool."""

    _row_types: RowTypes | None = None
    _extend_name: bytes | None = None

    def extend(self, extension: LedgerAppend) -> bool:
        """Append all of an extension; False, and nothing, when what it assumes is not so.

        Durable at once outside of a transaction, with it inside. Raises psycopg.Error.
        """
        try:
            return self._extended(extension)
        except IntegrityError:
            raise
        except psycopg.Error:
            # What was learnt may be of tables that were made anew since.
            self._row_types = self._extend_name = None
            raise

    def change(self, statement: str, values: Sequence[int | bytes]) -> None:
        """Run a statement with parameters $1, $2 and so on; durable at once outside of a transaction.

        One round trip, for which the GIL is given up once. Raises psycopg.Error.
        """
        parameters = [b"%d" % value if isinstance(value, int) else value for value in values]
        formats = [Format.TEXT if isinstance(value, int) else Format.BINARY for value in values]
        result = self.pgconn.exec_params(statement.encode(), parameters, param_formats=formats)
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)

    def define(self, definition: sql.Composed) -> None:
        """Run DROP or ALTER in the open transaction; what is prepared stays so (`rollback`). Raises psycopg.Error."""
        result = self.pgconn.exec_(definition.as_bytes(self))
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)

    def abandon(self) -> None:
        """Cancel a statement that was sent and not waited for, so that the session can be rolled back in silence."""
        if (
            self.pgconn.transaction_status == TransactionStatus.ACTIVE
            and self.pgconn.pipeline_status == PipelineStatus.OFF
        ):
            self.cancel_safe(timeout=_CANCEL_S)
            while self.pgconn.get_result() is not None:
                pass

    def rollback(self) -> None:
        """Undo what was not committed. What is prepared stays so: psycopg would forget all of it.

        It does so for the sake of tables that are undone and made again under the same name, of which there are none.
        After an error all is forgotten: psycopg counts what a broken pipeline was to prepare as prepared.
        """
        is_whole = self.pgconn.transaction_status == TransactionStatus.INTRANS
        if not is_whole or self.pgconn.pipeline_status != PipelineStatus.OFF:
            if self.pgconn.transaction_status == TransactionStatus.INERROR:
                self._row_types = self._extend_name = None
            super().rollback()
            return
        result = self.pgconn.exec_(b"ROLLBACK")
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)

    def _extended(self, extension: LedgerAppend) -> bool:
        if self._row_types is None:
            found = _rows(self.pgconn.exec_(_ROW_TYPES.encode()))
            self._row_types = {table: int(found.get_value(0, n) or b"") for n, table in enumerate(LAYOUTS)}
        pieces = extension.pieces(self._row_types)
        parameters = extension.parameters(self._row_types, next(pieces))
        if self._extend_name is None:
            self._extend_name = self._prepare_extend()
        second = next(pieces, None)
        if second is None:
            return self._moved(self._extend_name, parameters)
        with self.transaction():  # a savepoint within one that is open
            is_moved = self._moved(self._extend_name, parameters)
            for more in chain([second], pieces) if is_moved else ():
                self.change(MORE_PIECES, [more])
        return is_moved

    def _moved(self, name: bytes, parameters: Sequence[bytes]) -> bool:
        done = self.pgconn.exec_prepared(name, parameters, [Format.BINARY] * len(parameters))
        return _rows(done).get_value(0, 0) == b"1"

    def _prepare_extend(self) -> bytes:
        name = f"extend-{next(_NAMES)}".encode()
        result = self.pgconn.prepare(name, EXTEND.encode())
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)
        return name


def _rows(result: PGresult) -> PGresult:
    """A result that has rows. Raises psycopg.Error."""
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    return result
