"""An individual's own record: what was uploaded, as it is stored, and nothing of anyone else."""

from io import BytesIO
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.workflows.datasets import Registration
from service.workflows.model.errors import NotFound
from service.workflows.reads.own_record import ROWS_SHOWN_MAX
from service.workflows.replica import Replica
from tests.factories import individual_named, open_replica, upload
from tests.query.samples import TABLES

VALUES: dict[str, Any] = {
    "country": st.sampled_from(["NO", "SE", "DK"]),
    "grade": st.sampled_from([3, 1]),
    "area": st.integers(0, 4),
    "age": st.integers(0, 120),
    "level": st.integers(-2, 3),
    "spend": st.floats(0, 500),
    "balance": st.sampled_from([-0.7, -0.25, 0.0, 0.1]),
    "member": st.booleans(),
    "joined": st.sampled_from(["2020-01-01", "2020-01-04"]),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


@settings(max_examples=25, deadline=None)
@given(ROW)
def test_a_record_reads_back_as_it_was_uploaded(row: dict[str, Any]) -> None:
    """Every type of column, NULL too; reals to the step of their column."""
    with open_replica() as replica:
        registration = {"name": "wide", "guarantee": {"rho": "1"}, "capacity": 10, "tables": TABLES}
        replica.curators.register(Registration.model_validate(registration))
        lines = b"\n".join(
            orjson.dumps(each | {"person_id": key, "limit_rho": None}) for key, each in (("ann", row), ("bob", row))
        )
        replica.curators.append_rows("wide", "people", "application/x-ndjson", BytesIO(lines))
        own = individual_named(replica, "ann", "wide")
        told = replica.individuals.record(own, "wide")
    (read,) = told.tables["people"].rows
    assert set(read) == set(row)
    for name, value in row.items():
        assert read[name] == (pytest.approx(value, abs=1e-9) if isinstance(value, float) else value), name
    assert told.tables["visits"].count == 0


def test_events_are_counted_and_shown_up_to_a_bound(replica: Replica) -> None:
    """Those of others are not."""
    upload(replica, "visits", [("ann", n % 50) for n in range(ROWS_SHOWN_MAX + 5)] + [("bob", 7)])
    told = replica.individuals.record(individual_named(replica, "ann"), "survey")
    assert (told.tables["visits"].count, len(told.tables["visits"].rows)) == (ROWS_SHOWN_MAX + 5, ROWS_SHOWN_MAX)
    assert replica.individuals.record(individual_named(replica, "bob"), "survey").tables["visits"].rows == (
        {"item": 7},
    )


def test_another_dataset_and_an_erased_record_are_not_found(replica: Replica) -> None:
    """As for the account."""
    own = individual_named(replica, "ann")
    with pytest.raises(NotFound):
        replica.individuals.record(own, "other")
    replica.curators.erase_individual("survey", "ann")
    with pytest.raises(NotFound):
        replica.individuals.record(own, "survey")


def test_a_request_to_be_erased_is_made_once_and_ends_with_the_erasure(replica: Replica) -> None:
    """An individual that comes back has not asked; requests are listed in their order."""
    ann, eve = individual_named(replica, "ann"), individual_named(replica, "eve")
    assert not replica.individuals.is_erasure_asked(ann, "survey")
    for own in (eve, ann, eve):
        replica.individuals.ask_erasure(own, "survey")
    assert replica.curators.erasure_requests("survey") == ["eve", "ann"]
    acts = replica.curators.acts("survey", cursor=None, limit=10).items
    assert [(act.act, act.individual) for act in acts[:2]] == [("erasure_request", "ann"), ("erasure_request", "eve")]
    replica.curators.erase_individual("survey", "eve")
    assert replica.curators.erasure_requests("survey") == ["ann"]
    upload(replica, "people", [("eve", "NO", 71, 0)])
    assert replica.curators.erasure_requests("survey") == ["ann"]
    assert not replica.individuals.is_erasure_asked(individual_named(replica, "eve"), "survey")
    with pytest.raises(NotFound):
        replica.individuals.ask_erasure(ann, "other")
