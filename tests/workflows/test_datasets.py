"""The genesis, by which a registration begins the ledger's chain."""

from dataclasses import replace
from typing import Any

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


def test_a_genesis_that_the_registration_does_not_give_is_a_finding() -> None:
    """The registration's own is none."""
    record = registered()
    assert check_registration(RegistrationHistory(record), []) == []
    assert check_registration(RegistrationHistory(replace(record, genesis=bytes(32))), []) != []


def test_a_declared_rows_capacity_is_part_of_the_genesis() -> None:
    """The genesis of a declared capacity differs from that without one."""
    genesis = {registered(**fields).genesis for fields in ({}, {"rows_capacity": 5}, {"rows_capacity": 6})}
    assert len(genesis) == 3
