"""The chain: the fields that an entry's hash binds."""

import hashlib
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from service.query.canonical_json import canonical_json
from service.workflows.model.ledger_entry import EncodedCharges, LedgerEntry, chain_hash, private_digest, public_facts
from service.workflows.model.rows import Head
from tests.contracts.stores import entry, second_entry

HEAD = Head(seq=0, hash=bytes(32), epoch=1, fence=1, data_version=0, slots=4, worst_case_units=0, checkpoint_seq=0)
FIRST_FORMAT = entry(HEAD, {0: 5, 2: 7}, (3,))
SECOND_FORMAT = second_entry(HEAD, {0: 5, 2: 7}, (3,))
BOUND_BY_FIRST = {each.name for each in fields(LedgerEntry)} - {
    *("hash", "mechanism", "salt", "pieces", "pieces_digest", "private_digest", "answer_digest"),
    *("acts", "acts_hash", "settled", "values_digest", "is_pruned"),
}
BOUND_BY_SECOND = {each.name for each in fields(LedgerEntry)} - {
    "hash",
    "charges",
    "private_digest",
    "pieces",
    "values",
    "first_digest",
    "is_pruned",
}


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
        case EncodedCharges():
            return replace(value, slots=_other(value.slots))
        case int() | float():
            return value + 1
        case _:
            return value + timedelta(seconds=1)


@pytest.mark.parametrize("name", sorted(BOUND_BY_FIRST))
def test_a_hash_of_format_1_binds_every_field_and_the_row_before(name: str) -> None:
    """A change of any field, or of the row before, changes the hash."""
    changes: dict[str, Any] = {name: _other(getattr(FIRST_FORMAT, name))}
    assert chain_hash(replace(FIRST_FORMAT, **changes)) != FIRST_FORMAT.hash


@pytest.mark.parametrize("name", sorted(BOUND_BY_SECOND))
def test_a_hash_of_format_2_binds_every_field_and_the_row_before(name: str) -> None:
    """Values and pieces are bound by their digests."""
    changes: dict[str, Any] = {name: _other(getattr(SECOND_FORMAT, name))}
    assert chain_hash(replace(SECOND_FORMAT, **changes)) != SECOND_FORMAT.hash


def test_an_entry_is_itself_only_with_its_own_pieces() -> None:
    """Other pieces have another digest."""
    other = second_entry(HEAD, {0: 5, 2: 8}, (3,)).pieces
    assert SECOND_FORMAT.is_itself
    assert not replace(SECOND_FORMAT, values=bytes(16)).is_itself
    assert not replace(SECOND_FORMAT, pieces=other).is_itself
    assert not replace(SECOND_FORMAT, salt=bytes(32)).is_itself
    assert FIRST_FORMAT.is_itself


def test_an_auditor_checks_the_chain_without_the_private_part() -> None:
    """The public facts, the private digest and the hash before give the hash."""
    public = hashlib.sha256(canonical_json(public_facts(SECOND_FORMAT))).digest()
    given = b"sparing ledger 2\0" + SECOND_FORMAT.previous_hash + public + SECOND_FORMAT.private_digest
    assert hashlib.sha256(given).digest() == SECOND_FORMAT.hash


def test_an_auditor_that_tries_every_number_of_people_finds_none() -> None:
    """With the salt the number is found by trying; without it no number gives the right digest.

    The same attack on a hash of format 1 recovers the charges, the only secret in it.
    """

    def counts(salt: bytes) -> list[int]:
        tried = [replace(SECOND_FORMAT, salt=salt, charged_count=n) for n in range(100)]
        return [n for n, each in enumerate(tried) if private_digest(each) == SECOND_FORMAT.private_digest]

    assert counts(SECOND_FORMAT.salt) == [2]
    assert counts(bytes(32)) == []
    guessed = [entry(HEAD, dict.fromkeys(range(n), 7), query_id=FIRST_FORMAT.query_id) for n in range(5)]
    assert [n for n, each in enumerate(guessed) if chain_hash(each) == guessed[3].hash] == [3]
