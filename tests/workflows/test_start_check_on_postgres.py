"""The start check on a real Postgres, with triggers disabled by the owner."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from service.store.postgres.store import PostgresStore
from service.workflows.maintenance.start_check import StartCheck
from tests.factories import open_replica
from tests.keys import LEDGER_KEY
from tests.workflows.maintenance.verify.histories import history

pytestmark = pytest.mark.slow

DAMAGES = {
    """UPDATE ledger SET "values" = set_byte("values", 7, get_byte("values", 7) # 1) WHERE seq = 2""": (
        "ledger row 2: its contents do not give its hash"
    ),
    "UPDATE ledger SET piece = set_byte(piece, 20, get_byte(piece, 20) # 1) WHERE seq = 1": (
        "ledger row 1: its contents do not give its hash"
    ),
    "UPDATE ledger SET sigma = 'NaN' WHERE seq = 3": "ledger row 3: its contents do not give its hash",
    "UPDATE ledger SET charged_count = charged_count + 1 WHERE seq = 1": (
        "ledger row 1: its contents do not give its hash"
    ),
    "UPDATE ledger SET previous_hash = sha256('x') WHERE seq = 2": "ledger row 2: its contents do not give its hash",
    "DELETE FROM ledger WHERE seq = 2": "ledger row 2: is missing",
    "DELETE FROM ledger WHERE seq = 1": "ledger row 1: is missing",
    "DELETE FROM ledger WHERE seq = 3": "heads row 1: says seq 3, the ledger ends at 2",
    "UPDATE heads SET hash = sha256('x')": "heads row 1: its hash is not that of the last ledger row",
    "UPDATE heads SET worst_case_units = 0": "heads row 1: says worst_case_units 0, the ledger gives",
    "UPDATE heads SET journal_hash = sha256('x')": "heads row 1: its journal_hash is not that of the last journal row",
    "UPDATE heads SET data_version = 0": "heads row 1: says data_version 0, the journal ends at 4",
    "UPDATE journal SET at_seq = 0 WHERE number = 4": "journal row 4: its contents do not give its hash",
}


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A store with three entries and four acts."""
    with closing(PostgresStore(database_url, LEDGER_KEY)) as opened:
        with open_replica(opened) as replica:
            history(replica)
        yield opened


def found(store: PostgresStore) -> tuple[int, str | None]:
    """(number of entries checked, finding)."""
    (record,) = store.datasets()
    check, is_more = StartCheck(record), True
    while is_more:
        with store.transaction(record.id, lock=False) as transaction:
            is_more = check.step(transaction)
    return check.entries, check.finding


def test_a_whole_ledger_passes(store: PostgresStore) -> None:
    """Every entry is checked."""
    assert found(store) == (3, None)


@pytest.mark.parametrize("statement", DAMAGES)
def test_every_damage_is_named(store: PostgresStore, database_url: str, statement: str) -> None:
    """The finding names table and row."""
    with psycopg.connect(database_url) as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute(statement.encode())
    _, finding = found(store)
    assert finding is not None
    assert finding.startswith(DAMAGES[statement])
