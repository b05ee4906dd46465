"""Pieces of ledger entries sealed at rest: a reader of the database or its backups reads no norms.

AES-256-GCM under a key for each entry, which is derived from the ledger's key and the entry's random salt: no two
entries share a key, also after a restore. The nonce is the piece's revision, which grows when it is written anew, and
its number.
"""

import hashlib
from struct import Struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.workflows.model.pieces import Piece

__all__ = ["SEAL_BYTES", "LedgerSeal", "Unreadable"]

_TAG: Final = b"sparing pieces"  # at most 16 bytes: what the derivation is for
_REVISION: Final = Struct("!I")
_NONCE: Final = Struct("!Iq")
_TAG_BYTES: Final = 16
SEAL_BYTES: Final = _REVISION.size + _TAG_BYTES
"""By so much a sealed piece is longer than its content."""


class Unreadable(ValueError):
    """A sealed piece was changed, or sealed under another pepper."""


class LedgerSeal:
    """Seals pieces and opens them, under one key."""

    def __init__(self, key: bytes) -> None:
        """`key` is 32 secret bytes, never in the database."""
        self._key = key

    def close(self, salt: bytes, piece: Piece, *, revision: int = 0) -> bytes:
        """The piece of an entry as it is stored. No two contents may have one salt, number and revision."""
        nonce = _NONCE.pack(revision, piece.number)
        return _REVISION.pack(revision) + self._cipher(salt).encrypt(nonce, piece.content, None)

    def open(self, salt: bytes, number: int, sealed: bytes) -> Piece:
        """The piece, with its digest. Raises Unreadable."""
        revision = sealed[: _REVISION.size]
        try:
            nonce = _NONCE.pack(int.from_bytes(revision, "big"), number)
            content = self._cipher(salt).decrypt(nonce, sealed[_REVISION.size :], None)
        except InvalidTag as refusal:
            raise Unreadable("a sealed piece was changed, or sealed under another pepper") from refusal
        return Piece.of(salt, number, content)

    def _cipher(self, salt: bytes) -> AESGCM:
        # A keyed hash of blake2b's own; `hmac` would give up the GIL.
        return AESGCM(hashlib.blake2b(salt, digest_size=32, key=self._key, person=_TAG).digest())
