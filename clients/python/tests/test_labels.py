"""Labels made from axes: those that the service sends, for as many numbers as there are."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparing import Answer, Client, col, count, histogram, linear, sum_
from sparing._labels import Labels
from sparing.testing import FakeService

ITEMS = [f"item {number}" for number in range(1200)]
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 119},
            "town": {"type": "category", "categories": ["Oslo", "北京"]},
            "code": {"type": "category", "size": 7},
            "member": {"type": "boolean"},
            "kind": {"type": "category", "categories": ["a", "b", "c"]},
            "spend": {"type": "real", "lower": -0.3, "upper": 0.7},
            "item": {"type": "category", "categories": ITEMS},
            "joined": {"type": "date", "lower": "2023-12-30", "upper": "2026-02-03"},
            "seen": {"type": "datetime", "lower": "2026-01-01T00:00:00+01:00", "upper": "2026-01-01T00:00:20+01:00"},
        },
    }
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a dataset with a column of each type."""
    with FakeService() as fake:
        fake.add_dataset("shop", TABLES, rows={"people": [{"person_id": 1}]}, rho=1000)
        yield fake.client()


def asked(client: Client, **question: Any) -> Answer:
    """An answer with little noise and no cost to anybody who has a row."""
    return client.queries.ask(dataset="shop", share=1e-4, **question)


def columns_of(labels: Any) -> dict[str, list[object]]:
    """By name the value of each label."""
    names = dict.fromkeys(name for label in labels for name in label)
    return {name: [label.get(name) for label in labels] for name in names}


GROUPS: list[Any] = [
    [],
    ["town", "age"],
    ["code", "member"],
    ["item"],
    ["joined"],
    ["seen"],
    [col("age").bins([0, 18, 65.5]), "town"],
    [col("spend").bins(width=0.1)],
    *[[col("joined").by(unit)] for unit in ("day", "week", "month", "quarter", "year", "weekday")],
    [col("seen").by("hour"), "code"],
]


@pytest.mark.parametrize("group_by", GROUPS, ids=str)
def test_they_are_those_that_the_service_sends(client: Client, group_by: Any) -> None:
    """Read one by one, from the end, in slices, all together and by column; with names of the schema where needed."""
    select = [count(), histogram("kind"), linear("kind", [{"a": 1}, {"b": 2}]), sum_("age")]
    sent = asked(client, group_by=group_by, select=select)
    made = Answer(**{name: getattr(sent, name) for name in sent.__dataclass_fields__} | {"labels": ()})
    named = made.named(client.datasets.get(dataset="shop")).labels
    assert isinstance(named, Labels)
    assert list(named) == list(sent.labels)
    assert [named[place] for place in range(len(named))] == list(sent.labels)
    assert named[-1] == sent.labels[-1]
    assert named[1:4] == list(sent.labels[1:4])
    assert named.columns() == columns_of(sent.labels)
    with pytest.raises(IndexError):
        named[len(named)]


def test_what_axes_do_not_say_is_numbered(client: Client) -> None:
    """A long list of categories, multiples of a width and months; `named` needs none of it for a short answer."""
    long = asked(client, group_by=["item", col("spend").bins(width=0.1)])
    assert long.labels[-1] == {"item": 1199, "spend": 9, "select": "count"}
    schema = client.datasets.get(dataset="shop")
    assert long.named(schema).labels[-1] == {"item": "item 1199", "spend": "[0.6, 0.7]", "select": "count"}
    short = asked(client, group_by="town")
    assert short.named(schema) is short
    by_month = asked(client, group_by=[col("joined").by("month"), "item"])
    assert by_month.labels[0] == {"joined": 0, "item": 0, "select": "count"}
    assert by_month.named(schema).labels[0] == {"joined": "2023-12", "item": "item 0", "select": "count"}


def test_frames_and_the_largest_numbers_have_them(client: Client) -> None:
    """Beyond 10,000 numbers as below."""
    answer = asked(client, group_by=["age", col("joined").by("weekday"), "code", "member"])
    frame = answer.to_pandas()
    assert len(frame) == answer.dimension == 11_760
    assert list(frame.columns) == [
        "age",
        "joined",
        "code",
        "member",
        "select",
        "value",
        "half_width_95",
        "coverage_certified",
    ]
    assert frame.iloc[-1].tolist()[:5] == [119, 7, 6, True, "count"]
    assert set(answer.top(1)[0].label) == {"age", "joined", "code", "member", "select"}


def test_a_million_labels_cost_no_million_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are lists, and no label is made for them."""
    labels = Labels(
        [
            {"column": "day", "size": 1024},
            {"column": "code", "size": 1024},
            {"select": [{"select": "count", "size": 1}]},
        ]
    )
    monkeypatch.delattr("sparing._labels._Item.label")
    columns = labels.columns()
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(("day", "code", "select"), 2**20)
    assert labels == Labels(labels._axes)
    assert labels != list(range(2**20))


OTHER: dict[str, Any] = {
    "calls": {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": 2,
        "columns": {
            "item": {"type": "category", "categories": [f"call {number}" for number in range(1200)]},
            "spend": {"type": "real", "lower": 9.7, "upper": 10.7},
            "joined": {"type": "date", "lower": "1990-12-30", "upper": "1993-02-03"},
        },
    }
}


@pytest.mark.parametrize("group", ["item", col("spend").bins(width=0.1), col("joined").by("month")])
def test_labels_are_of_the_table_that_was_asked(group: Any) -> None:
    """Not of another table with a column of that name; an individual's own column is that of the individuals."""
    with FakeService() as fake:
        fake.add_dataset("shop", TABLES | OTHER, rows={"people": [{"person_id": 1}]}, rho=1000)
        client = fake.client()
        schema = client.datasets.get(dataset="shop")
        for table in ("people", "calls"):
            sent = client.queries.ask(dataset="shop", from_=table, share=1e-4, group_by=[group])
            unsaid = [{name: each for name, each in axis.items() if name != "edges"} for axis in sent.axes]
            long = replace(sent, labels=Labels(unsaid), axes=tuple(unsaid))
            assert list(long.named(schema).labels) == list(sent.labels)
        own = client.queries.ask(dataset="shop", from_="calls", share=1e-4, group_by=["people.item"])
        assert own.named(schema).labels[1] == {"people.item": "item 1", "select": "count"}


def test_bins_have_names_of_their_own() -> None:
    """Milliseconds, account numbers and doubles that differ in the last digit: the service and axes name them alike."""
    edges = [1_700_000_000_000, 1_700_000_000_001, 1_700_000_000_003]
    close = [0.1, 0.1 + 2**-40, 0.30000000000000004]
    columns = {
        "ms": {"type": "integer", "lower": edges[0], "upper": edges[-1]},
        "share": {"type": "real", "lower": 0.0, "upper": 1.0},
    }
    people = {"people": {"kind": "individuals", "key": "id", "columns": columns}}
    with FakeService() as fake:
        fake.add_dataset("shop", people, rows={"people": [{"id": 1, "ms": edges[1], "share": 0.2}]}, rho=1000)
        for name, own in (("ms", edges), ("share", close)):
            sent = fake.client().queries.ask(dataset="shop", share=1e-4, group_by=[col(name).bins(own)])
            names = [label[name] for label in sent.labels]
            assert names == [f"[{own[0]}, {own[1]})", f"[{own[1]}, {own[2]}]"]
            assert [label[name] for label in Labels(sent.axes)] == names
