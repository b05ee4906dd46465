"""Writes that Postgres refuses because it has no room or is read-only: the public code, one log line and a count."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import psycopg
from psycopg.errors import DiskFull

log = logging.getLogger("sparing.store")

DISK_FULL: Final = "database-disk-full"
READ_ONLY: Final = "database-read-only"
REFUSALS: Final[Mapping[str, str]] = {"53100": DISK_FULL, "25006": READ_ONLY}
"""The public code by SQLSTATE: 53100 is disk_full, 25006 is read_only_sql_transaction."""
REPEATED_EVERY_S: Final = 60.0
PROBED_EVERY_S: Final = 10.0

IS_READ_ONLY: Final = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
LITTLE_MEMORY: Final = "SET LOCAL work_mem = '64kB'"
SPILL: Final = "SELECT count(*) FROM generate_series(1, 60000)"
"""With LITTLE_MEMORY this writes 1.2 MB to a file beside the tables, which is removed at its end: no row, no log."""


class RefusedWrites:
    """Keeps the reason why the database refuses to write, as transactions and probes have found it. Thread-safe."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without a refusal. `clock` counts seconds."""
        self._clock, self._lock = clock, threading.Lock()
        self._code: str | None = None
        self._count = 0
        self._logged_at = self._probed_at = clock() - PROBED_EVERY_S

    def note(self, fault: BaseException) -> None:
        """Count a transaction that ended with this fault, if the fault or its cause is one of REFUSALS.

        The first one is logged. While others follow, their number is logged once a minute.
        """
        code = _code_of(fault)
        if code is None:
            return
        with self._lock:
            self._found(code)
            self._count += 1
            now = self._clock()
            if now >= self._logged_at + REPEATED_EVERY_S:
                self._logged_at = now
                log.error("the database still refuses to write: %s; %d transactions so far", code, self._count)

    def probe(self, session: psycopg.Connection[Any]) -> str | None:
        """The public code of the reason why the database cannot write; None if it can. Takes at least a round trip.

        A file is written at most every PROBED_EVERY_S seconds, and at every call while the database is known to refuse.
        Raises psycopg.Error.
        """
        is_due = self._code is not None or self._clock() >= self._probed_at + PROBED_EVERY_S
        code = refusal(session, writes=is_due)
        if is_due:
            self._probed_at = self._clock()
        if is_due or code is not None:
            with self._lock:
                self._found(code)
        return code

    def _found(self, code: str | None) -> None:
        """Keep the code, and log a change of it; the end of a refusal with how many transactions were refused."""
        if code == self._code:
            return
        if code is None:
            log.warning("the database writes again; %d transactions were refused: %s", self._count, self._code)
        else:
            log.error("the database refuses to write: %s", code)
            self._logged_at = self._clock()
        self._code, self._count = code, 0


def refusal(session: psycopg.Connection[Any], *, writes: bool = True) -> str | None:
    """The public code of the reason why a database cannot write; None if it can. With `writes` a file is written.

    The session must not be in autocommit, and is rolled back. Raises psycopg.Error.
    """
    code = READ_ONLY if session.execute(IS_READ_ONLY).fetchall()[0][0] else None
    try:
        if writes and code is None:
            session.execute(LITTLE_MEMORY)
            session.execute(SPILL)
    except DiskFull:
        code = DISK_FULL
    session.rollback()
    return code


def _code_of(fault: BaseException | None) -> str | None:
    """The public code of a fault, or else of its cause."""
    while fault is not None:
        code = REFUSALS.get(str(getattr(fault, "sqlstate", None)))
        if code is not None:
            return code
        fault = fault.__cause__
    return None
