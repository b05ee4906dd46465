"""An individual's own record: what was uploaded, as it is stored, and nothing of anyone else."""

from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import NotFound
from service.reads.individual_record import ROWS_SHOWN_MAX, as_arrays
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from tests.factories import individual_named, open_replica, upload
from tests.query.samples import TABLES

VALUES: dict[str, Any] = {
    "country": st.sampled_from(["NO", "SE", "DK"]),
    "grade": st.sampled_from([3, 1]),
    "area": st.integers(0, 4),
    "age": st.integers(0, 120),
    "level": st.integers(-2, 3),
    "spend": st.decimals(0, 500, places=2).map(float),
    "balance": st.sampled_from([-0.7, -0.25, 0.0, 0.1]),
    "member": st.booleans(),
    "joined": st.sampled_from(["2020-01-01", "2020-01-04"]),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


@settings(max_examples=25, deadline=None)
@given(ROW)
def test_a_record_reads_back_as_it_was_uploaded(row: dict[str, Any]) -> None:
    """Every type of column, NULL too; decimals as they were written, 19.61 and not 19.610000000000014."""
    with open_replica() as replica:
        registration = {"name": "wide", "guarantee": {"rho": "1"}, "capacity": 10, "tables": TABLES}
        replica.curators.register(Registration.model_validate(registration))
        lines = b"\n".join(
            orjson.dumps(each | {"person_id": key, "limit_rho": None}) for key, each in (("ann", row), ("bob", row))
        )
        replica.curators.append_rows("wide", "people", "application/x-ndjson", BytesIO(lines))
        own = individual_named(replica, "ann", "wide")
        told = replica.individuals.record(own, "wide")
        assert replica.curators.record("wide", "ann") == told
    (read,) = told.tables["people"].rows
    assert set(read) == set(row)
    for name, value in row.items():
        assert read[name] == value, name
    assert told.tables["visits"].count == 0


PIXELS: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "image": {"type": "vector", "length": 3, "lower": -4, "upper": 250},
            "age": {"type": "integer", "lower": 0, "upper": 120},
        },
    },
    "visits": {"kind": "events", "key": "person_id", "columns": {"image": {"type": "integer", "lower": 0, "upper": 9}}}
    | {"rows_per_individual": 3, "rows_capacity": 30},
}


def test_vectors_are_arrays_of_their_own_and_as_long_for_everybody() -> None:
    """Not numbers where there is no vector; a column of another table with the name of a vector is none."""
    with open_replica() as replica:
        registration = {"name": "seen", "guarantee": {"rho": "1"}, "capacity": 10, "tables": PIXELS}
        replica.curators.register(Registration.model_validate(registration))
        rows = [("ann", [-4, 0, 250]), ("bob", None)]
        lines = b"\n".join(orjson.dumps({"person_id": key, "age": 7, "image": image}) for key, image in rows)
        replica.curators.append_rows("seen", "people", "application/x-ndjson", BytesIO(lines))
        event = orjson.dumps({"person_id": "ann", "image": 5})
        replica.curators.append_rows("seen", "visits", "application/x-ndjson", BytesIO(event))
        found = {}
        for key, _ in rows:
            own = individual_named(replica, key, "seen")
            record = replica.individuals.record(own, "seen")
            found[key] = as_arrays(record, replica.individuals.vector_lengths(own, "seen"))
    assert {name: found["ann"][name].tolist() for name in ("people.image",)} == {"people.image": [-4, 0, 250]}
    assert found["bob"]["people.image"].shape == (3,)
    assert np.isnan(found["bob"]["people.image"]).all()
    tables = orjson.loads(str(found["ann"]["record"]))["tables"]
    assert (tables["people"]["rows"], tables["visits"]["rows"]) == ([{"age": 7}], [{"image": 5}])


def test_events_are_counted_and_shown_up_to_a_bound(replica: Replica) -> None:
    """Those of others are not."""
    upload(replica, "visits", [("ann", n % 50) for n in range(ROWS_SHOWN_MAX + 5)] + [("bob", 7)])
    told = replica.individuals.record(individual_named(replica, "ann"), "survey")
    assert (told.tables["visits"].count, len(told.tables["visits"].rows)) == (ROWS_SHOWN_MAX + 5, ROWS_SHOWN_MAX)
    assert replica.individuals.record(individual_named(replica, "bob"), "survey").tables["visits"].rows == (
        {"item": 7},
    )


def test_another_dataset_and_an_erased_record_are_not_found(replica: Replica) -> None:
    """The account is not found either."""
    own = individual_named(replica, "ann")
    with pytest.raises(NotFound):
        replica.individuals.record(own, "other")
    replica.curators.erase_individual("survey", "ann")
    with pytest.raises(NotFound):
        replica.individuals.record(own, "survey")


def _asking(replica: Replica, limit: int = 100) -> list[str]:
    """The keys of those who ask to be erased, from all pages of so many requests."""
    keys: list[str] = []
    cursor: str | None = None
    while True:
        page = replica.curators.erasure_requests("survey", cursor=cursor, limit=limit)
        keys += page.items
        if page.next is None:
            return keys
        cursor = page.next


def test_a_request_to_be_erased_is_made_once_and_ends_with_the_erasure(replica: Replica) -> None:
    """An individual that comes back has not asked; requests are listed in their order."""
    ann, eve = individual_named(replica, "ann"), individual_named(replica, "eve")
    assert not replica.individuals.is_erasure_asked(ann, "survey")
    for own in (eve, ann, eve):
        replica.individuals.ask_erasure(own, "survey")
    assert _asking(replica) == ["eve", "ann"]
    acts = replica.curators.acts("survey", cursor=None, limit=10).items
    assert [(act.act, act.individual) for act in acts[:2]] == [("erasure_request", "ann"), ("erasure_request", "eve")]
    replica.curators.erase_individual("survey", "eve")
    assert _asking(replica) == _asking(replica, limit=1) == ["ann"]  # of single requests, the first page is empty
    upload(replica, "people", [("eve", "NO", 71, 0)])
    assert _asking(replica) == ["ann"]
    assert not replica.individuals.is_erasure_asked(individual_named(replica, "eve"), "survey")
    with pytest.raises(NotFound):
        replica.individuals.ask_erasure(ann, "other")
