"""Bounds of values: no value that the declared bounds admit is beyond them, and the ends are reached."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.declared_bounds import bounds_of
from tests.query.samples import columns_of, row_of

NUMBERS = st.integers(-20, 20) | st.fractions(-20, 20, max_denominator=8).map(float)


def operations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value that is calculated from others."""
    both = st.tuples(inner, inner | NUMBERS).map(list)
    return st.one_of(
        st.builds(lambda word, operands: {word: operands}, st.sampled_from(["add", "sub", "mul"]), both),
        inner.map(lambda value: {"abs": value}),
        st.tuples(inner, NUMBERS, NUMBERS).map(lambda clip: {"clip": [clip[0], *sorted(clip[1:])]}),
    )


VALUES = st.recursive(st.sampled_from([{"col": name} for name in ("age", "balance", "member")]), operations)
ROWS = st.tuples(
    st.integers(0, 120), st.fractions(Fraction(-7, 10), Fraction(1, 10), max_denominator=20), st.integers(0, 1)
)


def calculated(value: Any, row: dict[str, Fraction]) -> Fraction:
    """The value of a row, in fractions."""
    if not isinstance(value, dict):
        return Fraction(str(value))
    ((word, inner),) = value.items()
    if word == "col":
        return Fraction(row[inner])
    if word == "abs":
        return abs(calculated(inner, row))
    first, second, *more = (calculated(each, row) for each in inner)
    if word == "clip":
        return min(max(first, second), more[0])
    return {"add": first + second, "sub": first - second, "mul": first * second}[word]


@given(VALUES, st.lists(ROWS, min_size=1, max_size=5))
def test_bounds_hold_every_value(value: Any, rows: list[Any]) -> None:
    """Sums, differences, products, absolute values and clips of numbers and booleans."""
    bounds = bounds_of(row_of(value), columns_of("people"))
    assert bounds is not None
    low, high = bounds
    for row in rows:
        assert low <= calculated(value, dict(zip(("age", "balance", "member"), row, strict=True))) <= high


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ({"abs": {"col": "balance"}}, "0", "7/10"),
        ({"abs": {"sub": [{"col": "age"}, 200]}}, "80", "200"),
        ({"mul": [{"col": "balance"}, {"col": "balance"}]}, "-7/100", "49/100"),
        ({"clip": [{"col": "age"}, 100, 300]}, "100", "120"),
        ({"clip": [{"col": "age"}, 200, 300]}, "200", "200"),
        ({"sub": [{"col": "joined"}, {"col": "joined"}]}, "-3", "3"),
        ({"own": {"from": "visits", "count": {}, "clip": [0, 7.5]}}, "0", "15/2"),
        ({"predict": {"link": "logistic", "features": [{"of": {"col": "age"}}], "parameters": [0.5]}}, "0", "1"),
    ],
)
def test_bounds_are_those_of_the_decimals(value: Any, low: str, high: str) -> None:
    """A bound is the decimal as it is written: 0.1 is exactly one tenth."""
    assert bounds_of(row_of(value), columns_of("people")) == (Fraction(low), Fraction(high))


def test_a_prediction_has_the_bounds_of_a_clip_alone() -> None:
    """Its parameters may make it any number, and so what is calculated from it."""
    number = {"predict": {"link": "identity", "features": [{"of": {"col": "age"}}], "parameters": [0.5]}}
    for value in (number, {"abs": number}, {"mul": [{"col": "age"}, number]}):
        assert bounds_of(row_of(value), columns_of("people")) is None
    clipped = {"sub": [{"clip": [number, -1, 9]}, {"col": "age"}]}
    assert bounds_of(row_of(clipped), columns_of("people")) == (Fraction(-121), Fraction(9))
    with pytest.raises(TypeError, match="no bounds"):
        bounds_of("a text", columns_of("people"))
