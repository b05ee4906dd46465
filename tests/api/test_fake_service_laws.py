"""The fake service compiles and counts random queries as the service does: same plans, same refusals, same sums."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.core import budget
from service.core.units import rho_of_units
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import Schema
from sparing import _testing_plan
from sparing._testing_dataset import budget_units, epsilon_of_units
from sparing._testing_plan import plan_of
from sparing._testing_problems import Refused
from sparing._testing_rows import DatasetRows, counted_steps
from sparing._testing_scale import rho_text
from sparing._testing_schema import schema_of
from tests.engine import worlds
from tests.query import samples

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FAKE_PLAN = _testing_plan.Plan
SAMPLES, WORLDS = schema_of(samples.TABLES), schema_of(worlds.TABLES)


def facts(plan: Plan | FAKE_PLAN) -> dict[str, Any]:
    """Everything public that both say of a query."""
    if isinstance(plan, Plan):
        return {
            "labels": plan.labels,
            "axes": plan.axes,
            "dimension": plan.dimension,
            "grid": 2.0**plan.grid_log2,
            "sigma": plan.sigma,
            "l2_clip": plan.l2_clip,
            "worst_case_rho": str(rho_of_units(plan.worst_case_units)),
            "query_hash": plan.query_hash,
        }
    return {
        "labels": plan.labels(),
        "axes": json.loads(json.dumps(plan.axes())),
        "dimension": plan.dimension,
        "grid": plan.scale.grid,
        "sigma": plan.scale.sigma,
        "l2_clip": plan.scale.l2_clip,
        "worst_case_rho": rho_text(plan.scale.worst_case_units),
        "query_hash": plan.query_hash,
    }


def real(query: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The facts of a query, or the field that is refused, with its text."""
    try:
        found = parse_query(json.dumps(query).encode())
        return facts(compile_query(found, schema, capacity=worlds.CAPACITY, budget_units=worlds.BUDGET_UNITS))
    except QueryProblem as problem:
        return {problem.errors[0].field: problem.errors[0].message}


def fake(query: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The same of the fake."""
    try:
        return facts(plan_of(query, schema, capacity=worlds.CAPACITY, budget_units=worlds.BUDGET_UNITS))
    except Refused as refusal:
        return dict(refusal.errors)


@QUICK
@given(samples.queries())
def test_a_query_of_every_kind_of_column_is_compiled_alike(query: dict[str, Any]) -> None:
    """Labels, axes, grid, sigma, clip, worst case and hash; or the same refusal."""
    assert fake(query, SAMPLES) == real(query, samples.SCHEMA)


@QUICK
@given(st.sampled_from(["people", "visits"]).flatmap(worlds.queries))
def test_a_query_of_every_kind_of_item_is_compiled_alike(query: dict[str, Any]) -> None:
    """With calculated values, bins, buckets, functionals and columns of the individual."""
    assert fake(query, WORLDS) == real(query, worlds.SCHEMA)


def counted_by_both(query: dict[str, Any], people: dict[int, Any], visits: list[Any]) -> tuple[list[int], list[int]]:
    """The sums of the engine and of the fake, in grid steps; nothing of a query that is refused."""
    plan = worlds.planned(query)
    if plan is None:
        return [], []
    total = [0] * plan.dimension
    for _, vector in worlds.vectors(plan, worlds.memory_of(people, [visits])).values():
        for place, steps in vector.items():
            total[place] += steps
    rows = DatasetRows(WORLDS)
    rows.add("people", [{"person_id": f"{slot}"} | row for slot, row in people.items()])
    rows.add("visits", [{"person_id": f"{slot}"} | row for slot, row in visits])
    found = plan_of(query, WORLDS, capacity=worlds.CAPACITY, budget_units=worlds.BUDGET_UNITS)
    return total, counted_steps(found, rows)


@QUICK
@given(st.data())
def test_a_query_counts_the_same(data: Any) -> None:
    """Number by number; where a vector is clipped, floats may leave a step of each individual between them."""
    people = data.draw(worlds.people())
    visits = data.draw(worlds.visits(people))
    query = data.draw(st.sampled_from(["people", "visits"]).flatmap(worlds.queries))

    engine, mine = counted_by_both(query, people, visits)

    assume(engine)
    slack = len(people) if "l2_clip" in query.get("per_individual", {}) else 0
    assert max(abs(one - other) for one, other in zip(engine, mine, strict=True)) <= slack


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "8", "50"])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.01"])
def test_a_budget_is_that_of_the_guarantee_to_nine_digits(epsilon: str, delta: str) -> None:
    """Of epsilon and delta; and back, for the epsilon of a charge."""
    certified = budget.budget_units(epsilon=Decimal(epsilon), delta=Decimal(delta))

    assert budget_units(Decimal(epsilon), Decimal(delta)) == pytest.approx(certified, rel=1e-9, abs=1)
    for units in (certified, certified // 1000):
        assert epsilon_of_units(units, Decimal(delta)) == pytest.approx(
            budget.epsilon_of_units(units, Decimal(delta)), rel=1e-9
        )


@pytest.mark.parametrize(
    ("rows", "expected"), [({"level": 9}, 3), ({"level": -7}, -2), ({"level": None}, 0), ({"country": "XX"}, 0)]
)
def test_values_out_of_their_domain_are_treated_as_in_an_upload(rows: dict[str, Any], expected: int) -> None:
    """Clipped, or NULL; one at a time, so that it is plain which."""
    blank = dict.fromkeys(worlds.TABLES["people"]["columns"])
    query = {"version": 1, "select": [{"sum": {"column": "level"}}], "noise": {"sigma": 30}}
    engine, mine = counted_by_both(query, {0: blank | {"level": 0} | rows}, [])

    assert mine == engine == [expected]
