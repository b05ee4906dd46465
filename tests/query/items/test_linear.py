"""Linear functionals: their steps, their bounds, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.columns import Placed, Weighted
from service.query.conditions import All, Among, Conjunction, Disjunction, Predicate, Within
from service.query.items.linear import Functionals
from service.query.plan import Plan
from service.query.problems import QueryProblem
from tests.query.samples import body, matrix, plan_of, query, refused


def compiled(*select: dict[str, Any], **more: Any) -> Plan:
    """The plan of some items."""
    return plan_of(query(select=list(select), **more))


def weighed(column: str, weights: Any, **more: Any) -> Plan:
    """The plan of one item of weights."""
    return compiled({"linear": {"column": column, "weights": weights}}, **more)


@given(st.dictionaries(st.integers(0, 4), st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9), min_size=1))
def test_a_weight_is_kept_to_2_to_the_minus_51_of_the_largest(weights: dict[int, float]) -> None:
    """And exactly where all are whole; values that are not listed weigh nothing."""
    try:
        plan = weighed("area", {"indices": list(weights), "values": list(weights.values())}, noise={"share": 0.5})
    except QueryProblem as refusal:
        assert "always zero" in str(refusal)  # noqa: PT017 - a refusal is one of the two outcomes
        return
    column = plan.rows.columns[plan.layout.items[0].column or ""]
    assert isinstance(column.formula, Weighted)
    assert list(column.formula.codes) == sorted(weights)
    largest = max(abs(Fraction(weight)) for weight in weights.values())
    for code, steps in zip(column.formula.codes, column.formula.steps, strict=True):
        assert abs(steps * Fraction(2) ** column.coding.step_log2 - Fraction(weights[code])) <= largest / 2**51
        assert column.coding.offset <= steps <= column.coding.offset + column.coding.span
    assert column.coding.offset <= 0 <= column.coding.offset + column.coding.span


def test_labels_name_each_functional() -> None:
    """By its number where there are several; the bound is that of the value that weighs most."""
    one = weighed("country", {"indices": ["NO"], "values": [3]})
    two = weighed("country", [{"indices": ["NO"], "values": [3]}, {"indices": ["SE"], "values": [-4]}])
    assert one.answered.labels() == [{"select": "linear(country)"}]
    assert two.answered.labels() == [{"select": "linear(country)[0]"}, {"select": "linear(country)[1]"}]
    assert (one.scale.l2_charged, two.scale.l2_charged, one.scale.grid_log2, one.has_one_norm) == (3.0, 4.0, 0, False)


REFUSED: list[tuple[str, Any, str, str]] = [
    ("area", {"indices": [1, 5], "values": [1, 1]}, "weights.indices[1]", "must be an integer from 0 to 4"),
    ("area", {"indices": [1, 1], "values": [1, 1]}, "weights.indices[1]", "is listed a second time"),
    ("age", {"indices": [121], "values": [1]}, "weights.indices[0]", "is no value of the column"),
    ("age", {"indices": [1.5], "values": [1]}, "weights.indices[0]", "is no value of the column"),
    ("area", [{"indices": [9], "values": [1]}], "weights[0].indices[0]", "must be an integer"),
    ("spend", {"indices": [1], "values": [1]}, "column", "'spend' is a real column"),
    ("area", {"indices": [1], "values": [1, 2]}, "weights", "must have as many values as indices"),
    ("area", {"indices": [], "values": []}, "weights.indices", "must not be empty"),
    ("area", [], "weights", "must not be empty"),
    ("area", {"indices": [1], "values": [1e31]}, "weights.values[0]", "must be at most"),
    ("area", 5, "weights", "must be an object"),
]


@pytest.mark.parametrize(("column", "weights", "field", "message"), REFUSED)
def test_what_is_no_functional_is_named(column: str, weights: Any, field: str, message: str) -> None:
    """By its place."""
    with pytest.raises(QueryProblem) as refused:
        weighed(column, weights)
    error = refused.value.errors[0]
    assert error.field == f"select[0].linear.{field}"
    assert message in error.message


def test_a_query_has_a_bounded_number_of_functionals() -> None:
    """Each of them is worked out on every row; one whose weights are all zero is none."""
    many = {"linear": {"column": "area", "weights": [{"indices": [0], "values": [n + 1]} for n in range(64)]}}
    assert compiled(many).dimension == 64
    with pytest.raises(QueryProblem, match="more than 64 items and functionals"):
        compiled({"count": {}}, many)
    wanted = ("select", "is always zero within the declared bounds")
    assert refused(weighed, "area", {"indices": [1], "values": [0]}) == wanted


def by_starts(column: str, starts: list[Any], indices: list[Any], values: list[Any]) -> dict[str, Any]:
    """The item of a matrix as it is written."""
    return {"linear": {"column": column, "matrix": {"starts": starts, "indices": indices, "values": values}}}


def dense(item: Functionals, codes: tuple[int, ...]) -> dict[tuple[int, int], Fraction]:
    """The weights that are not zero, by functional and code."""
    found = {}
    for number, code in enumerate(codes):
        for place in range(item.matrix.starts[number], item.matrix.starts[number + 1]):
            weight = item.matrix.steps[place] * Fraction(2) ** item.matrix.step_log2
            found[item.matrix.functionals[place], code] = weight
    return found


WEIGHTS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 4)),
    st.sampled_from([0.0, 1.0, -2.0, 7.0]) | st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-3),
    min_size=1,
).filter(lambda weights: any(weights.values()))


@given(WEIGHTS)
def test_a_matrix_is_what_its_functionals_are_one_by_one(weights: dict[tuple[int, int], float]) -> None:
    """The weights by value are within 2^-51 of the largest; the bound is the longest column and no more."""
    ordered = sorted(weights)
    starts = [sum(functional < number for functional, _ in ordered) for number in range(5)]
    item = by_starts("area", starts, [code for _, code in ordered], [weights[place] for place in ordered])
    try:
        plan_ = compiled(item, noise={"share": 0.5})
    except QueryProblem as refusal:
        assert "would be lost in rounding" in str(refusal)  # noqa: PT017 - a refusal is one of the two outcomes
        return
    (found,) = plan_.layout.items
    assert isinstance(found, Functionals)
    formula = plan_.rows.columns[found.column].formula
    assert isinstance(formula, Placed)
    exact = {place: Fraction(weight) for place, weight in weights.items() if weight != 0}
    kept, largest = dense(found, formula.codes), max(abs(weight) for weight in exact.values())
    assert list(formula.codes) == sorted({code for _, code in kept})
    assert all(abs(kept.get(place, 0) - weight) <= largest / 2**52 for place, weight in exact.items())
    squared = [sum(weight**2 for (_, at), weight in kept.items() if at == code) for code in range(5)]
    assert plan_.scale.l2_charged == pytest.approx(float(max(squared)) ** 0.5, rel=1e-15)
    assert found.matrix.most == max(sum(at == code for _, at in kept) for code in range(5))
    assert (found.size, plan_.dimension, plan_.has_one_norm) == (4, 4, False)


def test_the_bound_is_the_longest_column_times_the_rows() -> None:
    """Not the largest weight in every functional: of 64 functionals of different values a row is in one."""
    disjoint, shared = [{value: 3.0} for value in range(64)], [{7: 3.0}] * 64
    for item, longest in ((matrix("item", *disjoint), 3), (matrix("item", *shared), 24)):
        noise = {"rho": 0.01}
        assert compiled(item, from_="visits", per_individual={"rows": 5}, noise=noise).scale.l2_charged == 5 * longest


def test_a_matrix_beside_other_items_adds_as_a_square() -> None:
    """A column of (3, 4) and a count."""
    both = compiled(matrix("area", {2: 3}, {2: 4}), {"count": {}})
    assert both.scale.l2_charged == 26**0.5
    assert (both.scale.grid_log2, both.scale.charged_squared_steps) == (0, 26)
    assert [label["select"] for label in both.answered.labels()] == ["linear(area)[0]", "linear(area)[1]", "count"]


OF_ITEM = {"linear": {"column": "item", "weights": {"indices": [4], "values": [1]}}}
OF_DAY = {"linear": {"column": "day", "weights": {"indices": [7], "values": [1]}}}
OF_AREA = {"linear": {"column": "area", "weights": {"indices": [4, 1, 2], "values": [1, 0, 2]}}}
SPREAD = matrix("area", {4: 1, 1: 0}, {2: 2})
LISTED = {"histogram": {"column": "country", "values": ["DK", "NO"]}}
COUNT: dict[str, Any] = {"count": {}}
OLD: dict[str, Any] = {"where": {"ge": [{"col": "age"}, 40]}}
VISITS: dict[str, Any] = {"from_": "visits", "per_individual": {"l2_clip": 9}}
CHOSEN: dict[str, Any] = {"from_": "visits", "per_individual": {"l2_clip": 9, "rows": 3}}
AREAS, COUNTRIES, AGES = Among("area", (2, 4)), Among("country", (0, 2)), Within("age", 40, 120)
LOOKED_AT: list[tuple[list[dict[str, Any]], dict[str, Any], Predicate]] = [
    ([OF_AREA], {}, AREAS),
    ([OF_AREA], OLD, Conjunction((AGES, AREAS))),
    ([SPREAD], {}, AREAS),
    ([LISTED], OLD, Conjunction((AGES, COUNTRIES))),
    ([SPREAD, LISTED], {}, Disjunction((AREAS, COUNTRIES))),
    ([OF_ITEM], VISITS, Within("item", 4, 4)),
    ([OF_ITEM, OF_DAY], VISITS, Disjunction((Within("item", 4, 4), Within("day", 7, 7)))),
    ([OF_ITEM, COUNT], VISITS, All()),  # a count adds for all rows
    ([SPREAD, COUNT], {}, All()),
    ([LISTED, {"histogram": {"column": "country"}}], {}, All()),
    ([OF_ITEM], CHOSEN, All()),  # `rows` counts rows whether or not they weigh anything
    ([{"histogram": {"column": "day", "values": [5]}}], CHOSEN, All()),
]


@pytest.mark.parametrize(("select", "more", "expected"), LOOKED_AT)
def test_rows_that_add_nothing_are_not_looked_at(select: list[Any], more: dict[str, Any], expected: Predicate) -> None:
    """The list of the values that weigh stands beside the conditions, unless another item or `rows` needs every row."""
    assert compiled(*select, **more).rows.predicate == expected


def test_a_listed_histogram_is_one_coordinate_a_value() -> None:
    """In the order of the list, named as the schema names them."""
    plan_ = compiled({"histogram": {"column": "age", "values": [40.0, 7]}}, group_by=["member"])
    assert plan_.answered.labels()[:2] == [{"member": False, "select": "histogram(age)", "age": age} for age in (40, 7)]
    assert (plan_.dimension, plan_.scale.charged_squared_steps, plan_.has_one_norm) == (4, 1, True)


def test_many_functionals_are_one_item() -> None:
    """1,000 of them, in 100 groups beside 63 other items; more coordinates than 2^20 are refused."""
    many = matrix("age", *({n % 121: 1.0} for n in range(1000)))
    assert compiled(many, group_by=["level"]).dimension == 6000
    with pytest.raises(QueryProblem, match="more than 1048576 coordinates"):
        compiled(many, group_by=["level", {"bin": {"column": "spend", "width": 2}}])


LOST = "would be lost in rounding"
REFUSED_MATRICES: list[tuple[dict[str, Any], str, str]] = [
    (by_starts("area", [0, 2], [1, 5], [1, 1]), "linear.matrix.indices[1]", "must be an integer from 0 to 4"),
    (by_starts("area", [0, 1, 3], [1, 1, 1], [1, 1, 1]), "linear.matrix.indices[2]", "is listed a second time: 1"),
    (by_starts("age", [0, 1], [121], [1]), "linear.matrix.indices[0]", "is no value of the column"),
    (by_starts("age", [0, 1], [1.5], [1]), "linear.matrix.indices[0]", "is no value of the column"),
    (by_starts("spend", [0, 1], [1], [1]), "linear.column", "'spend' is a real column"),
    (by_starts("area", [0, 1], [1], [1, 2]), "linear.matrix", "must have as many values as indices"),
    (by_starts("area", [0, 1], [1, 2], [1, 2]), "linear.matrix", "must have starts from 0 to the number of indices"),
    (by_starts("area", [1, 2], [1, 2], [1, 2]), "linear.matrix", "must have starts from 0 to the number of indices"),
    (by_starts("area", [], [1], [1]), "linear.matrix", "must have starts from 0 to the number of indices"),
    (by_starts("area", [0, 2, 1, 2], [1, 2], [1, 2]), "linear.matrix", "must have starts that never decrease"),
    (by_starts("area", [0, -1, 2], [1, 2], [1, 2]), "linear.matrix.starts[1]", "must be at least 0"),
    (by_starts("area", [0, 0.5, 2], [1, 2], [1, 2]), "linear.matrix.starts[1]", "must be a valid integer"),
    (by_starts("area", [0, 0], [], []), "linear.matrix.indices", "must not be empty"),
    (by_starts("area", [0, 1], [1], [0]), "linear.matrix.values", "must not all be zero"),
    (by_starts("area", [0, 1], [1], [1e31]), "linear.matrix.values[0]", "must be at most"),
    (matrix("area", {1: 0.1}, {1: 1e-16}), "linear.matrix.values", f"of functional 1 {LOST} beside the others"),
    (matrix("area", {1: 1000.5}, {1: 1e-9}), "", f"{LOST} beside the rest of select; ask it in a query of its own"),
    ({"linear": {"column": "area"}}, "linear", "must have either weights or matrix"),
    ({"histogram": {"column": "area", "values": []}}, "histogram.values", "must not be empty"),
    ({"histogram": {"column": "area", "values": [1, 7]}}, "histogram.values[1]", "must be an integer from 0 to 4"),
    ({"histogram": {"column": "age", "values": [1, 7, 1.0]}}, "histogram.values[2]", "is listed a second time"),
    (
        {"histogram": {"column": "country", "values": ["NO", "XX"]}},
        "histogram.values[1]",
        "must be a declared category",
    ),
    ({"histogram": {"column": "spend", "values": [1]}}, "histogram.column", "'spend' is a real column"),
]


@pytest.mark.parametrize(("item", "field", "message"), REFUSED_MATRICES)
def test_a_matrix_or_list_that_does_not_fit_is_named(item: dict[str, Any], field: str, message: str) -> None:
    """By its place."""
    with pytest.raises(QueryProblem) as refused:
        compiled(item)
    error = refused.value.errors[0]
    assert error.field == f"select[0].{field}".removesuffix(".")
    assert message in error.message


def test_a_functional_that_the_grid_would_lose_is_refused_and_a_weight_is_not() -> None:
    """The first has 256 steps on no grid that the clip allows; a small weight beside a large one is only rounded."""
    with pytest.raises(QueryProblem, match=LOST):
        compiled(matrix("area", {1: 1000.5}, {1: 1e-5}))
    assert compiled(matrix("area", {1: 1000.5, 2: 1e-5})).dimension == 1


def test_a_canonical_form_is_no_larger_than_a_query_may_be() -> None:
    """It is read again when an answer is verified; `1e20` is 21 digits there."""
    indices = list(range(10_000))
    long = {"linear": {"column": "item", "weights": {"indices": indices, "values": [1e20] * 10_000}}}
    assert len(body(query(select=[long])).replace(b"1e+20", b"1e20")) < 2**17
    with pytest.raises(QueryProblem) as refused:
        compiled(long, from_="visits", per_individual={"l2_clip": 1e20}, noise={"rho": 0.01})
    assert refused.value.errors[0].field == "body"
