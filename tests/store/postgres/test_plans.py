"""A commit reads no more as the ledger grows, whenever Postgres has made the plans that it keeps."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import timedelta

import numpy as np
import psycopg
import pytest

from service.ledger.model.rows import Asked, Checkpoint, DatasetRecord, Head
from service.ledger.ports.transaction import ConditionalAppend, Transaction
from service.query.keys import Key
from service.store.postgres.store import PostgresStore
from tests.conftest import PostgresServer
from tests.contracts.stores import ANALYST, answer, dataset, entry
from tests.keys import LEDGER_KEY
from tests.waiting import until

BATCHES, BATCH, LOOKS = 30, 50, 20
GROWN = "grown"
OTHERS = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
Begin = Callable[[PostgresStore, DatasetRecord, list[Asked]], AbstractContextManager[ConditionalAppend | Transaction]]


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A store, and one dataset in it."""
    opened = PostgresStore(database_url, LEDGER_KEY)
    opened.add_dataset(dataset())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def grown(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """The name of a database whose ledger has fifteen hundred entries of a query each, to copy."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {GROWN} TEMPLATE {migrated_template}".encode())
        with closing(PostgresStore(postgres_server.url_of(GROWN), LEDGER_KEY)) as opened:
            record = opened.add_dataset(dataset())
            for _ in range(BATCHES):
                append(opened, record, proposed, BATCH)
        yield GROWN
        owner.execute(f"DROP DATABASE {GROWN} WITH (FORCE)".encode())


@pytest.fixture
def grown_url(postgres_server: PostgresServer, grown: str) -> Iterator[str]:
    """The URL of a copy of that database."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {GROWN}_copy TEMPLATE {grown}".encode())
        yield postgres_server.url_of(f"{GROWN}_copy")
        owner.execute(f"DROP DATABASE {GROWN}_copy WITH (FORCE)".encode())


def proposed(
    store: PostgresStore, record: DatasetRecord, asked: list[Asked]
) -> AbstractContextManager[ConditionalAppend]:
    """In one round trip."""
    return store.conditional_append(record.id, store.head(record.id), asked=asked)


def locked(store: PostgresStore, record: DatasetRecord, asked: list[Asked]) -> AbstractContextManager[Transaction]:
    """Under the lock, where keys and queries are looked up."""
    return store.transaction(record.id, lock=True, asked=asked)


def append(
    store: PostgresStore, record: DatasetRecord, begin: Begin, size: int, *, query_hash: str | None = None
) -> None:
    """Append `size` entries and replies, of one query or each of its own; every other one may be reused."""
    first = store.head(record.id).seq
    keys = [str(first + number) for number in range(size)]
    asked = [Asked(address=(ANALYST, key), query_hash=None if query_hash or int(key) % 2 else key) for key in keys]
    with begin(store, record, asked) as appending:
        entries, head = [], appending.head
        for key in keys:
            made = entry(head, {0: 1}, query_hash=query_hash or key)
            entries.append(replace(made, asked_at=made.asked_at + timedelta(seconds=made.seq)).sealed())
            head = _after(head, entries[-1].hash)
        answers = [replace(answer(each, key), at=each.asked_at) for each, key in zip(entries, keys, strict=True)]
        appending.append(entries, answers, {ANALYST: 1})
        appending.commit()


def _after(head: Head, last: bytes) -> Head:
    return replace(head, seq=head.seq + 1, hash=last)


def analyse(database_url: str) -> None:
    """Let Postgres look at the tables as they are."""
    with psycopg.connect(database_url) as owner:
        owner.execute("ANALYZE")


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
        analyse(database_url)
    for _ in range(BATCHES):
        append(store, record, begin, BATCH)
    store.close()  # a session tells what it has read when it ends

    read = {name: blocks / (BATCHES * BATCH) for name, blocks in blocks_read(database_url).items()}

    assert read["ledger_pkey"] > 1, "nothing was counted"
    assert max(read.values()) < 10, read


def test_a_question_that_was_charged_a_thousand_times_is_found_as_soon_as_any(
    store: PostgresStore, database_url: str
) -> None:
    """An analyst may ask the same again and again for fresh noise, and then whether there is an answer already."""
    (record,) = store.datasets()
    for _ in range(BATCHES):
        append(store, record, proposed, BATCH, query_hash="always")
    store.close()
    asked = [Asked(address=(ANALYST, "new"), query_hash=query_hash) for query_hash in ("always", "never")]
    for looking in stores_that_read(database_url, index="ledger_reuse", looks=LOOKS, least=1):
        for _ in range(LOOKS):
            with looking.transaction(record.id, lock=True, asked=asked) as transaction:
                found = {name: each.seq for name, each in transaction.known.reusable.items()}
                assert found == {"always": BATCHES * BATCH}


