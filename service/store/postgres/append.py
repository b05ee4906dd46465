"""An append to a ledger: entries, answers and worst cases on an assumed head, in one statement, all or nothing.

The statement locks the head's row and moves it, if everything that was assumed is so; all rows are joined to that one
row, so that there is nothing to insert when it did not move.

Rows as Postgres takes them in binary: an array of a table's own row type, one parameter for all rows of a batch.

psycopg would be given a list for each column and would choose a type for every value in it, which costs more than all
else that a client does for a commit; and Postgres would unfold each of these lists on its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import call
from struct import Struct, calcsize, pack
from typing import Any, Final
from uuid import UUID

from service.core.units import CHARGE_UNITS_MAX
from service.store.postgres.rows import (
    ANSWER_COLUMNS,
    ENTRY_COLUMNS,
    ENTRY_TYPES,
    PIECE_COLUMNS,
    LedgerSeal,
    answer_row,
    entry_row,
    piece_rows,
)
from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import AnswerRecord, Head

Field = Callable[[Any], bytes]
"""A value as a field of a row: its type's number, the same in every database, its length, its bytes."""

_ARRAY: Final = Struct("!iiIii").pack  # dimensions, whether there are NULLs, type of the elements, how many, the first
_NO_ARRAY: Final = Struct("!iiI").pack
_HEAD: Final = Struct("!Ii").pack  # type, bytes
_COUNT: Final = Struct("!i").pack
_HEAD_BYTES: Final = calcsize("!Ii")
_TYPE_BYTES: Final = calcsize("!I")
_NULL: Final = -1
_BYTEA, _TEXT, _TIMESTAMPTZ, _NUMERIC, _UUID = 17, 25, 1184, 1700, 2950
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NUMERIC_BASE: Final = 10_000


def _fixed(oid: int, form: str) -> Field:
    return partial(Struct(f"!Ii{form}").pack, oid, calcsize(f"!{form}"))


def _bytes(value: bytes) -> bytes:
    return _HEAD(_BYTEA, len(value)) + value


def _text(value: str) -> bytes:
    data = value.encode()
    return _HEAD(_TEXT, len(data)) + data


def _uuid(value: UUID) -> bytes:
    return _HEAD(_UUID, 16) + value.bytes


