"""Digests of keys, for records that a test makes without an upload."""

from collections.abc import Iterable, Mapping

from service.arrays import Codes
from service.engine.key_digests import SALT_BYTES, key_digests
from service.query.columns import DIGEST
from service.query.keys import Key

SALT = bytes(SALT_BYTES)


def known_salt() -> bytes:
    """The salt of every dataset that a test registers with frozen choices."""
    return SALT


def with_digests(codes: Mapping[str, Codes], keys: Iterable[object]) -> dict[str, Codes]:
    """The codes (n,) of records by column, with the digests of their n keys."""
    return {**codes, DIGEST: key_digests(SALT, [Key(str(key)) for key in keys])}
