"""The chain: the fields that an entry's hash binds."""

import hashlib
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from service.ledger.model.ledger_entry import LedgerEntry, chain_hash, private_digest, public_facts
from service.ledger.model.rows import Head
from service.query.canonical import canonical_json
from tests.contracts.stores import priced_entry

HEAD = Head(seq=0, hash=bytes(32), epoch=1, fence=1, data_version=0, slots=4, worst_case_units=0, checkpoint_seq=0)
ENTRY = priced_entry(HEAD, {0: 5, 2: 7}, (3,))
BOUND = {each.name for each in fields(LedgerEntry)} - {"hash", "private_digest", "pieces", "values", "is_pruned"}


def _other(value: Any) -> Any:
    match value:
        case b"":
            return b"x"
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
        case UUID():
            return UUID(int=value.int ^ 1)
        case str():
            return value + "x"
        case int() | float():
            return value + 1
        case _:
            return value + timedelta(seconds=1)


@pytest.mark.parametrize("name", sorted(BOUND))
def test_a_hash_binds_every_field_and_the_row_before(name: str) -> None:
    """Values and pieces are bound by their digests."""
    changes: dict[str, Any] = {name: _other(getattr(ENTRY, name))}
    assert chain_hash(replace(ENTRY, **changes)) != ENTRY.hash


def test_an_entry_is_itself_only_with_its_own_pieces() -> None:
    """Other pieces have another digest."""
    other = priced_entry(HEAD, {0: 5, 2: 8}, (3,)).pieces
    assert ENTRY.is_itself
    assert not replace(ENTRY, values=bytes(16)).is_itself
    assert not replace(ENTRY, pieces=other).is_itself
    assert not replace(ENTRY, salt=bytes(32)).is_itself


def test_an_auditor_checks_the_chain_without_the_private_part() -> None:
    """The public facts, the private digest and the hash before give the hash."""
    public = hashlib.sha256(canonical_json(public_facts(ENTRY))).digest()
    given = b"sparing ledger 2\0" + ENTRY.previous_hash + public + ENTRY.private_digest
    assert hashlib.sha256(given).digest() == ENTRY.hash


def test_an_auditor_that_tries_every_number_of_people_finds_none() -> None:
    """With the salt the number is found by trying; without it no number gives the right digest."""

    def counts(salt: bytes) -> list[int]:
        tried = [replace(ENTRY, salt=salt, charged_count=n) for n in range(100)]
        return [n for n, each in enumerate(tried) if private_digest(each) == ENTRY.private_digest]

    assert counts(ENTRY.salt) == [2]
    assert counts(bytes(32)) == []
