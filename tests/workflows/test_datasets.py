"""The genesis, by which a registration begins the ledger's chain."""

from dataclasses import replace
from typing import Any

import pytest

from service.workflows.datasets import Registration, register
from service.workflows.maintenance.verify.registration import check_registration
from service.workflows.model.rows import DatasetRecord, RegistrationHistory
from tests.memory.store import MemoryStore

PEOPLE = {
    "kind": "individuals",
    "key": "person_id",
    "columns": {
        "country": {"type": "category", "categories": ["NO", "SE"]},
        "age": {"type": "integer", "lower": 0, "upper": 120},
    },
}
VISITS = {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": 50}}}


def registered(**fields: Any) -> DatasetRecord:
    """The registration of a dataset whose table of visits also declares `fields`."""
    tables = {"people": PEOPLE, "visits": VISITS | fields}
    body = {"name": "survey", "guarantee": {"rho": "0.5"}, "capacity": 100_000, "tables": tables}
    return register(Registration.model_validate(body), MemoryStore())


def test_a_registration_has_the_genesis_that_it_always_had() -> None:
    """A later optional field that is not declared does not change the genesis."""
    assert registered().genesis.hex() == "b66c405acf4e7cd7bea93338067e78f06bd475e11dbe8d58a1e621be1c887b35"


@pytest.mark.slow
def test_a_registration_of_before_accounting_was_stated_is_verified_by_its_own_genesis() -> None:
    """The genesis of that version is accepted; a genesis of neither version is a finding."""
    before = "4713b8b1e3b323adda02a1b8f704838a8220756dd91fe44581c882eeb34af181"
    record = registered()
    assert check_registration(RegistrationHistory(record), []) == []
    assert check_registration(RegistrationHistory(replace(record, genesis=bytes.fromhex(before))), []) == []
    assert check_registration(RegistrationHistory(replace(record, genesis=bytes(32))), []) != []


def test_a_declared_rows_capacity_is_part_of_the_genesis() -> None:
    """The genesis of a declared capacity differs from that without one."""
    genesis = {registered(**fields).genesis for fields in ({}, {"rows_capacity": 5}, {"rows_capacity": 6})}
    assert len(genesis) == 3
