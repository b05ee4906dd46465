"""The public bound on working memory, held against what evaluations allocate."""

import json
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from service.core.release import Release
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.layout import RUN_ENTRIES
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from service.query.working_memory import LISTED_MAX, working_bytes
from tests.core.injected import seeded
from tests.core.releases import answer

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "member": {"type": "boolean"},
    "wide": {"type": "category", "size": 2**20},
} | {f"amount_{number}": {"type": "real", "lower": 0, "upper": 9} for number in range(63)}
SUMS: list[Any] = [{"sum": {"column": f"amount_{number}"}} for number in range(63)]
ITEMS = [*SUMS, {"count": {}}]
SHORT = {"per_individual": {"l2_clip": 1.0}}
_MEMORIES: dict[tuple[int, int], DatasetMemory] = {}


def schema_of(rows_per_individual: int, **fields: int) -> Schema:
    """People and events with the same columns."""
    events = {"kind": "events", "key": "id", "columns": COLUMNS, "rows_per_individual": rows_per_individual} | fields
    return Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}, "visits": events})


def memory_of(people: int, rows_each: int) -> DatasetMemory:
    """As many individuals as the capacity allows, each with as many rows as allowed."""
    if (people, rows_each) not in _MEMORIES:
        schema = schema_of(max(rows_each, 1), rows_capacity=max(people * rows_each, 1))
        memory, random = DatasetMemory(schema), np.random.default_rng(1)
        for table, rows in (("people", people), ("visits", people * rows_each)):
            codes = {
                name: random.integers((coding.span + 1) // 2, coding.span, rows, endpoint=True).astype(coding.dtype)
                for name, coding in memory.codings[table].items()
            }
            if table == "people":
                memory.add_individuals(np.arange(people), codes, np.full(people, 2**60))
            else:
                memory.add_events("visits", np.repeat(np.arange(people), rows_each), codes)
        _MEMORIES[people, rows_each] = memory
    return _MEMORIES[people, rows_each]


def reconcile_plan(schema: Schema, capacity: int, **query: Any) -> Plan:
    """The plan of a query."""
    document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 1000.0}} | query
    return compile_query(parse_query(json.dumps(document).encode()), schema, capacity=capacity, budget_units=2**40)


def evaluated(plan: Plan, memory: DatasetMemory) -> Release:
    """The whole of what the bound is about."""
    return answer(contributions(plan, memory), memory.accounts, plan.terms, entropy=seeded(1))


@dataclass(frozen=True, kw_only=True)
class Worst:
    """A query that chooses every individual with every row."""

    people: int
    rows_each: int
    query: dict[str, Any]


AGE = {"col": "age"}
LONG = {"mul": [{"add": [AGE, {"abs": {"sub": [AGE, 40]}}]}, {"clip": [{"mul": [AGE, AGE]}, 0, 5000]}]}
OWN = {"add": [LONG, {"mul": [{"col": "people.age"}, AGE]}]}
PAIRS = [{"add": [{"col": f"amount_{n}"}, {"col": f"amount_{n + 1}"}]} for n in range(0, 8, 2)]
WIDE = {"add": [{"add": PAIRS[:2]}, {"mul": PAIRS[2:]}]}
BINNED = {"bin": {"column": "age", "width": 0.5}}
BINS = 240
LISTS = {"or": [{"in": [{"col": "wide"}, list(range(start, 2000, 7))]} for start in range(4)]}
AGES = list(range(60, 121))


def matrix(column: str, functionals: int, values: list[int], weight: float = 0.5) -> dict[str, Any]:
    """The item of functionals that all weigh the same values."""
    starts = [number * len(values) for number in range(functionals + 1)]
    entries = {"indices": values * functionals, "values": [weight] * starts[-1]}
    return {"linear": {"column": column, "matrix": {"starts": starts} | entries}}


