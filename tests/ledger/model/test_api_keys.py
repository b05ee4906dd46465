"""API keys: 256 random bits each, kept as hashes that are keyed by the pepper and by their purpose."""

import base64
from uuid import UUID, uuid4

import numpy as np

from service.ledger.model.api_keys import Pepper, new_api_key, split_api_key
from service.query.keys import Key

COUNT = 2000
BITS = 256
SIGMAS = 6
"""How far the number of ones at any of the places may be from half: one run in a million is farther."""


def test_a_key_has_256_random_bits() -> None:
    """Every bit is one in half of the keys, no two keys are alike, and a key leads to its principal and secret."""
    holder = uuid4()
    made = [new_api_key(holder) for _ in range(COUNT)]
    drawn = [base64.urlsafe_b64decode(f"{secret}=") for _, secret in made]
    bits = np.unpackbits(np.frombuffer(b"".join(drawn), dtype=np.uint8)).reshape(COUNT, BITS)

    assert np.abs(bits.sum(axis=0) - COUNT / 2).max() <= SIGMAS * np.sqrt(COUNT) / 2
    assert len({*drawn}) == COUNT
    assert [split_api_key(key) for key, _ in made] == [(holder, secret) for _, secret in made]


def test_each_purpose_has_a_hash_of_its_own() -> None:
    """A hash that leaks from one place opens nothing in another, and none is found without the pepper."""
    pepper, other = Pepper(bytes(32)), Pepper(bytes(31) + b"\1")
    salt, number = bytes(16), 0

    def digests(of: Pepper) -> list[bytes]:
        return [
            of.key_hash(""),
            of.sign_in_hash(""),
            of.tombstone(number, Key("")),
            of.upload_digest(number, b""),
            of.witness_key(),
            of.ledger_key(),
            of.cache_key(),
            of.database_proof(salt),
            of.forwarding_proof(UUID(int=0), salt),
            of.request_seal(UUID(int=0), salt),
        ]

    assert len({*digests(pepper), *digests(other)}) == 2 * len(digests(pepper))
    assert {len(each) for each in digests(pepper)} == {BITS // 8}
    assert pepper.tombstones(7, [Key("ann"), Key("bo")]) == [
        pepper.tombstone(7, Key("ann")),
        pepper.tombstone(7, Key("bo")),
    ]
    assert "00" not in repr(Pepper(bytes(32)))
