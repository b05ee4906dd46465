"""The longest vector over items of one column: forms that mean the same have one bound, the largest that a row adds."""

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.plan import Plan
from tests.query.samples import matrix, plan_of, query

DAYS = st.integers(0, 364)
WEIGHTS = st.sampled_from([-3.0, -1.0, 1.0, 2.0, 7.0]) | st.sampled_from([0.1, -0.75, 2.5])
FUNCTIONALS = st.lists(st.dictionaries(DAYS, WEIGHTS, min_size=1, max_size=4), min_size=1, max_size=9)


def asked(*select: dict[str, Any], **more: Any) -> Plan:
    """The plan of some items of visits, one row an individual."""
    return plan_of(query(from_="visits", select=list(select), **{"per_individual": {"rows": 1}} | more))


def listed(functionals: list[dict[int, float]]) -> dict[str, Any]:
    """The functionals as a list."""
    weights = [{"indices": list(each), "values": list(each.values())} for each in functionals]
    return {"linear": {"column": "day", "weights": weights}}


def longest(functionals: list[dict[int, float]], beside: int = 0) -> float:
    """The root of the largest sum of squares that one day has; `beside` is added for every day."""
    days = {day for each in functionals for day in each}
    return sqrt(max(sum(each.get(day, 0.0) ** 2 for each in functionals) for day in days) + beside)


@given(functionals=FUNCTIONALS)
def test_a_list_of_functionals_is_bounded_as_its_matrix(functionals: list[dict[int, float]]) -> None:
    """By what one value weighs in all of them, whatever the steps of each, and whatever adds 1 for every row beside."""
    alone = asked(listed(functionals))
    assert alone.scale.l2_charged == pytest.approx(longest(functionals), rel=1e-12)
    assert alone.scale.l2_charged == pytest.approx(asked(matrix("day", *functionals)).scale.l2_charged, rel=1e-12)
    beside = asked(listed(functionals), {"histogram": {"column": "day"}})
    assert beside.scale.l2_charged == pytest.approx(longest(functionals, beside=1), rel=1e-12)


@given(first=FUNCTIONALS, second=FUNCTIONALS)
def test_items_are_bounded_together_however_they_are_divided(
    first: list[dict[int, float]], second: list[dict[int, float]]
) -> None:
    """A list, two lists, a list beside a matrix, and one item for each functional."""
    every = [*first, *second]
    together = asked(listed(every))
    for forms in (
        [listed(first), listed(second)],
        [listed(first), matrix("day", *second)],
        [matrix("day", *first), matrix("day", *second)],
    ):
        if forms[0] != forms[1]:
            assert asked(*forms).scale.l2_charged == pytest.approx(together.scale.l2_charged, rel=1e-12)


def test_listed_values_of_histograms_are_apart() -> None:
    """63 disjoint lists are one histogram: its bound is 1, and was nearly 8."""
    lists = [{"histogram": {"column": "day", "values": [5 * n, 5 * n + 1]}} for n in range(63)]
    assert asked(*lists).scale.l2_charged == 1
    assert asked(*lists, {"histogram": {"column": "item"}}).scale.l2_charged == pytest.approx(sqrt(2))


def test_a_sum_of_the_column_is_the_largest_at_a_value_that_is_listed_or_not() -> None:
    """364 squared for the last day, or its weight and the day; the largest day that no functional lists else."""
    total = {"sum": {"column": "day"}}
    assert asked(total, listed([{0: 5.0}, {1: 7.0}])).scale.l2_charged == 364
    assert asked(total, listed([{364: 100.0}])).scale.l2_charged == pytest.approx(sqrt(364**2 + 100**2))
    assert asked(total, listed([{363: 100.0}])).scale.l2_charged == pytest.approx(sqrt(363**2 + 100**2))
    assert asked(total, listed([{364: 0.0, 10: 1.0}])).scale.l2_charged == 364


def test_an_individual_is_in_one_group_by_its_own_columns() -> None:
    """By those of its events it may be in as many as it has rows, or as there are."""
    each: dict[str, Any] = {"count_individuals": {}}
    rows: dict[str, Any] = {"per_individual": {"rows": 5}}
    by = ["people.country", "people.area"]
    assert asked(each, group_by=by, **rows).scale.l2_charged == 1
    assert asked(each, group_by=["people.country", "day"], **rows).scale.l2_charged == pytest.approx(sqrt(5))
    own_and_not = {"bin": {"of": {"add": [{"col": "people.age"}, {"col": "day"}]}, "edges": [0, 9, 400]}}
    assert asked(each, group_by=[own_and_not], **rows).scale.l2_charged == pytest.approx(sqrt(2))
    own = {"bin": {"of": {"mul": [{"col": "people.age"}, 2]}, "edges": [0, 9, 400]}}
    assert asked(each, group_by=[own], **rows).scale.l2_charged == 1
