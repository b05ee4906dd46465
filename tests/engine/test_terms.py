"""A row's entries: where they stand, and what they are worth in grid steps."""

from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.arrays import uniform
from service.engine.errors import BrokenInvariant
from service.engine.memory import DatasetMemory
from service.engine.terms import Unit, Value, groups_of, stacked, terms_of
from service.query.coding import Coding
from service.query.plan import Plan
from tests.engine.worlds import SCHEMA, planned

CODINGS = DatasetMemory(SCHEMA).codings("people")
ROWS = 3


def reconcile_plan(**fields: Any) -> Plan:
    """A plan over the table of individuals."""
    plan = planned({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 10.0}} | fields)
    assert plan is not None
    return plan


@given(
    codes=st.lists(st.integers(0, 2**40), min_size=1, max_size=5),
    offset=st.integers(-(2**40), 2**40),
    shift=st.integers(-62, 20),
)
def test_a_value_is_rounded_half_up_to_the_grid(codes: list[int], offset: int, shift: int) -> None:
    """Exactly, also below zero; a grid finer than the column's step loses nothing."""
    term = Value(offset=0, column="c", coding_offset=offset, shift=shift)
    columns = {"c": np.array(codes, dtype=np.uint64)}
    wanted = [floor((code + offset) * Fraction(2) ** shift + Fraction(1, 2)) for code in codes]
    assert term.values(columns, len(codes)).tolist() == wanted
    stack = stacked([term, Unit(offset=1, column=None, value=7)], {"c": Coding(offset=offset, span=2**40, step_log2=0)})
    assert stack.values(stack.codes(columns, len(codes))).tolist() == [wanted, [7] * len(wanted)]


def test_coordinates_are_row_major_and_items_follow_each_other() -> None:
    """Groups outermost, in the order of group_by; then the items; then an item's own coordinates."""
    select = [{"count": {}}, {"histogram": {"column": "area"}}, {"sum": {"column": "level"}}]
    plan = reconcile_plan(select=select, group_by=["country", "member"])
    columns = {
        "country": np.array([0, 2, 1], dtype=np.uint8),
        "member": np.array([1, 0, 1], dtype=np.uint8),
        "area": np.array([4, 0, 2], dtype=np.uint8),
        "level": np.array([0, 5, 2], dtype=np.uint8),
    }
    bases = groups_of(plan, CODINGS).bases(columns, ROWS)
    assert bases.tolist() == [7, 28, 21]
    terms = terms_of(plan, CODINGS, rows_max=1)
    places = [term.coordinates(columns, bases).tolist() for term in terms]
    assert places == [[7, 28, 21], [12, 29, 24], [13, 34, 27]]
    values = [term.values(columns, ROWS).tolist() for term in terms]
    assert values == [[1, 1, 1], [1, 1, 1], [-2, 3, 0]]
    stack = stacked(terms, CODINGS)
    codes = stack.codes(columns, ROWS)
    assert stack.coordinates(codes, bases).tolist() == places
    assert stack.values(codes).tolist() == values


def test_null_is_known_to_be_none() -> None:
    """A term without a column has no NULL, and one with a column has one: the code above the domain."""
    select = [{"count": {}}, {"histogram": {"column": "area"}}, {"sum": {"column": "level"}}]
    stack = stacked(terms_of(reconcile_plan(select=select), CODINGS, rows_max=1), CODINGS)
    nulls = {name: np.array([0, CODINGS[name].null_code], dtype=CODINGS[name].dtype) for name in ("area", "level")}
    assert stack.known(stack.codes(nulls, 2)).tolist() == [[True, True], [True, False], [True, False]]
    swapped = nulls | {"area": nulls["area"][::-1]}
    assert stack.known(stack.codes(swapped, 2)).tolist() == [[True, True], [False, True], [True, False]]


def test_what_is_the_same_for_all_is_one_number() -> None:
    """A count without groups is a view of one coordinate and one value, whatever the number of people."""
    count = Unit(offset=3, column=None, value=5)
    bases = groups_of(reconcile_plan(), CODINGS).bases({}, ROWS)
    for numbers, number in ((count.coordinates({}, bases), 3), (count.values({}, ROWS), 5)):
        assert numbers.strides == (0,)
        assert numbers.tolist() == [number] * 3
    assert count.coordinates({}, uniform(0, 0)).tolist() == []


@pytest.mark.parametrize(
    ("change", "rows_max", "message"),
    [
        ({"clip_squared_steps": 0}, 1, "clip"),
        ({"grid_log2": 2}, 1, "too coarse to count"),
        ({"grid_log2": -61}, 2, r"2\^61"),
        ({"grid_log2": -61}, 1, None),
    ],
)
def test_bounds_are_checked_on_public_numbers(change: dict[str, Any], rows_max: int, message: str | None) -> None:
    """A plan that could leave int64 is not evaluated; one that just cannot is."""
    plan = replace(reconcile_plan(), **change)
    if message is None:
        assert terms_of(plan, CODINGS, rows_max=rows_max)
        return
    with pytest.raises(BrokenInvariant, match=message):
        terms_of(plan, CODINGS, rows_max=rows_max)


def test_a_grid_coarser_than_a_columns_steps_by_63_bits_is_refused() -> None:
    """Such a shift is not defined in int64; no plan has one."""
    codings = {"spend": Coding(offset=0, span=2**52, step_log2=-100)}
    plan = replace(reconcile_plan(select=[{"sum": {"column": "spend"}}]), grid_log2=-30)
    with pytest.raises(BrokenInvariant, match="too coarse for the column"):
        terms_of(plan, codings, rows_max=1)
