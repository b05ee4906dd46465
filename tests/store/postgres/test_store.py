"""The parts of the Postgres store without a twin: limits of sessions, and tables made for each dataset."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, LiteralString

import numpy as np
import psycopg
import pytest

from service.ledger.model.rows import Asked, Head
from service.ledger.ports.store import CommitRejected, CommitUnclear, HeadMoved, StoreUnavailable
from service.query.keys import Key
from service.query.schema import Schema
from service.store.postgres.data_tables import records_tables
from service.store.postgres.rows import SEAL_BYTES
from service.store.postgres.sessions import CHANGES_MAX, LONG_MAX, Connection, SessionPool
from service.store.postgres.snapshot import PostgresSnapshot
from service.store.postgres.store import PostgresStore
from tests.contracts.stores import ANALYST, answer, dataset, entry, open_store
from tests.keys import LEDGER_KEY

ASKED = Asked(address=(ANALYST, "k"), query_hash="q")
_PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'extend-%'"


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A store with limits of its own, short enough to be met."""
    opened = PostgresStore(
        database_url,
        LEDGER_KEY,
        statement_timeout_ms=60_000,
        lock_timeout_ms=100,
        idle_timeout_ms=1000,
        tcp_timeout_ms=7000,
    )
    yield opened
    opened.close()


def test_every_session_has_its_limits(store: PostgresStore) -> None:
    """The limits are those given; `tcp_user_timeout` means nothing on the unix socket of the tests, and is 0 there."""
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    with store._pool.one() as connection:
        shown = [connection.execute(f"SHOW {name}").fetchall()[0][0] for name in names]
        assert shown == ["1min", "100ms", "1s"]
        assert connection.info.get_parameters()["tcp_user_timeout"] == "7000"


def test_who_waits_for_a_lock_gives_up(store: PostgresStore) -> None:
    """Unavailable, not for ever: the other replica may be at it for long."""
    kept = store.add_dataset(dataset())
    with store.transaction(kept.id, lock=True), pytest.raises(StoreUnavailable), store.transaction(kept.id, lock=True):
        pass


class WatchedSessions(SessionPool):
    """Note the backends that they wait for."""

    awaited: ClassVar[list[int]] = []

    def await_end(self, backend: int) -> None:
        self.awaited.append(backend)
        super().await_end(backend)


