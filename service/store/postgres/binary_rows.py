"""Rows as Postgres takes them in binary: an array of a table's own row type, one parameter for all rows of a batch.

psycopg would be given a list for each column and would choose a type for every value in it, which costs more than all
else that a client does for a commit; and Postgres would unfold each of these lists on its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import call
from struct import Struct, calcsize, pack
from typing import Any, Final
from uuid import UUID

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
