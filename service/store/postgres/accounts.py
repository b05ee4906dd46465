"""Individuals in Postgres: their accounts as they are read, new ones as COPY takes them, and keys to be looked up.

Most accounts have the dataset's own limit, so only the exceptions are listed. When the bytes of every account were
listed at every start, putting them together took Postgres twice as long as reading the accounts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from struct import Struct
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.ledger.model.rows import SlotsInUse
from service.query.keys import Key
from service.store.postgres.data_tables import COPIED_AT_ONCE, COPY_HEADER, COPY_TRAILER, unpacked

EXTENT: Final = """
SELECT budget_units, (SELECT max(slot) FROM individuals WHERE dataset_id = datasets.id) FROM datasets WHERE id = %s
"""
"""The usual limit and the last slot, which is NULL if no individual has a slot. Takes the dataset."""

SLOTS_AT_ONCE: Final = 2**22
"""Slots that one statement packs, in far less than the gibibyte that a value may have."""

EXCEPTIONS: Final = """
SELECT count(*),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE key IS NULL),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE paused),
    string_agg(int4send(slot), ''::bytea) FILTER (WHERE limit_units <> %s),
    string_agg(int8send(limit_units), ''::bytea) FILTER (WHERE limit_units <> %s)
FROM individuals WHERE dataset_id = %s AND slot >= %s AND slot < %s
"""
"""The number of accounts; the slots without a record, those paused, and those with another limit, with that limit.

Takes what `AccountRows.ranges` gives.
"""

SLOTS: Final = "SELECT slot FROM individuals WHERE dataset_id = %s"
"""The slots of all accounts. Takes the dataset."""

SOME: Final = """
SELECT string_agg(int4send(slot), ''::bytea), string_agg(int8send(limit_units), ''::bytea),
    string_agg(int4send((key IS NOT NULL)::integer), ''::bytea), string_agg(int4send(paused::integer), ''::bytea)
