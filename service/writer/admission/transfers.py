"""The memory of uploads and exports, all together: a part of its own, so that queries never wait for it.

Were it shared with queries, an analyst would see by a refusal how large an upload is and how long it takes, and so how
many individuals there are. A principal may take as much as it leaves for all others, as with queries.
"""

from typing import Final

from service.writer.admission.admission import MemoryBound
from service.writer.admission.spools import SpoolBounds, Spools

RECEIVING_BYTES: Final = 2**20
"""The memory of an upload whose body is under way."""
EXPORT_BYTES: Final = 2**26
"""The memory of an export, until its response has left."""
_TEXT_BYTES: Final = 2**27
_BYTES_OF_TEXT_BYTE: Final = 40
"""A row of two bytes of CSV takes eighty of memory."""


class Transfers(MemoryBound):
    """Counts what uploads and exports hold. Thread-safe."""

    def __init__(self, bytes_max: int, spools: SpoolBounds | None = None) -> None:
        """Half of `bytes_max` is the most of one principal; `spools` bounds what is on disk."""
        super().__init__(bytes_max)
        self.spools = Spools(spools)

    @property
    def export_bytes(self) -> int:
        """The bytes of one export: there is room for one under any bound."""
        return min(EXPORT_BYTES, self.bytes_max // 2)

    def reading_bytes(self, *, body_bytes: int, is_text: bool) -> int:
        """The most memory that the upload of such a body may take while it is read: of text, by its length."""
        most = self.bytes_max * 9 // 32  # so that two principals have room for one each, and for small ones beside
        return min(most, _TEXT_BYTES + _BYTES_OF_TEXT_BYTE * body_bytes) if is_text else most
