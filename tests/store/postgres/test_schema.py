"""The database refuses what the service must never do, and says in SQL what the ledger says in Python."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, LiteralString

import numpy as np
import psycopg
import pytest
from psycopg import errors

from service.embedded import EmbeddedPostgres
from service.engine.pages import PageTotals
from service.ledger.model.rows import Asked, Checkpoint, DatasetRecord
from service.ledger.ports.store import CommitRejected, CommitUnclear
from service.query.keys import Key
from service.store.postgres.registrations import migrate
from service.store.postgres.sessions import DurabilityTooWeak
from service.store.postgres.store import PostgresStore, SchemaMismatch
from tests.contracts.stores import ANALYST, answer, burn, dataset, entry, open_store
from tests.waiting import until

PAGE = (
    "INSERT INTO pages VALUES (1, 0, 1, decode(repeat('00', {spent}), 'hex'),"
    " decode(repeat('00', {charged}), 'hex'), decode(repeat('00', {left_out}), 'hex'))"
)


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A store on a fresh database."""
    with open_store("postgres", database_url) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


@pytest.fixture
def record(store: PostgresStore) -> DatasetRecord:
    """A dataset with three people and one entry."""
    kept = store.add_dataset(dataset())
    with store.transaction(kept.id, lock=True) as transaction:
        transaction.add_individuals(
            np.array([0, 1, 2]), [Key("ann"), Key("bob"), Key("eve")], np.array([100, 100, 100])
        )
        transaction.journal("rows", {}, slots=3)
        first = entry(transaction.head, {0: 5, 2: 7}, (1,))
        transaction.append([first], [answer(first)], {ANALYST: 1})
        transaction.commit()
    return kept


def test_not_even_the_owner_rewrites_history(record: DatasetRecord, database_url: str) -> None:
    """Triggers and constraints stand also against the superuser's ordinary statements."""
    statements: list[LiteralString] = [
        "UPDATE ledger SET sigma = 1",
        "DELETE FROM ledger",
        "TRUNCATE ledger CASCADE",
        "UPDATE answers SET body = ''",
        "DELETE FROM answers",
        "DELETE FROM journal",
        "UPDATE journal SET act = 'x'",
        "UPDATE heads SET seq = seq - 1",
        "UPDATE heads SET worst_case_units = 0",
        "UPDATE heads SET fence = fence - 1",
        "UPDATE heads SET joining_units = -1",
        "UPDATE heads SET checkpoint_seq = seq; UPDATE heads SET checkpoint_seq = checkpoint_seq - 1",
        PAGE.format(spent=0, charged=262_144, left_out=262_144),
        PAGE.format(spent=524_288, charged=0, left_out=262_144),
        PAGE.format(spent=524_288, charged=262_144, left_out=0),
        "; ".join([PAGE.format(spent=524_288, charged=262_144, left_out=262_144), "UPDATE pages SET seq = 0"]),
        "UPDATE individuals SET limit_units = -1",
    ]
    for statement in statements:
        with psycopg.connect(database_url) as connection, pytest.raises((errors.RaiseException, errors.CheckViolation)):
            connection.execute(statement)


def test_a_reply_shows_an_entry_of_a_dataset_that_is_there(record: DatasetRecord, database_url: str) -> None:
    """The ledger confirms both: it has no entry of a dataset that is not."""
    answers: LiteralString = (
        "INSERT INTO answers SELECT {}, principal_id, 'k', request_hash, {}, query_id, body, at FROM answers"
    )
    for statement in (answers.format("dataset_id + 1", "seq"), answers.format("dataset_id", "seq + 1")):
        with psycopg.connect(database_url) as connection, pytest.raises(errors.ForeignKeyViolation):
            connection.execute(statement)