def _timestamp(value: datetime) -> bytes:
    return _MICROSECONDS((value - _EPOCH) // _MICROSECOND)


def _numeric(value: int) -> bytes:
    """A whole number that is not negative: how many digits to the base 10,000, the first one's weight, and they."""
    digits: list[int] = []
    while value > 0:
        value, digit = divmod(value, _NUMERIC_BASE)
        digits.append(digit)
    count = len(digits)
    return pack(f"!IihhHH{count}H", _NUMERIC, 8 + 2 * count, count, count - 1, 0, 0, *reversed(digits))


_MICROSECONDS: Final = _fixed(_TIMESTAMPTZ, "q")
_FIELDS: Final[Mapping[str, Field]] = {
    "bytea": _bytes,
    "int8": _fixed(20, "q"),
    "int2": _fixed(21, "h"),
    "int4": _fixed(23, "i"),
    "text": _text,
    "float8": _fixed(701, "d"),
    "timestamptz": _timestamp,
    "numeric": _numeric,
    "uuid": _uuid,
}
_NULLS: Final[Mapping[str, bytes]] = {
    f"{name}?": _HEAD(oid, _NULL) for name, oid in {"bytea": _BYTEA, "int2": 21, "int8": 20}.items()
}


def fields(names: str) -> tuple[Field, ...]:
    """Fields by the names of their types; one that may be NULL has a query mark."""
    return tuple(_nullable(name) if name in _NULLS else _FIELDS[name] for name in names.split())


def _nullable(name: str) -> Field:
    field, null = _FIELDS[name.removesuffix("?")], _NULLS[name]
    return lambda value: null if value is None else field(value)


def scalars(types: Sequence[Field], values: Sequence[object]) -> list[bytes]:
    """One parameter for each value; none is NULL."""
    return [field[_HEAD_BYTES:] for field in map(call, types, values)]


def text_array(values: Iterable[str]) -> bytes:
    """An array of texts."""
    parts = [_text(value)[_TYPE_BYTES:] for value in values]
    return _array(_TEXT, parts, len(parts))


def row_array(row_type: int, types: Sequence[Field], rows: Iterable[Sequence[object]]) -> bytes:
    """An array of rows; `row_type` is the number of the table's row type in this very database."""
    width = _COUNT(len(types))
    parts: list[bytes] = []
    count = 0
    for row in rows:
        data = list(map(call, types, row))
        parts += (_COUNT(sum(map(len, data), len(width))), width, *data)
        count += 1
    return _array(row_type, parts, count)


def _array(element: int, parts: Sequence[bytes], count: int) -> bytes:
    """An array of `count` elements, each with its length before it, from all their parts."""
    head = _ARRAY(1, 0, element, count, 1) if count > 0 else _NO_ARRAY(0, 0, element)
    return b"".join([head, *parts])


RowTypes = Mapping[str, int]
"""By table, the number that a database has given to the type of its rows."""

# What is sent, in the order of the statement, and the columns of each table in its own.
_HEAD_FIELDS: Final = fields("int8 bytea int8")
_ASSUMED_FIELDS: Final = fields("int4 int8 bytea int8 int4 int8")
_ENTRY_TYPES: Final = f"int4 {ENTRY_TYPES}"
_ANSWER_TYPES: Final = "int4 uuid text bytea int8 uuid bytea timestamptz"
_WORST_CASE_TYPES: Final = "int4 uuid int8"
_PIECE_TYPES: Final = "int4 int8 int4 bytea bytea"
_ENTRY_FIELDS: Final = fields(_ENTRY_TYPES)
_ANSWER_FIELDS: Final = fields(_ANSWER_TYPES)
_WORST_CASE_FIELDS: Final = fields(_WORST_CASE_TYPES)
_PIECE_FIELDS: Final = fields(_PIECE_TYPES)
PIECES_BYTES_MAX: Final = 2**19
"""So many bytes of pieces go with an extension, and with each statement that follows in its transaction.

Postgres copies an array of rows several times: what fits in a cache is stored in two thirds of the time.
"""


def _layout(columns: str, types: str) -> list[tuple[str, str]]:
    names = ["dataset_id", *columns.replace('"', "").split(", ")]
    return list(zip(names, types.replace("?", "").split(), strict=True))


LAYOUTS: Final = {
    "ledger": _layout(ENTRY_COLUMNS, _ENTRY_TYPES),
    "answers": _layout(ANSWER_COLUMNS, _ANSWER_TYPES),
    "worst_cases": _layout("principal_id, units", _WORST_CASE_TYPES),
    "pieces": _layout(PIECE_COLUMNS, _PIECE_TYPES),
}
"""The tables whose rows an extension holds: names and types of their columns, in the order in which a row has them."""

# The conditions see the database as it was when the statement began; whatever has come since has moved the head, at
# which Postgres looks again once it has the row's lock. A key that is taken cannot be taken twice: that the table of
# replies refuses. Behind its SELECT the array's length is hidden from the planner, which would otherwise plan anew for
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
    f"replies AS (INSERT INTO answers (dataset_id, {ANSWER_COLUMNS})"
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
    + ", ".join(f"(sent).{name}" for name in ("dataset_id", *PIECE_COLUMNS.split(", ")))
    + " FROM (SELECT unnest($1::pieces[]) AS sent) AS rows"
)
"""For the pieces that do not go with EXTEND, in its transaction. A function in FROM would be stored once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAppend:
    """An addition to a dataset's ledger, made if its head is the `assumed` one.

    And if no query of this epoch has one of `new_hashes`.
    """

    dataset_id: int
    assumed: Head
    seal: LedgerSeal
    entries: Sequence[LedgerEntry]
    answers: Sequence[AnswerRecord]
    worst_cases: Mapping[UUID, int]
    new_hashes: Sequence[str] = ()

    @property
    def head(self) -> Head:
        """The head that the ledger comes to."""
        if not self.entries:
            return self.assumed
        last = self.entries[-1]
        return replace(self.assumed, seq=last.seq, hash=last.hash, worst_case_units=last.worst_case_total_units)

    def parameters(self, row_types: RowTypes, pieces: bytes) -> list[bytes]:
        """The parameters of EXTEND, in binary, and the first of `pieces`."""
        dataset, head, was = self.dataset_id, self.head, self.assumed
        entries = [(dataset, *entry_row(each, self.seal)) for each in self.entries]
        costs = [(dataset, *each) for each in self.worst_cases.items()]
        return [
            *scalars(_HEAD_FIELDS, (head.seq, head.hash, head.worst_case_units)),
            *scalars(_ASSUMED_FIELDS, (dataset, was.seq, was.hash, was.fence, was.epoch, was.data_version)),
            text_array(self.new_hashes),
            row_array(row_types["ledger"], _ENTRY_FIELDS, entries),
            row_array(row_types["answers"], _ANSWER_FIELDS, [(dataset, *answer_row(each)) for each in self.answers]),
            row_array(row_types["worst_cases"], _WORST_CASE_FIELDS, costs),
            pieces,
        ]

    def pieces(self, row_types: RowTypes, *, bytes_max: int = PIECES_BYTES_MAX) -> Iterator[bytes]:
        """Arrays of the rows of pieces, at least one, each of `bytes_max` bytes and a piece at most."""
        rows: list[tuple[object, ...]] = []
        size = 0
        for entry in self.entries:
            for row in piece_rows(entry, self.seal):
                if size >= bytes_max:
                    yield row_array(row_types["pieces"], _PIECE_FIELDS, rows)
                    rows, size = [], 0
                rows.append((self.dataset_id, *row))
                size += len(row[-1])
        yield row_array(row_types["pieces"], _PIECE_FIELDS, rows)
