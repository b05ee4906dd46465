"""Reading of one dataset within a transaction."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final, LiteralString
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from service.accounting.laws import tick_of
from service.core.laws import PREPAID, Gaussian
from service.ledger.model.journal import TOUCHED, JournalAct, UploadRecord
from service.ledger.model.ledger_entry import EntryRecord, LedgerEntry, PublicEntry
from service.ledger.model.parameters import LEAST_BYTES, KeptParameters
from service.ledger.model.pieces import Outcome, number_for
from service.ledger.model.rows import (
    EVERY_ENTRY,
    ActRecord,
    Address,
    AnswerRecord,
    AskedErasure,
    ColumnCodes,
    DatasetRecord,
    EarlierRegistration,
    EntryFilter,
    Head,
    OwnAccount,
    OwnCharge,
    SlotsInUse,
    StoredPage,
)
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from service.store.postgres.accounts import (
    EXCEPTIONS,
    EXTENT,
    SLOTS,
    SLOTS_BY_KEY,
    SLOTS_BY_PLAIN_FORM,
    SLOTS_BY_TOMBSTONE,
    SOME,
    AccountRows,
    accounts_of,
    keys_asked,
)
from service.store.postgres.data_tables import RecordsTable, chosen, in_pieces, runs_in, unpacked
from service.store.postgres.listings import (
    ACCOUNT,
    ACT_LISTED_COLUMNS,
    ACTS_LISTED,
    ENTRIES_AFTER,
    ENTRIES_FOUND,
    ENTRIES_LISTED,
    ENTRIES_REACH,
    ENTRY_SIZES,
    OWN_CHARGES,
    OWN_SINCE,
    PADDING,
    PIECES_OF,
    escaped,
    own_charge_of,
    own_part,
)
from service.store.postgres.registrations import EARLIER, REGISTRATION, dataset_of, earlier_of, stored_tables
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    ENTRY_COLUMNS,
    PAGE_COLUMNS,
    PARAMETERS_COLUMNS,
    PUBLIC_COLUMNS,
    SHOWN_COLUMNS,
    LedgerSeal,
    SealedPiece,
    answer_of,
    by_name,
    columns_of,
    entry_of,
    entry_record_of,
    page_of,
    parameters_of,
    public_entry_of,
    shown_by,
)
from service.store.postgres.sessions import Session, translated

_NUMBER: Final = np.dtype(">i4")
FEW_KEYS: Final = 100_000
RUN_SLOTS: Final = 50
SOUGHT_SLOTS: Final = 8
"""How many slots' rows are read in order in the time of one slot by the index.