def test_the_api_role_may_not_even_try(record: DatasetRecord, database_url: str) -> None:
    """The role that the service runs as has no such privilege."""
    statements: list[LiteralString] = [
        "DELETE FROM ledger",
        "UPDATE ledger SET sigma = 1",
        "DELETE FROM individuals",
        "UPDATE individuals SET slot = 9",
        "DELETE FROM pages",
        "DELETE FROM heads",
        "UPDATE datasets SET budget_units = 1",
        "DELETE FROM principals",
        "UPDATE principals SET role = 'curator'",
        "DROP TABLE ledger",
        "ALTER TABLE ledger DISABLE TRIGGER ALL",
    ]
    with psycopg.connect(database_url) as connection:
        connection.execute("SET ROLE sparing_api")
        for statement in statements:
            with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
                connection.execute(statement)


def test_a_dataset_with_a_ledger_is_not_deleted_by_the_database_either(
    record: DatasetRecord, database_url: str
) -> None:
    """The one function that deletes looks for itself, for every caller."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET ROLE sparing_api")
        with pytest.raises(errors.RestrictViolation):
            connection.execute("SELECT delete_dataset(%s)", [record.id])


def test_the_service_runs_as_that_role(store: PostgresStore, record: DatasetRecord) -> None:
    """Every pooled session has given its owner's rights away."""
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction._connection.execute("SELECT current_user").fetchone() == ("sparing_api",)


def test_the_view_shows_one_row_per_individual(store: PostgresStore, record: DatasetRecord, database_url: str) -> None:
    """Its page in plain SQL, and up to which entry all charges are in it."""

    def shown() -> list[tuple[object, ...]]:
        with psycopg.connect(database_url) as connection:
            query = "SELECT key, spent_units, budget_units, at_seq FROM budgets ORDER BY slot"
            return connection.execute(query).fetchall()

    before = shown()
    page = PageTotals.zero()
    page.spent[[0, 2]] = 5, 7
    checkpoint = Checkpoint(since=0, seq=1, hash=store.head(record.id).hash, pages={0: page})
    with store.transaction(record.id, lock=True) as transaction:
        second = entry(transaction.head, {0: 2**40, 1: 3, 2: 1})
        transaction.append([second], [answer(second, "second")], {})
        transaction.commit()
    store.write_page(record.id, checkpoint, 0)
    half = shown()
    assert store.finish_checkpoint(record.id, checkpoint)
    assert before == [("ann", 0, 100, 0), ("bob", 0, 100, 0), ("eve", 0, 100, 0)]
    assert half == shown() == [("ann", 5, 100, 1), ("bob", 0, 100, 1), ("eve", 7, 100, 1)]


