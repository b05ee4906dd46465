"""The condition of a database, for the operator: read over a connection beside the service's pool, without changes."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

import psycopg

from service.store.fault_words import words_of
from service.store.postgres.refused_writes import refusal
from service.store.postgres.registrations import DatabaseUnusable, kept_proof, revision_in

_CONNECT_TIMEOUT_S: Final = 5
_ROUNDS: Final = 5
_DURABLE: Final = ("fsync", "full_page_writes", "synchronous_commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCondition:
    """The condition at one look. Times are medians; `clock_ahead_s` is the server's clock less this machine's.

    `refusal` is the public code of the reason why the database cannot write. `weak` names settings that could lose a
    commit. `pepper` has the salt and the proof that the database keeps.
    """

    version: str
    major: int
    round_trip_ms: float
    commit_ms: float | None
    clock_ahead_s: float
    schema: str | None
    refusal: str | None
    weak: list[str]
    pepper: tuple[bytes, bytes] | None


def database_condition(database_url: str) -> DatabaseCondition:
    """Look at the database once. Raises DatabaseUnusable, without a part of the address, when no session can be had."""
    try:
        with psycopg.connect(database_url, connect_timeout=_CONNECT_TIMEOUT_S, autocommit=True) as session:
            return _look(session)
    except psycopg.Error as fault:
        raise DatabaseUnusable(words_of(fault, database_url)) from None


def _look(session: "psycopg.Connection[tuple[Any, ...]]") -> DatabaseCondition:
    trips, ahead = [], []
    for _ in range(_ROUNDS):
        began, before = time.perf_counter(), datetime.now(UTC)
        ((there,),) = session.execute("SELECT clock_timestamp()").fetchall()
        trip_s = time.perf_counter() - began
        trips.append(trip_s)
        ahead.append((there - before).total_seconds() - trip_s / 2)
    session.autocommit = False
    refused = refusal(session)
    session.autocommit = True
    values = {name: session.execute(f"SHOW {name}".encode()).fetchall()[0][0] for name in _DURABLE}
    return DatabaseCondition(
        version=str(session.execute("SHOW server_version").fetchall()[0][0]),
        major=session.info.server_version // 10_000,
        round_trip_ms=median(trips) * 1000,
        commit_ms=None if refused is not None else median(_commit(session) for _ in range(_ROUNDS)) * 1000,
        clock_ahead_s=median(ahead),
        schema=revision_in(session),
        refusal=refused,
        weak=[f"{name} = {value}" for name, value in values.items() if value in {"off", "local"}],
        pepper=kept_proof(session),
    )


def _commit(session: "psycopg.Connection[tuple[Any, ...]]") -> float:
    """The seconds of one durable commit, of a message in the write-ahead log and no row."""
    began = time.perf_counter()
    session.execute("SELECT pg_logical_emit_message(true, 'sparing', 'doctor')")
    return time.perf_counter() - began
