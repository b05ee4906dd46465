"""Made-up data: from the schema alone, the same for ever, uniform, and within every declared bound."""

import hashlib
import json
from collections import Counter
from math import sqrt
from typing import Any

import pytest

from sparing import Client, dummy_data
from sparing.testing import FakeService

PEOPLE: dict[str, Any] = {
    "kind": "individuals",
    "key": "person_id",
    "columns": {
        "town": {"type": "category", "categories": ["Oslo", "Bergen", 3], "size": None},
        "area": {"type": "category", "size": 7},
        "age": {"type": "integer", "lower": -5, "upper": 4},
        "spend": {"type": "real", "lower": -0.7, "upper": 0.1},
        "member": {"type": "boolean"},
        "joined": {"type": "date", "lower": "2019-12-30", "upper": "2020-01-03"},
        "seen": {"type": "datetime", "lower": "1969-12-31T23:59:58Z", "upper": "1970-01-01T02:00:01+02:00"},
        "limit_rho": {"type": "budget"},
    },
}
VISITS: dict[str, Any] = {"kind": "events", "key": "who", "columns": {"item": {"type": "category", "size": 4}}}
TABLES: dict[str, Any] = {"visits": VISITS, "people": PEOPLE}


def test_the_same_arguments_give_the_same_rows_in_every_version_of_python() -> None:
    """By a digest that is written down; only `random()` of the generator is promised not to change."""
    data = dummy_data(TABLES, individuals=50, seed=1)
    digest = hashlib.sha256(json.dumps(data).encode()).hexdigest()

    assert list(data) == ["people", "visits"]
    assert data == dummy_data(TABLES, individuals=50, seed=1)
    assert data != dummy_data(TABLES, individuals=50, seed=2)
    assert digest == "d2a0c5678212ab69d9743c166d18024dc3f64523e384164d68641981c417d70f"


def distance(counts: Counter[Any], size: int) -> float:
    """Pearson's statistic against a uniform law, in standard deviations from its mean."""
    rows = sum(counts.values())
    squares = sum((count - rows / size) ** 2 for count in counts.values()) + (size - len(counts)) * (rows / size) ** 2
    return (squares / (rows / size) - (size - 1)) / sqrt(2 * (size - 1))


SIZES = {"town": 3, "area": 7, "age": 10, "member": 2, "joined": 5, "seen": 4}


@pytest.mark.parametrize(("column", "size"), SIZES.items())
def test_every_value_is_as_likely(column: str, size: int) -> None:
    """To within five standard deviations; a value that is a quarter less likely would be seen."""
    rows = dummy_data(TABLES, individuals=4000, events_per_individual=0)["people"]
    counts = Counter(row[column] for row in rows)
    rarest = min(counts, key=lambda value: counts[value])
    skewed = counts - Counter({rarest: counts[rarest] // 4})

    assert len(counts) == size
    assert distance(counts, size) < 5
    assert distance(skewed, size) > 5


def test_real_values_fill_their_bounds() -> None:
    """Uniformly, in tenths; neither bound is passed."""
    rows = dummy_data(TABLES, individuals=4000)["people"]
    spends = [row["spend"] for row in rows]

    assert -0.7 <= min(spends) < -0.69
    assert 0.09 < max(spends) <= 0.1
    assert distance(Counter(int((spend + 0.7) / 0.08) for spend in spends), 10) < 5


def test_values_are_json() -> None:
    """Dates and times as ISO 8601 text, limits as None, and keys as text."""
    row = dummy_data(TABLES, individuals=1)["people"][0]

    assert json.loads(json.dumps(row)) == row
    assert list(row) == ["person_id", *PEOPLE["columns"]]
    assert (row["person_id"], row["limit_rho"]) == ("dummy-000001", None)
    assert row["seen"].endswith("Z")


@pytest.mark.parametrize(
    ("bounds", "most", "expected"),
    [
        ({}, 3, 3),
        ({"rows_per_individual": 2}, 10, 2),
        ({"rows_per_individual": 5, "rows_capacity": 60}, 10, 5),
        ({}, 0, 0),
    ],
)
def test_events_stay_within_the_bounds(bounds: dict[str, int], most: int, expected: int) -> None:
    """The bounds of each individual, and of the table."""
    tables = {"people": PEOPLE, "visits": VISITS | bounds}
    data = dummy_data(tables, individuals=200, events_per_individual=most)
    counts = Counter(row["who"] for row in data["visits"])

    assert max(counts.values(), default=0) == expected
    assert len(data["visits"]) <= bounds.get("rows_capacity", 32 * 200)
    assert counts.keys() <= {row["person_id"] for row in data["people"]}
    if "rows_capacity" not in bounds and most:
        assert distance(Counter(counts[row["person_id"]] for row in data["people"]), expected + 1) < 5


def test_a_dataset_is_taken_as_the_service_describes_it() -> None:
    """And its capacity is the most."""
    with FakeService() as fake:
        fake.add_dataset("shop", TABLES, capacity=30)
        client: Client = fake.client()
        dataset = client.datasets.get(dataset="shop")
        data = dummy_data(dataset, individuals=30, seed=3)
        assert data == dummy_data(TABLES, individuals=30, seed=3)
        with pytest.raises(ValueError, match="individuals must be at most the dataset's capacity of 30, got 31"):
            dummy_data(dataset, individuals=31)


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        (TABLES, {"individuals": -1}, "individuals must not be negative, got -1"),
        (TABLES, {"events_per_individual": -1}, "events_per_individual must not be negative, got -1"),
        ({"people": {"kind": "individuals"}}, {}, "tables.people: kind, key and columns are required"),
        ({"people": PEOPLE | {"columns": {"a": {"type": "text"}}}}, {}, "tables.people.columns.a: the type 'text'"),
        ({"people": PEOPLE | {"columns": {"a": {"type": "real"}}}}, {}, "tables.people.columns.a: its domain cannot"),
        (
            {"people": PEOPLE | {"columns": {"a": {"type": "date", "lower": 3, "upper": 4}}}},
            {},
            "tables.people.columns.a: its domain cannot be read",
        ),
    ],
)
def test_a_wrong_argument_is_named(tables: Any, options: dict[str, int], message: str) -> None:
    """Before any row is made."""
    with pytest.raises(ValueError, match=message):
        dummy_data(tables, **options)
