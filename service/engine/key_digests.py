"""Keyed digests of individuals' keys: what random choices among individuals and their rows are made by.

A digest depends on the key and on the dataset's salt alone, so that nobody's choice depends on who else is there, on
the order of arrival or on a slot. The salt lies beside the dataset and in its backups, and is shown to nobody: who has
it and a key knows the choices for that individual, and nothing else.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.query.columns import DIGEST_CODING

SALT_BYTES: Final = 32


def key_digests(salt: bytes, keys: Sequence[str]) -> NDArray[np.uint64]:
    """The digests (n,) of some keys (n of them), as codes of the column of digests: 64 bits of BLAKE2b (RFC 7693)."""
    begun = hashlib.blake2b(digest_size=8, key=salt, person=b"sparing key")
    digests = bytearray()
    for key in keys:
        digest = begun.copy()
        digest.update(key.encode())
        digests += digest.digest()
    # 2^64 - 1 stands for no digest; it is met once in 2^64 keys.
    return np.minimum(np.frombuffer(digests, dtype="<u8").astype(np.uint64), np.uint64(DIGEST_CODING.span))
