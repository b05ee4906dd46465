"""The public bound on working memory, held against what evaluations allocate."""

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from service.core.release import Release
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.plan import Plan
from service.query.runs import RUN_ENTRIES
from service.query.schema import Schema
from service.query.working_memory import LISTED_MAX, working_bytes
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.query.samples import matrix, plan_of, query

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "member": {"type": "boolean"},
    "wide": {"type": "category", "size": 2**20},
} | {f"amount_{number}": {"type": "real", "lower": 0, "upper": 9} for number in range(63)}
SUMS: list[Any] = [{"sum": {"column": f"amount_{number}"}} for number in range(63)]
ITEMS = [*SUMS, {"count": {}}]
SHORT: dict[str, Any] = {"per_individual": {"l2_clip": 1.0}}
_MEMORIES: dict[tuple[int, int], DatasetMemory] = {}


def schema_of(rows_per_individual: int, **fields: int) -> Schema:
    """People and events with the same columns."""
    events = {"kind": "events", "key": "id", "columns": COLUMNS, "rows_per_individual": rows_per_individual} | fields
    return Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}, "visits": events})


def memory_of(people: int, rows_each: int) -> DatasetMemory:
    """A memory with `people` individuals, each with `rows_each` rows."""
    if (people, rows_each) not in _MEMORIES:
        schema = schema_of(max(rows_each, 1), rows_capacity=max(people * rows_each, 1))
        memory, rng = DatasetMemory(schema), np.random.default_rng(1)
        for table, rows in (("people", people), ("visits", people * rows_each)):
            codes = {
                name: rng.integers((coding.span + 1) // 2, coding.span, rows, dtype=coding.dtype, endpoint=True)
                for name, coding in memory.codings[table].items()
            }
            if table == "people":
                memory.add_individuals(np.arange(people), codes, np.full(people, 2**60))
            else:
                memory.add_events("visits", np.repeat(np.arange(people), rows_each), codes)
        _MEMORIES[people, rows_each] = memory
    return _MEMORIES[people, rows_each]


def plan_for(schema: Schema, capacity: int, **asked: Any) -> Plan:
    """The plan of a query."""
    return plan_of(query(**{"noise": {"sigma": 1000.0}} | asked), schema, capacity=capacity)


def peak_of(plan: Plan, memory: DatasetMemory) -> tuple[int, Release]:
    """The most bytes that are allocated at a time from the plan to the release, the second time that it is asked."""

    def evaluated() -> Release:
        return answer(contributions(plan, memory), memory.accounts, plan.terms, entropy=seeded(1))

    evaluated()  # what is made once, such as indexes, is the dataset's
    tracemalloc.start()
    try:
        release = evaluated()
        return tracemalloc.get_traced_memory()[1], release
    finally:
        tracemalloc.stop()


@dataclass(frozen=True, kw_only=True)
class Worst:
    """A query that chooses every individual with every row."""

    people: int
    rows_each: int
    query: dict[str, Any]


def crowd(people: int = 300_000, rows_each: int = 0, **query: Any) -> Worst:
    """A query of so many people, perhaps with events."""
    return Worst(people=people, rows_each=rows_each, query=query)


def of_visits(rows_each: int, people: int = 20_000, **query: Any) -> Worst:
    """A query of their events, with a clip."""
    return crowd(people, rows_each, **{"from": "visits"} | SHORT | query)


AGE = {"col": "age"}
LONG = {"mul": [{"add": [AGE, {"abs": {"sub": [AGE, 40]}}]}, {"clip": [{"mul": [AGE, AGE]}, 0, 5000]}]}
OWN = {"add": [LONG, {"mul": [{"col": "people.age"}, AGE]}]}
PAIRS = [{"add": [{"col": f"amount_{n}"}, {"col": f"amount_{n + 1}"}]} for n in range(0, 8, 2)]
WIDE = {"add": [{"add": PAIRS[:2]}, {"mul": PAIRS[2:]}]}
BINNED = {"bin": {"column": "age", "width": 0.5}}
BINS = 240
LISTS = {"or": [{"in": [{"col": "wide"}, list(range(start, 2000, 7))]} for start in range(4)]}
AGES = list(range(60, 121))


def alike(column: str, functionals: int, values: list[int], weight: float = 0.5) -> dict[str, Any]:
    """The item of functionals that all weigh the same values."""
    return matrix(column, *[dict.fromkeys(values, weight)] * functionals)


MATRICES = [alike("age", 32, AGES), alike("age", 31, AGES, 1.5), {"count": {}}]
FEATURES = [{"of": {"mul": [{"add": [AGE, {"col": "amount_1"}]}, 0.001]}}, {"of": {"mul": [AGE, 0.01]}, "fill": 0}]
LONG_RECORD = [*FEATURES, {"one_hot": BINNED}]
MODEL: dict[str, Any] = {"features": FEATURES}
LOGISTIC = {"gradient": MODEL | {"loss": "logistic", "target": {"col": "member"}, "parameters": [0.3, -1]}}
SOFTMAX = {"gradient": MODEL | {"loss": "softmax", "target": BINNED, "parameters": [[n, 1] for n in range(BINS)]}}
PREDICTED = {"predict": {"link": "logistic", "features": LONG_RECORD, "parameters": [0.1] * (2 + BINS)}}
OWN_TOTAL = {"own": {"from": "visits", "sum": LONG, "where": {"le": [LONG, 2**40]}, "clip": [0, 100]}}
LINEAR_AGE = {"linear": {"column": "age", "weights": [{"indices": AGES, "values": [9.5] * 61}] * 2}}
LINEAR_WIDE = {"linear": {"column": "wide", "weights": {"indices": list(range(2**14)), "values": [1] * 2**14}}}
LISTED_AGES = {"histogram": {"column": "age", "values": AGES[::-1]}}
OF_WIDE = [{"histogram": {"column": "wide"}}]
WORST = {
    "count": crowd(),
    "sum": crowd(select=SUMS[:1]),
    "active": crowd(select=[{"active": {"share": 0.5}}], group_by=["age", "member"]),
    "groups": crowd(group_by=["age", "member"]),
    "many coordinates": crowd(select=OF_WIDE),
    "lists of values": crowd(where={"not": LISTS}),
    "calculated": crowd(select=[{"sum": {"of": LONG}}], where={"le": [LONG, 2**40]}, group_by=[BINNED]),
    "calculated reals": crowd(select=[{"sum": {"of": WIDE}}], where={"le": [WIDE, 2**40]}),
    "events, calculated": of_visits(20, select=[{"sum": {"of": OWN}}], group_by=[BINNED, "people.member"]),
    "functionals": of_visits(20, select=[LINEAR_AGE, LINEAR_WIDE]),
    "listed values": crowd(select=[LISTED_AGES], group_by=["member"]),
    "a matrix": crowd(20_000, select=MATRICES[:1]),
    "a matrix of one functional": crowd(select=[alike("age", 1, AGES)]),
    "matrices": crowd(20_000, 3, select=MATRICES, group_by=["age"], **SHORT),
    "a large matrix": crowd(2000, select=[alike("wide", 3, list(range(7000)), 2), {"count": {}}]),
    "events, matrices": of_visits(3, select=MATRICES, group_by=["age"]),
    "one individual, matrices": of_visits(2**15, 1, select=MATRICES, group_by=["age"]),
    "first rows": of_visits(
        20,
        select=[{"count_individuals": {}}, {"count": {}}],
        group_by=["age"],
        per_individual={"l2_clip": 1.0, "rows": 19},
    ),
    "moments": crowd(select=[{"moments": {"features": FEATURES}}]),
    "moments of a long record": crowd(20_000, select=[{"moments": {"features": LONG_RECORD, "intercept": True}}]),
    "predictions": crowd(select=[{"sum": {"of": PREDICTED}}], where={"ge": [PREDICTED, 0.001]}),
    "own events": crowd(20_000, 20, select=[{"sum": {"of": OWN_TOTAL}}], where={"ge": [OWN_TOTAL, 1]}),
    "a gradient": crowd(select=[LOGISTIC], rule="clip", **SHORT),
    "a gradient of many classes": crowd(50_000, select=[SOFTMAX], rule="clip", **SHORT),
    "64 items": crowd(20_000, 3, select=ITEMS, **SHORT),
    "events": of_visits(20, select=SUMS[:1]),
    "events, 64 items": of_visits(3, select=ITEMS, group_by=["age"]),
    "events, many coordinates": of_visits(20, select=OF_WIDE),
    "one individual": of_visits(2**15, 1, select=ITEMS, group_by=["age"]),
}


@pytest.mark.parametrize("name", WORST)
def test_the_peak_is_below_the_bound_and_above_a_tenth_of_it(name: str) -> None:
    """Read off what is allocated from the plan to the release, on data as large as is declared."""
    worst = WORST[name]
    memory = memory_of(worst.people, worst.rows_each)
    plan = plan_for(memory.schema, worst.people, **worst.query)
    peak_bytes, release = peak_of(plan, memory)

    assert release.charged_count + release.left_out_count == worst.people
    bound_bytes = working_bytes(plan, memory.schema.tables[plan.rows.table], capacity=worst.people)
    assert bound_bytes / 10 < peak_bytes < bound_bytes


@pytest.mark.parametrize("query", [{}, {"select": ITEMS} | SHORT, {"from": "visits", "select": ITEMS} | SHORT])
def test_the_bound_holds_for_one_individual_too(query: dict[str, Any]) -> None:
    """Here objects count, and not what is in them."""
    memory = memory_of(1, 1)
    plan = plan_for(memory.schema, 1, **query)
    peak_bytes, _ = peak_of(plan, memory)
    assert peak_bytes < working_bytes(plan, memory.schema.tables[plan.rows.table], capacity=1)


def test_more_rows_than_are_worked_on_at_a_time_take_no_more_memory() -> None:
    """400,000 rows of 64 items once took two gigabytes; what the bound grows by is what stays of each individual."""
    bounds = []
    for rows in (RUN_ENTRIES, 64 * RUN_ENTRIES):
        schema = schema_of(4096, rows_capacity=rows)
        plan = plan_for(schema, 10_000, **{"from": "visits", "select": ITEMS} | SHORT)
        bounds.append(working_bytes(plan, schema.tables["visits"], capacity=10_000))

    assert bounds[1] - bounds[0] <= 40 * LISTED_MAX
    assert bounds[1] < 100 * 2**20


def test_one_individual_may_have_any_number_of_rows() -> None:
    """Its entries are added up part by part: the bound follows from the coordinates that they can be of."""
    bounds = []
    for rows_per_individual in (4096, 2**14, 2**20):
        schema = schema_of(rows_per_individual, rows_capacity=2**20)
        plan = plan_for(schema, 10_000, **{"from": "visits", "select": ITEMS, "group_by": ["age"]} | SHORT)
        bounds.append(working_bytes(plan, schema.tables["visits"], capacity=10_000))

    assert bounds[0] < bounds[1]
    assert bounds[2] - bounds[1] <= 40 * 2**20


def test_equal_charges_take_less_than_charges_that_differ() -> None:
    """A count of individuals keeps one charge for all of them while it works."""
    schema = schema_of(1)
    count, total = plan_for(schema, 10**6), plan_for(schema, 10**6, select=SUMS[:1])

    equal, different = (working_bytes(plan, schema.tables["people"], capacity=10**6) for plan in (count, total))
    assert equal < different
