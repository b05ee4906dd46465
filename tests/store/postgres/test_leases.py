"""Leases of processes that die, and of a database that crashes."""

from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import psycopg
import pytest

from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.store import StoreUnavailable
from service.store.postgres.leases import PostgresLeases
from service.store.postgres.store import PostgresStore
from tests.contracts.stores import dataset
from tests.keys import LEDGER_KEY
from tests.waiting import until

ONE, OTHER = (ReplicaAddress(id=UUID(int=n), url=f"http://127.0.0.1:{n}") for n in (1, 2))
LEASE_S = 60.0


@pytest.fixture
def both(database_url: str) -> Iterator[tuple[PostgresLeases, PostgresLeases]]:
    """Two replicas' leases on a database with one dataset."""
    with closing(PostgresStore(database_url, LEDGER_KEY)) as store:
        store.add_dataset(dataset())
    with closing(PostgresLeases(database_url, ONE)) as mine, closing(PostgresLeases(database_url, OTHER)) as theirs:
        yield mine, theirs


def test_the_leases_of_a_process_whose_sessions_have_ended_are_free(
    both: tuple[PostgresLeases, PostgresLeases],
) -> None:
    """A kill ends the sessions, and with them the advisory lock: the next claim need not wait for the lease."""
    mine, theirs = both
    mine.claim(1, ONE, lease_s=LEASE_S)
    assert theirs.claim(1, OTHER, lease_s=LEASE_S).replica == ONE
    mine.close()
    until(lambda: theirs.claim(1, OTHER, lease_s=LEASE_S).replica == OTHER)


def test_a_session_that_was_cut_comes_back_with_its_lock(
    both: tuple[PostgresLeases, PostgresLeases], database_url: str
) -> None:
    """A replica whose session the database has ended renews over a new one, and keeps its leases."""
    mine, theirs = both
    mine.claim(1, ONE, lease_s=LEASE_S)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'"
            " AND pid <> pg_backend_pid()"
        )

    def is_back() -> bool:
        try:
            assert [lease.replica for lease in mine.renew(ONE, lease_s=LEASE_S)] == [ONE]
            assert theirs.claim(1, OTHER, lease_s=LEASE_S).replica == ONE
        except StoreUnavailable:
            return False
        return True

    until(is_back)


def test_a_renewal_writes_nothing_to_the_log(both: tuple[PostgresLeases, PostgresLeases], database_url: str) -> None:
    """The table is unlogged: renewing every second costs no sync that a commit would have to wait for."""
    mine, _ = both
    mine.claim(1, ONE, lease_s=LEASE_S)
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute("SELECT relpersistence FROM pg_class WHERE relname = 'dataset_owners'").fetchone()
    assert row == ("u",)


def test_an_unknown_dataset_cannot_be_claimed(both: tuple[PostgresLeases, PostgresLeases]) -> None:
    """The table refers to the datasets."""
    with pytest.raises(StoreUnavailable):
        both[0].claim(7, ONE, lease_s=LEASE_S)
