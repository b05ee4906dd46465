"""Keyed digests of individuals' keys and of rows, which decide random choices among individuals and their rows.

A digest depends on the key and on the dataset's salt alone. So nobody's choice depends on who else is there, on the
order of arrival or on a slot. The salt is stored with the dataset and in its backups, and is shown to nobody. With the
salt and a key one learns the choices for that individual, and nothing else.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from service.arrays import Codes, Words
from service.query.columns import DIGEST_CODING, codings_of
from service.query.keys import Key
from service.query.schema import Table

SALT_BYTES: Final = 32


def key_digests(salt: bytes, keys: Sequence[Key]) -> Words:
    """The digests (n,) of n keys, as codes of the column of digests: 64 bits of BLAKE2b (RFC 7693)."""
    begun = hashlib.blake2b(digest_size=8, key=salt, person=b"sparing key")
    digests = bytearray()
    for key in keys:
        digest = begun.copy()
        digest.update(key.encode())
        digests += digest.digest()
    # 2^64 - 1 stands for no digest; it is met once in 2^64 keys.
    return np.minimum(np.frombuffer(digests, dtype="<u8").astype(np.uint64), np.uint64(DIGEST_CODING.span))


def row_digests(salt: bytes, table: Table, keys: Sequence[Key], codes: Mapping[str, Codes]) -> Words:
    """The digests (n,) of n rows: of key and values that are not NULL, and of how many equal rows came before.

    Neither the order of the rows nor that of the columns matters. A column that is added later does not matter where it
    is NULL. `codes` has the upload's codes (n,) by column. The hash is the one of `key_digests`.
    """
    nulls = {name: coding.null_code for name, coding in codings_of(table.columns).items() if name in codes}
    names = sorted(codes)
    begun, seen = hashlib.blake2b(digest_size=8, key=salt, person=b"sparing row"), Counter[str]()
    digests = bytearray()
    for row, key in enumerate(keys):
        values = ((name, codes[name][row]) for name in names)
        known = [
            (name, value.tolist())
            for name, value in values
            if (value != nulls[name] if name in nulls else value[0])  # a vector begins with whether there is one
        ]
        content = json.dumps([key, known])
        seen[content] += 1
        digest = begun.copy()
        digest.update(f"{content} {seen[content]}".encode())
        digests += digest.digest()
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
