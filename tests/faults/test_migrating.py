"""A migration that is killed in its middle has done nothing; the next start does all of it."""

import signal
import subprocess
import sys

import psycopg
import pytest

from service.store.postgres.migrate import migrate
from service.workflows.model.ledger_entry import chain_hash
from tests.contracts.stores import answer, dataset, entry, open_store, second_entry
from tests.e2e.workers import await_that
from tests.store.postgres.migrating import alembic

pytestmark = pytest.mark.slow

MIGRATE = "import sys; from service.store.postgres.migrate import migrate; migrate(sys.argv[1])"
WAITS = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%CREATE TABLE pieces%' AND wait_event_type = 'Lock'"
REVISION = "SELECT version_num FROM alembic_version"
HAS_FORMAT = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'ledger' AND column_name = 'format'"


def test_a_killed_migration_to_format_2_is_undone_and_done_again(database_url: str) -> None:
    """After the ledger has its new columns and before there is a table of pieces; entries of both formats follow."""
    with open_store("postgres", database_url) as store:
        record = store.add_dataset(dataset())
        with store.transaction(record.id, lock=True) as transaction:
            transaction.journal("rows", {}, slots=3)
            first = entry(transaction.head, {0: 5, 2: 7}, (1,))
            transaction.append([first], [answer(first)], {})
            transaction.commit()
    alembic(database_url, "downgrade", "0010")
    with psycopg.connect(database_url) as blocker, psycopg.connect(database_url, autocommit=True) as looking:
        blocker.execute("CREATE TABLE pieces (x integer)")  # not committed: another of that name waits
        with subprocess.Popen([sys.executable, "-c", MIGRATE, database_url]) as migrating:
            await_that(lambda: looking.execute(WAITS).fetchall() != [])
            migrating.send_signal(signal.SIGKILL)
        (backend,) = looking.execute(WAITS).fetchall()[0]
        blocker.rollback()
        await_that(lambda: looking.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [backend]).fetchall() == [])
        assert looking.execute(REVISION).fetchall() == [("0010",)]
        assert looking.execute(HAS_FORMAT).fetchall() == [(0,)]
    migrate(database_url)
    with open_store("postgres", database_url) as store, store.transaction(record.id, lock=True) as transaction:
        second = second_entry(transaction.head, {0: 4, 1: 9}, (2,))
        transaction.append([second], [answer(second, "key-2")], {})
        transaction.commit()
    with open_store("postgres", database_url) as store, store.transaction(record.id, lock=False) as transaction:
        found = list(transaction.entries(after=0))
    assert found == [first, second]
    assert [chain_hash(each) for each in found] == [each.hash for each in found]
