"""Values sealed for an untrusted key-value store: unreadable, unforgeable, and bound to their names.

AES-256-GCM, under a key of its own for every value: it is derived from the cache's key and 32 random bytes, so that
no number of values can make a nonce repeat. A value is padded to a power of two, because its length would tell how many
people a query concerned.
"""

import hashlib
import hmac
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

STAMP_BYTES: Final = 32
"""Of the random bytes with which a sealed value begins: no two values ever begin with the same."""
_TAG_BYTES: Final = 16
_NONCE: Final = bytes(12)  # one key, one value
_LENGTH_BYTES: Final = 4
_BYTES_MIN: Final = 512
_FORMAT: Final = b"sparing cache 1\0"


class Seal:
    """Seals and opens, under one key."""

    def __init__(self, key: bytes) -> None:
        """`key` is 32 secret bytes."""
        self._key = key

    def name(self, label: bytes) -> str:
        """The name of a label where others can read it."""
        return hmac.digest(self._key, b"name\0" + label, hashlib.sha256).hex()[:32]

    def close(self, label: bytes, value: bytes) -> bytes:
        """Seal a value, bound to its label."""
        salt = secrets.token_bytes(STAMP_BYTES)
        framed = len(value).to_bytes(_LENGTH_BYTES, "big") + value
        padded = framed.ljust(max(_BYTES_MIN, 1 << (len(framed) - 1).bit_length()), b"\0")
        return salt + self._cipher(salt).encrypt(_NONCE, padded, _FORMAT + label)

    def open(self, label: bytes, sealed: object) -> bytes | None:
        """The value, if this is what `close` made for this label."""
        if not isinstance(sealed, bytes) or len(sealed) < STAMP_BYTES + _TAG_BYTES + _BYTES_MIN:
            return None
        salt, rest = sealed[:STAMP_BYTES], sealed[STAMP_BYTES:]
        try:
            padded = self._cipher(salt).decrypt(_NONCE, rest, _FORMAT + label)
        except InvalidTag:
            return None
        return padded[_LENGTH_BYTES : _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES], "big")]

    @staticmethod
    def stamp(held: object) -> bytes:
        """How a value begins, which may be anything: a caller that knows it can say which value is to be replaced."""
        return held[:STAMP_BYTES] if isinstance(held, bytes) else b""

    def _cipher(self, salt: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._key, b"value\0" + salt, hashlib.sha256))
