"""What is read of one dataset within a transaction."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.store.postgres.accounts import EXCEPTIONS, EXTENT, SLOTS, Accounts
from service.store.postgres.faults import translated
from service.store.postgres.records import RecordsTable
from service.store.postgres.rows import ENTRY_COLUMNS, entry_of
from service.store.postgres.session import Session
from service.workflows.ledger import LedgerEntry
from service.workflows.records import Codes, Individuals, StoredPage

_KEYS_AT_ONCE: Final = 100_000
_ENTRIES_AT_ONCE: Final = 256


class PostgresReading:
    """The half of the port's Transaction that changes nothing."""

    def __init__(self, session: Session, dataset_id: int, tables: Mapping[str, RecordsTable]) -> None:
        """Read nothing yet."""
        self._connection, self._dataset_id, self._tables = session, dataset_id, tables

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        left = sys.maxsize if limit is None else limit
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

    def burns(self) -> list[LedgerEntry]:
        rows = self._rows(
            f"SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND kind = 'burn' ORDER BY seq",
            [self._dataset_id],
        )
        return [entry_of(row) for row in rows]

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        rows = self._rows(
            "SELECT seq, hash FROM ledger WHERE dataset_id = %s AND seq = ANY(%s)", [self._dataset_id, list(seqs)]
        )
        return {seq: bytes(digest) for seq, digest in rows}

    def pages(self) -> Iterator[StoredPage]:
        for number, seq, spent in self._rows(
            "SELECT page, seq, spent FROM pages WHERE dataset_id = %s ORDER BY page", [self._dataset_id]
        ):
            yield StoredPage(number=number, seq=seq, spent=np.frombuffer(spent, dtype=">i8").astype(np.int64))

    def individuals(self) -> Individuals:
        usual, last = self._rows(EXTENT, [self._dataset_id])[0]
        accounts = Accounts(dataset_id=self._dataset_id, usual_units=usual, last=last)
        parts = [self._rows(EXCEPTIONS, values)[0] for values in accounts.ranges]
        if accounts.are_all(parts):
            return accounts.read(parts, None)
        return accounts.read(parts, [slot for (slot,) in self._rows(SLOTS, [self._dataset_id])])

    def records(self, table: str) -> tuple[NDArray[np.int64], Codes]:
        records = self._tables[table]
        blocks = self._rows(records.blocks(), [])[0][0]
        return records.read([self._rows(statement, [])[0] for statement in records.selects(blocks)])

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

    # Within

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

    def _rows(self, statement: str | sql.Composed, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with translated():
            return self._connection.execute(statement, values, binary=True).fetchall()
