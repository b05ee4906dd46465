"""Bins and buckets: which groups there are, what they are called, and what is refused."""

from typing import Any

import pytest

from service.query.columns import Coding, Intervals, QueryColumn
from service.query.layout import LABELS_MAX
from service.query.parts import in_intervals
from service.query.plan import Plan
from service.query.schema import Schema
from service.query.stated import shown_of
from tests.query.samples import plan_of, query, refused

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": -3, "upper": 20},
    "spend": {"type": "real", "lower": 0, "upper": 1},
    "born": {"type": "date", "lower": "2024-12-30", "upper": "2025-04-01"},
    "seen": {"type": "datetime", "lower": "2025-12-31T22:30:00Z", "upper": "2026-01-02T00:00:00Z"},
    "ever": {"type": "datetime", "lower": "0001-01-01T00:00:00Z", "upper": "9999-12-31T23:59:59Z"},
    "country": {"type": "category", "categories": ["NO", "SE"]},
}
SCHEMA = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}})


def plan(*keys: Any) -> Plan:
    """The plan of a count by some keys."""
    return plan_of(query(group_by=keys), SCHEMA, capacity=10, budget_units=1)


def labels(key: Any) -> list[Any]:
    """The names of the groups."""
    return [next(iter(label.values())) for label in plan(key).answered.labels()]


def bucket(column: str, by: str) -> dict[str, Any]:
    """A key."""
    return {"bucket": {"column": column, "by": by}}


NAMED: list[tuple[dict[str, Any], list[Any]]] = [
    ({"bin": {"column": "age", "edges": [0, 10, 20]}}, ["[0, 10)", "[10, 20]"]),
    ({"bin": {"column": "age", "edges": [-1.5, 2.25]}}, ["[-1.5, 2.25]"]),
    ({"bin": {"column": "age", "width": 10}}, ["[-10, 0)", "[0, 10)", "[10, 20]"]),
    ({"bin": {"column": "spend", "width": 0.25}}, ["[0, 0.25)", "[0.25, 0.5)", "[0.5, 0.75)", "[0.75, 1]"]),
    ({"bin": {"column": "born", "edges": ["2025-01-01", "2025-03-01"]}}, ["[2025-01-01, 2025-03-01]"]),
    (bucket("born", "month"), ["2024-12", "2025-01", "2025-02", "2025-03", "2025-04"]),
    (bucket("born", "quarter"), ["2024-Q4", "2025-Q1", "2025-Q2"]),
    (bucket("born", "year"), ["2024", "2025"]),
    (bucket("seen", "day"), ["2025-12-31", "2026-01-01", "2026-01-02"]),
    (bucket("seen", "week"), ["2026-W01"]),
    (bucket("seen", "year"), ["2025", "2026"]),
    (bucket("seen", "hour"), list(range(24))),
    (bucket("seen", "weekday"), list(range(1, 8))),
]


@pytest.mark.parametrize(("key", "expected"), NAMED)
def test_groups_are_named_by_what_they_hold(key: dict[str, Any], expected: list[Any]) -> None:
    """In order; an interval says which of its ends belongs to it."""
    assert labels(key) == expected


def test_the_weeks_are_those_of_iso_8601() -> None:
    """The 30th of December 2024 is in the first week of 2025."""
    assert labels(bucket("born", "week"))[:2] == ["2025-W01", "2025-W02"]


def test_a_calendar_of_ten_thousand_years_has_groups() -> None:
    """From the year 1 to 9999, whose ends have no week before and after."""
    assert plan(bucket("ever", "year")).dimension == 9999
    assert (labels(bucket("ever", "year"))[0], labels(bucket("ever", "year"))[-1]) == ("0001", "9999")
    assert plan(bucket("ever", "quarter")).dimension == 4 * 9999 > LABELS_MAX


def test_axes_say_how_a_column_was_cut() -> None:
    """An axis has the cut that was asked for."""
    axes = shown_of(plan({"bin": {"column": "age", "width": 10}}, bucket("born", "year"), "country")).axes
    assert axes[:3] == [
        {"column": "age", "size": 3, "width": 10},
        {"column": "born", "size": 2, "by": "year"},
        {"column": "country", "size": 2, "categories": ["NO", "SE"]},
    ]
    assert shown_of(plan({"bin": {"column": "age", "edges": [0, 1]}})).axes[0] == {
        "column": "age",
        "size": 1,
        "edges": [0, 1],
    }


REFUSED: list[tuple[list[Any], str, str]] = [
    ([{"bin": {"column": "age"}}], "group_by[0].bin", "must have either edges or width"),
    ([{"bin": {"column": "age", "edges": [0, 1], "width": 1}}], "group_by[0].bin", "must have either"),
    ([{"bin": {"column": "age", "edges": [0, 5, 5]}}], "group_by[0].bin.edges[2]", "must be above the edge before"),
    ([{"bin": {"column": "age", "edges": ["a", 5]}}], "group_by[0].bin.edges[0]", "must be a number"),
    ([{"bin": {"column": "country", "edges": [0, 5]}}], "group_by[0].bin.column", "has no order"),
    ([{"bin": {"column": "spend", "width": 1e-9}}], "group_by[0].bin.width", "makes more than 65536 groups"),
    ([{"bin": {"column": "born", "width": 7}}], "group_by[0].bin.width", "must not be given for dates and times"),
    ([bucket("age", "month")], "group_by[0].bucket.column", "must be a date or a time"),
    ([bucket("born", "hour")], "group_by[0].bucket.by", "must be day, week, month"),
    ([bucket("born", "decade")], "group_by[0].bucket.by", "must be 'day'"),
    ([bucket("ever", "day")], "group_by[0].bucket", "makes more than 65536 groups"),
    ([bucket("born", "month"), "born"], "group_by[1]", "names 'born' a second time"),
    (
        [{"cut": {}}],
        "group_by[0]",
        "must be the name of a column, or an object with exactly one of the keys bin, bucket",
    ),
    (["spend"], "group_by[0]", "'spend' is a real column; count a category, boolean or integer column, or a bin of it"),
]


@pytest.mark.parametrize(("keys", "field", "message"), REFUSED)
def test_what_makes_no_groups_is_named(keys: list[Any], field: str, message: str) -> None:
    """By its place, before any record is read."""
    found = refused(plan, *keys)
    assert (found[0], message in found[1]) == (field, True)


def test_the_last_interval_alone_includes_its_end() -> None:
    """Ages from 0, from 10, and from 10 to 20 inclusive."""
    age = QueryColumn(name="age", kind="integer", coding=Coding(offset=0, span=30, step_log2=0))
    made = in_intervals(age, "bin", [0, 10, 20])
    assert made.formula == Intervals(column="age", thresholds=(0, 10, 21))
