"""The memory of all uploads and exports: a separate part, so that queries never wait for it.

If queries shared this memory, their refusals would show an analyst how large an upload is and how long it takes, and so
how many individuals there are. As with queries, a principal may take as much as it leaves for all others.
"""

from typing import Final

from service.writer.admission.admission import MemoryBound
from service.writer.admission.spools import SpoolBounds, Spools

RECEIVING_BYTES: Final = 2**20
"""The memory that an upload holds while its body is coming."""
EXPORT_BYTES: Final = 2**26
"""The memory that an export holds until its response has left."""
_TEXT_BYTES: Final = 2**27
_BYTES_OF_TEXT_BYTE: Final = 40
"""The bytes of memory for each byte of text: a CSV row of two bytes takes eighty."""


class Transfers(MemoryBound):
    """Counts what uploads and exports hold. Thread-safe."""

    def __init__(self, bytes_max: int, spools: SpoolBounds | None = None) -> None:
        """Half of `bytes_max` is the most of one principal; `spools` bounds what is on disk."""
        super().__init__(bytes_max)
        self.spools = Spools(spools)

    @property
    def export_bytes(self) -> int:
        """The memory that one export holds: at most half of the bound, so that there can be room for it."""
        return min(EXPORT_BYTES, self.bytes_max // 2)

    def reading_bytes(self, *, body_bytes: int, is_text: bool) -> int:
        """The most memory that reading an upload may take; for text, this depends on the length of the body."""
        most = self.bytes_max * 9 // 32  # so that two principals have room for one each, and for small ones beside
        return min(most, _TEXT_BYTES + _BYTES_OF_TEXT_BYTE * body_bytes) if is_text else most