def test_an_answer_among_thousands_of_ones_own_is_found_by_its_id(grown_url: str) -> None:
    """It is found as soon as if there were few."""
    with closing(PostgresStore(grown_url, LEDGER_KEY)) as store, store.transaction(1, lock=False) as transaction:
        ids = [each.query_id for each in transaction.entries(after=0)][:: BATCHES * BATCH // LOOKS]
    for looking in stores_that_read(grown_url, index="answers_of_principal", looks=LOOKS, least=1):
        for query_id in ids:
            found = looking.answer_of(ANALYST, query_id)
            assert found is not None
            assert found.answer.query_id == query_id


def test_a_page_of_ones_own_thousands_reads_that_page(grown_url: str) -> None:
    """Wherever it begins."""
    size = 10
    for looking in stores_that_read(grown_url, index="answers_of_principal", looks=LOOKS * size, most=5):
        place = None
        for _ in range(LOOKS):
            page = looking.releases_of(ANALYST, before=place, limit=size, bytes_max=2**20)
            assert len(page) == size
            place = page[-1].place
        assert page[-1].place.seq == BATCHES * BATCH - LOOKS * size + 1


def test_a_page_of_the_ledger_or_of_receipts_reads_that_page(grown_url: str) -> None:
    """Wherever it begins; so does the tail of one account."""
    with closing(PostgresStore(grown_url, LEDGER_KEY)) as store:
        last = store.head(1)
        with store.transaction(1, lock=True) as transaction:
            transaction.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
            transaction.journal("rows", {}, slots=1)
            transaction.commit()
        with store.transaction(1, lock=False) as transaction:
            (hash_then,) = transaction.hashes([last.seq - 10]).values()
        checkpoint = Checkpoint(since=0, seq=last.seq - 10, hash=hash_then, pages={})
        assert store.finish_checkpoint(1, checkpoint)
    size = 10
    for looking in stores_that_read(grown_url, index="ledger_pkey", looks=LOOKS * size):
        for look in range(LOOKS):
            with looking.transaction(1, lock=False) as transaction:
                place = last.seq - 50 * look
                rows = transaction.entry_records(before=place, limit=size, bytes_max=2**20)
                charges = transaction.own_charges(0, before=place, limit=size, bytes_max=2**20)
                expected = list(range(place - 1, place - 11, -1))
                assert [each.seq for each in rows] == [each.seq for each in charges] == expected
                assert transaction.account_of(0) == (9, size, False, size, 0)
                assert len(list(transaction.entries(after=place - size, limit=size))) == size


def stores_that_read(
    database_url: str, *, index: str, looks: int, least: int = 0, most: int = 10
) -> Iterator[PostgresStore]:
    """A store before Postgres knows of the tables, and one after; for each look it reads fewer than `most` blocks.

    Of the index each reads more than `least`: otherwise nothing was counted.
    """
    for is_analysed in (False, True):
        if is_analysed:
            analyse(database_url)
        before = blocks_read(database_url)
        with closing(PostgresStore(database_url, LEDGER_KEY)) as store:
            yield store
        read = {name: (blocks - before[name]) / looks for name, blocks in blocks_read(database_url).items()}
        assert read[index] > least
        assert max(read.values()) < most, (is_analysed, read)


def blocks_read(database_url: str) -> dict[str, float]:
    """By index: blocks read of it so far, by sessions that have ended. By table: rows read by going through it."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        until(lambda: owner.execute(OTHERS).fetchall() == [])  # each counts what it has read just before it leaves
        rows = owner.execute(
            "SELECT indexrelname, idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes"
            " WHERE relname IN ('ledger', 'answers') UNION ALL"
            " SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE relname IN ('ledger', 'answers') UNION ALL"
            " SELECT relname || ' itself', heap_blks_hit + heap_blks_read FROM pg_statio_user_tables"
            " WHERE relname IN ('ledger', 'answers')"
        ).fetchall()
    return {str(name): float(count or 0) for name, count in rows}
