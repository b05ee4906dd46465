"""Linear functionals: their steps, their bounds, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.formulas import Weighted
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.predicate import All, Among, Conjunction, Disjunction, Predicate, Within
from service.query.problems import QueryProblem
from tests.query.samples import BUDGET_UNITS, CAPACITY, SCHEMA, body, query


def plan(column: str, weights: Any, **more: Any) -> Plan:
    """The plan of one item."""
    asked = query(select=[{"linear": {"column": column, "weights": weights}}], **more)
    return compile_query(parse_query(body(asked)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)


@given(st.dictionaries(st.integers(0, 4), st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9), min_size=1))
def test_a_weight_is_kept_to_2_to_the_minus_51_of_the_largest(weights: dict[int, float]) -> None:
    """And exactly where all are whole; values that are not listed weigh nothing."""
    try:
        compiled = plan("area", {"indices": list(weights), "values": list(weights.values())}, noise={"share": 0.5})
    except QueryProblem as refusal:
        assert "always zero" in str(refusal)  # noqa: PT017 - a refusal is one of the two outcomes
        return
    column = compiled.columns[compiled.items[0].column]  # type: ignore[union-attr]
    assert isinstance(column.formula, Weighted)
    assert list(column.formula.codes) == sorted(weights)
    largest = max(abs(Fraction(weight)) for weight in weights.values())
    for code, steps in zip(column.formula.codes, column.formula.steps, strict=True):
        assert abs(steps * Fraction(2) ** column.coding.step_log2 - Fraction(weights[code])) <= largest / 2**51
        assert column.coding.offset <= steps <= column.coding.offset + column.coding.span
    assert column.coding.offset <= 0 <= column.coding.offset + column.coding.span


def test_labels_name_each_functional() -> None:
    """By its number where there are several, with bounds that add up as squares."""
    one = plan("country", {"indices": ["NO"], "values": [3]})
    two = plan("country", [{"indices": ["NO"], "values": [3]}, {"indices": ["SE"], "values": [-4]}])
    assert one.labels == [{"select": "linear(country)"}]
    assert two.labels == [{"select": "linear(country)[0]"}, {"select": "linear(country)[1]"}]
    assert (one.l2_clip, two.l2_clip, one.grid_log2, one.has_one_norm) == (3.0, 5.0, 0, False)


def test_rows_that_weigh_nothing_are_not_looked_for_among_others() -> None:
    """Beside the conditions of a query of functionals alone stands the list of the values that weigh anything."""
    weights = {"indices": [4, 1, 2], "values": [1, 0, 2]}
    assert plan("area", weights).predicate == Among("area", (2, 4))
    assert plan("area", weights, where={"ge": [{"col": "age"}, 40]}).predicate == Conjunction(
        (Within("age", 40, 120), Among("area", (2, 4)))
    )


def test_every_row_is_looked_at_where_another_item_or_the_order_of_rows_counts() -> None:
    """A count beside the functional adds for all rows, and `rows` counts rows whether or not they weigh anything."""
    item = {"linear": {"column": "item", "weights": {"indices": [4], "values": [1]}}}

    def predicate_of(select: list[Any], **per_individual: int) -> Predicate:
        asked = query(select=select, per_individual={"l2_clip": 9, **per_individual}, **{"from": "visits"})
        compiled = compile_query(parse_query(body(asked)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
        return compiled.predicate

    assert predicate_of([item]) == Within("item", 4, 4)
    assert predicate_of([item, {"linear": {"column": "day", "weights": {"indices": [7], "values": [1]}}}]) == (
        Disjunction((Within("item", 4, 4), Within("day", 7, 7)))
    )
    assert predicate_of([item, {"count": {}}]) == All()
    assert predicate_of([item], rows=3) == All()


REFUSED: list[tuple[str, Any, str, str]] = [
    (
        "area",
        {"indices": [1, 5], "values": [1, 1]},
        "select[0].linear.weights.indices[1]",
        "must be an integer from 0 to 4",
    ),
    ("area", {"indices": [1, 1], "values": [1, 1]}, "select[0].linear.weights.indices[1]", "is listed a second time"),
    ("age", {"indices": [121], "values": [1]}, "select[0].linear.weights.indices[0]", "is no value of the column"),
    ("age", {"indices": [1.5], "values": [1]}, "select[0].linear.weights.indices[0]", "is no value of the column"),
    ("area", [{"indices": [9], "values": [1]}], "select[0].linear.weights[0].indices[0]", "must be an integer"),
    ("spend", {"indices": [1], "values": [1]}, "select[0].linear.column", "'spend' is a real column"),
    ("area", {"indices": [1], "values": [1, 2]}, "select[0].linear.weights", "must have as many values as indices"),
    ("area", {"indices": [], "values": []}, "select[0].linear.weights.indices", "must not be empty"),
    ("area", [], "select[0].linear.weights", "must not be empty"),
    ("area", {"indices": [1], "values": [1e31]}, "select[0].linear.weights.values[0]", "must be at most"),
    ("area", {"indices": [1], "values": [0]}, "select", "is always zero within the declared bounds"),
    ("area", 5, "select[0].linear.weights", "must be an object"),
]


@pytest.mark.parametrize(("column", "weights", "field", "message"), REFUSED)
def test_what_is_no_functional_is_named(column: str, weights: Any, field: str, message: str) -> None:
    """By its place."""
    with pytest.raises(QueryProblem) as refused:
        plan(column, weights)
    error = refused.value.errors[0]
    assert error.field == field
    assert message in error.message


def test_a_query_has_a_bounded_number_of_functionals() -> None:
    """Each of them is worked out on every row."""
    weights = [{"indices": [0], "values": [n + 1]} for n in range(64)]
    assert plan("area", weights).dimension == 64
    asked = query(select=[{"count": {}}, {"linear": {"column": "area", "weights": weights}}])
    with pytest.raises(QueryProblem, match="more than 64 items and functionals"):
        compile_query(parse_query(body(asked)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
