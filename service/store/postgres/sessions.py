"""The sessions of one process with its database, and the only place where psycopg's exceptions become the port's.

The statements of every commit go straight through libpq, which waits for the reply without the GIL. A cursor of psycopg
costs four times as much as the statement itself.
"""

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from threading import BoundedSemaphore
from typing import Any, Final, NoReturn

import psycopg
from psycopg import sql
from psycopg.errors import IntegrityError, error_from_result
from psycopg.pq import ExecStatus, Format, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from service.failpoints import watch
from service.ledger.ports.store import CommitRejected, CommitUnclear, StoreUnavailable
from service.store.postgres.append import EXTEND, KEEP_PARAMETERS, LAYOUTS, MORE_PIECES, LedgerAppend, RowTypes
from service.store.postgres.refused_writes import RefusedWrites
from service.store.postgres.rows import parameters_row

Connection = psycopg.Connection[tuple[Any, ...]]

_ROW_TYPES: Final = "SELECT " + ", ".join(f"'{table}'::regtype::oid" for table in LAYOUTS)
_NAMES: Final = count()
_CANCEL_S: Final = 5.0
_CANCEL_EVERY_S: Final = 0.5


class Session(Connection):
    """A connection of the pool."""

    _row_types: RowTypes | None = None
    _extend_name = b""

    def extend(self, extension: LedgerAppend) -> bool:
        """Append all of an extension and return True; append nothing and return False if its assumptions do not hold.

        Outside a transaction the append is durable at once; inside, it is durable with the transaction. Raises
        psycopg.Error.
        """
        try:
            row_types = self._row_types or self._prepare_extend()
            pieces = extension.pieces(row_types)
            first = next(pieces, None)
            parameters = extension.parameters(row_types, first)
            second = None if first is None else next(pieces, None)
            if second is None and not extension.kept:
                return self._moved(parameters)
            with self.transaction():  # a savepoint within one that is open
                is_moved = self._moved(parameters)
                for kept in extension.kept if is_moved else ():
                    self.change(KEEP_PARAMETERS, [extension.dataset_id, *parameters_row(kept)])
                for more in chain([second], pieces) if is_moved and second is not None else ():
                    self.change(MORE_PIECES, [more])
            return is_moved
        except IntegrityError:
            raise
        except psycopg.Error:
            self._row_types = None  # what was learnt may be of tables that were made anew since
            raise

    def change(self, statement: str, values: Sequence[int | bytes]) -> None:
        """Run a statement with parameters $1, $2 and so on. Outside a transaction its effect is durable at once.

        This takes one round trip, for which the GIL is given up once. Raises psycopg.Error.
        """
        parameters = [b"%d" % value if isinstance(value, int) else value for value in values]
        formats = [Format.TEXT if isinstance(value, int) else Format.BINARY for value in values]
        _done(self.pgconn.exec_params(statement.encode(), parameters, param_formats=formats))

    def define(self, definition: sql.Composed) -> None:
        """Run DROP or ALTER in the open transaction. Prepared statements stay so (`rollback`). Raises psycopg.Error."""
        _done(self.pgconn.exec_(definition.as_bytes(self)))

    def abandon(self) -> None:
        """Cancel a statement that was sent and not waited for, so that a rollback of the session meets no error."""
        if (
            self.pgconn.transaction_status == TransactionStatus.ACTIVE
            and self.pgconn.pipeline_status == PipelineStatus.OFF
        ):
            self.cancel_safe(timeout=_CANCEL_S)
            while not _has_said_something(self, within_s=_CANCEL_EVERY_S):  # a cancel before the statement is lost
                self.cancel_safe(timeout=_CANCEL_S)
            while self.pgconn.get_result() is not None:
                pass

    def rollback(self) -> None:
        """Undo what was not committed. Prepared statements stay prepared, although psycopg would forget all of them.

        psycopg forgets them because a table may be undone and made again under the same name. This service has no such
        tables. After an error they are forgotten here too, because psycopg counts a statement as prepared that a broken
        pipeline was to prepare.
        """
        is_whole = self.pgconn.transaction_status == TransactionStatus.INTRANS
        if not is_whole or self.pgconn.pipeline_status != PipelineStatus.OFF:
            if self.pgconn.transaction_status == TransactionStatus.INERROR:
                self._row_types = None
            super().rollback()
            return
        _done(self.pgconn.exec_(b"ROLLBACK"))

    def _moved(self, parameters: Sequence[bytes]) -> bool:
        sent = self.pgconn.exec_prepared(self._extend_name, parameters, [Format.BINARY] * len(parameters))
        return _done(sent, ExecStatus.TUPLES_OK).get_value(0, 0) == b"1"

    def _prepare_extend(self) -> RowTypes:
        """Learn the types of this database's rows, and prepare EXTEND."""
        found = _done(self.pgconn.exec_(_ROW_TYPES.encode()), ExecStatus.TUPLES_OK)
        name = f"extend-{next(_NAMES)}".encode()
        _done(self.pgconn.prepare(name, EXTEND.encode()))
        self._extend_name = name
        self._row_types = {table: int(found.get_value(0, n) or b"") for n, table in enumerate(LAYOUTS)}
        return self._row_types


