"""An append to a ledger: entries, answers and worst cases on an assumed head, in one statement, all or nothing.

If all assumptions hold, the statement locks the head's row and moves the head. All new rows are joined to the moved
row, so that nothing is inserted if the head did not move.

The parameters go in Postgres' binary form, with all rows of a table as one array of the table's own row type. Lists by
column would cost more than everything else that a client does for a commit, because psycopg chooses a type for each
value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from struct import Struct, pack
from typing import Any, Final
from uuid import UUID

from service.core.charge import CHARGE_UNITS_MAX
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.long_answers import SHORT_BYTES
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.pieces import WHOLE
from service.ledger.model.rows import AnswerRecord, Head
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    ENTRY_COLUMNS,
    ENTRY_TYPES,
    PARAMETERS_COLUMNS,
    PIECE_COLUMNS,
    LedgerSeal,
    answer_row,
    entry_row,
    names_in,
    stored,
)

_ARRAY: Final = Struct("!iiIii").pack  # dimensions, whether there are NULLs, type of the elements, how many, the first
_NO_ARRAY: Final = Struct("!iiI").pack
_HEAD: Final = Struct("!Ii").pack  # a field's type and bytes
_COUNT: Final = Struct("!i").pack
_INT4: Final = Struct("!i").pack
_INT8: Final = Struct("!q").pack
_NULL: Final = -1
_TEXT: Final = 25
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NUMERIC_BASE: Final = 10_000

Column = tuple[int, Callable[[Any], bytes] | None]
"""The number of a column's type, the same in every database, and a function that makes a value's bytes.

The number is 0 if the function makes the whole field: type, length and bytes. A bytea needs no function and has None.
"""


def _fixed(oid: int, form: str) -> Callable[[Any], bytes]:
    whole = Struct(f"!Ii{form}")
    return partial(whole.pack, oid, whole.size - len(_HEAD(0, 0)))


_MICROSECONDS: Final = _fixed(1184, "q")


def _timestamp(value: datetime) -> bytes:
    return _MICROSECONDS((value - _EPOCH) // _MICROSECOND)


def _numeric(value: int) -> bytes:
    """A whole number, not negative, as Postgres' numeric: number of digits to the base 10,000, first weight, digits."""
    digits: list[int] = []
    while value > 0:
        value, digit = divmod(value, _NUMERIC_BASE)
        digits.append(digit)
    count = len(digits)
    return pack(f"!hhHH{count}H", count, count - 1, 0, 0, *reversed(digits))


_COLUMNS: Final[Mapping[str, Column]] = {
    "bytea": (17, None),
    "int8": (0, _fixed(20, "q")),
    "int2": (0, _fixed(21, "h")),
    "int4": (0, _fixed(23, "i")),
    "text": (_TEXT, str.encode),
    "float8": (0, _fixed(701, "d")),
    "timestamptz": (0, _timestamp),
    "numeric": (1700, _numeric),
    "uuid": (2950, attrgetter("bytes")),
}


def columns(types: str) -> tuple[Column, ...]:
    """The columns of these types, given by name. Only a bytea may be NULL."""
    return tuple(_COLUMNS[name] for name in types.split())


def row_array(row_type: int, types: Sequence[Column], rows: Iterable[Sequence[Any]]) -> bytes:
    """An array of rows; `row_type` is the number that this database has given to the table's row type."""
    parts: list[bytes] = [b""]
    count = 0
    for row in rows:
        data = [_COUNT(len(types))]
        for (oid, encode), value in zip(types, row, strict=True):
            if encode is None:
                data += (_HEAD(oid, _NULL),) if value is None else (_HEAD(oid, len(value)), value)
            elif oid == 0:
                data.append(encode(value))
            else:
                encoded = encode(value)
                data += _HEAD(oid, len(encoded)), encoded
        whole = b"".join(data)
        parts += _COUNT(len(whole)), whole
        count += 1
    parts[0] = _ARRAY(1, 0, row_type, count, 1) if count > 0 else _NO_ARRAY(0, 0, row_type)
    return b"".join(parts)


def text_array(values: Sequence[str]) -> bytes:
    """An array of texts."""
    parts = [_ARRAY(1, 0, _TEXT, len(values), 1) if values else _NO_ARRAY(0, 0, _TEXT)]
    for value in values:
        encoded = value.encode()
        parts += _COUNT(len(encoded)), encoded
    return b"".join(parts)


RowTypes = Mapping[str, int]
"""By table, the number that a database has given to the type of its rows."""

PIECES_BYTES_MAX: Final = 2**19
"""The bytes of pieces that go with an extension, and with each further statement in its transaction.

Postgres copies an array of rows several times. Rows that fit in a cache are stored in two thirds of the time.
"""


def _layout(names: str, types: str) -> list[tuple[str, str]]:
    return list(zip(["dataset_id", *names_in(names)], ["int4", *types.split()], strict=True))


LAYOUTS: Final = {
    "ledger": _layout(ENTRY_COLUMNS, ENTRY_TYPES),
    "answers": _layout(ANSWER_COLUMNS, "uuid text bytea int8 uuid bytea timestamptz bytea"),
    "worst_cases": _layout("principal_id, units", "uuid int8"),
    "pieces": _layout(PIECE_COLUMNS, "int8 int4 bytea bytea"),
}
"""By table that an extension writes to: the names and types of its columns, in the order in which a row has them."""
_FIELDS: Final = {table: columns(" ".join(kind for _, kind in layout)) for table, layout in LAYOUTS.items()}

