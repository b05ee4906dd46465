"""The chain: what an entry's hash binds."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from service.workflows.ledger import EncodedCharges, LedgerEntry, chain_hash
from service.workflows.records import Head
from tests.contracts.stores import entry

HEAD = Head(seq=0, hash=bytes(32), epoch=1, fence=1, data_version=0, slots=4, worst_case_units=0, checkpoint_seq=0)
ENTRY = entry(HEAD, {0: 5, 2: 7}, (3,))


def _other(value: Any) -> Any:
    match value:
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


@pytest.mark.parametrize("name", [field.name for field in fields(LedgerEntry) if field.name != "hash"])
def test_a_hash_binds_every_field_and_the_row_before(name: str) -> None:
    """Change any field, or the row before, and the hash is another."""
    changes: dict[str, Any] = {name: _other(getattr(ENTRY, name))}
    assert chain_hash(replace(ENTRY, **changes)) != ENTRY.hash