def _done(result: PGresult, status: ExecStatus = ExecStatus.COMMAND_OK) -> PGresult:
    """The result, if it has this status. Raises psycopg.Error otherwise."""
    if result.status != status:
        raise error_from_result(result)
    return result


_REPEATING: Final = ("22", "23")
"""The classes of SQLSTATE for data exceptions and violated constraints: the same values fail again."""


_FAULTS: Final = (psycopg.Error, PoolTimeout, PoolClosed)


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreUnavailable for any fault of the database, the connection or the pool: analysts may see no details."""
    try:
        yield
    except _FAULTS as fault:
        raise StoreUnavailable(type(fault).__name__) from fault


@contextmanager
def committing() -> Iterator[None]:
    """Turn a fault in the block, which makes a transaction durable, into the error that `refuse_commit` raises."""
    try:
        yield
    except (psycopg.Error, StoreUnavailable) as fault:
        refuse_commit(fault)


def refuse_commit(fault: psycopg.Error | StoreUnavailable) -> NoReturn:
    """Raise CommitRejected if Postgres blames the values, else CommitUnclear.

    An error that blames the values ends the transaction, so that nothing of it is durable, even if COMMIT reports the
    error.
    """
    if isinstance(fault, psycopg.Error) and fault.sqlstate is not None and fault.sqlstate.startswith(_REPEATING):
        raise CommitRejected(fault.sqlstate) from None
    raise CommitUnclear(type(fault).__name__) from fault


LONG_MAX: Final = 2
"""The most long acts of one process at a time; each has a connection besides `connections_max`."""
CHANGES_MAX: Final = 2
"""The most changes of tables beside the ledgers at a time; each has a connection besides `connections_max`."""
APART_MAX: Final = 2
"""Connections for look-ups of keys and probes, in a pool of their own."""
_MUST_BE_ON: Final = ("fsync", "full_page_writes", "synchronous_commit")
_BACKEND: Final = "SELECT FROM pg_stat_activity WHERE pid = %s"
_BACKEND_WAIT_S: Final = 2.0
_BACKEND_POLL_S: Final = 0.01
_WAIT_S: Final = 5.0
_FOR_WRITING: Final = 4


class DurabilityTooWeak(Exception):
    """The database may forget what it has acknowledged; the service does not serve from it."""


class SessionPool:
    """A pool of sessions under a role that may not DELETE from the ledger. Every fault is StoreUnavailable."""

    def __init__(
        self,
        database_url: str,
        *,
        connections_max: int = 10,
        statement_timeout_ms: int = 300_000,
        lock_timeout_ms: int = 10_000,
        idle_timeout_ms: int = 60_000,
        tcp_timeout_ms: int = 10_000,
    ) -> None:
        """Open the pool. Raises StoreUnavailable when no connection comes.

        Readers leave some connections to transactions that lock a dataset: however many read, no query waits behind
        them. There are further connections for changes, for long acts, and for look-ups of keys and probes.
        """
        self.refused = RefusedWrites()
        self._readers = BoundedSemaphore(max(connections_max - _FOR_WRITING, 1))
        self.idle_timeout_ms = idle_timeout_ms
        self._long, self._changes = BoundedSemaphore(LONG_MAX), BoundedSemaphore(CHANGES_MAX)
        self._limits = {
            "statement_timeout": statement_timeout_ms,
            "lock_timeout": lock_timeout_ms,
            "idle_in_transaction_session_timeout": idle_timeout_ms,
            "tcp_user_timeout": tcp_timeout_ms,  # the server's end; ours is below
        }
        kwargs = {"connect_timeout": 2, "tcp_user_timeout": tcp_timeout_ms}
        self._pool = self._pool_of(database_url, 1, connections_max + LONG_MAX + CHANGES_MAX, kwargs)
        self._apart = self._pool_of(database_url, 0, APART_MAX, kwargs)
        with translated():
            self._pool.open(wait=True, timeout=30)
            self._apart.open()

    def _pool_of(
        self, database_url: str, size_min: int, size_max: int, kwargs: dict[str, Any]
    ) -> ConnectionPool[Session]:
        return ConnectionPool(
            database_url,
            connection_class=Session,
            min_size=size_min,
            max_size=size_max,
            timeout=_WAIT_S,
            configure=self._configure,
            check=_check,
            open=False,
            kwargs=kwargs,
        )

    def close(self) -> None:
        """Close all sessions."""
        self._pool.close()
        self._apart.close()

    @contextmanager
    def one(self, *, for_writing: bool = False) -> Iterator[Session]:
        """A session. If an error leaves the block, what was not committed is undone."""
        if not (for_writing or self._readers.acquire(timeout=_WAIT_S)):
            raise StoreUnavailable("too many read")
        try:
            with self._session_of(self._pool) as session:
                yield session
        finally:
            if not for_writing:
                self._readers.release()

    @contextmanager
    def changing(self) -> Iterator[Session]:
        """A session for a change of the tables beside the ledgers, which takes no reader's place."""
        if not self._changes.acquire(timeout=_WAIT_S):
            raise StoreUnavailable("too many change")
        try:
            with self.one(for_writing=True) as session:
                yield session
        finally:
            self._changes.release()

    @contextmanager
    def apart(self) -> Iterator[Session]:
        """A session for a look-up of keys or a probe, which no other reading or writing can take."""
        with self._session_of(self._apart) as session:
            yield session

    @contextmanager
    def _session_of(self, pool: ConnectionPool[Session]) -> Iterator[Session]:
        try:
            with translated(), pool.connection() as session:
                try:
                    yield session
                except SystemExit:  # a signal may strike between the sending of a statement and the waiting for it
                    session.abandon()
                    raise
        except (StoreUnavailable, CommitUnclear) as fault:
            self.refused.note(fault)
            raise

    @contextmanager
    def long(self) -> Iterator[Session]:
        """A session for a long act. At most LONG_MAX run at a time, so that all other work still finds a session.

        After an error the session is closed: statements that it takes for prepared may have been undone.
        """
        with self._long, self.one(for_writing=True) as session:
            try:
                yield session
            except BaseException:
                session.close()
                raise

    def take(self) -> Session:
        """A session for work that commits by itself. The caller gives it to `put_back`."""
        try:
            return self._pool.getconn()
        except _FAULTS as fault:
            raise StoreUnavailable(type(fault).__name__) from fault

    def put_back(self, session: Session) -> None:
        """Take back a session that `take` gave."""
        self._pool.putconn(session)

    def await_end(self, backend: int) -> None:
        """Wait a short time until a backend whose connection is lost ends, so that the caller then reads its effects.

        A conditional append holds no lock before it is executed, so Postgres may begin with it after others have
        looked.
        """
        until = time.monotonic() + _BACKEND_WAIT_S
        with suppress(StoreUnavailable):
            while self.rows(_BACKEND, [backend]) and time.monotonic() < until:
                time.sleep(_BACKEND_POLL_S)

    def rows(self, statement: str, values: Sequence[object], *, is_apart: bool = False) -> list[tuple[Any, ...]]:
        """The rows that a single statement gives, in a reader's session, or in one of `apart` with `is_apart`."""
        with self.apart() if is_apart else self.one() as session:
            return session.execute(statement, values, binary=True).fetchall()

    def commit(self, statement: str, values: Sequence[object]) -> int:
        """Run a statement and commit; return how many rows it has changed."""
        with self.changing() as session:
            return session.execute(statement, values).rowcount

    def check_durability(self) -> None:
        """Raise DurabilityTooWeak unless an acknowledged commit survives a power cut on this database."""
        with self.one() as session:
            for setting in _MUST_BE_ON:
                value = session.execute(sql.SQL("SHOW {}").format(sql.Identifier(setting))).fetchall()[0][0]
                if value == "off" or (setting == "synchronous_commit" and value == "local"):
                    raise DurabilityTooWeak(f"{setting} = {value}: a crash could forget charges that were answered")

    def _configure(self, session: psycopg.Connection[Any]) -> None:
        """Give a new session the API's role, and limits so that no session holds a lock for ever."""
        watch(session)
        session.execute("SET ROLE sparing_api")
        session.execute("SET jit = off")  # what is long here runs once, and compiling it takes longer than it gains
        # A plan is kept while the table for which it was made grows: it has to follow an index in its order and stop.
        session.execute("SET enable_seqscan = off")
        session.execute("SET enable_bitmapscan = off")
        for name, limit_ms in self._limits.items():
            session.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(limit_ms)))
        session.commit()


def _check(session: psycopg.Connection[Any]) -> None:
    """Refuse a pooled session that has died, without a round trip: an idle one that lives has nothing to read."""
    if _has_said_something(session, within_s=0):
        ConnectionPool.check_connection(session)


def _has_said_something(session: psycopg.Connection[Any], *, within_s: float) -> bool:
    """Tell whether the server has sent something to read, or has closed its end."""
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(within_s * 1000))
