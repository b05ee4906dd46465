"""A migration that is killed in its middle has done nothing; the next start does all of it."""

import signal
import subprocess
import sys

import psycopg

from service.store.postgres.registrations import migrate
from tests.contracts.stores import dataset, open_store
from tests.store.postgres.emptying import emptied
from tests.waiting import until

MIGRATE = "import sys; from service.store.postgres.registrations import migrate; migrate(sys.argv[1])"
WAITS = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%CREATE TABLE ledger%' AND wait_event_type = 'Lock'"
OURS = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"


def test_a_killed_migration_is_undone_and_done_again(database_url: str) -> None:
    """After there is a ledger and before there is a table of pieces."""
    emptied(database_url)
    with psycopg.connect(database_url) as blocker, psycopg.connect(database_url, autocommit=True) as looking:
        blocker.execute("CREATE TABLE pieces (x integer)")  # not committed: another of that name waits
        with subprocess.Popen([sys.executable, "-c", MIGRATE, database_url]) as migrating:
            until(lambda: looking.execute(WAITS).fetchall() != [])
            migrating.send_signal(signal.SIGKILL)
        (backend,) = looking.execute(WAITS).fetchall()[0]
        blocker.rollback()
        until(lambda: looking.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [backend]).fetchall() == [])
        assert looking.execute(OURS).fetchall() == [(0,)]
    migrate(database_url)
    with open_store("postgres", database_url) as store:
        made = store.add_dataset(dataset())
        assert store.datasets() == [made]