Finding a run of slots by the index takes as long as reading the rows of RUN_SLOTS slots in order.
"""
_ENTRIES_AT_ONCE: Final = 256
ENTRIES_BYTES: Final = 2**24
"""The bytes of charges and values that are fetched at once; the entry that reaches this number is the last."""
# No index has this order, and no reader but a verification needs it. A body may have many megabytes.
DECLARE_ANSWERS: Final = (
    f"DECLARE answers_by_seq NO SCROLL CURSOR FOR SELECT {ANSWER_COLUMNS}, {SHOWN_COLUMNS}"
    f" FROM answers {shown_by('answers')} WHERE dataset_id = %s"
    ' ORDER BY seq, principal_id, idempotency_key COLLATE "C"'
)
FETCH_ANSWERS: Final = "FETCH 16 FROM answers_by_seq"
UPLOAD_AT: Final = (
    "SELECT digest, report FROM keyed_uploads WHERE dataset_id = %s AND principal_id = %s AND idempotency_key = %s"
)
PARAMETERS_AT: Final = (
    f"SELECT {PARAMETERS_COLUMNS} FROM parameters WHERE dataset_id = %s AND principal_id = %s AND sha256 = %s"
)
PARAMETERS_STORED: Final = (
    "SELECT coalesce(sum(greatest(octet_length(numbers), %s)), 0)::bigint,"
    " coalesce(array_agg(sha256) FILTER (WHERE sha256 = ANY(%s)), '{}')"
    " FROM parameters WHERE dataset_id = %s AND principal_id = %s"
)
_TICKS: Final = f"FROM ledger WHERE dataset_id = %s AND seq <= %s AND mechanism LIKE '{PREPAID} %%' ORDER BY seq"
TICKS: Final = f"SELECT {PUBLIC_COLUMNS} {_TICKS}"
LAST_TICK: Final = f"SELECT mechanism {_TICKS} DESC LIMIT 1"
HAS_OTHER_NOISE: Final = (
    f"SELECT EXISTS (SELECT FROM ledger WHERE dataset_id = %s AND mechanism NOT LIKE '{Gaussian.word}%%')"
)
CLOSE_ANSWERS: Final = "CLOSE answers_by_seq"
ERASURES_ASKED: Final = (
    "SELECT number, (detail ->> 'slot')::bigint, EXISTS (SELECT FROM journal later"
    " WHERE later.dataset_id = asked.dataset_id AND later.detail ->> 'slot' = asked.detail ->> 'slot'"
    " AND later.number > asked.number AND later.act = 'erase')"
    " FROM journal asked WHERE dataset_id = %s AND act = 'erasure_request' AND number > %s ORDER BY number LIMIT %s"
)
ACT_COLUMNS: Final = columns_of(JournalAct)


class PostgresSnapshot:
    """The part of the port's Transaction that changes nothing."""

    def __init__(self, session: Session, dataset_id: int, seal: LedgerSeal) -> None:
        self._connection, self._dataset_id, self._seal = session, dataset_id, seal
        self.head: Head
        self._known_tables: Mapping[str, RecordsTable] = {}

    @property
    def _tables(self) -> Mapping[str, RecordsTable]:
        """The tables of records. They are looked up when first needed, because an extension adds to them."""
        if not self._known_tables:
            with translated():
                self._known_tables = stored_tables(self._connection, self._dataset_id)
        return self._known_tables

    def registration(self) -> DatasetRecord:
        return dataset_of(self._rows(REGISTRATION, [self._dataset_id])[0])

    def earlier_registrations(self) -> list[EarlierRegistration]:
        return [earlier_of(row) for row in self._rows(EARLIER, [self._dataset_id])]

    def entries(self, *, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
        left = sys.maxsize if limit is None else limit
        while left > 0:
            values = [self._dataset_id, after, min(left, _ENTRIES_AT_ONCE), ENTRIES_BYTES]
            rows = self._rows(ENTRIES_AFTER, values)
            if not rows:
                return
            yield from map(self._entry_of, rows)
            after, left = rows[-1][0], left - len(rows)

    def entry_records(
        self, *, before: int, limit: int, bytes_max: int, only: EntryFilter = EVERY_ENTRY, first: int = 0
    ) -> list[EntryRecord]:
        values = [self._dataset_id, before]
        if only == EVERY_ENTRY:
            rows = self._rows(ENTRIES_LISTED, [*values, limit, bytes_max])
        else:
            patterns = [f"%{escaped(word.lower())}%" for word in only.words]
            sought = [first, only.analyst_id, only.analyst_id, patterns]
            rows = self._rows(ENTRIES_FOUND, [*values, *sought, limit, bytes_max])
        return [entry_record_of(row) for row in rows]

    def entries_reach(self, *, before: int, limit: int, bytes_max: int) -> int:
        first: int | None = self._rows(ENTRIES_REACH, [self._dataset_id, before, limit, bytes_max])[0][0]
        return 1 if first is None else first

    def entry_sizes(self, *, before: int, limit: int) -> list[tuple[int, int]]:
        return [(seq, size) for seq, size in self._rows(ENTRY_SIZES, [self._dataset_id, before, limit])]

    def own_charges(self, slot: int, *, before: int, limit: int, bytes_max: int) -> list[OwnCharge]:
        number, dataset = number_for(slot), self._dataset_id
        values = [number, PADDING, dataset, before, limit, dataset, number, bytes_max]
        rows = self._rows(OWN_CHARGES, values)
        return [own_charge_of(row, slot, self._seal, pruned_seq=self.head.pruned_seq) for row in rows]

    def account_of(self, slot: int) -> OwnAccount:
        place, dataset = slot % PAGE_SLOTS, self._dataset_id
        account = self._rows(ACCOUNT, [place, place, place, PAGE_SLOTS, slot, dataset])
        limit, paused, spent, charged, left_out, seq = account[0]
        tally = Counter[Outcome](charged=int(charged), left_out=int(left_out))
        units = int(spent)
        for kind, *priced in self._own_since(slot, seq):
            part = own_part(priced, slot, self._seal)
            units += part.units
            tally[part.outcome] += kind == "query"
        return OwnAccount(
            limit=limit,
            spent=units,
            paused=paused,
            queries_charged=tally["charged"] + tally["shortened"],
            queries_left_out=tally["left_out"],
        )

    def burns(self) -> list[LedgerEntry]:
        rows = self._rows(
            f"SELECT {ENTRY_COLUMNS} FROM ledger WHERE dataset_id = %s AND kind = 'burn' ORDER BY seq",
            [self._dataset_id],
        )
        return [self._entry_of(row) for row in rows]

    def ticks(self) -> list[PublicEntry]:
        return list(map(public_entry_of, self._rows(TICKS, [self._dataset_id, self.head.seq])))

    def last_tick(self, *, up_to: int) -> int:
        rows = self._rows(LAST_TICK, [self._dataset_id, up_to])
        return tick_of(rows[0][0]) if rows else 0

    def has_other_noise(self) -> bool:
        found: bool = self._rows(HAS_OTHER_NOISE, [self._dataset_id])[0][0]
        return found

    def hashes(self, seqs: Sequence[int]) -> dict[int, bytes]:
        rows = self._rows(
            "SELECT seq, hash FROM ledger WHERE dataset_id = %s AND seq = ANY(%s)", [self._dataset_id, list(seqs)]
        )
        return {seq: bytes(digest) for seq, digest in rows}

    def pages(self) -> Iterator[StoredPage]:
        rows = self._rows(f"SELECT {PAGE_COLUMNS} FROM pages WHERE dataset_id = %s ORDER BY page", [self._dataset_id])
        yield from map(page_of, rows)

    def answers(self) -> Iterator[AnswerRecord]:
        with translated():
            self._connection.execute(DECLARE_ANSWERS, [self._dataset_id])
        while rows := self._rows(FETCH_ANSWERS, []):
            yield from map(answer_of, rows)
        with translated():
            self._connection.execute(CLOSE_ANSWERS)

    def parameters(self, principal_id: UUID, sha256: str) -> KeptParameters | None:
        rows = self._rows(PARAMETERS_AT, [self._dataset_id, principal_id, bytes.fromhex(sha256)])
        return parameters_of(rows[0]) if rows else None

    def parameters_stored(self, principal_id: UUID, hashes: Sequence[str]) -> tuple[int, set[str]]:
        asked = [bytes.fromhex(each) for each in hashes]
        ((size, known),) = self._rows(PARAMETERS_STORED, [LEAST_BYTES, asked, self._dataset_id, principal_id])
        return size, {bytes(each).hex() for each in known}

    def worst_cases(self) -> dict[UUID, int]:
        return dict(self._rows("SELECT principal_id, units FROM worst_cases WHERE dataset_id = %s", [self._dataset_id]))

    def acts(self, *, after: int) -> list[JournalAct]:
        return self._acts("number > %s", after)

    def acts_of(self, *kinds: str) -> list[JournalAct]:
        return self._acts("act = ANY(%s)", list(kinds))

    def acts_on(self, slot: int, *kinds: str) -> list[JournalAct]:
        return self._acts("act = ANY(%s) AND detail ->> 'slot' = %s", list(kinds), str(slot))

    def erasures_asked(self, *, after: int = 0, limit: int | None = None) -> list[AskedErasure]:
        rows = self._rows(ERASURES_ASKED, [self._dataset_id, after, limit])
        return [AskedErasure(number=number, slot=slot, is_done=is_done) for number, slot, is_done in rows]

    def _acts(self, condition: LiteralString, *values: object) -> list[JournalAct]:
        rows = self._rows(
            f"SELECT {ACT_COLUMNS} FROM journal WHERE dataset_id = %s AND {condition} ORDER BY number",
            [self._dataset_id, *values],
        )
        return [JournalAct(**by_name(ACT_COLUMNS, row)) for row in rows]

    def act_records(self, *, before: int, limit: int, bytes_max: int) -> list[ActRecord]:
        rows = self._rows(ACTS_LISTED, [list(TOUCHED), self._dataset_id, before, limit, bytes_max])
        return [ActRecord(**by_name(ACT_LISTED_COLUMNS, row)) for row in rows]

    def individuals(self, *, of: NDArray[np.int64] | None = None) -> SlotsInUse:
        if of is not None:
            return accounts_of([self._rows(SOME, [*runs, self._dataset_id])[0] for runs in in_pieces(of)])
        usual, last = self._rows(EXTENT, [self._dataset_id])[0]
        accounts = AccountRows(dataset_id=self._dataset_id, usual_units=usual, last=last)
        parts = [self._rows(EXCEPTIONS, values)[0] for values in accounts.ranges]
        if accounts.are_all(parts):
            return accounts.read(parts, None)
        return accounts.read(parts, [slot for (slot,) in self._rows(SLOTS, [self._dataset_id])])

    def records(self, table: str, *, of: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], ColumnCodes]:
        records = self._tables[table]
        if of is not None and (of.size == 1 or RUN_SLOTS * runs_in(of) + SOUGHT_SLOTS * of.size <= self.head.slots):
            pieces = in_pieces(of, slots_max=records.slots_at_once)
            return records.read([self._rows(records.selects_some(), piece)[0] for piece in pieces])
        blocks = self._rows(records.blocks(), [])[0][0]
        slots, codes = records.read([self._rows(statement, [])[0] for statement in records.selects(blocks)])
        return (slots, codes) if of is None else chosen(slots, codes, of)

    def slots_of(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        return self._slots(SLOTS_BY_KEY, keys)

    def are_plain_forms(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        if not self._has_any("plain"):
            return np.zeros(len(texts), dtype=np.bool_)
        return self._slots(SLOTS_BY_PLAIN_FORM, texts) >= 0

    def slots_of_tombstones(self, tombstones: Sequence[bytes]) -> NDArray[np.int64]:
        return self._slots(SLOTS_BY_TOMBSTONE, tombstones)

    def upload_at(self, address: Address) -> UploadRecord | None:
        for digest, report in self._rows(UPLOAD_AT, [self._dataset_id, *address]):
            return UploadRecord(address=address, digest=bytes(digest), report=bytes(report))
        return None

    def has_tombstones(self) -> bool:
        return self._has_any("tombstone")

    def keys_of(self, *, after_slot: int, limit: int, bytes_max: int) -> list[tuple[int, Key]]:
        rows = self._rows(
            "SELECT slot, key FROM ("
            "SELECT slot, key, sum(octet_length(key)) OVER (ORDER BY slot) - octet_length(key) AS bytes_before"
            " FROM (SELECT slot, key FROM individuals WHERE dataset_id = %s AND slot > %s AND key IS NOT NULL"
            " ORDER BY slot LIMIT %s) AS next) AS page WHERE bytes_before < %s ORDER BY slot",
            [self._dataset_id, after_slot, limit, bytes_max],
        )
        return [(slot, key) for slot, key in rows]

    # Within

    def _has_any(self, column: LiteralString) -> bool:
        """Tell whether any individual has a value in this column, which few have: by its partial index, in its order.

        For an EXISTS, Postgres expects to find a row at once. If no individual has a value, it reads the accounts of
        all datasets.
        """
        of_one = (
            f"SELECT slot FROM individuals WHERE dataset_id = %s AND {column} IS NOT NULL ORDER BY {column} LIMIT 1"
        )
        return bool(self._rows(of_one, [self._dataset_id]))

    def _own_since(self, slot: int, seq: int) -> Iterator[Sequence[Any]]:
        """The kind of each entry after `seq`, and the values that `own_part` takes."""
        number, dataset, count = number_for(slot), self._dataset_id, _ENTRIES_AT_ONCE
        while count == _ENTRIES_AT_ONCE:
            rows = self._rows(OWN_SINCE, [number, PADDING, dataset, seq, _ENTRIES_AT_ONCE, dataset, number])
            yield from (row[1:] for row in rows)
            count, seq = len(rows), rows[-1][0] if rows else seq

    def _entry_of(self, row: Sequence[Any]) -> LedgerEntry:
        return entry_of(row, self._seal, self._pieces_of, pruned_seq=self.head.pruned_seq)

    def _pieces_of(self, seq: int) -> list[SealedPiece]:
        return [(number, sealed, digest) for number, sealed, digest in self._rows(PIECES_OF, [self._dataset_id, seq])]

    def _slots(self, statement: str, keys: Sequence[str] | Sequence[bytes]) -> NDArray[np.int64]:
        slots = np.full(len(keys), -1, dtype=np.int64)
        # Postgres expects a hundred keys in a statement, and would look each of them up.
        are_many = len(keys) * SOUGHT_SLOTS > max(self.head.slots, FEW_KEYS)
        with self._without_look_ups() if are_many else nullcontext():
            for start, asked in keys_asked(keys):
                places, found = unpacked(self._rows(statement, [asked, self._dataset_id]), [_NUMBER, _NUMBER])
                slots[start - 1 + places.astype(np.int64)] = found
        return slots

    @contextmanager
    def _without_look_ups(self) -> Iterator[None]:
        """Have Postgres plan the statements of this block, and no others, for joining many rows."""
        threshold, self._connection.prepare_threshold = self._connection.prepare_threshold, None
        try:
            with translated():
                self._connection.execute("SET LOCAL enable_nestloop = off")
            yield
            with translated():
                self._connection.execute("SET LOCAL enable_nestloop = on")
        finally:
            self._connection.prepare_threshold = threshold

    def _rows(self, statement: str | sql.Composed, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with translated():
            return self._connection.execute(statement, values, binary=True).fetchall()
