"""The genesis, by which a registration begins the ledger's chain."""

from typing import Any

import pytest

from service.ledger.model.errors import InvalidRequest
from service.ledger.model.rows import DatasetRecord
from service.workflows.datasets import Registration, register
from service.workflows.registration_changes import Extension
from service.workflows.replica import ReplicaOptions
from tests.digests import SALT
from tests.factories import open_replica
from tests.memory.cache import MemoryWitness
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
    return register(Registration.model_validate(body), MemoryStore(), MemoryWitness(), salt=SALT)


def test_a_registration_has_the_genesis_that_it_always_had() -> None:
    """A later optional field that is not declared does not change the genesis."""
    assert registered().genesis.hex() == "b66c405acf4e7cd7bea93338067e78f06bd475e11dbe8d58a1e621be1c887b35"


def test_a_declared_rows_capacity_is_part_of_the_genesis() -> None:
    """The genesis of a declared capacity differs from that without one."""
    genesis = {registered(**fields).genesis for fields in ({}, {"rows_capacity": 5}, {"rows_capacity": 6})}
    assert len(genesis) == 3


def with_vectors(*lengths: int, capacity: int = 1000) -> dict[str, Any]:
    """The body of a registration with columns of vectors of two bytes a number."""
    columns = {
        f"v{place}": {"type": "vector", "length": length, "lower": 0, "upper": 1000}
        for place, length in enumerate(lengths)
    }
    tables = {"people": PEOPLE | {"columns": columns}}
    return {"name": "survey", "guarantee": {"rho": "0.5"}, "capacity": capacity, "tables": tables}


def test_vectors_that_could_take_too_much_are_refused_by_column() -> None:
    """Capacity times length times bytes, of all columns together; the one that goes beyond is named."""
    body = Registration.model_validate(with_vectors(10, 20))
    store = MemoryStore()
    with pytest.raises(InvalidRequest) as refused:
        register(body, store, MemoryWitness(), salt=SALT, vector_bytes_max=59_999)
    (error,) = refused.value.errors
    assert error.field == "tables.people.columns.v1"
    assert "could take 60000 bytes, of at most 59999" in error.message
    assert store.datasets() == []
    register(body, store, MemoryWitness(), salt=SALT, vector_bytes_max=60_000)
    with pytest.raises(InvalidRequest):
        register(
            Registration.model_validate(with_vectors(2**16, capacity=2**16)), MemoryStore(), MemoryWitness(), salt=SALT
        )


def test_an_extension_cannot_add_vectors_beyond_the_bound() -> None:
    """By its own tables or by a larger capacity; where the bound was lowered since, what is there already may stay."""
    store = MemoryStore()
    with open_replica(store, options=ReplicaOptions(vector_bytes_max=40_000)) as replica:
        replica.curators.register(Registration.model_validate(with_vectors(10)))
        for extension in ({"capacity": 2001}, {"tables": with_vectors(10, 11)["tables"]}):
            with pytest.raises(InvalidRequest, match="could take"):
                replica.curators.extend("survey", Extension.model_validate(extension))
        assert replica.curators.extend("survey", Extension.model_validate({"capacity": 2000})).version == 2
    with open_replica(store, options=ReplicaOptions(vector_bytes_max=1)) as replica:
        columns = with_vectors(10)["tables"]["people"]["columns"] | {"age": PEOPLE["columns"]["age"]}  # type: ignore[index]
        more = Extension.model_validate({"tables": {"people": PEOPLE | {"columns": columns}}})
        assert replica.curators.extend("survey", more).version == 3
