"""What a commit reads does not grow with the ledger, whenever Postgres has made the plans that it keeps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import psycopg
import pytest

from service.store.postgres.store import PostgresStore
from service.workflows.ports import Proposal, Transaction
from service.workflows.records import Asked, DatasetRecord, Head
from tests.contracts.stores import ANALYST, dataset, entry, reply

pytestmark = pytest.mark.slow
BATCHES, BATCH = 60, 50
Begin = Callable[[PostgresStore, DatasetRecord, list[Asked]], AbstractContextManager[Proposal | Transaction]]


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A store, and one dataset in it."""
    opened = PostgresStore(database_url)
    opened.add_dataset(dataset())
    yield opened
    opened.close()


def proposed(store: PostgresStore, record: DatasetRecord, asked: list[Asked]) -> AbstractContextManager[Proposal]:
    """In one journey."""
    return store.proposal(record.id, store.head(record.id), asked=asked)


def locked(store: PostgresStore, record: DatasetRecord, asked: list[Asked]) -> AbstractContextManager[Transaction]:
    """The long way, on which keys and questions are looked up."""
    return store.transaction(record.id, lock=True, asked=asked)


def append(store: PostgresStore, record: DatasetRecord, begin: Begin, size: int) -> None:
    """So many entries and their replies; every other question may be reused."""
    first = store.head(record.id).seq
    keys = [str(first + number) for number in range(size)]
    asked = [Asked(address=(ANALYST, key), query_hash=None if int(key) % 2 else key) for key in keys]
    with begin(store, record, asked) as appending:
        entries, head = [], appending.head
        for key in keys:
            entries.append(entry(head, {0: 1}, query_hash=key))
            head = _after(head, entries[-1].hash)
        appending.append(entries, [reply(each, key) for each, key in zip(entries, keys, strict=True)], {ANALYST: 1})
        appending.commit()


def _after(head: Head, last: bytes) -> Head:
    return replace(head, seq=head.seq + 1, hash=last)


@pytest.mark.parametrize("begin", [proposed, locked])
@pytest.mark.parametrize("analysed", ["never", "empty", "short"])
def test_what_a_commit_reads_does_not_grow_with_the_ledger(
    store: PostgresStore, database_url: str, begin: Begin, analysed: str
) -> None:
    """With plans made for a ledger of which Postgres knows nothing, or that it once found empty, or short."""
    (record,) = store.datasets()
    if analysed == "short":
        append(store, record, begin, 1)
    if analysed != "never":
        with psycopg.connect(database_url) as owner:
            owner.execute("ANALYZE")
    for _ in range(BATCHES):
        append(store, record, begin, BATCH)
    store.close()  # a session tells what it has read when it ends

    with psycopg.connect(database_url) as owner:
        blocks = owner.execute(
            "SELECT indexrelname, idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes"
            " WHERE relname IN ('ledger', 'answers') UNION ALL"
            " SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname IN ('ledger', 'answers')"
        ).fetchall()
    read = {str(name): int(count or 0) / (BATCHES * BATCH) for name, count in blocks}

    assert read["ledger_pkey"] > 1, "nothing was counted"
    assert max(read.values()) < 10, read
