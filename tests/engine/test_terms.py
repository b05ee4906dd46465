"""A row's entries: where they stand, and what they are worth in grid steps."""

from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.arrays import uniform
from service.engine.memory import DatasetMemory
from service.engine.sparse_vectors import BrokenInvariant
from service.engine.terms import SingleTerm, Spread, Unit, Value, groups_of, stacked, terms_of
from service.query.columns import Coding
from service.query.items.linear import Functionals
from service.query.plan import Plan
from tests.engine.worlds import SCHEMA, plan_of, query_of
from tests.query.samples import changed, matrix

CODINGS = DatasetMemory(SCHEMA).codings["people"]
ROWS = 3


def plan_for(*items: dict[str, Any], **more: Any) -> Plan:
    """A plan over the table of individuals."""
    return plan_of(query_of(*items, **{"noise": {"sigma": 10.0}} | more))


def singles_of(plan: Plan) -> list[SingleTerm]:
    """The terms of one entry each."""
    return [term for term in terms_of(plan, CODINGS, rows_max=1) if not isinstance(term, Spread)]


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
    select: list[dict[str, Any]] = [{"count": {}}, {"histogram": {"column": "area"}}, {"sum": {"column": "level"}}]
    plan = plan_for(*select, group_by=["country", "member"])
    columns = {
        "country": np.array([0, 2, 1], dtype=np.uint8),
        "member": np.array([1, 0, 1], dtype=np.uint8),
        "area": np.array([4, 0, 2], dtype=np.uint8),
        "level": np.array([0, 5, 2], dtype=np.uint8),
    }
    bases = groups_of(plan, CODINGS).bases(columns, ROWS)
    assert bases.tolist() == [7, 28, 21]
    terms = singles_of(plan)
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
    select: list[dict[str, Any]] = [{"count": {}}, {"histogram": {"column": "area"}}, {"sum": {"column": "level"}}]
    stack = stacked(singles_of(plan_for(*select)), CODINGS)
    nulls = {name: np.array([0, CODINGS[name].null_code], dtype=CODINGS[name].dtype) for name in ("area", "level")}
    assert stack.known(stack.codes(nulls, 2)).tolist() == [[True, True], [True, False], [True, False]]
    swapped = nulls | {"area": nulls["area"][::-1]}
    assert stack.known(stack.codes(swapped, 2)).tolist() == [[True, True], [False, True], [True, False]]


def test_what_is_the_same_for_all_is_one_number() -> None:
    """A count without groups is a view of one coordinate and one value, whatever the number of people."""
    count = Unit(offset=3, column=None, value=5)
    bases = groups_of(plan_for(), CODINGS).bases({}, ROWS)
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
    plan = changed(plan_for(), **change)
    if message is None:
        assert terms_of(plan, CODINGS, rows_max=rows_max)
        return
    with pytest.raises(BrokenInvariant, match=message):
        terms_of(plan, CODINGS, rows_max=rows_max)


def test_a_grid_coarser_than_a_columns_steps_by_63_bits_is_refused() -> None:
    """Such a shift is not defined in int64; no plan has one."""
    codings = {"spend": Coding(offset=0, span=2**52, step_log2=-100)}
    plan = changed(plan_for({"sum": {"column": "spend"}}), grid_log2=-30)
    with pytest.raises(BrokenInvariant, match="too coarse for the column"):
        terms_of(plan, codings, rows_max=1)


def spread_of(plan: Plan, rows_max: int = 1) -> Spread:
    """The term of a plan of one matrix."""
    codings = {**CODINGS, **{name: column.coding for name, column in plan.rows.columns.items()}}
    (term,) = terms_of(plan, codings, rows_max=rows_max)
    assert isinstance(term, Spread)
    return term


def test_a_row_has_the_entries_of_its_value_at_its_group() -> None:
    """In the order of the functionals; a place that is NULL has none."""
    select = [matrix("area", {4: 3, 1: 1}, {1: -2}, {1: 5, 0: 7})]
    term = spread_of(plan_for(*select))
    codes = {"linear(area) 0": np.array([2, 3, 1, 0, 1], dtype=np.uint8)}  # areas 4, NULL, 1, 0 and 1
    found = term.entries(codes, np.array([0, 3, 6, 9, 0]))
    assert found.counts.tolist() == [1, 0, 3, 1, 3]
    assert found.coordinates.tolist() == [0, 6, 7, 8, 11, 0, 1, 2]
    assert found.values.tolist() == [3, 1, -2, 5, 7, 1, -2, 5]
    assert term.most == 3
    assert term.entries(codes, uniform(0, 5)).coordinates.tolist() == [0, 0, 1, 2, 2, 0, 1, 2]


@given(weights=st.lists(st.integers(-(2**22), 2**22), min_size=4, max_size=4), grid_log2=st.integers(-30, 1))
def test_weights_are_rounded_half_up_and_zeros_are_gone(weights: list[int], grid_log2: int) -> None:
    """On every grid: a weight that is zero there has no entry."""
    exact = [Fraction(5), *(Fraction(weight, 2**20) for weight in weights)]
    plan = plan_for(matrix("area", {area: float(weight) for area, weight in enumerate(exact)}))
    term = spread_of(changed(plan, grid_log2=grid_log2))
    wanted = [floor(weight / Fraction(2) ** grid_log2 + Fraction(1, 2)) for weight in exact if weight != 0]
    found = [
        term.entry_values[start : start + count].tolist() for start, count in zip(term.starts, term.counts, strict=True)
    ]
    assert found == [*([value] if value != 0 else [] for value in wanted), []]


@pytest.mark.parametrize(
    ("change", "rows_max", "message"),
    [
        ({"grid_log2": -59}, 1, r"2\^61"),
        ({"grid_log2": -57}, 2, None),
        ({"grid_log2": -57}, 9, r"2\^61"),
        ({"grid_log2": 63}, 1, "too coarse for the weights"),
    ],
)
def test_the_bounds_of_a_matrix_are_checked_on_public_numbers(
    change: dict[str, Any], rows_max: int, message: str | None
) -> None:
    """Its largest weight is 7."""
    plan = plan_for(matrix("area", {4: 7, 1: 1}, {1: -2}))
    if message is None:
        assert spread_of(changed(plan, **change), rows_max).most == 2
        return
    with pytest.raises(BrokenInvariant, match=message):
        spread_of(changed(plan, **change), rows_max)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_matrix_of_another_size_is_refused(size: int) -> None:
    """It would reach into another item's coordinates."""
    plan = plan_for(matrix("area", {4: 7, 1: 1}, {1: -2}))
    (item,) = plan.layout.items
    assert isinstance(item, Functionals)
    larger = changed(plan, items=(replace(item, size=size),))
    if size >= 2:
        assert spread_of(larger).most == 2
        return
    with pytest.raises(BrokenInvariant, match="not as large as it says"):
        spread_of(larger)


def test_a_matrix_of_other_values_is_refused() -> None:
    """A value would have no place in it."""
    plan = plan_for(matrix("area", {4: 7, 1: 1}, {1: -2}))
    (item,) = plan.layout.items
    assert isinstance(item, Functionals)
    with pytest.raises(BrokenInvariant, match="not as large as it says"):
        spread_of(changed(plan, items=(replace(item, column="area"),)))
