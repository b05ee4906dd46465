"""A histogram of parts of a column is the count in groups of these parts, as one item."""

import json
from typing import Any

import pytest
from hypothesis import given

from service.query.words import in_words
from tests.engine.worlds import memory_of, people, plan_of, query_of, vectors
from tests.query import samples
from tests.query.samples import refused

PARTS: list[dict[str, Any]] = [
    {"bin": {"column": "level", "edges": [-1, 0, 0.5, 2]}},
    {"bin": {"of": {"abs": {"col": "level"}}, "width": 1}},
    {"bin": {"column": "born", "edges": ["1999-12-31", "2000-01-02"]}},
    {"bucket": {"column": "born", "by": "weekday"}},
]


@pytest.mark.parametrize("parts", PARTS, ids=str)
@given(records=people())
def test_it_counts_as_groups_do(parts: dict[str, Any], records: dict[int, Any]) -> None:
    """The coordinates have the same names, but for the item's own, and the vectors have the same price."""
    counted = plan_of(query_of(group_by=[parts]))
    found = plan_of(query_of({"histogram": parts}))
    names = [{**label, "select": "count"} for label in found.answered.labels()]
    assert names == counted.answered.labels()
    assert found.scale == counted.scale
    memory = memory_of(records, [])
    assert vectors(found, memory) == vectors(counted, memory)


def test_several_stand_side_by_side() -> None:
    """Which groups do not: each has its own part of the vector."""
    first, second = {"histogram": PARTS[0]}, {"histogram": PARTS[3]}
    plan = plan_of(query_of(first, second))
    assert [item.title for item in plan.layout.items] == ["histogram(level)", "histogram(born)"]
    assert (plan.dimension, plan.scale.clip_squared_steps) == (3 + 7, 2)
    words = in_words(json.loads(plan.canonical))
    assert words == "histogram of level in 3 bins and histogram of weekday of born in people, σ 30"


@pytest.mark.parametrize(
    ("item", "groups", "field", "said"),
    [
        ({"bin": {"column": "age", "width": 60}}, ["age"], "bin", "is in group_by already"),
        ({"bucket": {"column": "joined", "by": "year"}}, ["joined"], "bucket", "is in group_by already"),
        ({"bin": {"column": "age", "edges": [1, 0]}}, [], "bin.edges[1]", "must be above"),
        ({"bin": {"column": "age"}}, [], "bin", "must have either edges or width"),
        ({"bucket": {"column": "age", "by": "day"}}, [], "bucket.column", "date"),
        ({"column": "age", "bin": {"column": "age", "width": 1}}, [], "column", "is not a field"),
        ({}, [], "column", "is required"),
    ],
)
def test_a_refusal_names_the_field(item: dict[str, Any], groups: list[str], field: str, said: str) -> None:
    """The refusal is that of a group."""
    found = refused(samples.plan_of, samples.query(select=[{"histogram": item}], group_by=groups))
    assert (found[0], said in found[1]) == (f"select[0].histogram.{field}", True), found
