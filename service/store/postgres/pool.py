"""The sessions of one process with its database: a pool of them, and what all have in common."""

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from service.failpoints import watch
from service.store.postgres.connection import Session
from service.store.postgres.errors import translated
from service.workflows.ports.store import CommitUnclear, StoreUnavailable

LONG_MAX: Final = 2
"""Long acts of one process at a time; they have so many connections more than all else together."""
_MUST_BE_ON: Final = ("fsync", "full_page_writes", "synchronous_commit")
_BACKEND: Final = "SELECT FROM pg_stat_activity WHERE pid = %s"
_BACKEND_WAIT_S: Final = 2.0
_BACKEND_POLL_S: Final = 0.01
_WAIT_S: Final = 5.0
_FOR_WRITING: Final = 4


class DurabilityTooWeak(Exception):
    """The database may forget what it has acknowledged; the service does not serve from it."""


class SessionPool:
    """One pool, one role without DELETE on the ledger. Every fault is StoreUnavailable."""

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
        """Open the pool; raises StoreUnavailable when no connection comes.

        Readers leave some connections to transactions that lock a dataset: however many read, no query waits behind
        them.
        """
        self._readers = BoundedSemaphore(max(connections_max - _FOR_WRITING, 1))
        self.idle_timeout_ms = idle_timeout_ms
        self._long = BoundedSemaphore(LONG_MAX)
        self._limits = {
            "statement_timeout": statement_timeout_ms,
            "lock_timeout": lock_timeout_ms,
            "idle_in_transaction_session_timeout": idle_timeout_ms,
            "tcp_user_timeout": tcp_timeout_ms,  # the server's end; ours is below
        }
        self._pool: ConnectionPool[Session] = ConnectionPool(
            database_url,
            connection_class=Session,
            min_size=1,
            max_size=connections_max + LONG_MAX,
            timeout=_WAIT_S,
            configure=self._configure,
            check=_check,
            open=False,
            kwargs={"connect_timeout": 2, "tcp_user_timeout": tcp_timeout_ms},
        )
        with translated():
            self._pool.open(wait=True, timeout=30)

    def close(self) -> None:
        """Close all of them."""
        self._pool.close()

    @contextmanager
    def one(self, *, for_writing: bool = False) -> Iterator[Session]:
        """A session; what is not committed when an error leaves this is undone."""
        with self._turn(for_writing=for_writing), translated(), self._pool.connection() as session:
            try:
                yield session
            except SystemExit:  # a signal may strike between the sending of a statement and the waiting for it
                session.abandon()
                raise

    @contextmanager
    def long(self) -> Iterator[Session]:
        """A session for a long act, of which there are so few at a time that all others still find one.

        After an error the session is closed: what it took for prepared may have been undone.
        """
        with self._long, self.one(for_writing=True) as session:
            try:
                yield session
            except BaseException:
                session.close()
                raise

    @contextmanager
    def _turn(self, *, for_writing: bool) -> Iterator[None]:
        if for_writing:
            yield
        elif not self._readers.acquire(timeout=_WAIT_S):
            raise StoreUnavailable("too many read")
        else:
            try:
                yield
            finally:
                self._readers.release()

    @contextmanager
    def settled(self) -> Iterator[Session]:
        """A session for what commits by itself; if it is lost on the way, that has ended when this is left."""
        with translated():
            session = self._pool.getconn()
        backend, is_lost = session.pgconn.backend_pid, False
        try:
            with translated():
                yield session
        except CommitUnclear:
            is_lost = session.closed  # otherwise Postgres itself has said that it did nothing
            raise
        finally:
            self._pool.putconn(session)
            if is_lost:
                self._await_end(backend)

    def rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The rows that a statement by itself gives."""
        with self.one() as session:
            return session.execute(statement, values, binary=True).fetchall()

    def commit(self, statement: str, values: Sequence[object]) -> int:
        """Run a statement and commit; how many rows it has changed."""
        with self.one() as session:
            return session.execute(statement, values).rowcount

    def check_durability(self) -> None:
        """Raise DurabilityTooWeak unless an acknowledged commit survives a power cut on this database."""
        with self.one() as session:
            for setting in _MUST_BE_ON:
                value = session.execute(sql.SQL("SHOW {}").format(sql.Identifier(setting))).fetchall()[0][0]
                if value == "off" or (setting == "synchronous_commit" and value == "local"):
                    raise DurabilityTooWeak(f"{setting} = {value}: a crash could forget charges that were answered")

    def _await_end(self, backend: int) -> None:
        """Give a backend whose connection is lost the time to finish, so that a caller now reads what it did.

        A proposal has no lock before it is executed: Postgres may begin with it after others have looked.
        """
        until = time.monotonic() + _BACKEND_WAIT_S
        with suppress(StoreUnavailable):
            while self.rows(_BACKEND, [backend]) and time.monotonic() < until:
                time.sleep(_BACKEND_POLL_S)

    def _configure(self, session: psycopg.Connection[Any]) -> None:
        """Every session: the API's role, and limits so that nothing holds a lock for ever."""
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
    """Refuse a pooled session that has died, without a round trip: an idle one has nothing to read, a dead one does."""
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    if poll.poll(0):
        ConnectionPool.check_connection(session)
