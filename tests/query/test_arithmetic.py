"""Interval arithmetic: every result stays within its bounds and 60 bits, and is the exact one to the step it has."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.rows import RowView, TableRows
from service.query.arithmetic import BITS_MAX, Amount, clipped, difference, product, total, without_sign
from service.query.columns import Coding, QueryColumn, meant_by
from service.query.conditions import Nothing, Predicate, Within
from service.query.expressions_ast import ColumnRef
from service.query.problems import QueryProblem
from service.query.query_columns import QueryColumns
from service.query.row_columns import position_of, text_of
from service.query.schema import Schema
from tests.query.samples import SCHEMA, column_of, plan_of, query, refused, row_of


@st.composite
def columns(draw: st.DrawFn, name: str) -> QueryColumn:
    """A column of whole numbers or reals of any scale, with up to 53 bits."""
    low = draw(st.integers(-(2**52), 2**52))
    span = draw(st.integers(0, 2**53))
    step_log2 = draw(st.just(0) | st.integers(-60, 60))
    kind: Any = "integer" if step_log2 == 0 else "real"
    return QueryColumn(name=name, kind=kind, coding=Coding(offset=low, span=span, step_log2=step_log2))


def constant(name: str, steps: int, step_log2: int) -> QueryColumn:
    """A column whose bounds leave it one value."""
    return QueryColumn(name=name, kind="real", coding=Coding(offset=steps, span=0, step_log2=step_log2))


def evaluated(result: QueryColumn, codes: dict[str, int], of: list[QueryColumn]) -> int:
    """The code that the engine gives a row."""
    stored = {each.name: np.array([codes[each.name]], dtype=each.coding.dtype) for each in of}
    table = TableRows(stored=stored, columns={each.name: each for each in [*of, result]})
    return int(RowView(table, slice(0, 1))[result.name][0])


def value(column: QueryColumn, code: int) -> Fraction:
    """The number that a code stands for."""
    return (code + column.coding.offset) * Fraction(2) ** column.coding.step_log2


def largest(column: QueryColumn) -> Fraction:
    """The largest absolute value."""
    return max(abs(value(column, 0)), abs(value(column, column.coding.span)))


@settings(max_examples=200)
@given(data=st.data(), a=columns("a"), b=columns("b"))
def test_two_operands(data: st.DataObject, a: QueryColumn, b: QueryColumn) -> None:
    """Within 2^-29 of the larger operands, exactly where nothing had to be rounded; NULL in, NULL out."""
    codes = {each.name: data.draw(st.integers(0, each.coding.span)) for each in (a, b)}
    x, y = (value(each, codes[each.name]) for each in (a, b))
    for make, exact, scale in (
        (total, x + y, largest(a) + largest(b)),
        (difference, x - y, largest(a) + largest(b)),
        (product, x * y, largest(a) * largest(b)),
    ):
        result = make("r", Amount.of_column(a), Amount.of_column(b))
        assert max(map(abs, (result.coding.offset, result.coding.offset + result.coding.span))) < 2 ** (BITS_MAX + 1)
        code = evaluated(result, codes, [a, b])
        assert 0 <= code <= result.coding.span
        bound = Fraction(1, 2**28) if make is product else Fraction(1, 2**58)
        assert abs(value(result, code) - exact) <= scale * bound
        if result.kind == "integer":
            assert value(result, code) == exact
        for column in (a, b):
            assert evaluated(result, codes | {column.name: column.coding.null_code}, [a, b]) == result.coding.null_code


@pytest.mark.parametrize("make", [total, difference])
@pytest.mark.parametrize("zero", [Amount.of_number(0), Amount.of_column(constant("b", 0, 60))])
def test_adding_zero_rounds_nothing(make: Any, zero: Amount) -> None:
    """However much larger its steps are than those of the other operand."""
    a = QueryColumn(name="a", kind="real", coding=Coding(offset=1, span=2**52, step_log2=-100))
    result = make("r", Amount.of_column(a), zero)
    for code in (0, 1, 2**52):
        found = evaluated(result, {"a": code, "b": 0}, [a, constant("b", 0, 60)])
        assert value(result, found) == value(a, code)


@given(data=st.data(), a=columns("a"), low=st.integers(-(2**53), 2**53), width=st.integers(0, 2**53))
def test_one_operand(data: st.DataObject, a: QueryColumn, low: int, width: int) -> None:
    """Absolute values and clips are exact."""
    code = data.draw(st.integers(0, a.coding.span))
    absolute = without_sign("r", Amount.of_column(a))
    assert value(absolute, evaluated(absolute, {"a": code}, [a])) == abs(value(a, code))
    ends = [Fraction(end) * Fraction(2) ** a.coding.step_log2 for end in (low, low + width)]
    cut = clipped("r", Amount.of_column(a), *ends)
    assert value(cut, evaluated(cut, {"a": code}, [a])) == min(max(value(a, code), ends[0]), ends[1])
    for result in (absolute, cut):
        assert evaluated(result, {"a": a.coding.null_code}, [a]) == result.coding.null_code


@settings(max_examples=100)
@given(
    data=st.data(),
    a=columns("a"),
    ends=st.tuples(*[st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 0.7, 1.25, 1e300])] * 2),
)
def test_a_clip_has_steps_that_hold_its_ends(data: st.DataObject, a: QueryColumn, ends: tuple[float, float]) -> None:
    """However coarse those of its value are; ends of any size leave a number that the engine can hold."""
    low, high = sorted(map(meant_by, ends))
    code = data.draw(st.integers(0, a.coding.span))
    cut = clipped("r", Amount.of_column(a), low, high)
    found = value(cut, evaluated(cut, {"a": code}, [a]))
    exact = min(max(value(a, code), low), high)
    step = Fraction(2) ** cut.coding.step_log2
    assert abs(found - exact) <= cut.error <= max(max(largest(a), largest(cut)) * Fraction(1, 2**51), step / 2)


def test_the_ends_of_a_clip_are_not_rounded_to_halves() -> None:
    """The ends 0.1 and 0.7 once were, beside whole numbers and a half."""
    a = QueryColumn(name="a", kind="real", coding=Coding(offset=0, span=4, step_log2=-1))
    cut = clipped("r", Amount.of_column(a), meant_by(0.1), meant_by(0.7))
    found = [float(value(cut, evaluated(cut, {"a": code}, [a]))) for code in range(3)]
    assert found == pytest.approx([0.1, 0.5, 0.7], abs=1e-15)


@given(number=st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False), a=columns("a"))
def test_a_constant_of_any_size_has_a_result(number: float, a: QueryColumn) -> None:
    """Also 5e-324 beside 2^52."""
    for result in (
        total("r", Amount.of_number(number), Amount.of_column(a)),
        product("r", Amount.of_column(a), Amount.of_number(number)),
    ):
        assert 0 <= evaluated(result, {"a": 0}, [a]) <= result.coding.span


REFUSED: list[tuple[Any, str, str]] = [
    ({"add": [{"col": "nothing"}, 1]}, "v.add[0].col", "there is no column 'nothing' in this table"),
    ({"add": [{"col": "limit_rho"}, 1]}, "v.add[0].col", "'limit_rho' holds the individuals' limits; it is not data"),
    ({"mul": [{"col": "country"}, 1]}, "v.mul[0]", "must be a number; it is a category"),
    ({"mul": [1, "x"]}, "v.mul[1]", "must be a number; got 'x'"),
    ({"abs": {"col": "country"}}, "v.abs", "must be a number; it is a category"),
    ({"sub": [{"col": "joined"}, {"col": "age"}]}, "v.sub[0]", "must be a number; it is a date"),
    ({"clip": [{"col": "age"}, 5, 4]}, "v.clip[2]", "must not be below the lower bound"),
    ({"clip": [{"col": "age"}, 0, 4.5]}, "v.clip[2]", "must be a whole number, as the value is"),
    ({"add": [{"col": "people.age"}, 1]}, "v.add[0].col", "there is no column 'people.age' in this table"),
]


@pytest.mark.parametrize(("node", "field", "message"), REFUSED)
def test_what_has_no_value_is_named(node: Any, field: str, message: str) -> None:
    """By its place in the document."""
    found = refused(column_of, node)
    assert (found[0], found[1].startswith(message)) == (field, True)


@pytest.mark.parametrize("select", ["sum", "mean", "quantile"])
def test_a_value_beyond_what_doubles_square_is_refused(select: str) -> None:
    """A power of a large column had no double, and the query was an error of the server."""
    huge = Schema.model_validate(
        {
            "people": {
                "kind": "individuals",
                "key": "id",
                "columns": {"x": {"type": "real", "lower": -1e30, "upper": 1e30}},
            }
        }
    )
    value: Any = {"col": "x"}
    for power in (2, 4, 8, 16):
        value = {"mul": [value, value]}
        body: dict[str, Any] = {"of": value} | ({"probability": 0.5} if select == "quantile" else {})
        asked = query(select=[{select: body}], noise={"share": 0.1})
        if power > 2:
            field, message = refused(plan_of, asked, huge)
            assert message == "may be larger than 1e100 within the declared bounds"
            assert field == f"select[0].{select}.of" + ".mul[0]" * [4, 8, 16].index(power)
        elif select != "mean":
            assert plan_of(asked, huge).dimension >= 1


def test_a_budget_of_the_individuals_is_no_data_for_events_either() -> None:
    """Nor is anything but the table of individuals joined."""
    columns_of_visits = QueryColumns(SCHEMA, "visits")
    for name in ("people.limit_rho", "visits.day", "people.", "people.nothing", "people.person_id"):
        with pytest.raises(QueryProblem):
            columns_of_visits.named(name, "v")
    assert columns_of_visits.named("people.age", "v").coding == Coding(offset=0, span=120, step_log2=0)


PAIRS: list[tuple[str, str, bool, bool]] = [
    ("age", "spend", True, True),
    ("country", "country", False, True),
    ("country", "country", True, False),
    ("country", "grade", False, False),
    ("member", "member", False, True),
    ("member", "age", False, False),
    ("joined", "joined", True, True),
    ("joined", "age", False, False),
]


@pytest.mark.parametrize(("left", "right", "is_ordered", "is_allowed"), PAIRS)
def test_only_like_is_compared_with_like(left: str, right: str, is_ordered: bool, is_allowed: bool) -> None:
    """Numbers with numbers, a category with one of the same declaration, and only what has an order by order."""
    compared = QueryColumns(SCHEMA, "people")
    sides = ColumnRef(col=left), ColumnRef(col=right)
    if is_allowed:
        assert position_of(0, compared.compared(*sides, "w", is_ordered=is_ordered), "w") is not None
        return
    with pytest.raises(QueryProblem):
        compared.compared(*sides, "w", is_ordered=is_ordered)


@given(st.lists(st.sampled_from(["age", "level", "spend", 1, -1, 0.5]), min_size=3, max_size=3), st.data())
def test_different_values_have_different_texts(operands: list[Any], data: st.DataObject) -> None:
    """A plan names columns by them."""

    def node(operand: Any) -> Any:
        return {"col": operand} if isinstance(operand, str) else operand

    def made() -> Any:
        a, b, c = map(node, data.draw(st.permutations(operands)))
        first, second = (data.draw(st.sampled_from(["add", "sub", "mul"])) for _ in "ab")
        return {first: [{second: [a, b]}, c]} if data.draw(st.booleans()) else {first: [a, {second: [b, c]}]}

    one, other = row_of(made()), row_of(made())
    assert (text_of(one) == text_of(other)) == (one == other)


def test_a_calculated_value_of_few_steps_is_compared_exactly() -> None:
    """40.5 is not 40.6, though a literal beside a stored real is rounded to its steps."""
    half = {"add": [{"col": "age"}, 0.5]}

    def within(where: dict[str, Any]) -> Predicate:
        return plan_of(query(where=where)).rows.predicate

    name = "(age + 0.5)"
    assert within({"eq": [half, 40.6]}) == Nothing()
    assert within({"eq": [half, 40.5]}) == Within(name, 80, 80)
    assert within({"lt": [half, 40.6]}) == Within(name, 0, 80)
    assert within({"ge": [{"mul": [{"col": "age"}, 0.5]}, 20.2]}) == Within("(age * 0.5)", 41, 120)
