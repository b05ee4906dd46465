"""Keyed digests of individuals' keys."""

import hashlib

import numpy as np

from service.engine.key_digests import key_digests
from service.query.keys import Key
from tests.digests import SALT


def test_a_digest_is_of_the_key_and_the_salt() -> None:
    """The other keys and their order do not matter. It is BLAKE2b of 64 bits, the lowest byte first."""
    keys = ["ann", "bob", "é", ""]
    digests = dict(zip(keys, key_digests(SALT, list(map(Key, keys))).tolist(), strict=True))
    assert key_digests(SALT, [Key("é"), Key("ann")]).tolist() == [digests["é"], digests["ann"]]
    stated = hashlib.blake2b("é".encode(), digest_size=8, key=SALT, person=b"sparing key").digest()
    assert digests["é"] == int.from_bytes(stated, "little")
    assert not {*digests.values()} & {*key_digests(b"another salt", list(map(Key, keys))).tolist()}
    assert key_digests(SALT, []).dtype == np.uint64
