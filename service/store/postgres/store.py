"""The port's Store on Postgres: datasets, principals, answers, each dataset's transactions and conditional appends."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from psycopg import Error as PsycopgError
from psycopg.errors import UniqueViolation

from service.ledger.model.errors import NameTaken
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import (
    AnswerRecord,
    Asked,
    Checkpoint,
    DatasetRecord,
    Head,
    Known,
    OwnAnswer,
    ReleasePlace,
    ReleaseRecord,
)
from service.ledger.ports.store import CommitUnclear, HeadMoved, StoreUnavailable
from service.store.postgres.append import LAYOUTS, LedgerAppend
from service.store.postgres.curator_tables import PostgresPrincipals, PostgresSignIns, PostgresSummaries, check_pepper
from service.store.postgres.data_tables import records_tables
from service.store.postgres.listings import BEYOND_ALL, OWN_FIRST, OWN_LATER, RELEASES, own_answer, release_of
from service.store.postgres.registrations import (
    DATASET_COLUMNS,
    DATASETS_AFTER,
    READ_HEAD,
    REGISTERED_COLUMNS,
    dataset_of,
    delete_dataset,
    head_in,
    registered_row,
    stored_tables,
)
from service.store.postgres.rows import LedgerSeal, insertion, page_row
from service.store.postgres.sessions import Session, SessionPool, refuse_commit, translated
from service.store.postgres.transaction import PostgresTransaction


class PostgresConditionalAppend:
    """The port's ConditionalAppend, in a session of its own within its `with` block. `commit` sends everything."""

    _session: Session
    _backend: int

    def __init__(
        self, pool: SessionPool, dataset_id: int, head: Head, seal: LedgerSeal, *, asked: Sequence[Asked]
    ) -> None:
        self._pool, self._dataset_id, self._seal, self._asked = pool, dataset_id, seal, asked
        self._extension: LedgerAppend | None = None
        self.head, self.known = head, Known(answers={}, reusable={}, worst_cases={})

    def __enter__(self) -> Self:
        self._session = self._pool.take()
        self._backend = self._session.pgconn.backend_pid
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        # A session that is open after an unclear commit: Postgres itself has said that it did nothing.
        is_lost = isinstance(fault, CommitUnclear) and self._session.closed
        self._pool.put_back(self._session)
        if fault is not None:
            self._pool.refused.note(fault)
        if is_lost:
            self._pool.await_end(self._backend)

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        replied = {(each.principal_id, each.key) for each in answers}
        if not replied.issuperset(each.address for each in self._asked):
            return  # the table of answers refuses a key that is taken; of one that gets no answer it says nothing
        self._extension = LedgerAppend(
            dataset_id=self._dataset_id,
            assumed=self.head,
            seal=self._seal,
            entries=entries,
            answers=answers,
            worst_cases=worst_cases,
            kept=parameters,
            new_hashes=[each.query_hash for each in self._asked if each.query_hash is not None],
        )
        self.head = self._extension.head

    def commit(self) -> None:
        try:
            is_done = self._extension is not None and self._session.extend(self._extension)
        except UniqueViolation as refusal:  # a key is taken: the long way finds its answer
            raise HeadMoved from refusal
        except PsycopgError as fault:
            refuse_commit(fault)
        if not is_done:
            raise HeadMoved


