"""`sparing.dummy_data` is taken by the service as it is, and by the fake: nothing is clipped, unknown or missing."""

import io
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import InvalidRequest
from service.query.names import fault_of_name
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from sparing import count, dummy_data
from sparing.testing import FakeService
from tests.api.twins import quiet_entropy
from tests.api.world import empty_replica

NUMBERS = itertools.count()
START = datetime(1900, 1, 1, tzinfo=UTC)
NAMES = st.sampled_from(["a", "b1", "c_d", "e", "f"])


@pytest.fixture(scope="module")
def replica() -> Iterator[Replica]:
    """A service in memory, without a dataset."""
    made = empty_replica(entropy=quiet_entropy())
    yield made
    made.close()


def bounds(values: st.SearchStrategy[Any], kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """A column between two of the values."""
    pairs = st.lists(values, min_size=2, max_size=2, unique=True).map(sorted)
    return pairs.map(lambda pair: {"type": kind, "lower": pair[0], "upper": pair[1]})


def columns() -> st.SearchStrategy[dict[str, Any]]:
    """A column of any kind of data."""
    whole = st.integers(-(2**53) + 1, 2**53 - 1)
    real = st.floats(-1e30, 1e30).filter(lambda number: number == 0 or abs(number) > 1e-29)
    days = st.integers(0, 90_000).map(lambda days: (START + timedelta(days=days)).date().isoformat())
    seconds = st.integers(0, 2**33).map(lambda s: f"{(START + timedelta(seconds=s)).replace(tzinfo=None).isoformat()}Z")
    texts = st.text(max_size=5).filter(lambda text: text == "" or fault_of_name(text.strip(" "), 5) is None)
    categories = st.lists(texts | st.integers(-9, 9), min_size=1, max_size=5, unique_by=str)
    return st.one_of(
        st.just({"type": "boolean"}),
        st.integers(1, 2**31).map(lambda size: {"type": "category", "size": size}),
        categories.map(lambda listed: {"type": "category", "categories": listed}),
        bounds(whole, "integer"),
        bounds(real, "real"),
        bounds(days, "date"),
        bounds(seconds, "datetime"),
    )


def vectors() -> st.SearchStrategy[dict[str, Any]]:
    """A column of vectors, whose numbers take one byte or two."""
    bounds = st.tuples(st.integers(-300, 300), st.integers(1, 300))
    return st.builds(
        lambda length, pair: {"type": "vector", "length": length, "lower": pair[0], "upper": sum(pair)},
        st.integers(1, 4),
        bounds,
    )


def tables() -> st.SearchStrategy[dict[str, Any]]:
    """Individuals with or without limits, and up to two tables of events."""
    data = st.dictionaries(NAMES, columns(), max_size=4)
    own = st.dictionaries(NAMES, columns() | vectors(), max_size=4)
    limits = st.sampled_from([{}, {"limit": {"type": "budget"}}])
    people = st.builds(
        lambda data, limit: {"kind": "individuals", "key": "id", "columns": {**data, **limit}}, own, limits
    )
    rows = st.fixed_dictionaries(
        {}, optional={"rows_per_individual": st.integers(1, 5), "rows_capacity": st.integers(1, 40)}
    )
    events = st.builds(lambda data, rows: {"kind": "events", "key": "who", "columns": data, **rows}, data, rows)
    return st.builds(
        lambda people, events: {**events, "people": people},
        people,
        st.dictionaries(st.sampled_from(["buys", "visits"]), events, max_size=2),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables=tables(), seed=st.integers(0, 2**64))
def test_an_upload_keeps_every_value(replica: Replica, tables: dict[str, Any], seed: int) -> None:
    """The rows of any schema are stored, and no value is clipped, outside its domain or NULL."""
    name = f"made-up-{next(NUMBERS)}"
    registration = {"name": name, "guarantee": {"rho": "1"}, "capacity": 20, "tables": tables}
    replica.curators.register(Registration.model_validate(registration))

    data = dummy_data(tables, individuals=20, seed=seed)

    for table, rows in data.items():
        body = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
        report = replica.curators.append_rows(name, table, "application/x-ndjson", body)
        assert report.rows == len(rows)
        assert not any([*report.clipped.values(), *report.out_of_domain.values(), *report.nulls.values()])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables=tables(), seed=st.integers(0, 2**64))
def test_the_fake_counts_them(tables: dict[str, Any], seed: int) -> None:
    """Every row is there, in every table."""
    data = dummy_data(tables, individuals=20, seed=seed)

    with FakeService() as fake:
        fake.add_dataset("made-up", tables, rows=data)
        for table, rows in data.items():
            bound = {} if table == "people" else {"l2_clip": 4096}
            answer = fake.client().queries.ask(dataset="made-up", select=count(), from_=table, sigma=1e4, **bound)  # type: ignore[arg-type]
            assert answer.value == pytest.approx(len(rows), abs=0.01)


def test_a_value_out_of_its_domain_would_be_seen(replica: Replica) -> None:
    """The upload of one that is planted is refused."""
    tables = {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"a": {"type": "date", "lower": "2020-01-01", "upper": "2020-01-09"}},
        }
    }
    replica.curators.register(
        Registration.model_validate({"name": "planted", "guarantee": {"rho": "1"}, "tables": tables})
    )
    [row] = dummy_data(tables, individuals=1)["people"]
    late = json.dumps(row | {"a": date(2020, 1, 10).isoformat()})

    with pytest.raises(InvalidRequest, match="1 of 1 values are outside 2020-01-01 to 2020-01-09"):
        replica.curators.append_rows("planted", "people", "application/x-ndjson", io.BytesIO(late.encode()))
