"""Tallies: the same vectors, norms and answers as without them, after any joins and erasures, cut anywhere."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine import events, tallies
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.division import PAGE_SLOTS
from service.query.plan import Plan
from service.query.schema import Schema
from tests.engine.worlds import Vector, vectors
from tests.query.samples import plan_of
from tests.rotation import times

SCHEMA = Schema.model_validate(
    {
        "people": {"kind": "individuals", "key": "id", "columns": {"town": {"type": "category", "size": 2}}},
        "visits": {
            "kind": "events",
            "key": "id",
            "rows_per_individual": 8,
            "columns": {
                "item": {"type": "category", "size": 3},
                "day": {"type": "integer", "lower": 1, "upper": 2},
                "price": {"type": "real", "lower": 0, "upper": 1},
            },
        },
    }
)
QUERIES: dict[str, dict[str, Any]] = {
    "histogram": {"select": [{"histogram": {"column": "item"}}]},
    "groups": {"select": [{"count": {}}], "group_by": ["day", "item"]},
    "histogram in groups": {"select": [{"histogram": {"column": "item"}}], "group_by": ["day"]},
}
EVERY_ROW = {"or": [{"is_null": {"col": "price"}}, {"not": {"is_null": {"col": "price"}}}]}
"""True of every row, and a condition all the same."""


def tallied_plan(query: dict[str, Any], **more: Any) -> Plan:
    """The plan of a query of visits."""
    body = {"version": 1, "from": "visits", "noise": {"sigma": 9.0}} | query | more
    return plan_of(body, SCHEMA, capacity=2**18)


def told(plan: Plan, memory: DatasetMemory) -> tuple[dict[int, Vector], list[int]]:
    """The squared norm and the vector of each, and the sum over all, of blocks that keep what they promise."""
    total = np.zeros(plan.dimension, dtype=np.int64)
    for block in contributions(plan, memory):
        block.add_to(total, np.ones(block.touched.size, dtype=np.bool_))
    return vectors(plan, memory), total.tolist()


Rows = list[tuple[int, int, int]]
SLOTS = [0, 1, 2, 5, PAGE_SLOTS - 1, PAGE_SLOTS, PAGE_SLOTS + 7]
rows = st.lists(st.tuples(st.sampled_from(SLOTS), st.integers(0, 3), st.integers(0, 2)), max_size=12)


def add(memory: DatasetMemory, added: Rows) -> None:
    """Rows by slot, code of the item and code of the day; the largest codes stand for NULL."""
    kept = [row for place, row in enumerate(added) if sum(other[0] == row[0] for other in added[:place]) < 4]
    codings = memory.codings["visits"]
    columns = {
        "item": np.array([row[1] for row in kept], dtype=codings["item"].dtype),
        "day": np.array([row[2] for row in kept], dtype=codings["day"].dtype),
        "price": np.full(len(kept), codings["price"].null_code, dtype=codings["price"].dtype),
    }
    memory.add_events("visits", np.array([row[0] for row in kept], dtype=np.int64), columns)


@pytest.mark.parametrize("rows_max", [1, 3, tallies.TALLY_ROWS])
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=times(34, 100))
@given(st.data())
def test_a_tally_gives_the_vectors_of_all_rows(name: str, rows_max: int, data: st.DataObject) -> None:
    """It gives those of a query with a condition that every row meets, before and after rows come and go."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(PAGE_SLOTS + 8)
    plan, sorted_plan = tallied_plan(QUERIES[name]), tallied_plan(QUERIES[name], where=EVERY_ROW)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tallies, "TALLY_ROWS", rows_max)
        add(memory, data.draw(rows))
        assert told(plan, memory) == told(sorted_plan, memory)
        memory.prepare()
        assert told(plan, memory) == told(sorted_plan, memory)
        for slot in data.draw(st.sets(st.sampled_from(SLOTS), max_size=2)):
            memory.erase(slot)
        add(memory, data.draw(rows)[:8])
        assert told(plan, memory) == told(sorted_plan, memory)


def tallied(memory: DatasetMemory) -> list[list[frozenset[str]]]:
    """The tallies of each page."""
    pages = memory.events["visits"].pages()
    return [[made for made in page.made if isinstance(made, frozenset)] for _, page in pages]


def test_the_norms_are_kept_and_follow_a_change() -> None:
    """No query makes them; the page that rows come to has them again before the next query."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(PAGE_SLOTS + 8)
    add(memory, [(0, 1, 1), (0, 3, 1), (PAGE_SLOTS, 2, 0)])
    assert vectors(tallied_plan(QUERIES["histogram"]), memory) == {0: (1, {1: 1}), PAGE_SLOTS: (1, {2: 1})}
    items = frozenset({"item"})
    assert tallied(memory) == [[], []]
    memory.prepare()
    assert vectors(tallied_plan(QUERIES["histogram"]), memory) == {0: (1, {1: 1}), PAGE_SLOTS: (1, {2: 1})}
    assert tallied(memory) == [[items], [items]]
    add(memory, [(5, 1, 1), (2 * PAGE_SLOTS, 1, 1)])
    assert tallied(memory) == [[items], [items], [items]]
    both = tallied_plan(QUERIES["groups"])
    told(both, memory)
    told(tallied_plan(QUERIES["histogram in groups"]), memory)
    memory.prepare()
    assert set(tallied(memory)[0]) == {items, frozenset({"item", "day"})}


@pytest.mark.parametrize(
    "query",
    [
        QUERIES["histogram"] | {"where": {"eq": [{"col": "day"}, 1]}},
        QUERIES["histogram"] | {"per_individual": {"l2_clip": 1}},
        QUERIES["histogram"] | {"per_individual": {"rows": 2}},
        QUERIES["histogram"] | {"group_by": ["people.town"]},
        QUERIES["histogram"] | {"select": [{"histogram": {"column": "item"}}, {"count": {}}]},
        {"select": [{"count": {}}]},
        {"select": [{"count_individuals": {}}], "group_by": ["day"]},
        {"select": [{"sum": {"column": "day"}}], "group_by": ["item"]},
        {"select": [{"count": {}}], "group_by": [{"bin": {"column": "day", "edges": [1, 2]}}]},
    ],
)
def test_other_queries_keep_none(query: dict[str, Any]) -> None:
    """Their norms depend on more than the columns that they count by."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(8)
    add(memory, [(0, 1, 1)])
    told(tallied_plan(query), memory)
    memory.prepare()
    assert tallied(memory) == [[]]


def test_a_table_keeps_the_first_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are answered without: whether one is kept depends on what was asked, on no data."""
    monkeypatch.setattr(events, "TALLIES_MAX", 1)
    memory = DatasetMemory(SCHEMA)
    memory.grow(8)
    add(memory, [(0, 1, 1), (0, 1, 0), (2, 2, 1)])
    first, second = tallied_plan(QUERIES["histogram"]), tallied_plan(QUERIES["groups"])
    for plan in (first, second, first):
        norms = {slot: norm for slot, (norm, _) in vectors(plan, memory).items()}
        assert norms == ({0: 4, 2: 1} if plan is first else {0: 2, 2: 1})
        memory.prepare()
    assert tallied(memory) == [[frozenset({"item"})]]
