"""Every request of a session sends the same statements to Postgres in worlds that differ in one person.

A proxy between the service and Postgres notes every message. Of what is read the number and the size of all messages
are equal; of what is sent the statements are, but for the sizes of what is written: an entry of the ledger holds
every individual's charges, and is no one's to see. `tests/leaks/test_reads.py` does so for listings of larger datasets.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.store.postgres.store import PostgresStore
from service.workflows.replica import Replica
from tests.factories import SeededEntropy, open_replica
from tests.keys import LEDGER_KEY
from tests.leaks.wire import READ, ROW, Note, NotingProxy
from tests.leaks.worlds import KINDS, ReplicaExchange, furnish, public_parts, session
from tests.rotation import some_of

ONE = "p39"
EXECUTED = {b"B", b"Q"}
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SET ")
ASKED_ONCE = "SELECT 'ledger'::regtype"
Statements = list[tuple[str, bytes, Any]]


def lived(database_url: str, kind: str) -> tuple[list[ReplicaExchange], list[Statements]]:
    """The exchanges of a session in a world on Postgres, and the statements of each."""
    with opened(database_url) as replica:
        furnish(replica, ONE, KINDS[kind])
    noted: list[Statements] = []
    with NotingProxy(database_url) as proxy, opened(proxy.url) as replica:
        replica.preload()

        def note() -> None:
            noted.append(statements(proxy.taken()))

        exchanges = asyncio.run(
            session(replica, NULL_TELEMETRY, amid=lambda: KINDS[kind].amid(replica, ONE), each=note)
        )
    return exchanges, noted[1::2]  # between two requests the person acts


@contextmanager
def opened(database_url: str) -> Iterator[Replica]:
    """A replica on a database."""
    store = PostgresStore(
        database_url, LEDGER_KEY, connections_max=1
    )  # with several, which of them knows a statement is chance
    with open_replica(store, SeededEntropy(3)) as replica:
        yield replica
    store.close()


def statements(notes: list[Note]) -> Statements:
    """The executed statements, and the sizes of the rows that come.

    Left out are the ends of transactions, which may be noted with the request after, and what a session is told and
    asks once: after an act the next query may find another session. Whether a statement is prepared depends on how
    often its connection has seen it, and is left out. A batch is worked on by several threads, so that the order is
    theirs.
    """
    kept = list(notes)
    for once in [note for note in notes if note.text.startswith(ASKED_ONCE)]:
        later = kept[kept.index(once) :]
        kept.remove(next(note for note in later if note.direction == READ and note.kind == ROW))
        kept.remove(once)
    executed = [note for note in kept if note.kind in EXECUTED and not note.text.startswith(CONTROL)]
    sent = [(note.direction, note.kind, note.text + note.bound) for note in executed]
    read = [(note.direction, note.kind, note.size) for note in kept if note.direction == READ and note.kind == ROW]
    return sorted([*sent, *read], key=str)


@pytest.fixture(scope="module")
def absent() -> dict[str, Any]:
    """The world without the person, lived once."""
    return {}


@pytest.mark.parametrize("kind", ["present", *some_of(sorted(KINDS.keys() - {"absent", "present"}), 4)])
def test_one_person_changes_no_statement(new_database: Callable[[], str], absent: dict[str, Any], kind: str) -> None:
    """The calls are all those of an analyst, an auditor and another individual: asks, batches, retries, listings."""
    if not absent:
        absent["world"] = lived(new_database(), "absent")
    (exchanges, theirs), (others, ours) = absent["world"], lived(new_database(), kind)
    assert public_parts(exchanges) == public_parts(others)
    assert [n for n, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other] == []
    assert sum(len(each) for each in ours) > 300
