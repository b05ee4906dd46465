"""The bounds of an upload: on its bytes after decoding, and on the memory for the parts of its rows that are kept.

A small body of Parquet or Arrow may stand for any number of rows and bytes. The sizes that a body states are checked
before it is decoded. The sizes that come out are counted piece by piece, before a dictionary or a run is expanded.
"""

from dataclasses import dataclass
from typing import Final

from service.engine.ingest.problems import RowsProblem
from service.query.columns import codings_of
from service.query.schema import Table
from service.query.vector_columns import vectors_of

PIECE_ROWS: Final = 2**16
PIECE_BYTES: Final = 2**23
"""Rows are worked on in pieces of at most PIECE_ROWS rows and PIECE_BYTES bytes; a single row may take more."""
KEYS_BYTES_MAX: Final = 2**31 - 1
"""The most bytes of an upload's keys: they end up in one array, whose offsets have 32 bits."""

_STEADY_BYTES: Final = 2**26  # of blocks and pieces under way, whatever is kept
_ROW_BYTES: Final = 72  # of a row, beside twice what is kept of it: numbers of its key and of its contents, sorted
_OFFSET_BYTES: Final = 4
_LIMIT_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadBounds:
    """The most bytes that an upload may have once decoded, and the most memory that reading it may take."""

    decoded_bytes: int = 2**30
    memory_bytes: int = 2**30


BOUNDS: Final = UploadBounds()
"""The bounds of an upload for which no others are stated."""


class Counter:
    """Counts what is about to be decoded, and may refuse it by a RowsProblem; this one takes any number."""

    def announce(self, rows: int, decoded_bytes: int = 0) -> None:
        """Note that these many rows come next, of these many bytes where that is known."""

    def decode(self, decoded_bytes: int) -> None:
        """Note that these many bytes are about to be expanded."""


class UploadSize(Counter):
    """Counts one upload. Every refusal says what is too large, and what the most is."""

    def __init__(self, table: Table, bounds: UploadBounds) -> None:
        codings, vectors = codings_of(table.columns), vectors_of(table.columns)
        kept = _OFFSET_BYTES + sum(coding.dtype.itemsize for coding in codings.values())
        kept += sum(coding.row_bytes for coding in vectors.values())
        self._row_bytes = 2 * (kept + _LIMIT_BYTES * (len(table.columns) - len(codings) - len(vectors))) + _ROW_BYTES
        self._bounds = bounds
        self.rows = self.key_bytes = self.decoded_bytes = 0

    def announce(self, rows: int, decoded_bytes: int = 0) -> None:
        """Check rows and bytes before they are decoded. Raises RowsProblem if they are too many for one upload."""
        self._check_rows(self.rows + rows)
        self._check_decoded(self.decoded_bytes + decoded_bytes)

    def decode(self, decoded_bytes: int) -> None:
        """Count bytes that are about to be expanded. Raises RowsProblem if they are too many."""
        self.decoded_bytes += decoded_bytes
        self._check_decoded(self.decoded_bytes)

    def keep(self, rows: int, key_bytes: int) -> None:
        """Count rows that are kept, and the bytes of their keys. Raises RowsProblem if they are too many."""
        self.rows += rows
        self.key_bytes += key_bytes
        self._check_rows(self.rows)
        if self.key_bytes > KEYS_BYTES_MAX:
            raise RowsProblem.of(f"the keys take more than {KEYS_BYTES_MAX} bytes: split the upload")

    def _check_rows(self, rows: int) -> None:
        needed = rows * self._row_bytes + 2 * self.key_bytes
        allowed = max(self._bounds.memory_bytes - _STEADY_BYTES, 0)
        if needed > allowed:
            raise RowsProblem.of(
                f"{rows} rows or more, with keys of {self.key_bytes} bytes so far, need {needed} bytes of memory,"
                f" and one upload has {allowed}: split it"
            )

    def _check_decoded(self, decoded_bytes: int) -> None:
        if decoded_bytes > self._bounds.decoded_bytes:
            raise RowsProblem.of(
                f"the values take {decoded_bytes} bytes or more once decoded,"
                f" and an upload may take {self._bounds.decoded_bytes}: split it"
            )
