"""A database that refuses writes: its public code, and lines of the log with a count."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import DiskFull, ReadOnlySqlTransaction, UndefinedTable

from service.ledger.ports.store import CommitUnclear, StoreUnavailable
from service.store.postgres.refused_writes import PROBED_EVERY_S, REPEATED_EVERY_S, RefusedWrites
from service.store.postgres.store import PostgresStore
from tests.logged import lines_of


class Clock:
    """Counts seconds, by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """At 0."""
    return Clock()


@pytest.fixture
def session(database_url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A session that can write."""
    with psycopg.connect(database_url) as connection:
        yield connection


def caused(kind: Callable[[], Exception], cause: Exception) -> Exception:
    """A fault of the port, as sessions raise it."""
    fault = kind()
    fault.__cause__ = cause
    return fault


def test_refusals_are_logged_once_with_their_number(
    clock: Clock, session: "psycopg.Connection[tuple[object, ...]]", caplog: pytest.LogCaptureFixture
) -> None:
    """A line at the beginning, one a minute while they go on, one at the end; other faults are none of them."""
    caplog.set_level(logging.WARNING)
    refused = RefusedWrites(clock=clock)
    refused.note(caused(StoreUnavailable, UndefinedTable()))
    refused.note(StoreUnavailable())
    assert lines_of(caplog, "sparing.store") == []
    for n in range(5):
        refused.note(caused(StoreUnavailable, DiskFull()) if n % 2 else caused(CommitUnclear, DiskFull()))
    assert lines_of(caplog, "sparing.store") == ["the database refuses to write: database-disk-full"]
    clock.now += REPEATED_EVERY_S
    for _ in range(2):
        refused.note(caused(StoreUnavailable, caused(StoreUnavailable, DiskFull())))
    repeated = "the database still refuses to write: database-disk-full; 6 transactions so far"
    assert lines_of(caplog, "sparing.store")[1:] == [repeated]
    assert refused.probe(session) is None
    well = "the database writes again; 7 transactions were refused: database-disk-full"
    assert lines_of(caplog, "sparing.store")[2:] == [well]
    refused.note(caused(StoreUnavailable, ReadOnlySqlTransaction()))
    assert lines_of(caplog, "sparing.store")[3:] == ["the database refuses to write: database-read-only"]


def test_a_file_is_written_now_and_then(clock: Clock, session: "psycopg.Connection[tuple[object, ...]]") -> None:
    """At the first probe, then every ten seconds; and Postgres really writes it."""
    refused, written = RefusedWrites(clock=clock), []
    for seconds in (0.0, 1.0, PROBED_EVERY_S, 1.0):
        clock.now += seconds
        assert refused.probe(session) is None
        session.execute("SELECT pg_stat_force_next_flush()")
        session.commit()
        ((count,),) = session.execute("SELECT temp_files FROM pg_stat_database WHERE datname = current_database()")
        written.append(count)
    assert written == [1, 1, 2, 2]


def test_a_database_that_takes_no_writes_is_not_ready(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A standby takes none; the store is ready again without a restart."""
    name = sql.Identifier(urlsplit(database_url).path[1:])
    caplog.set_level(logging.WARNING)
    with psycopg.connect(database_url, autocommit=True) as operator:
        operator.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        with closing(PostgresStore(database_url, bytes(32))) as store:
            assert store.problems() == store.problems() == ["database-read-only"]
        assert lines_of(caplog, "sparing.store") == ["the database refuses to write: database-read-only"]
        operator.execute("SET default_transaction_read_only = off")
        operator.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
    with closing(PostgresStore(database_url, bytes(32))) as store:
        assert store.problems() == []