def test_only_a_lost_connection_is_waited_for(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conditional append that Postgres refuses is over; one whose connection ends may still be about to begin."""
    monkeypatch.setattr("service.store.postgres.store.SessionPool", WatchedSessions)
    store, awaited = (
        PostgresStore(database_url, LEDGER_KEY, lock_timeout_ms=100, connections_max=2),
        WatchedSessions.awaited,
    )
    kept = store.add_dataset(dataset())
    head = store.head(kept.id)
    awaited.clear()
    with store.transaction(kept.id, lock=True), pytest.raises(CommitUnclear):
        _propose(store, kept.id, head)
    assert awaited == []
    with pytest.raises(CommitUnclear):
        _propose(store, kept.id, head, killer=database_url)
    assert len(awaited) == 1
    with store._pool.one() as session:
        gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)"
        assert session.execute(gone, [awaited]).fetchall() == [(0,)]
    _propose(store, kept.id, head)
    assert store.head(kept.id).seq == 1
    store.close()


def _propose(
    store: PostgresStore, dataset_id: int, head: Head, *, key: str | None = None, killer: str | None = None
) -> None:
    """An entry on a head; with a killer, the backend is ended before it is sent."""
    with store.conditional_append(dataset_id, head, asked=[]) as conditional_append:
        following = entry(head, {0: 1})
        conditional_append.append([following], [answer(following, key or f"key-{following.seq}")], {})
        if killer is not None:
            with psycopg.connect(killer, autocommit=True) as connection:
                pid = conditional_append._session.info.backend_pid
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        conditional_append.commit()


@pytest.mark.parametrize("is_locked", [False, True], ids=["proposed", "locked"])
def test_a_value_that_no_column_can_hold_is_rejected(store: PostgresStore, is_locked: bool) -> None:
    """A data exception of class 22, here a NUL in a text: not unclear, and the session goes on."""
    kept = store.add_dataset(dataset())
    _propose(store, kept.id, store.head(kept.id))
    head = store.head(kept.id)
    following = replace(entry(head, {0: 1}), analyst="a\0b")
    opened = store.transaction(kept.id, lock=True) if is_locked else store.conditional_append(kept.id, head, asked=[])
    with opened as appending:
        appending.append([following], [answer(following, "b")], {})
        with pytest.raises(CommitRejected, match="22021"):
            appending.commit()
    assert store.head(kept.id) == head
    _propose(store, kept.id, head)
    assert store.head(kept.id).seq == 2


def test_a_key_that_is_left_without_a_reply_makes_a_proposal_outdated(store: PostgresStore) -> None:
    """The proposal did not look up whether the key is taken."""
    kept = store.add_dataset(dataset())
    head = store.head(kept.id)
    with store.conditional_append(kept.id, head, asked=[ASKED]) as conditional_append:
        conditional_append.append([following := entry(head, {0: 1})], [answer(following, "another")], {})
        with pytest.raises(HeadMoved):
            conditional_append.commit()
    assert store.head(kept.id) == head


def test_what_is_prepared_outlives_a_reading_and_tables_that_were_made_anew(store: PostgresStore) -> None:
    """One statement for good, taken keys or not; a restore under a running replica costs one batch."""
    kept = store.add_dataset(dataset())
    for _ in range(3):
        _propose(store, kept.id, store.head(kept.id))
        with pytest.raises(HeadMoved):
            _propose(store, kept.id, store.head(kept.id), key="key-1")
        with store.transaction(kept.id, lock=False) as reading:
            assert reading.has_tombstones() is False
            session = reading._connection
    assert session.execute(_PREPARED).fetchall() == [(1,)]
    session.execute("RESET ROLE")
    session.execute("ALTER TABLE answers RENAME TO earlier_answers")
    session.execute("CREATE TABLE answers (LIKE earlier_answers INCLUDING ALL)")
    session.execute("GRANT SELECT, INSERT ON answers TO sparing_api")
    session.execute("SET ROLE sparing_api")
    session.commit()
    head = store.head(kept.id)
    with pytest.raises(CommitUnclear):
        _propose(store, kept.id, head)
    assert store.head(kept.id) == head
    _propose(store, kept.id, head)
    assert store.head(kept.id).seq == 4


def test_a_broken_pipeline_leaves_a_session_that_works(store: PostgresStore) -> None:
    """Found by the sweep: psycopg took a statement for prepared that an aborted pipeline had never sent."""
    kept, sessions = store.add_dataset(dataset()), []
    statement = "SELECT seq FROM heads WHERE dataset_id = %s"
    for tried_before in range(8):  # psycopg prepares a statement once it has run a few times
        with pytest.raises(StoreUnavailable):
            _break(store, statement, kept.id)
        with store._pool.one() as session:
            assert session.execute(statement, [kept.id]).fetchall() == [(0,)], tried_before
            sessions.append(session)
    assert len(set(sessions)) == 1


def _break(store: PostgresStore, statement: LiteralString, dataset_id: int) -> None:
    with store._pool.one() as session, session.pipeline():
        session.execute("SELECT 1 / 0")
        session.execute(statement, [dataset_id])


@pytest.mark.parametrize("asked", [(), (ASKED,)], ids=["an act", "questions"])
def test_a_silent_transaction_loses_its_lock(store: PostgresStore, database_url: str, asked: tuple[Asked, ...]) -> None:
    """The locks of a replica that stopped in the middle are freed; its own commit is then no longer possible."""
    kept = store.add_dataset(dataset())
    with psycopg.connect(database_url) as patient, pytest.raises((StoreUnavailable, CommitUnclear)):
        _fall_silent(store, kept.id, asked, patient)
    assert store.head(kept.id).epoch == 1


def _fall_silent(store: PostgresStore, dataset_id: int, asked: tuple[Asked, ...], patient: Connection) -> None:
    """Lock, and stay silent until another session has the lock; then try to go on."""
    with store.transaction(dataset_id, lock=True, asked=asked) as silent:
        if not asked:
            silent.has_tombstones()  # an act reads as it goes, and not in a pipeline
        patient.execute("SELECT 1 FROM heads WHERE dataset_id = %s FOR UPDATE", [dataset_id])
        patient.rollback()
        silent.journal("epoch", {}, epoch=2)
        silent.commit()


def test_tables_may_be_declared_in_any_order(database_url: str) -> None:
    """The names come back from jsonb in its own order; a second store, which reads it, finds the same tables."""
    individuals, events = (dataset().schema.tables[name] for name in ("people", "visits"))
    schema = Schema.model_validate({"people": individuals, "v": events, "aaaaaaaaa": events, "bb": events})
    with open_store("postgres", database_url) as first:
        kept = first.add_dataset(replace(dataset(), schema=schema))
    with open_store("postgres", database_url) as second:
        assert second.row_counts(kept.id) == (0, dict.fromkeys(("v", "bb", "people", "aaaaaaaaa"), 0))
        read = second.dataset(kept.name)
    assert read is not None
    names = [{table.name for table in records_tables(kept.id, each).values()} for each in (schema, read.schema)]
    assert names[0] == names[1]


def test_a_table_larger_than_one_statement_takes_is_read_whole(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretch after stretch, of accounts and of records, with gaps between the slots and after an erasure."""
    monkeypatch.setattr("service.store.postgres.data_tables.BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr("service.store.postgres.accounts.SLOTS_AT_ONCE", 100)
    kept = store.add_dataset(dataset())
    slots = np.arange(0, 3000, 3)
    items = np.arange(1000, dtype=np.uint32)
    with store.transaction(kept.id, lock=True) as transaction:
        assert transaction.individuals().slots.size == transaction.records("visits")[0].size == 0
        transaction.add_individuals(slots, [Key(f"p{n}") for n in slots], slots + 7)
        transaction.add_records("visits", slots, {"item": items})
        transaction.journal("rows", {}, slots=3000)
        transaction.erase(300, bytes(32))
        accounts, (places, visits) = transaction.individuals(), transaction.records("visits")
        assert len(transaction._tables["visits"].selects(7)) == 4

    order = np.argsort(accounts.slots)
    assert accounts.slots[order].tolist() == slots.tolist()
    assert accounts.limits[order].tolist() == (slots + 7).tolist()
    assert accounts.slots[~accounts.present].tolist() == [300]
    assert sorted(zip(places.tolist(), visits["item"].tolist(), strict=True)) == [
        (slot, item) for slot, item in zip(slots.tolist(), items.tolist(), strict=True) if slot != 300
    ]


def test_entries_are_fetched_by_bytes_as_well_as_by_number(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay of dense entries holds a few of them at a time; each comes once, and an entry larger than all alone."""
    kept = store.add_dataset(dataset())
    for number in range(7):
        head = store.head(kept.id)
        made = entry(head, {slot: slot + 1 for slot in range(300 if number == 3 else 20)})
        with store.conditional_append(kept.id, head, asked=[]) as conditional_append:
            conditional_append.append([made], [answer(made, f"key-{number}")], {})
            conditional_append.commit()
    small_bytes = len(made.pieces[0].content) + SEAL_BYTES + len(made.values)
    fetched: list[int] = []
    real = PostgresSnapshot._rows

    def counted(self: PostgresSnapshot, statement: Any, values: Any) -> Any:
        rows = real(self, statement, values)
        fetched.append(len(rows))
        return rows

    monkeypatch.setattr(PostgresSnapshot, "_rows", counted)
    monkeypatch.setattr("service.store.postgres.snapshot.ENTRIES_BYTES", 2 * small_bytes)
    with store.transaction(kept.id, lock=False) as transaction:
        assert [each.seq for each in transaction.entries(after=0)] == list(range(1, 8))
        assert fetched == [2, 2, 2, 1, 0]
        assert [each.seq for each in transaction.entries(after=1, limit=2)] == [2, 3]


def test_readers_leave_connections_to_transactions_that_lock(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many read, a dataset can be locked; a reader too many gives up after a while."""
    monkeypatch.setattr("service.store.postgres.sessions._WAIT_S", 0.1)
    crowded = PostgresStore(database_url, LEDGER_KEY, connections_max=6)
    kept = crowded.add_dataset(dataset())
    with crowded.transaction(kept.id, lock=False), crowded.transaction(kept.id, lock=False):
        with pytest.raises(StoreUnavailable), crowded.transaction(kept.id, lock=False):
            pass
        with crowded.transaction(kept.id, lock=True) as transaction:
            assert transaction.head.seq == 0
    assert crowded.head(kept.id).seq == 0
    crowded.close()


def test_a_long_act_waits_for_that_of_another_process(store: PostgresStore, database_url: str) -> None:
    """It gives up when its turn does not come, and has its turn as soon as the other has ended."""
    kept = store.add_dataset(dataset())
    other = PostgresStore(database_url, LEDGER_KEY, lock_timeout_ms=50)
    with store.long_act(kept.id):
        with pytest.raises(StoreUnavailable), other.long_act(kept.id):
            pass
        with other.transaction(kept.id, lock=True) as transaction:
            assert transaction.head.seq == 0
    with other.long_act(kept.id) as act:
        assert act.head.slots == 0
    other.close()


def test_as_many_keys_as_there_are_people_are_found_in_one_pass(store: PostgresStore) -> None:
    """Each at its place, also where a key is asked for twice or belongs to no individual; a few are looked up."""
    kept = store.add_dataset(dataset())
    keys = [f'p{n} "\\ø' for n in range(20_000)]
    with store.long_act(kept.id) as act:
        act.add_individuals(np.arange(20_000), list(map(Key, keys)), np.full(20_000, 5))
        asked = [*reversed(keys), "nobody", keys[7]]
        found = act.slots_of(list(map(Key, asked)))
        assert found.tolist() == [*range(19_999, -1, -1), -1, 7]
        assert act._connection.execute("SHOW enable_nestloop").fetchall() == [("on",)]
        assert act.slots_of(list(map(Key, keys[3:5]))).tolist() == [3, 4]
        assert act.slots_of([]).tolist() == []


def test_one_connection_is_enough(store: PostgresStore, database_url: str) -> None:
    """No holder of a connection waits for another one: a pool of such holders would be a deadlock."""
    kept = store.add_dataset(dataset())
    busy = [store.add_dataset(dataset(f"busy-{number}")) for number in range(LONG_MAX)]
    other = PostgresStore(database_url, LEDGER_KEY, connections_max=1)
    with ExitStack() as stack:
        for each in busy:  # with the changes, they hold all connections but one
            stack.enter_context(other.long_act(each.id))
        for _ in range(CHANGES_MAX):
            stack.enter_context(other._pool.changing())
        assert stack.enter_context(other.transaction(kept.id, lock=True)).head.seq == 0
    other.close()
    another = PostgresStore(database_url, LEDGER_KEY, connections_max=1)
    assert another.row_counts(kept.id) == (0, {"people": 0, "visits": 0})
    another.close()
