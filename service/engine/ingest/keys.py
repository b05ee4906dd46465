"""The keys of an upload, which Arrow holds in the form in which they are compared."""

from collections.abc import Iterator
from typing import Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.arrays import Integers
from service.engine.ingest.columns import Report
from service.engine.ingest.rows import Keys
from service.query.keys import Key, KeyComparison, UnfitKey, compared, plain

KEYS_AT_ONCE: Final = 2**12
"""The most keys that become Python strings at once: making and freeing them holds the GIL for a millisecond each."""
_PLAIN: Final = "^(?:0|[1-9][0-9]*|[a-z_][a-z0-9_.@+-]*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
_HEX_CHARACTERS: Final = 32
"""The length of a UUID without hyphens; the plain form of a UUID has hyphens."""


class ArrowKeys(Keys):
    """The keys of an upload, none missing. A list of a million strings would take four times the memory.

    Freeing such a list would hold the GIL for tens of milliseconds.
    """

    def __init__(self, keys: pa.ChunkedArray) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> Key: ...
    @overload
    def __getitem__(self, place: slice) -> list[Key]: ...
    def __getitem__(self, place: int | slice) -> Key | list[Key]:
        if isinstance(place, int):
            key: Key = self._keys[place].as_py()
            return key
        start, stop, step = place.indices(len(self))
        found: list[Key] = self._keys.slice(start, max(stop - start, 0)).to_pylist()
        return found[::step]

    def __iter__(self) -> Iterator[Key]:
        for start in range(0, len(self), KEYS_AT_ONCE):
            yield from self[start : start + KEYS_AT_ONCE]

    def in_one(self) -> pa.Array:
        """All keys in one array."""
        return pa.concat_arrays([pa.array([], pa.string()), *self._keys.chunks])

    def taken(self, rows: Integers) -> "ArrowKeys":
        """The keys of some rows, in their order."""
        return ArrowKeys(self._keys.take(pa.array(rows)))

    def distinct(self) -> tuple["ArrowKeys", Integers]:
        """Each key once, in the order of its first row; and for each row (n,) the number of its key among these."""
        encoded = self._keys.combine_chunks().dictionary_encode()
        return ArrowKeys(pa.chunked_array([encoded.dictionary])), np.asarray(encoded.indices).astype(np.int64)

    def plain_forms(self) -> dict[int, str]:
        """By place, the plain form of each key that differs from its plain form. Arrow finds most keys to be plain."""
        is_plain = pc.and_(
            pc.match_substring_regex(self._keys, _PLAIN), pc.not_equal(pc.utf8_length(self._keys), _HEX_CHARACTERS)
        )
        places = np.flatnonzero(~np.asarray(is_plain, dtype=np.bool_))
        forms = zip(places.tolist(), self.taken(places), strict=True)
        return {place: form for place, key in forms if (form := plain(key)) != key}


def compared_keys(texts: pa.Array, comparison: KeyComparison, report: Report) -> pa.Array:
    """The keys (n,) that `texts` (n,) stand for. A text that can be no key is passed to `report` and stays as it is."""
    if comparison == "exact":
        return texts
    encoded = texts.dictionary_encode()
    keys, faults = [], dict[str, list[int]]()
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            keys.append(str(compared(text, comparison)))
        except UnfitKey as unfit:
            keys.append(text)
            if text:
                faults.setdefault(str(unfit), []).append(number)
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for message, unfit_numbers in faults.items():
        report(np.isin(numbers, unfit_numbers), message)
    return pa.array(keys, pa.string()).take(encoded.indices)