MATRICES = [matrix("age", 32, AGES), matrix("age", 31, AGES, 1.5), {"count": {}}]
FEATURES = [{"of": {"mul": [{"add": [AGE, {"col": "amount_1"}]}, 0.001]}}, {"of": {"mul": [AGE, 0.01]}, "fill": 0}]
LONG_RECORD = [*FEATURES, {"one_hot": BINNED}]
LOGISTIC = {
    "gradient": {"loss": "logistic", "target": {"col": "member"}, "features": FEATURES, "parameters": [0.3, -1]}
}
SOFTMAX = {
    "gradient": {"loss": "softmax", "target": BINNED, "features": FEATURES, "parameters": [[n, 1] for n in range(BINS)]}
}
PREDICTED = {"predict": {"link": "logistic", "features": LONG_RECORD, "parameters": [0.1] * (2 + BINS)}}
OWN_TOTAL = {"own": {"from": "visits", "sum": LONG, "where": {"le": [LONG, 2**40]}, "clip": [0, 100]}}
WORST = {
    "count": Worst(people=300_000, rows_each=0, query={}),
    "sum": Worst(people=300_000, rows_each=0, query={"select": SUMS[:1]}),
    "active": Worst(
        people=300_000, rows_each=0, query={"select": [{"active": {"share": 0.5}}], "group_by": ["age", "member"]}
    ),
    "groups": Worst(people=300_000, rows_each=0, query={"group_by": ["age", "member"]}),
    "many coordinates": Worst(people=300_000, rows_each=0, query={"select": [{"histogram": {"column": "wide"}}]}),
    "lists of values": Worst(people=300_000, rows_each=0, query={"where": {"not": LISTS}}),
    "calculated": Worst(
        people=300_000,
        rows_each=0,
        query={"select": [{"sum": {"of": LONG}}], "where": {"le": [LONG, 2**40]}, "group_by": [BINNED]},
    ),
    "calculated reals": Worst(
        people=300_000, rows_each=0, query={"select": [{"sum": {"of": WIDE}}], "where": {"le": [WIDE, 2**40]}}
    ),
    "events, calculated": Worst(
        people=20_000,
        rows_each=20,
        query={"from": "visits", "select": [{"sum": {"of": OWN}}], "group_by": [BINNED, "people.member"]} | SHORT,
    ),
    "functionals": Worst(
        people=20_000,
        rows_each=20,
        query={
            "from": "visits",
            "select": [
                {"linear": {"column": "age", "weights": [{"indices": list(range(60, 121)), "values": [9.5] * 61}] * 2}},
                {"linear": {"column": "wide", "weights": {"indices": list(range(2**14)), "values": [1] * 2**14}}},
            ],
        }
        | SHORT,
    ),
    "listed values": Worst(
        people=300_000,
        rows_each=0,
        query={"select": [{"histogram": {"column": "age", "values": AGES[::-1]}}], "group_by": ["member"]},
    ),
    "a matrix": Worst(people=20_000, rows_each=0, query={"select": MATRICES[:1]}),
    "a matrix of one functional": Worst(people=300_000, rows_each=0, query={"select": [matrix("age", 1, AGES)]}),
    "matrices": Worst(people=20_000, rows_each=3, query={"select": MATRICES, "group_by": ["age"]} | SHORT),
    "a large matrix": Worst(
        people=2000, rows_each=0, query={"select": [matrix("wide", 3, list(range(7000)), 2), {"count": {}}]}
    ),
    "events, matrices": Worst(
        people=20_000, rows_each=3, query={"from": "visits", "select": MATRICES, "group_by": ["age"]} | SHORT
    ),
    "one individual, matrices": Worst(
        people=1, rows_each=2**15, query={"from": "visits", "select": MATRICES, "group_by": ["age"]} | SHORT
    ),
    "first rows": Worst(
        people=20_000,
        rows_each=20,
        query={
            "from": "visits",
            "select": [{"count_individuals": {}}, {"count": {}}],
            "group_by": ["age"],
            "per_individual": {"l2_clip": 1.0, "rows": 19},
        },
    ),
    "moments": Worst(people=300_000, rows_each=0, query={"select": [{"moments": {"features": FEATURES}}]}),
    "moments of a long record": Worst(
        people=20_000, rows_each=0, query={"select": [{"moments": {"features": LONG_RECORD, "intercept": True}}]}
    ),
    "predictions": Worst(
        people=300_000, rows_each=0, query={"select": [{"sum": {"of": PREDICTED}}], "where": {"ge": [PREDICTED, 0.001]}}
    ),
    "own events": Worst(
        people=20_000, rows_each=20, query={"select": [{"sum": {"of": OWN_TOTAL}}], "where": {"ge": [OWN_TOTAL, 1]}}
    ),
    "a gradient": Worst(people=300_000, rows_each=0, query={"select": [LOGISTIC], "rule": "clip"} | SHORT),
    "a gradient of many classes": Worst(
        people=50_000, rows_each=0, query={"select": [SOFTMAX], "rule": "clip"} | SHORT
    ),
    "64 items": Worst(people=20_000, rows_each=3, query={"select": ITEMS} | SHORT),
    "events": Worst(people=20_000, rows_each=20, query={"from": "visits", "select": SUMS[:1]} | SHORT),
    "events, 64 items": Worst(
        people=20_000, rows_each=3, query={"from": "visits", "select": ITEMS, "group_by": ["age"]} | SHORT
    ),
    "events, many coordinates": Worst(
        people=20_000, rows_each=20, query={"from": "visits", "select": [{"histogram": {"column": "wide"}}]} | SHORT
    ),
    "one individual": Worst(
        people=1, rows_each=2**15, query={"from": "visits", "select": ITEMS, "group_by": ["age"]} | SHORT
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_the_peak_is_below_the_bound_and_above_a_tenth_of_it(name: str) -> None:
    """Read off what is allocated from the plan to the release, on data as large as is declared."""
    worst = WORST[name]
    memory = memory_of(worst.people, worst.rows_each)
    plan = reconcile_plan(memory.schema, worst.people, **worst.query)
    evaluated(plan, memory)  # what is made once, such as indexes, is the dataset's
    tracemalloc.start()
    try:
        release = evaluated(plan, memory)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert release.charged_count + release.left_out_count == worst.people
    bound_bytes = working_bytes(plan, memory.schema.tables[plan.table], capacity=worst.people)
    assert bound_bytes / 10 < peak_bytes < bound_bytes


@pytest.mark.parametrize("query", [{}, {"select": ITEMS} | SHORT, {"from": "visits", "select": ITEMS} | SHORT])
def test_the_bound_holds_for_one_individual_too(query: dict[str, Any]) -> None:
    """Where objects count and not what is in them."""
    memory = memory_of(1, 1)
    plan = reconcile_plan(memory.schema, 1, **query)
    evaluated(plan, memory)
    tracemalloc.start()
    try:
        evaluated(plan, memory)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < working_bytes(plan, memory.schema.tables[plan.table], capacity=1)


def test_more_rows_than_are_worked_on_at_a_time_take_no_more_memory() -> None:
    """400,000 rows of 64 items once took two gigabytes; what the bound grows by is what stays of each individual."""
    bounds = []
    for rows in (RUN_ENTRIES, 64 * RUN_ENTRIES):
        schema = schema_of(4096, rows_capacity=rows)
        plan = reconcile_plan(schema, 10_000, **{"from": "visits", "select": ITEMS} | SHORT)
        bounds.append(working_bytes(plan, schema.tables["visits"], capacity=10_000))

    assert bounds[1] - bounds[0] <= 40 * LISTED_MAX
    assert bounds[1] < 100 * 2**20


def test_one_individual_may_have_any_number_of_rows() -> None:
    """Its entries are added up part by part: the bound follows from the coordinates that they can be of."""
    bounds = []
    for rows_per_individual in (4096, 2**14, 2**20):
        schema = schema_of(rows_per_individual, rows_capacity=2**20)
        plan = reconcile_plan(schema, 10_000, **{"from": "visits", "select": ITEMS, "group_by": ["age"]} | SHORT)
        bounds.append(working_bytes(plan, schema.tables["visits"], capacity=10_000))

    assert bounds[0] < bounds[1]
    assert bounds[2] - bounds[1] <= 40 * 2**20


def test_equal_charges_take_less_than_charges_that_differ() -> None:
    """A count of individuals keeps one charge for all of them while it works."""
    schema = schema_of(1)
    count, total = reconcile_plan(schema, 10**6), reconcile_plan(schema, 10**6, select=SUMS[:1])

    assert working_bytes(count, schema.tables["people"], capacity=10**6) < working_bytes(
        total, schema.tables["people"], capacity=10**6
    )