# The conditions see the database as it was when the statement began; whatever has come since has moved the head, at
# which Postgres looks again once it has the row's lock. A key that is taken cannot be taken twice: that the table of
# answers refuses. Behind its SELECT the array's length is hidden from the planner, which would otherwise plan anew for
# every batch of one.
_MOVED: Final = (
    "moved AS (UPDATE heads h SET seq = $1, hash = $2, worst_case_units = $3"
    " WHERE dataset_id = $4 AND seq = $5 AND hash = $6 AND fence = $7 AND epoch = $8 AND data_version = $9"
    " AND NOT EXISTS (SELECT FROM ledger l WHERE l.dataset_id = h.dataset_id"
    " AND l.query_hash = ANY((SELECT $10::text[])::text[]) AND l.epoch = h.epoch AND l.kind = 'query')"
    " RETURNING dataset_id)"
)
_ENTRIES: Final = (
    f"entries AS (INSERT INTO ledger (dataset_id, {ENTRY_COLUMNS})"
    f" SELECT moved.dataset_id, {ENTRY_COLUMNS} FROM moved, unnest($11::ledger[]) AS sent)"
)
_ANSWERS: Final = (
    f"answered AS (INSERT INTO answers (dataset_id, {ANSWER_COLUMNS})"
    f" SELECT moved.dataset_id, {ANSWER_COLUMNS} FROM moved, unnest($12::answers[]) AS sent)"
)
# The total saturates by comparison: a sum of two that may each be CHARGE_UNITS_MAX does not fit a bigint.
_WORST_CASES: Final = (
    "costs AS (INSERT INTO worst_cases (dataset_id, principal_id, units)"
    " SELECT moved.dataset_id, principal_id, units FROM moved, unnest($13::worst_cases[]) AS sent"
    " ON CONFLICT (dataset_id, principal_id)"
    f" DO UPDATE SET units = worst_cases.units + least(excluded.units, {CHARGE_UNITS_MAX} - worst_cases.units))"
)
_PIECES: Final = (
    f"parts AS (INSERT INTO pieces (dataset_id, {PIECE_COLUMNS})"
    f" SELECT moved.dataset_id, {PIECE_COLUMNS} FROM moved, unnest($14::pieces[]) AS sent)"
)
EXTEND: Final = f"WITH {_MOVED}, {_ENTRIES}, {_ANSWERS}, {_WORST_CASES}, {_PIECES} SELECT count(*) FROM moved"
MORE_PIECES: Final = (
    "INSERT INTO pieces SELECT "
    + ", ".join(f"(sent).{name}" for name in ("dataset_id", *names_in(PIECE_COLUMNS)))
    + " FROM (SELECT unnest($1::pieces[]) AS sent) AS rows"
)
"""Inserts pieces that do not go with EXTEND, in its transaction. A function in FROM would store the rows once more."""
KEEP_PARAMETERS: Final = (
    f"INSERT INTO parameters (dataset_id, {PARAMETERS_COLUMNS}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
)
"""Inserts the parameters of one query, in the transaction of EXTEND."""


@dataclass(slots=True, kw_only=True, eq=False)
class LedgerAppend:
    """An addition to a dataset's ledger. It is made only if the ledger's head is the `assumed` one.

    It is also refused if a query of this epoch has one of `new_hashes`. `head` is the head after the addition.
    """

    dataset_id: int
    assumed: Head
    seal: LedgerSeal
    entries: Sequence[LedgerEntry]
    answers: Sequence[AnswerRecord]
    worst_cases: Mapping[UUID, int]
    new_hashes: Sequence[str] = ()
    kept: Sequence[KeptParameters] = ()
    head: Head = field(init=False)

    def __post_init__(self) -> None:
        """Set `head` to the head after the last entry."""
        self.head = self.assumed
        if self.entries:
            last = self.entries[-1]
            self.head = replace(
                self.assumed, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units
            )

    def parameters(self, row_types: RowTypes, pieces: bytes | None) -> list[bytes]:
        """The parameters of EXTEND, in binary. The last one is the first of `pieces`, or has no rows."""
        dataset, head, was = self.dataset_id, self.head, self.assumed
        entries = [(dataset, *entry_row(each, self.seal)) for each in self.entries]
        answers = [
            (dataset, *answer_row(each if len(each.body) <= SHORT_BYTES else stored(each))) for each in self.answers
        ]
        costs = [(dataset, *each) for each in self.worst_cases.items()]
        return [
            _INT8(head.seq),
            head.hash,
            _INT8(head.worst_case_units),
            _INT4(dataset),
            _INT8(was.seq),
            was.hash,
            _INT8(was.fence),
            _INT4(was.epoch),
            _INT8(was.data_version),
            text_array(self.new_hashes),
            row_array(row_types["ledger"], _FIELDS["ledger"], entries),
            row_array(row_types["answers"], _FIELDS["answers"], answers),
            row_array(row_types["worst_cases"], _FIELDS["worst_cases"], costs),
            row_array(row_types["pieces"], _FIELDS["pieces"], ()) if pieces is None else pieces,
        ]

    def pieces(self, row_types: RowTypes, *, bytes_max: int = PIECES_BYTES_MAX) -> Iterator[bytes]:
        """Arrays of the rows of pieces. An array ends with the piece that brings it to `bytes_max` bytes.

        A piece over all slots is left out: it is a column of its entry.
        """
        rows: list[tuple[object, ...]] = []
        size = 0
        for entry in self.entries:
            for piece in entry.pieces:
                if piece.number == WHOLE:
                    continue
                if size >= bytes_max:
                    yield row_array(row_types["pieces"], _FIELDS["pieces"], rows)
                    rows, size = [], 0
                sealed = self.seal.close(entry.salt, piece)
                rows.append((self.dataset_id, entry.seq, piece.number, piece.digest, sealed))
                size += len(sealed)
        if rows:
            yield row_array(row_types["pieces"], _FIELDS["pieces"], rows)