WRITE_PAGE: Final = (
    "INSERT INTO pages (dataset_id, page, seq, spent, charged, left_out, ticks)"
    " SELECT dataset_id, $1::integer, seq, $2::bytea, $3::bytea, $4::bytea, $5::bytea FROM ledger"
    " WHERE dataset_id = $6 AND seq = $7 AND hash = $8"
    " ON CONFLICT (dataset_id, page) DO UPDATE SET seq = excluded.seq, spent = excluded.spent,"
    " charged = excluded.charged, left_out = excluded.left_out, ticks = excluded.ticks"
    " WHERE pages.seq < excluded.seq"
)
# The head's row is locked for as long as its commit takes. What else is read here only grows.
FINISH_CHECKPOINT: Final = (
    "UPDATE heads SET checkpoint_seq = %s WHERE dataset_id = %s AND checkpoint_seq >= %s AND checkpoint_seq < %s"
    " AND EXISTS (SELECT FROM ledger l WHERE l.dataset_id = heads.dataset_id AND l.seq = %s AND l.hash = %s)"
    " AND (SELECT count(*) FROM pages p"
    " WHERE p.dataset_id = heads.dataset_id AND p.page = ANY(%s) AND p.seq >= %s) = %s"
)
# Both are cast to text: a name and a type's name have a type of their own.
_COLUMNS: Final = (
    "SELECT attname::text, typname::text FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid"
    " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


class SchemaMismatch(Exception):
    """The tables were changed, perhaps by a later version; rows that this version writes would not fit them."""


class PostgresStore:
    """The port's Store. Call `check_durability`, `check_schema` and `check_pepper` before serving."""

    def __init__(self, database_url: str, ledger_key: bytes, **options: int) -> None:
        """Open sessions, with their `options`. Raises StoreUnavailable when no session comes.

        `ledger_key` is 32 secret bytes, under which pieces of the ledger are sealed.
        """
        self._pool = SessionPool(database_url, **options)
        self.principals, self.sign_ins = PostgresPrincipals(self._pool), PostgresSignIns(self._pool)
        self.summaries = PostgresSummaries(self._pool)
        self._seal = LedgerSeal(ledger_key)
        self._long_acts: dict[int, threading.Lock] = {}

    def close(self) -> None:
        """Close every session."""
        self._pool.close()

    def check_durability(self) -> None:
        """Raise DurabilityTooWeak unless an acknowledged commit survives a power cut on this database."""
        self._pool.check_durability()

    def check_schema(self) -> None:
        """Raise SchemaMismatch unless the tables of LAYOUTS have the columns that this version writes."""
        for table, layout in LAYOUTS.items():
            if [(name, kind) for name, kind in self._pool.rows(_COLUMNS, [table])] != layout:
                raise SchemaMismatch(f"the table {table} has other columns than this version of the service writes")

    def check_pepper(self, proof_of: Callable[[bytes], bytes]) -> None:
        """Raise PepperMismatch unless the database was begun under the pepper that `proof_of` proves."""
        check_pepper(self._pool, proof_of)

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[PostgresTransaction]:
        """The transaction of one dataset. It is undone unless it is committed inside the block."""
        with self._pool.one(for_writing=lock) as session:
            yield PostgresTransaction(
                session, dataset_id, self._seal, lock=lock, asked=asked, idle_timeout_ms=self._pool.idle_timeout_ms
            )
            with translated():
                session.rollback()

    @contextmanager
    def long_act(self, dataset_id: int) -> Iterator[PostgresTransaction]:
        """The transaction of a long act. Further long acts of one process on the dataset wait without a connection."""
        flush = partial(self.probe_commit, b"")  # a commit of nothing has the log on the disk as far as it is written
        with self._long_acts.setdefault(dataset_id, threading.Lock()), self._pool.long() as session:
            yield PostgresTransaction(session, dataset_id, self._seal, lock=False, hasten=flush)
            with translated():
                session.rollback()

    def conditional_append(self, dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> PostgresConditionalAppend:
        """An append in one statement. If its outcome is unclear, the end of its block waits until it is settled."""
        return PostgresConditionalAppend(self._pool, dataset_id, head, self._seal, asked=asked)

    def probe_commit(self, payload: bytes) -> None:
        """Make a payload durable in the write-ahead log and in no table: for measuring how long a commit takes."""
        with self._pool.one(for_writing=True) as session:
            session.execute("SELECT pg_logical_emit_message(true, 'sparing', %s::bytea)", [payload])

    # Datasets

    def add_dataset(self, record: DatasetRecord) -> DatasetRecord:
        values = registered_row(record)
        with self._pool.changing() as session:
            rows = session.execute(
                insertion("datasets", REGISTERED_COLUMNS) + " ON CONFLICT (name) DO NOTHING RETURNING id", values
            ).fetchall()
            if not rows:
                raise NameTaken
            registered = replace(record, id=rows[0][0])
            session.execute(
                insertion("heads", "dataset_id, hash, journal_hash"), [registered.id, record.genesis, record.genesis]
            )
            for table in records_tables(registered.id, record.schema).values():
                session.execute(table.create())
                session.execute(table.index())
            session.commit()
        return registered

    def dataset(self, name: str) -> DatasetRecord | None:
        rows = self._pool.rows(f"SELECT {DATASET_COLUMNS} FROM datasets WHERE name = %s", [name])
        return dataset_of(rows[0]) if rows else None

    def datasets(self) -> list[DatasetRecord]:
        return [dataset_of(row) for row in self._pool.rows(f"SELECT {DATASET_COLUMNS} FROM datasets ORDER BY name", [])]

    def datasets_after(self, name: str | None, *, limit: int) -> list[DatasetRecord]:
        return [dataset_of(row) for row in self._pool.rows(DATASETS_AFTER, [name or "", limit])]

    def deletions(self, name: str) -> int:
        return sum(count for (count,) in self._pool.rows("SELECT datasets FROM deletions WHERE name = %s", [name]))

    def delete_dataset(self, dataset_id: int) -> None:
        with self._pool.changing() as session:
            delete_dataset(session, dataset_id)

    def head(self, dataset_id: int) -> Head:
        return head_in(self._pool.rows(READ_HEAD, [dataset_id]))

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        totals = page_row(checkpoint.pages[page])
        with self._pool.one(for_writing=True) as session:
            session.change(WRITE_PAGE, [page, *totals, dataset_id, checkpoint.seq, checkpoint.hash])

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        since, seq, pages = checkpoint.since, checkpoint.seq, list(checkpoint.pages)
        values = [seq, dataset_id, since, seq, seq, checkpoint.hash, pages, seq, len(pages)]
        return self._pool.commit(FINISH_CHECKPOINT, values) == 1

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        with self._pool.one() as session:
            tables = stored_tables(session, dataset_id)
            people = session.execute(
                "SELECT count(*) FROM individuals WHERE dataset_id = %s AND key IS NOT NULL", [dataset_id]
            ).fetchall()
            rows = {name: int(session.execute(table.count()).fetchall()[0][0]) for name, table in tables.items()}
        return int(people[0][0]), rows

    # An analyst's own answers

    def answer_of(self, principal_id: UUID, query_id: UUID) -> OwnAnswer | None:
        rows = self._pool.rows(OWN_FIRST, [principal_id, principal_id, query_id])
        rows = rows or self._pool.rows(OWN_LATER, [principal_id, query_id])
        return own_answer(rows[0]) if rows else None

    def releases_of(
        self, principal_id: UUID, *, before: ReleasePlace | None, limit: int, bytes_max: int
    ) -> list[ReleaseRecord]:
        values = [principal_id, *(before or BEYOND_ALL), limit, bytes_max]
        return [release_of(row) for row in self._pool.rows(RELEASES, values)]

    def worst_cases_of(self, principal_id: UUID) -> dict[str, int]:
        rows = self._pool.rows(
            "SELECT name, units FROM worst_cases JOIN datasets ON id = dataset_id WHERE principal_id = %s",
            [principal_id],
        )
        return dict(rows)

    def worst_cases_in(self, dataset_id: int) -> dict[UUID, int]:
        return dict(self._pool.rows("SELECT principal_id, units FROM worst_cases WHERE dataset_id = %s", [dataset_id]))

    def problems(self) -> list[str]:
        try:
            with self._pool.apart() as session:
                code = self._pool.refused.probe(session)
        except StoreUnavailable:
            return ["database-unavailable"]
        return [] if code is None else [code]
