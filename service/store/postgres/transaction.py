"""One dataset's transaction on Postgres. The row of the head is its lock, holds the fence, and orders all changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from psycopg.types.json import Jsonb

from service.ledger.model.journal import JournalAct, UploadRecord
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import ERASED_NAME, AnswerRecord, Asked, ColumnCodes, DatasetRecord, Known
from service.ledger.ports.store import StoreUnavailable
from service.query.keys import Key
from service.query.schema import Schema
from service.store.postgres.accounts import COPY_INDIVIDUALS, copy_individuals
from service.store.postgres.append import LedgerAppend
from service.store.postgres.data_tables import copy_in, records_tables
from service.store.postgres.registrations import (
    HEAD_COLUMNS,
    KEEP_EARLIER,
    LOCK_HEAD,
    LONG_ACTS,
    ONE_LONG_ACT,
    READ_HEAD,
    SET_REGISTRATION,
    extend_tables,
    head_in,
    head_of,
    json_of,
)
from service.store.postgres.rewritten_entries import RewrittenEntries
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    PUBLIC_COLUMNS,
    SHOWN_COLUMNS,
    LedgerSeal,
    answer_of,
    insertion,
    public_entry_of,
    shown_by,
)
from service.store.postgres.sessions import Session, committing, translated
from service.store.postgres.snapshot import ACT_COLUMNS

_TRANSACTION_TIMEOUT_SINCE: Final = 17_00_00

# Key by key: a plan that was made while there were few answers would go through all of them for ever.
# A range of the primary key's own order, which no other index has: for a table of which Postgres knows little, it may
# take the index of a principal's answers to be as good, and read all of them.
_KEY: Final = "(dataset_id, principal_id, idempotency_key)"
_ASKED: Final = "(of_dataset, asker, key)"
KNOWN_ANSWERS: Final = (
    f"SELECT {ANSWER_COLUMNS}, {SHOWN_COLUMNS}"
    " FROM unnest(%s::uuid[], %s::text[]) AS asked (asker, key), (VALUES (%s)) AS dataset (of_dataset)"
    f" CROSS JOIN LATERAL (SELECT dataset_id, {ANSWER_COLUMNS} FROM answers"
    f" WHERE {_KEY} >= {_ASKED} AND {_KEY} <= {_ASKED} LIMIT 1) AS found" + shown_by("found")
)
# The newest entry of each hash, by the one index that has this order: a query may have been charged a million times.
_ENTRY: Final = "(query_hash, dataset_id, epoch, seq)"
KNOWN_ENTRIES: Final = (
    f"SELECT {PUBLIC_COLUMNS} FROM unnest(%s::text[]) AS asked (asked_hash),"
    " (SELECT dataset_id AS of_dataset, epoch AS this_epoch, seq AS last FROM heads WHERE dataset_id = %s) AS head"
    f" CROSS JOIN LATERAL (SELECT {PUBLIC_COLUMNS} FROM ledger"
    f" WHERE {_ENTRY} >= (asked_hash, of_dataset, this_epoch, 0)"
    f" AND {_ENTRY} <= (asked_hash, of_dataset, this_epoch, last) AND kind = 'query'"
    " ORDER BY query_hash DESC, dataset_id DESC, epoch DESC, seq DESC LIMIT 1) AS found"
)
_FORGET_PRINCIPALS: Final = (
    "UPDATE principals p SET revoked_at = coalesce(p.revoked_at, now()), individual = NULL, name = %s,"
    " organisation = NULL, purpose = NULL"
    " FROM individuals i JOIN datasets d ON d.id = i.dataset_id"
    " WHERE i.dataset_id = %s AND i.slot = %s AND p.dataset = d.name AND p.individual = i.key"
)
_ADD_ACT: Final = (
    f"INSERT INTO journal (at, dataset_id, {ACT_COLUMNS}) VALUES (now(), %s{', %s' * len(fields(JournalAct))})"
)
KNOWN_WORST_CASES: Final = (
    "SELECT principal_id, units FROM worst_cases WHERE dataset_id = %s AND principal_id = ANY(%s)"
)


class PostgresTransaction(RewrittenEntries):
    """The port's Transaction. Everything runs in one session, and the pool undoes what was not committed."""

    def __init__(
        self,
        connection: Session,
        dataset_id: int,
        seal: LedgerSeal,
        *,
        lock: bool,
        asked: Sequence[Asked] = (),
        idle_timeout_ms: int = 60_000,
        hasten: Callable[[], None] | None = None,
    ) -> None:
        """Read the head, locked or as of a read-only snapshot, and what is known of the queries, in one round trip.

        A locked transaction for queries has `idle_timeout_ms` for all its work. With `hasten` the transaction is a long
        act's.
        """
        super().__init__(connection, dataset_id, seal)
        self._pending: list[LedgerAppend] = []
        self._hasten = hasten
        with translated(), connection.pipeline():
            if hasten is not None:
                connection.execute(ONE_LONG_ACT, [LONG_ACTS, dataset_id])
            elif not lock:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            elif asked and connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
                # A pipeline ends with a Flush, on which Postgres stops the clock of an idle transaction: a process that
                # falls silent between the queries and the commit would keep the lock for ever.
                connection.execute(f"SET LOCAL transaction_timeout = {idle_timeout_ms:d}")
            head = connection.execute(READ_HEAD + (LOCK_HEAD if lock else ""), [dataset_id], binary=True)
            known = [connection.execute(statement, values, binary=True) for statement, values in self._lookups(asked)]
            self.head = head_in(head.fetchall())
            answers, reusable, worst_cases = (cursor.fetchall() for cursor in known) if asked else ([], [], [])
        self.known = Known(
            answers={(record.principal_id, record.key): record for record in map(answer_of, answers)},
            reusable={entry.query_hash: entry for entry in map(public_entry_of, reusable)},
            worst_cases=dict(worst_cases),
        )

    # Writing

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        extension = LedgerAppend(
            dataset_id=self._dataset_id,
            assumed=self.head,
            seal=self._seal,
            entries=entries,
            answers=answers,
            worst_cases=worst_cases,
            kept=parameters,
        )
        self._pending.append(extension)
        self.head = extension.head

    def add_individuals(
        self,
        slots: NDArray[np.int64],
        keys: Sequence[Key],
        limits: NDArray[np.int64],
        plain_forms: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        new = slots >= self.head.slots
        returning = [
            (keys[n], plain_forms.get(n), int(limits[n]), self._dataset_id, int(slots[n]))
            for n in np.flatnonzero(~new).tolist()
        ]
        with translated(), self._connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE individuals SET key = %s, plain = %s, tombstone = NULL, limit_units = %s"
                " WHERE dataset_id = %s AND slot = %s",
                returning,
            )
            with cursor.copy(COPY_INDIVIDUALS) as copy:
                for chunk in copy_individuals(self._dataset_id, slots, keys, limits, plain_forms, is_new=new):
                    copy.write(chunk)

    def add_records(self, table: str, slots: NDArray[np.int64], codes: ColumnCodes) -> None:
        records = self._tables[table]
        with translated(), self._connection.cursor() as cursor, cursor.copy(records.copy()) as copy:
            for chunk in copy_in(slots, codes, records.columns):
                copy.write(chunk)

    def keep_upload(self, upload: UploadRecord) -> None:
        self._run(
            insertion("keyed_uploads", "dataset_id, principal_id, idempotency_key, digest, report"),
            [self._dataset_id, *upload.address, upload.digest, upload.report],
        )

    def delete_records(self, slot: int, *, table: str | None = None) -> None:
        tables = self._tables
        chosen = tables.values() if table is None else [tables[table]]
        with translated(), self._connection.pipeline():
            for records in chosen:
                self._connection.execute(records.delete(), [slot])

    def delete_all_records(self) -> None:
        for records in self._tables.values():
            self._run(records.truncate(), [])

    def extend_tables(self, schema: Schema) -> None:
        after = records_tables(self._dataset_id, schema)
        with translated():
            extend_tables(self._connection, dict(self._tables), after)
        self._known_tables = after

    def set_registration(self, record: DatasetRecord) -> None:
        self._run(KEEP_EARLIER, [self.head.seq, self._dataset_id, record.version])
        values = [record.capacity, json_of(record.schema), record.version, record.is_archived, self._dataset_id]
        self._run(SET_REGISTRATION, values)

    def erase(self, slot: int, tombstone: bytes) -> None:
        self.delete_records(slot)
        self._run(_FORGET_PRINCIPALS, [ERASED_NAME, self._dataset_id, slot])
        self._run(
            "UPDATE individuals SET key = NULL, plain = NULL, tombstone = %s WHERE dataset_id = %s AND slot = %s",
            [tombstone, self._dataset_id, slot],
        )

    def hasten(self) -> None:
        if self._hasten is not None:
            self._hasten()

    def lock(self) -> None:
        self.head = head_in(self._rows(READ_HEAD + LOCK_HEAD, [self._dataset_id]))

    def set_limit(self, slot: int, limit_units: int) -> None:
        self._run(
            "UPDATE individuals SET limit_units = %s WHERE dataset_id = %s AND slot = %s AND limit_units >= %s",
            [limit_units, self._dataset_id, slot, limit_units],
        )

    def set_paused(self, slot: int, *, paused: bool) -> None:
        self._run(
            "UPDATE individuals SET paused = %s WHERE dataset_id = %s AND slot = %s", [paused, self._dataset_id, slot]
        )

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        ((number,),) = self._rows(
            "SELECT coalesce(max(number), 0) + 1 FROM journal WHERE dataset_id = %s", [self._dataset_id]
        )
        following = JournalAct.following(
            self.head.journal_hash, number=number, at_seq=self.head.seq, act=act, detail=detail
        )
        facts = (getattr(following, each.name) for each in fields(JournalAct))
        self._run(_ADD_ACT, [self._dataset_id, *(Jsonb(fact) if fact is following.detail else fact for fact in facts)])
        self._move_head(
            "data_version = data_version + 1, slots = coalesce(%s, slots), epoch = coalesce(%s, epoch),"
            " journal_hash = %s",
            [slots, epoch, following.hash],
        )

    def prune(self, seq: int) -> None:
        self._move_head("pruned_seq = %s", [seq])

    def fence_off(self, fence: int, joining_units: int) -> None:
        self._move_head("fence = %s, joining_units = %s", [fence, joining_units])

    def commit(self) -> None:
        with committing():
            self._flush()
            self._connection.commit()

    # Within

    def _lookups(self, asked: Sequence[Asked]) -> Iterator[tuple[str, Sequence[object]]]:
        """The statements that look up answers, reusable entries and worst cases of the queries, with their values."""
        if not asked:
            return
        principals = [each.address[0] for each in asked]
        yield KNOWN_ANSWERS, [principals, [each.address[1] for each in asked], self._dataset_id]
        hashes = [each.query_hash for each in asked if each.query_hash is not None]
        yield KNOWN_ENTRIES, [hashes, self._dataset_id]
        yield KNOWN_WORST_CASES, [self._dataset_id, principals]

    def _flush(self) -> None:
        """Send the appends that wait, so that later statements of the transaction find them done."""
        pending, self._pending = self._pending, []
        for extension in pending:
            if not self._connection.extend(extension):
                raise StoreUnavailable("the head has moved")

    def _move_head(self, assignments: str, values: Sequence[object]) -> None:
        """Change the head if it is still the one that was read. A writer that was fenced off fails without a change."""
        with translated():
            self._flush()
        rows = self._rows(
            f"UPDATE heads SET {assignments} WHERE dataset_id = %s AND seq = %s AND fence = %s"
            f" RETURNING {HEAD_COLUMNS}",
            [*values, self._dataset_id, self.head.seq, self.head.fence],
        )
        if len(rows) != 1:
            raise StoreUnavailable("the head has moved")
        self.head = head_of(rows[0])

    def _run(self, statement: str | sql.Composed, values: Sequence[object]) -> None:
        with translated():
            self._connection.execute(statement, values)
