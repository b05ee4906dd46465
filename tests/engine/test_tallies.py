"""Tallies: the same vectors, norms and answers as without them, after any joins and erasures, cut anywhere."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.release import Contributions
from service.engine import events, tallies
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.pages import PAGE_SLOTS
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from tests.core.contributions import as_list, refuse_unsound
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


def plan_of(query: dict[str, Any], **more: Any) -> Plan:
    """The plan of a query of visits."""
    body = {"version": 1, "from": "visits", "noise": {"sigma": 9.0}} | query | more
    return compile_query(parse_query(json.dumps(body).encode()), SCHEMA, capacity=2**18, budget_units=2**40)


def vectors(plan: Plan, memory: DatasetMemory) -> tuple[dict[int, dict[int, int]], dict[int, int], list[int]]:
    """By slot the vector and the squared norm, and the sum over all, of blocks that keep what they promise."""
    found: dict[int, dict[int, int]] = {}
    norms: dict[int, int] = {}
    total = np.zeros(plan.dimension, dtype=np.int64)
    blocks: list[Contributions] = list(map(as_list, contributions(plan, memory)))
    assert blocks
    for block in blocks:
        refuse_unsound(block)
        block.add_to(total, np.ones(block.touched.size, dtype=np.bool_))
        norms |= dict(zip(block.touched.slots().tolist(), block.norms_squared.tolist(), strict=True))
        owners = np.arange(block.values.size) if block.owners is None else block.owners
        entries = zip(
            block.touched.slots()[owners].tolist(), block.coordinates.tolist(), block.values.tolist(), strict=True
        )
        for slot, place, value in entries:
            found.setdefault(slot, Counter())[place] += value
    return {slot: dict(vector) for slot, vector in found.items()}, norms, total.tolist()


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
    """As the same query with a condition that every row meets, before and after rows come and go."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(PAGE_SLOTS + 8)
    plan, sorted_plan = plan_of(QUERIES[name]), plan_of(QUERIES[name], where=EVERY_ROW)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tallies, "TALLY_ROWS", rows_max)
        add(memory, data.draw(rows))
        assert vectors(plan, memory) == vectors(sorted_plan, memory)
        memory.prepare()
        assert vectors(plan, memory) == vectors(sorted_plan, memory)
        for slot in data.draw(st.sets(st.sampled_from(SLOTS), max_size=2)):
            memory.erase(slot)
        add(memory, data.draw(rows)[:8])
        assert vectors(plan, memory) == vectors(sorted_plan, memory)


def tallied(memory: DatasetMemory) -> list[list[frozenset[str]]]:
    """The tallies of each page."""
    pages = memory.events("visits").pages()
    return [[made for made in page.made if isinstance(made, frozenset)] for _, page in pages]


def test_the_norms_are_kept_and_follow_a_change() -> None:
    """No query makes them; the page that rows come to has them again before the next query."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(PAGE_SLOTS + 8)
    add(memory, [(0, 1, 1), (0, 3, 1), (PAGE_SLOTS, 2, 0)])
    assert vectors(plan_of(QUERIES["histogram"]), memory)[0] == {0: {1: 1}, PAGE_SLOTS: {2: 1}}
    items = frozenset({"item"})
    assert tallied(memory) == [[], []]
    memory.prepare()
    assert vectors(plan_of(QUERIES["histogram"]), memory)[0] == {0: {1: 1}, PAGE_SLOTS: {2: 1}}
    assert tallied(memory) == [[items], [items]]
    add(memory, [(5, 1, 1), (2 * PAGE_SLOTS, 1, 1)])
    assert tallied(memory) == [[items], [items], [items]]
    both = plan_of(QUERIES["groups"])
    vectors(both, memory)
    vectors(plan_of(QUERIES["histogram in groups"]), memory)
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
    vectors(plan_of(query), memory)
    memory.prepare()
    assert tallied(memory) == [[]]


def test_a_table_keeps_the_first_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are answered without: whether one is kept depends on what was asked, on no data."""
    monkeypatch.setattr(events, "TALLIES_MAX", 1)
    memory = DatasetMemory(SCHEMA)
    memory.grow(8)
    add(memory, [(0, 1, 1), (0, 1, 0), (2, 2, 1)])
    first, second = plan_of(QUERIES["histogram"]), plan_of(QUERIES["groups"])
    for plan in (first, second, first):
        assert vectors(plan, memory)[1] == ({0: 4, 2: 1} if plan is first else {0: 2, 2: 1})
        memory.prepare()
    assert tallied(memory) == [[frozenset({"item"})]]
