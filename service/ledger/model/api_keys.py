"""API keys and tombstones: random secrets shown once, and keyed hashes kept.

A key reads `sparing_<id>_<secret>`. 256 random bits need no slow hash: HMAC-SHA256 under the pepper is as hard to
invert as the pepper is to guess, and takes a microsecond on the hot path.
"""

import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from service.query.keys import Key

_PREFIX: Final = "sparing"
_KEY_LENGTH_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Pepper:
    """The deployment's secret; without it neither keys nor tombstones can be checked or forged."""

    secret: bytes = field(repr=False)

    def key_hash(self, secret: str) -> bytes:
        """The keyed hash that is stored for an API key's secret part."""
        return self._mac(b"api-key", secret.encode())

    def sign_in_hash(self, token: str) -> bytes:
        """The keyed hash that is stored for the token of a browser's sign-in."""
        return self._mac(b"sign-in", token.encode())

    def attempt_hash(self, kind: str, attempt: str) -> bytes:
        """The secret for the purpose `kind` that belongs to a browser's attempt to sign in at a provider."""
        return self._mac(b"attempt", kind.encode() + b"\0" + attempt.encode())

    def identity_id(self, who: Sequence[str]) -> UUID:
        """The id of the principal for an identity provider's subject; it does not reveal the subject."""
        return UUID(bytes=self._mac(b"identity", json.dumps(who).encode())[:16], version=4)

    def tombstone(self, dataset_id: int, key: Key) -> bytes:
        """The keyed hash that is stored for an erased individual's key."""
        return self._mac(b"tombstone", dataset_id.to_bytes(8, "big") + key.encode())

    def tombstones(self, dataset_id: int, keys: Iterable[Key]) -> list[bytes]:
        """The tombstones of many keys, in half the time that single calls take."""
        begun, found = hmac.new(self.secret, b"tombstone\0" + dataset_id.to_bytes(8, "big"), "sha256"), []
        for key in keys:
            mac = begun.copy()
            mac.update(key.encode())
            found.append(mac.digest())
        return found

    def upload_digest(self, dataset_id: int, content: bytes) -> bytes:
        """The keyed digest that is stored of an upload; without the pepper no guess of a row can be tested by it."""
        return self._mac(b"upload", dataset_id.to_bytes(8, "big") + content)

    def witness_key(self) -> bytes:
        """The key that seals a witness kept where others can read it."""
        return self._mac(b"sealed witness", b"")

    def ledger_key(self) -> bytes:
        """The key that seals the pieces of ledger entries at rest."""
        return self._mac(b"ledger", b"")

    def database_proof(self, salt: bytes) -> bytes:
        """The proof, kept in a database, that the database was begun under this pepper."""
        return self._mac(b"database", salt)

    def cache_key(self) -> bytes:
        """The key that seals what replicas share."""
        return self._mac(b"cache", b"")

    def forwarding_proof(self, replica: UUID, challenge: bytes) -> bytes:
        """The replica's answer to a challenge from another process, which then sends it requests with API keys."""
        return self._mac(b"forwarding", replica.bytes + challenge)

    def request_seal(self, replica: UUID, request: bytes) -> bytes:
        """The seal of a request that one process sends to another; no challenge is ever answered with such a seal."""
        return self._mac(b"forwarded request", replica.bytes + request)

    def _mac(self, purpose: bytes, message: bytes) -> bytes:
        # `hmac.digest` would give up the GIL, however short the message.
        return hmac.new(self.secret, purpose + b"\0" + message, "sha256").digest()


def new_api_key(principal_id: UUID) -> tuple[str, str]:
    """(the key to show once, its secret part)."""
    secret = secrets.token_urlsafe(32)
    return f"{_PREFIX}_{principal_id.hex}_{secret}", secret


def split_api_key(api_key: str) -> tuple[UUID, str] | None:
    """(principal id, secret part), or None when the text is not an API key of the service."""
    parts = api_key.split("_", 2)
    if len(parts) != 3 or parts[0] != _PREFIX or len(api_key) > _KEY_LENGTH_MAX:
        return None
    try:
        principal_id = UUID(hex=parts[1])
    except ValueError:
        return None
    # UUID reads capitals, hyphens, braces and a prefix too: a key would have several spellings.
    return (principal_id, parts[2]) if principal_id.hex == parts[1] else None
