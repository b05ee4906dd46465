"""Keys as Arrow holds them."""

from collections.abc import Iterator
from typing import Final, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.engine.ingest.rows import Keys

KEYS_AT_ONCE: Final = 2**12
"""So many become Python strings, and are freed again, in a millisecond each, during which the GIL is held."""


class ArrowKeys(Keys):
    """The keys of an upload, none missing: a list of a million strings would take four times the memory.

    Freeing it would hold the GIL for tens of milliseconds.
    """

    def __init__(self, keys: pa.ChunkedArray) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, int):
            key: str = self._keys[place].as_py()
            return key
        start, stop, step = place.indices(len(self))
        found: list[str] = self._keys.slice(start, max(stop - start, 0)).to_pylist()
        return found[::step]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), KEYS_AT_ONCE):
            yield from self[start : start + KEYS_AT_ONCE]

    def taken(self, rows: NDArray[np.int64]) -> "ArrowKeys":
        """The keys of some rows, in their order."""
        return ArrowKeys(self._keys.take(pa.array(rows)))

    def distinct(self) -> tuple["ArrowKeys", NDArray[np.int64]]:
        """Each key once, in the order of its first row, and the number of each row's (n,) among these."""
        encoded = self._keys.combine_chunks().dictionary_encode()
        return ArrowKeys(pa.chunked_array([encoded.dictionary])), np.asarray(encoded.indices).astype(np.int64)