FROM unnest(%s::integer[], %s::integer[]) AS runs (first, last)
JOIN individuals ON dataset_id = %s AND slot >= first AND slot <= last
"""
"""The accounts of some runs of slots. Takes the first and the last slot of each run, and the dataset."""

_SLOT: Final = np.dtype(">i4")
_UNITS: Final = np.dtype(">i8")
Exceptions = tuple[int, bytes | None, bytes | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRows:
    """The accounts of one dataset, of which `EXTENT` has given the usual limit and the last slot."""

    dataset_id: int
    usual_units: int
    last: int | None

    @property
    def size(self) -> int:
        """The number of slots up to the last."""
        return 0 if self.last is None else self.last + 1

    @property
    def ranges(self) -> list[list[int]]:
        """The values that `EXCEPTIONS` takes, for each stretch of slots."""
        usual = self.usual_units
        starts = range(0, self.size, SLOTS_AT_ONCE)
        return [[usual, usual, self.dataset_id, start, start + SLOTS_AT_ONCE] for start in starts]

    def are_all(self, parts: Sequence[Exceptions]) -> bool:
        """Tell whether every slot up to the last has an account."""
        return sum(count for count, *_ in parts) == self.size

    def read(self, parts: Sequence[Exceptions], slots: Sequence[int] | None) -> SlotsInUse:
        """All accounts, from the exceptions in each stretch; `slots` has the slots of the accounts unless `are_all`."""
        gone, resting, others, limits = unpacked([part[1:] for part in parts], [_SLOT, _SLOT, _SLOT, _UNITS])
        limit = np.full(self.size, self.usual_units, dtype=np.int64)
        limit[others] = limits
        present = np.ones(self.size, dtype=np.bool_)
        present[gone] = False
        paused = np.zeros(self.size, dtype=np.bool_)
        paused[resting] = True
        if slots is None:
            return SlotsInUse(slots=np.arange(self.size), limits=limit, present=present, paused=paused)
        at = np.array(slots, dtype=np.int64)
        return SlotsInUse(slots=at, limits=limit[at], present=present[at], paused=paused[at])


def accounts_of(parts: Sequence[Sequence[bytes | None]]) -> SlotsInUse:
    """The accounts that several statements `SOME` gave."""
    slots, limits, present, paused = unpacked(parts, [_SLOT, _UNITS, _SLOT, _SLOT])
    return SlotsInUse(
        slots=slots.astype(np.int64),
        limits=limits.astype(np.int64),
        present=present.astype(np.bool_),
        paused=paused.astype(np.bool_),
    )


COPY_INDIVIDUALS: Final = "COPY individuals (dataset_id, slot, key, limit_units, plain) FROM STDIN (FORMAT BINARY)"
KEYS_AT_ONCE: Final = 2**18
"""The most keys in one statement, whose bytes are put together piece by piece."""
_KEYS_A_PIECE: Final = 2**12
SLOTS_BY_KEY: Final = """
SELECT string_agg(int4send(n::integer), ''::bytea), string_agg(int4send(slot), ''::bytea)
FROM json_array_elements_text(%s::json) WITH ORDINALITY AS asked (key_asked, n) JOIN individuals ON key = key_asked
WHERE dataset_id = %s
"""
"""The places from 1 of the keys that are found, and their slots. Takes what `keys_asked` gives, and the dataset."""

SLOTS_BY_TOMBSTONE: Final = SLOTS_BY_KEY.replace("key = key_asked", "tombstone = decode(key_asked, 'hex')")
SLOTS_BY_PLAIN_FORM: Final = SLOTS_BY_KEY.replace("key = key_asked", "plain = key_asked")
"""SLOTS_BY_KEY for plain forms. A plain form that several individuals have is found several times."""
_BEFORE: Final = Struct(">hiiiii")  # how many fields; then each with its length before it, here up to the key's
_AFTER: Final = Struct(">iqi")  # the limit, and the length of what comes last
_LENGTH: Final = Struct(">i")
_NULL: Final = -1


def copy_individuals(
    dataset_id: int,
    slots: NDArray[np.int64],
    keys: Sequence[Key],
    limits: NDArray[np.int64],
    plain_forms: Mapping[int, str],
    *,
    is_new: NDArray[np.bool_],
) -> Iterator[bytes]:
    """The data that COPY_INDIVIDUALS takes, of those of n individuals that are new."""
    formed = np.array(sorted(plain_forms), dtype=np.int64)
    yield COPY_HEADER
    for start in range(0, slots.size, COPIED_AT_ONCE):
        part = slice(start, start + COPIED_AT_ONCE)
        encoded = [key.encode() for key in keys[part]]
        rows = [
            b"%b%b%b" % (_BEFORE.pack(5, 4, dataset_id, 4, slot, len(key)), key, _AFTER.pack(8, limit, _NULL))
            for slot, key, limit in zip(slots[part].tolist(), encoded, limits[part].tolist(), strict=True)
        ]
        for place in formed[slice(*np.searchsorted(formed, [part.start, part.stop]))].tolist():
            form = plain_forms[place].encode()
            rows[place - start] = b"%b%b%b" % (rows[place - start][: -_LENGTH.size], _LENGTH.pack(len(form)), form)
        yield b"".join(compress(rows, is_new[part].tolist()))
    yield COPY_TRAILER


def keys_asked(keys: Sequence[str] | Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """The keys, or tombstones, in parts for several statements; each part with the place of its first key.

    They go as JSON: psycopg takes a hundred times as long over a list of strings as over one text.
    """
    for start in range(0, len(keys), KEYS_AT_ONCE):
        end = min(start + KEYS_AT_ONCE, len(keys))
        pieces = [_piece(keys[first : min(first + _KEYS_A_PIECE, end)]) for first in range(start, end, _KEYS_A_PIECE)]
        yield start, f"[{','.join(pieces)}]"


def _piece(keys: Sequence[str] | Sequence[bytes]) -> str:
    return orjson.dumps([key if isinstance(key, str) else key.hex() for key in keys]).decode()[1:-1]