def test_no_row_is_half_a_burn_and_half_a_query(store: PostgresStore, record: DatasetRecord) -> None:
    """A burn has neither noise nor numbers."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.append([replace(burn(transaction.head, {}), dimension=1, values=bytes(8))], [], {})
        with pytest.raises(CommitRejected, match="23514"):
            transaction.commit()


def test_the_ledger_has_entries_of_one_format(store: PostgresStore, record: DatasetRecord) -> None:
    """Its number stands in each row; another needs a migration."""
    for number in (0, 1, 3):
        with store.transaction(record.id, lock=True) as transaction:
            transaction.append([entry(transaction.head, {}, format=number)], [], {})
            with pytest.raises(CommitRejected, match="23514"):
                transaction.commit()


FORGETFUL: Final = ("synchronous_commit", "fsync", "full_page_writes")


@pytest.fixture(scope="module")
def own_server_url(server_directory: Path) -> Iterator[str]:
    """The migrated database of a server that may be made forgetful while it runs."""
    server = EmbeddedPostgres(server_directory / "forgetful", private_root=server_directory / "private")
    server._settings = {name: value for name, value in server._settings.items() if name not in FORGETFUL}
    with server:
        migrate(server.url_of("postgres"))
        yield server.url_of("postgres")


@pytest.mark.parametrize("setting", FORGETFUL)
def test_a_forgetful_database_is_refused(own_server_url: str, setting: LiteralString) -> None:
    """With one of these off an answered charge can vanish in a power cut; the service does not start on that."""

    def check() -> None:
        with open_store("postgres", own_server_url) as opened:
            assert isinstance(opened, PostgresStore)
            opened.check_durability()

    with psycopg.connect(own_server_url, autocommit=True) as owner:
        owner.execute(f"ALTER SYSTEM SET {setting} = off")
        owner.execute("SELECT pg_reload_conf()")
        until(lambda: owner.execute(f"SHOW {setting}").fetchone() == ("off",))
        with pytest.raises(DurabilityTooWeak, match=setting):
            check()
        owner.execute(f"ALTER SYSTEM RESET {setting}")
        owner.execute("SELECT pg_reload_conf()")
        until(lambda: owner.execute(f"SHOW {setting}").fetchone() == ("on",))
        check()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ledger ADD COLUMN note text",
        "ALTER TABLE answers ALTER COLUMN seq TYPE numeric",
        "ALTER TABLE worst_cases RENAME COLUMN units TO unit",
    ],
)
def test_changed_tables_are_refused(store: PostgresStore, database_url: str, statement: LiteralString) -> None:
    """A batch travels as whole rows: every commit would fail without a reason."""
    store.check_schema()
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP VIEW budgets")
        connection.execute("ALTER TABLE answers DROP CONSTRAINT answers_dataset_id_seq_fkey")
        connection.execute(statement)
    with pytest.raises(SchemaMismatch, match=statement.split()[2]):
        store.check_schema()


def test_a_column_that_is_gone_for_good_is_none(store: PostgresStore, record: DatasetRecord, database_url: str) -> None:
    """Postgres keeps the place of a column that was dropped; rows have none for it."""
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE worst_cases ADD COLUMN note text")
        connection.execute("ALTER TABLE worst_cases DROP COLUMN note")
    store.check_schema()
    second = entry(store.head(record.id), {0: 5})
    with store.conditional_append(record.id, store.head(record.id), asked=[]) as conditional_append:
        conditional_append.append([second], [answer(second, "second")], {ANALYST: 7})
        conditional_append.commit()
    assert store.worst_cases_of(ANALYST) == {record.name: 8}


def test_a_writer_that_was_fenced_off_appends_nothing(store: PostgresStore, record: DatasetRecord) -> None:
    """Once another process has moved the fence, the old head moves no row."""

    def append_behind_the_fence() -> None:
        with store.transaction(record.id, lock=True) as transaction:
            second = entry(transaction.head, {0: 1})
            transaction._connection.execute("UPDATE heads SET fence = fence + 1")
            transaction.append([second], [answer(second, "b")], {})
            transaction.commit()

    with pytest.raises(CommitUnclear):
        append_behind_the_fence()
    asked = [Asked(address=(ANALYST, "b"), query_hash=None)]
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert (transaction.head.seq, dict(transaction.known.answers)) == (1, {})


def test_a_cut_connection_at_commit_is_unclear(store: PostgresStore, record: DatasetRecord, database_url: str) -> None:
    """An error from COMMIT says nothing about the transaction; the port says so."""

    def commit_on_a_cut_connection() -> None:
        with store.transaction(record.id, lock=True) as transaction:
            second = entry(transaction.head, {0: 1})
            transaction.append([second], [answer(second, "b")], {})
            with psycopg.connect(database_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [transaction._connection.info.backend_pid])
            transaction.commit()

    with pytest.raises(CommitUnclear):
        commit_on_a_cut_connection()


def test_a_pooled_connection_that_died_is_replaced(
    store: PostgresStore, record: DatasetRecord, database_url: str
) -> None:
    """After a restart of the server the next request works: no request is lost to a connection that lay idle."""
    with store.transaction(record.id, lock=False) as transaction:
        backend_pid = transaction._connection.info.backend_pid
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend_pid])
    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.head.seq == 1
        assert transaction._connection.info.backend_pid != backend_pid
