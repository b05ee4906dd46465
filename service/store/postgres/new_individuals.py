"""New individuals written to Postgres: the bytes of a binary COPY, and keys to be looked up."""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.store.postgres.column_types import COPY_HEADER, COPY_TRAILER, ROWS_AT_ONCE

COPY_INDIVIDUALS: Final = "COPY individuals (dataset_id, slot, key, limit_units) FROM STDIN (FORMAT BINARY)"
KEYS_AT_ONCE: Final = 2**18
"""Together in one statement, whose bytes are put together piece by piece."""
_KEYS_A_PIECE: Final = 2**12
SLOTS_BY_KEY: Final = """
SELECT string_agg(int4send(n::integer), ''::bytea), string_agg(int4send(slot), ''::bytea)
FROM json_array_elements_text(%s::json) WITH ORDINALITY AS asked (key_asked, n) JOIN individuals ON key = key_asked
WHERE dataset_id = %s
"""
"""The places from 1 of the keys that are found, and their slots. Takes what `keys_asked` gives, and the dataset."""

SLOTS_BY_TOMBSTONE: Final = SLOTS_BY_KEY.replace("key = key_asked", "tombstone = decode(key_asked, 'hex')")
_BEFORE: Final = Struct(">hiiiii")  # how many fields; then each with its length before it, here up to the key's
_AFTER: Final = Struct(">iq")


def copy_individuals(
    dataset_id: int,
    slots: NDArray[np.int64],
    keys: Sequence[str],
    limits: NDArray[np.int64],
    *,
    is_new: NDArray[np.bool_],
) -> Iterator[bytes]:
    """The data that COPY_INDIVIDUALS takes, of those of all (n,) that are new."""
    yield COPY_HEADER
    for start in range(0, slots.size, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        encoded = [key.encode() for key in keys[part]]
        rows = zip(slots[part].tolist(), encoded, limits[part].tolist(), is_new[part].tolist(), strict=True)
        yield b"".join(
            [
                b"%b%b%b" % (_BEFORE.pack(4, 4, dataset_id, 4, slot, len(key)), key, _AFTER.pack(8, limit))
                for slot, key, limit, is_wanted in rows
                if is_wanted
            ]
        )
    yield COPY_TRAILER


def keys_asked(keys: Sequence[str] | Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """The keys, or tombstones, for several statements, each with the place of its first.

    As JSON: psycopg takes a hundred times as long over a list of strings as over the text of all.
    """
    for start in range(0, len(keys), KEYS_AT_ONCE):
        end = min(start + KEYS_AT_ONCE, len(keys))
        pieces = [_piece(keys[first : min(first + _KEYS_A_PIECE, end)]) for first in range(start, end, _KEYS_A_PIECE)]
        yield start, f"[{','.join(pieces)}]"


def _piece(keys: Sequence[str] | Sequence[bytes]) -> str:
    return orjson.dumps([key if isinstance(key, str) else key.hex() for key in keys]).decode()[1:-1]
