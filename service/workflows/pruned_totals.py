"""The digest by which a pruning binds everybody's totals."""

import hashlib
from collections.abc import Iterable
from struct import Struct
from typing import Final

from service.workflows.records import StoredPage

_TAG: Final = b"sparing totals 1\0"
_PAGE: Final = Struct("!qq")  # number, sequence


def totals_digest(salt: bytes, pages: Iterable[StoredPage]) -> bytes:
    """SHA-256 over a salt and the totals of pages, in order."""
    sha = hashlib.sha256(_TAG + salt)
    for page in pages:
        totals = page.totals
        sha.update(_PAGE.pack(page.number, page.seq) + totals.spent.astype(">i8").tobytes())
        sha.update(totals.charged.astype(">u4").tobytes() + totals.left_out.astype(">u4").tobytes())
    return sha.digest()
