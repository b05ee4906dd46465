"""One dataset's transaction on Postgres: the head's row is the lock, the fence and the order of everything."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg
import rfc8785
from numpy.typing import NDArray
from psycopg import sql
from psycopg.types.json import Jsonb

from service.store.postgres.faults import translated
from service.store.postgres.records import RecordsTable
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    ANSWER_COUNT,
    ENTRY_COLUMNS,
    ENTRY_COUNT,
    answer_of,
    answer_row,
    entry_of,
    entry_row,
)
from service.workflows.ledger import LedgerEntry
from service.workflows.ports import AnswerRecord, Codes, CommitUnclear, Head, Individuals, StoreUnavailable

_HEAD: Final = "seq, hash, epoch, fence, data_version, slots, worst_case_units, checkpoint_seq"
_UNITS_MAX: Final = 2**62
_KEYS_AT_ONCE: Final = 100_000
_ENTRIES_AT_ONCE: Final = 256

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresTransaction:
    """The port's Transaction; everything runs on one connection, and the pool undoes what was not committed."""

    def __init__(
        self, connection: Connection, dataset_id: int, tables: Mapping[str, RecordsTable], *, lock: bool
    ) -> None:
        """Read the head: locked for writing, or as of a read-only snapshot."""
        self._connection = connection
        self._dataset_id = dataset_id
        self._tables = tables
        if not lock:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self.head = self._read_head(lock=lock)

    # Reading

    def answers(self, keys: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], AnswerRecord]:
        rows = self._rows(
            f"SELECT {ANSWER_COLUMNS} FROM answers"
            " JOIN unnest(%s::uuid[], %s::text[]) AS asked (principal_id, idempotency_key)"
            " USING (principal_id, idempotency_key) WHERE dataset_id = %s",
            [[principal for principal, _ in keys], [key for _, key in keys], self._dataset_id],
        )
        return {(record.principal_id, record.key): record for record in map(answer_of, rows)}

    def reusable(self, query_hash: str, epoch: int) -> LedgerEntry | None:
        rows = self._rows(
            f"SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND query_hash = %s AND epoch = %s"
            " ORDER BY seq DESC LIMIT 1",
            [self._dataset_id, query_hash, epoch],
        )
        return entry_of(rows[0]) if rows else None

    def worst_case_spent(self, principal_id: UUID) -> int:
        rows = self._rows(
            "SELECT units FROM worst_cases WHERE dataset_id = %s AND principal_id = %s",
            [self._dataset_id, principal_id],
        )
        return int(rows[0][0]) if rows else 0

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        left = _UNITS_MAX if limit is None else limit
        while left > 0:
            rows = self._rows(
                f"SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND seq > %s ORDER BY seq LIMIT %s",
                [self._dataset_id, after, min(left, _ENTRIES_AT_ONCE)],
            )
            if not rows:
                return
            yield from map(entry_of, rows)
            after, left = rows[-1][0], left - len(rows)

    def entries_before(self, *, before: int, limit: int) -> list[LedgerEntry]:
        rows = self._rows(
            f"SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND seq < %s ORDER BY seq DESC LIMIT %s",
            [self._dataset_id, before, limit],
        )
        return [entry_of(row) for row in rows]

    def pages(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for page, spent in self._rows(
            "SELECT page, spent FROM pages WHERE dataset_id = %s ORDER BY page", [self._dataset_id]
        ):
            yield page, np.frombuffer(spent, dtype=">i8").astype(np.int64)

    def individuals(self) -> Individuals:
        query = sql.SQL("SELECT slot, limit_units, (key IS NOT NULL)::int FROM individuals WHERE dataset_id = {}")
        data = self._copy_out(query.format(sql.Literal(self._dataset_id)))
        layout = np.dtype(
            [
                ("count", ">i2"),
                ("a", ">i4"),
                ("slot", ">i4"),
                ("b", ">i4"),
                ("limit", ">i8"),
                ("c", ">i4"),
                ("is", ">i4"),
            ]
        )
        rows = np.frombuffer(data, dtype=layout, count=(len(data) - 21) // layout.itemsize, offset=19)
        return Individuals(
            slots=rows["slot"].astype(np.int64), limits=rows["limit"].astype(np.int64), present=rows["is"] == 1
        )

    def records(self, table: str) -> tuple[NDArray[np.int64], Codes]:
        records = self._tables[table]
        return records.read(self._copy_out(records.select()))

    def slots_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        return self._slots("key", "text", keys)

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        return self._slots("tombstone", "bytea", tombstones)

    def has_tombstones(self) -> bool:
        return bool(
            self._rows(
                "SELECT EXISTS (SELECT FROM individuals WHERE dataset_id = %s AND tombstone IS NOT NULL)",
                [self._dataset_id],
            )[0][0]
        )

    def keys_of(self, *, after_slot: int, limit: int) -> list[tuple[int, str]]:
        rows = self._rows(
            "SELECT slot, key FROM individuals WHERE dataset_id = %s AND slot > %s AND key IS NOT NULL"
            " ORDER BY slot LIMIT %s",
            [self._dataset_id, after_slot, limit],
        )
        return [(slot, key) for slot, key in rows]

    # Writing

    def append(
        self, entries: Sequence[LedgerEntry], answers: Sequence[AnswerRecord], worst_cases: Mapping[UUID, int]
    ) -> None:
        with translated(), self._connection.pipeline(), self._connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO ledger (dataset_id, {ENTRY_COLUMNS}) VALUES (%s{', %b' * ENTRY_COUNT})",
                [(self._dataset_id, *entry_row(entry)) for entry in entries],
            )
            cursor.executemany(
                f"INSERT INTO answers (dataset_id, {ANSWER_COLUMNS}) VALUES (%s{', %b' * ANSWER_COUNT})",
                [(self._dataset_id, *answer_row(answer)) for answer in answers],
            )
            cursor.executemany(
                "INSERT INTO worst_cases (dataset_id, principal_id, units) VALUES (%s, %s, %s) ON CONFLICT"
                " (dataset_id, principal_id) DO UPDATE SET units = least(worst_cases.units + excluded.units, %s)",
                [(self._dataset_id, principal, units, _UNITS_MAX) for principal, units in worst_cases.items()],
            )
        if entries:
            last = entries[-1]
            self._move_head(
                "seq = %s, hash = %s, worst_case_units = %s", [last.seq, last.hash, last.worst_case_total_units]
            )

    def add_individuals(self, slots: NDArray[np.int64], keys: Sequence[str], limits: NDArray[np.int64]) -> None:
        new = slots >= self.head.slots
        returning = [(keys[n], int(limits[n]), self._dataset_id, int(slots[n])) for n in np.flatnonzero(~new).tolist()]
        with translated(), self._connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE individuals SET key = %s, tombstone = NULL, limit_units = %s"
                " WHERE dataset_id = %s AND slot = %s",
                returning,
            )
            with cursor.copy(
                "COPY individuals (dataset_id, slot, key, limit_units) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "int4", "text", "int8"])
                for n in np.flatnonzero(new).tolist():
                    copy.write_row((self._dataset_id, int(slots[n]), keys[n], int(limits[n])))

    def add_records(self, table: str, slots: NDArray[np.int64], codes: Codes) -> None:
        records = self._tables[table]
        with translated(), self._connection.cursor() as cursor, cursor.copy(records.copy()) as copy:
            for chunk in records.encode(slots, codes):
                copy.write(chunk)

    def erase(self, slot: int, tombstone: bytes) -> None:
        for records in self._tables.values():
            self._run(records.delete(), [slot])
        self._run(
            "UPDATE individuals SET key = NULL, tombstone = %s WHERE dataset_id = %s AND slot = %s",
            [tombstone, self._dataset_id, slot],
        )

    def set_limit(self, slot: int, limit_units: int) -> None:
        self._run(
            "UPDATE individuals SET limit_units = %s WHERE dataset_id = %s AND slot = %s AND limit_units >= %s",
            [limit_units, self._dataset_id, slot, limit_units],
        )

    def write_pages(self, pages: Mapping[int, NDArray[np.int64]], seq: int) -> None:
        with translated(), self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pages (dataset_id, page, seq, spent) VALUES (%s, %s, %s, %b)"
                " ON CONFLICT (dataset_id, page) DO UPDATE SET seq = excluded.seq, spent = excluded.spent"
                " WHERE pages.seq <= excluded.seq",
                [(self._dataset_id, page, seq, spent.astype(">i8").tobytes()) for page, spent in pages.items()],
            )
        self._move_head("checkpoint_seq = %s", [seq])

    def journal(
        self, act: str, detail: Mapping[str, object], *, slots: int | None = None, epoch: int | None = None
    ) -> None:
        number, previous = self._rows(
            "SELECT coalesce((SELECT max(number) FROM journal j WHERE j.dataset_id = h.dataset_id), 0) + 1,"
            " journal_hash FROM heads h WHERE dataset_id = %s",
            [self._dataset_id],
        )[0]
        facts = {"number": number, "at_seq": self.head.seq, "act": act, "detail": dict(detail)}
        digest = hashlib.sha256(b"sparing journal 1\0" + bytes(previous) + rfc8785.dumps(facts)).digest()
        self._run(
            "INSERT INTO journal (dataset_id, number, at_seq, act, detail, at, previous_hash, hash)"
            " VALUES (%s, %s, %s, %s, %s, now(), %s, %s)",
            [self._dataset_id, number, self.head.seq, act, Jsonb(dict(detail)), previous, digest],
        )
        self._move_head(
            "data_version = data_version + 1, slots = coalesce(%s, slots), epoch = coalesce(%s, epoch),"
            " journal_hash = %s",
            [slots, epoch, digest],
        )

    def commit(self) -> None:
        try:
            self._connection.commit()
        except psycopg.Error as fault:
            raise CommitUnclear(type(fault).__name__) from fault

    # Within

    def _read_head(self, *, lock: bool) -> Head:
        rows = self._rows(
            f"SELECT {_HEAD} FROM heads WHERE dataset_id = %s" + (" FOR UPDATE" if lock else ""), [self._dataset_id]
        )
        return head_of(rows[0])

    def _move_head(self, assignments: str, values: Sequence[object]) -> None:
        """Move the head if it is still the one that was read: a writer that was fenced off touches no row and fails."""
        rows = self._rows(
            f"UPDATE heads SET {assignments} WHERE dataset_id = %s AND seq = %s AND fence = %s RETURNING {_HEAD}",
            [*values, self._dataset_id, self.head.seq, self.head.fence],
        )
        if len(rows) != 1:
            raise StoreUnavailable("the head has moved")
        self.head = head_of(rows[0])

    def _slots(self, column: str, kind: str, keys: Sequence[object]) -> NDArray[np.int64]:
        slots = np.full(len(keys), -1, dtype=np.int64)
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            rows = self._rows(
                "SELECT asked.n, slot FROM individuals"
                f" JOIN unnest(%s::{kind}[]) WITH ORDINALITY AS asked (key_asked, n)"
                f" ON {column} = key_asked WHERE dataset_id = %s",
                [list(keys[start : start + _KEYS_AT_ONCE]), self._dataset_id],
            )
            for n, slot in rows:
                slots[start + n - 1] = slot
        return slots

    def _copy_out(self, query: sql.Composable) -> bytes:
        statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(query)
        with translated(), self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            return b"".join(bytes(block) for block in copy)

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with translated():
            return self._connection.execute(statement, values, binary=True).fetchall()

    def _run(self, statement: str | sql.Composed, values: Sequence[object]) -> None:
        with translated():
            self._connection.execute(statement, values)


def head_of(row: Sequence[Any]) -> Head:
    """A head from its columns."""
    return Head(
        seq=row[0],
        hash=bytes(row[1]),
        epoch=row[2],
        fence=row[3],
        data_version=row[4],
        slots=row[5],
        worst_case_units=row[6],
        checkpoint_seq=row[7],
    )


HEAD_COLUMNS: Final = _HEAD
