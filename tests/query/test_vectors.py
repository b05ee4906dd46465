"""The longest of many integer vectors, exactly, and the scale of a query that adds them."""

from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.extents import STEPS_MIN, Extent, Vectors, shifted
from service.query.precision import FixedSize
from service.query.problems import QueryProblem
from service.query.scale import ScaleRequest, scale_of

SIZES = st.integers(-(2**53) + 1, 2**53 - 1) | st.integers(-9, 9) | st.sampled_from([2**53 - 1, -(2**53) + 1, 0])
LISTS = st.lists(st.lists(SIZES, min_size=1, max_size=5), min_size=1, max_size=6)
SMALL = st.lists(st.lists(st.integers(-999, 999), min_size=1, max_size=5), min_size=1, max_size=6)
SHIFTS = st.sampled_from([-70, -56, -55, -54, -53, -20, -3, -1, 0, 1, 9, 80])


def vectors(lists: list[list[int]]) -> Vectors:
    """Vectors of plain lists."""
    starts = np.cumsum([0, *map(len, lists)])[:-1]
    return Vectors(starts=starts, entries=np.array([entry for each in lists for entry in each], dtype=np.int64))


def rounded(value: int, shift: int) -> int:
    """Half up, in fractions."""
    return floor(value * Fraction(2) ** shift + Fraction(1, 2))


@given(LISTS, SHIFTS)
def test_the_longest_vector_is_exact(lists: list[list[int]], shift: int) -> None:
    """However close two of them are, beyond what a double tells apart, and whatever rounding makes of them."""
    wanted = max(sum(rounded(value, shift) ** 2 for value in each) for each in lists)
    assert vectors(lists).largest_squared(shift) == wanted


@pytest.mark.parametrize("is_first", [True, False])
def test_two_vectors_that_are_one_double_are_told_apart(is_first: bool) -> None:
    """One is a single step longer in one entry."""
    long, short = [2**53 - 1, 2**53 - 2], [2**53 - 2, 2**53 - 2]
    lists = [long, short] if is_first else [short, long]
    assert vectors(lists).largest_squared(0) == (2**53 - 1) ** 2 + (2**53 - 2) ** 2


@given(st.lists(SIZES, min_size=1), SHIFTS.filter(lambda shift: shift < 8))
def test_rounding_is_half_up(values: list[int], shift: int) -> None:
    """A fraction is rounded alike, also below zero and by more bits than there are."""
    assert shifted(np.array(values, dtype=np.int64), shift).tolist() == [rounded(value, shift) for value in values]


def request(
    lists: list[list[int]], *, rows: int = 1, step_log2: int = 0, clip: float | None = None, least: int | None = None
) -> ScaleRequest:
    """A matrix alone, with such vectors for its values."""
    flat = [entry for each in lists for entry in each]
    extent = Extent(
        low=min(0, *flat),
        high=max(0, *flat),
        step_log2=step_log2,
        integral=step_log2 == 0,
        vectors=vectors(lists),
        least=least,
    )
    precision = FixedSize(field="noise.sigma", size=2e5)
    return ScaleRequest(
        extents=(extent,), joint=(extent,), rows=rows, groups=1, capacity=10**6, l2_clip=clip, precision=precision
    )


@given(SMALL.filter(lambda lists: any(map(any, lists))), st.integers(1, 7))
def test_a_row_costs_the_longest_vector(lists: list[list[int]], rows: int) -> None:
    """And rows add up as numbers, because all of them may be of that one value."""
    longest = max(sum(value**2 for value in each) for each in lists)
    scale = scale_of(request(lists, rows=rows))
    assert (scale.clip_squared_steps, scale.clip_binds, scale.grid_log2) == (longest * rows**2, False, 0)


def test_on_a_coarse_grid_the_bound_is_that_of_the_rounded_vectors() -> None:
    """The engine adds rounded weights, and no vector of them may be beyond what cannot bind."""
    lists = [[2**40 + 1, -(2**39)], [3 * 2**38]]
    scale = scale_of(request(lists, step_log2=-30))
    shift = -30 - scale.grid_log2
    assert shift < 0
    assert scale.clip_squared_steps == max(sum(rounded(value, shift) ** 2 for value in each) for each in lists)
    assert not scale.clip_binds


def test_the_smallest_functional_survives_the_grid_or_the_query_is_refused() -> None:
    """The largest weight of the matrix always does; a functional with 300 steps is too small beside one with 2^40."""
    lists = [[2**40], [300]]
    assert scale_of(request(lists, clip=2.0**38, least=2**40)).grid_log2 > 0
    with pytest.raises(QueryProblem, match="would be lost in rounding"):
        scale_of(request(lists, clip=2.0**38, least=300))
    (extent,) = request(lists, least=300).extents
    assert [extent.survives(grid_log2) for grid_log2 in (-1, 0, 1)] == [True, True, False]
    assert replace(extent, least=2 * STEPS_MIN).survives(1)
