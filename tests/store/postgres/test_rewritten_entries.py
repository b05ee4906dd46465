"""Rewritten pieces on Postgres: sealed under a revision of their own, whatever a restored database does again."""

from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from service.engine.pages import PageTotals
from service.ledger.model.pieces import STRETCH_SLOTS
from service.ledger.model.rows import StoredPage
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.transaction import LongAct
from service.store.postgres.rows import SEAL_BYTES
from service.store.postgres.store import PostgresStore
from tests.contracts.stores import dataset, priced_entry
from tests.keys import LEDGER_KEY
from tests.waiting import until

IDLE = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """An entry of one piece, and one of two."""
    many = dict.fromkeys(range(2 * STRETCH_SLOTS), 5)
    with closing(PostgresStore(database_url, LEDGER_KEY)) as opened:
        record = opened.add_dataset(dataset())
        with opened.transaction(record.id, lock=True) as transaction:
            transaction.journal("rows", {}, slots=200_000)
            for charged in ({0: 7, 3: 9}, many):
                transaction.append([priced_entry(transaction.head, charged)], [], {})
            transaction.commit()
        yield opened


def test_a_process_that_falls_silent_after_writing_loses_its_locks(database_url: str, store: PostgresStore) -> None:
    """Long acts hold each other up; the clock of an idle transaction runs whenever they have written something."""
    with (
        closing(PostgresStore(database_url, LEDGER_KEY, idle_timeout_ms=100)) as silent,
        psycopg.connect(database_url, autocommit=True) as looking,
    ):
        for write in 5 * (amend, keep_totals):
            with suppress(StoreUnavailable), silent.long_act(1) as transaction:
                write(transaction)
                assert transaction._connection.info.transaction_status == TransactionStatus.INTRANS
                until(lambda: looking.execute(IDLE).fetchall() == [])


def amend(transaction: LongAct) -> None:
    """One piece."""
    (part, *_) = transaction.own_parts(3, after=0, to=1)
    rewritten = part.without(3, erasure=1)
    assert rewritten is not None
    transaction.amend([rewritten])


def keep_totals(transaction: LongAct) -> None:
    """One page."""
    transaction.keep_totals([StoredPage(number=0, seq=1, totals=PageTotals.zero())])


def revisions(store: PostgresStore) -> list[bytes]:
    """The revisions of the pieces as they are rewritten, which is then undone."""
    with store.long_act(1) as transaction:
        parts = [part.without(3, erasure=1) for part in transaction.own_parts(3, after=0, to=2)]
        found = [part for part in parts if part is not None]
        transaction.amend(found)
        rows = transaction._rows("SELECT piece FROM ledger WHERE piece IS NOT NULL", [])
        rows += transaction._rows("SELECT sealed FROM pieces WHERE number = 0", [])
    contents = [part.piece.content for part in found]
    assert [len(row[0]) for row in rows] == [len(content) + SEAL_BYTES for content in contents]
    return [bytes(row[0][:4]) for row in rows]


def test_two_amendments_of_one_piece_share_no_nonce(store: PostgresStore) -> None:
    """Before and after a restore the same erasure may write other content in the same place."""
    first, second = revisions(store), revisions(store)
    assert bytes(4) not in first + second
    assert not set(first) & set(second)
