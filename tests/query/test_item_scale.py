"""The scale of items one by one: sigma as asked, exact worst cases, steps enough for each, and refusals."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, isqrt, ldexp, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.charge import UNITS_PER_RHO
from service.core.laws import Gaussian
from service.query.extents import NORM_SQUARED_MAX, TOTAL_MAX, Extent, Vectors
from service.query.item_precision import ItemHalfWidths, ItemPrecision, ItemSigmas, ItemWorstCases
from service.query.item_scale import ITEM_STEPS_MIN, ItemScaleRequest, ScaleFacts, item_scale_of
from service.query.problems import QueryProblem
from service.query.scale import Scale
from tests.query.samples import refused

ONE = Extent(low=1, high=1, step_log2=0, integral=True)
ONCE = Extent(low=1, high=1, step_log2=0, integral=True, is_once=True)
PRICE = Extent(low=326, high=18_823, step_log2=0, integral=True)
REAL = Extent(low=-(2**51) - 5, high=2**52, step_log2=-40, integral=False)


def asked(
    precision: ItemPrecision, *items: tuple[Extent, ...], clips: tuple[float, ...] | None = None, **facts: Any
) -> ItemScaleRequest:
    """A request of these items."""
    known = ScaleFacts(extents=items, joint=items, **{"rows": 1, "groups": 1, "capacity": 10**6} | facts)
    return ItemScaleRequest(known=known, l2_clips=clips, precision=precision)


def sigmas(*each: float) -> ItemSigmas:
    """These standard deviations."""
    return ItemSigmas(field="noise.sigma", sigmas=each)


def test_each_item_has_the_sigma_that_is_asked_for() -> None:
    """In 2^28 steps of its own; the worst case is the sum of those of the items."""
    scale = item_scale_of(asked(sigmas(5.0, 93_750.0), (ONE,), (PRICE,)))
    steps = (2**28 // 5, 18_823 * 2**28 // 93_750)
    assert scale == Scale(
        grid_log2=0,
        clip_squared_steps=steps[0] ** 2 + steps[1] ** 2,
        clip_binds=False,
        l2_clip=sqrt(steps[0] ** 2 + steps[1] ** 2),
        charged_squared_steps=steps[0] ** 2 + steps[1] ** 2,
        l2_charged=sqrt(steps[0] ** 2 + steps[1] ** 2),
        law=Gaussian(2.0**28),
        worst_case_units=ceil(Fraction(steps[0] ** 2 + steps[1] ** 2, 2**57) * UNITS_PER_RHO),
        bounds=(1.0, 18_823.0),
        sigmas=(5.0, 93_750.0),
    )


@given(
    weights=st.tuples(st.integers(1, 2**38), st.integers(1, 2**38), st.integers(1, 2**38)), rows=st.integers(1, 1000)
)
def test_a_worst_case_is_kept_to_and_used(weights: tuple[int, int, int], rows: int) -> None:
    """By each item but for what truncating each row takes: a step of 2^18 or more."""
    items = ((ONE,), (PRICE, REAL), (ONCE,))
    precision = ItemWorstCases(field="noise.share", units=weights)
    try:
        scale = item_scale_of(asked(precision, *items, rows=rows, groups=7))
    except QueryProblem:
        return
    assert scale.worst_case_units <= sum(weights)
    assert scale.worst_case_units >= sum(weights) * (1 - rows * 2.0**-16) - 5
    for bound, sigma, units in zip(scale.bounds, scale.sigmas, weights, strict=True):
        rho = Fraction(bound) ** 2 / (2 * Fraction(sigma) ** 2)
        assert float(rho * UNITS_PER_RHO / units) == pytest.approx(1, abs=2.0**-20)


@given(
    each=st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)),
    rows=st.integers(1, 10_000),
    capacity=st.integers(1, 2**31),
)
def test_items_keep_steps_enough_and_sums_fit(each: tuple[float, float], rows: int, capacity: int) -> None:
    """Within the bound of each; sigma is a power of two in steps, and met exactly in query units."""
    try:
        scale = item_scale_of(asked(sigmas(*each), (ONE,), (REAL,), rows=rows, capacity=capacity))
    except QueryProblem:
        assume(False)
    assert scale.sigmas == each
    assert scale.law.size_steps.hex().startswith("0x1.0000000000000p")
    for bound, sigma in zip(scale.bounds, each, strict=True):
        assert bound >= ITEM_STEPS_MIN * sigma / scale.law.size_steps
    assert scale.clip_squared_steps <= NORM_SQUARED_MAX
    assert isqrt(scale.clip_squared_steps) * capacity <= TOTAL_MAX
    assert scale.law.size_steps <= 2.0**32


def test_steps_are_larger_where_numbers_would_not_fit_and_smaller_under_much_noise() -> None:
    """2^28 of them for one sigma as a rule."""
    assert item_scale_of(asked(sigmas(0.001, 1.0), (ONE,), (ONE,))).law.size_steps == 2.0**20
    assert item_scale_of(asked(sigmas(1.0, 1.0), (ONE,), (ONE,))).law.size_steps == 2.0**28
    many = asked(sigmas(1.0, 1.0), (ONE,), (ONE,), capacity=2**36)
    assert item_scale_of(many).law.size_steps == 2.0**24
    assert item_scale_of(asked(sigmas(3000.0, 1.0), (ONE,), (ONE,))).law.size_steps == 2.0**30


def test_a_half_width_is_no_more_than_asked_for() -> None:
    """Its sigma depends on nothing else."""
    precision = ItemHalfWidths(field="noise.half_width", half_widths=(10.0, 5000.0), confidence=0.95)
    scale = item_scale_of(asked(precision, (ONE,), (PRICE,)))
    assert scale.sigmas == pytest.approx((10 / 1.959964, 5000 / 1.959964))


def test_clips_bound_each_item_by_itself() -> None:
    """Or leave it its natural bound."""
    request = asked(sigmas(5.0, 1000.0), (ONE,), (PRICE,), clips=(1.5, 4000.0), rows=2)
    scale = item_scale_of(request)
    assert scale.bounds == (1.5, 4000.0)
    assert scale.clips_squared == (9 * 2**56 // 100, 16 * 2**56)
    assert scale.clip_binds
    natural = item_scale_of(replace(request, l2_clips=(2.0, 1e9)))
    unclipped = item_scale_of(replace(request, l2_clips=None))
    assert (natural.clip_binds, unclipped.clips_squared) == (False, ())
    assert sum(natural.clips_squared) == natural.clip_squared_steps == unclipped.clip_squared_steps


def test_a_matrix_is_bounded_by_its_longest_vector() -> None:
    """In steps that truncate toward zero."""
    vectors = Vectors(starts=np.array([0, 2]), entries=np.array([3, -4, 1]))
    matrix = Extent(low=-4, high=3, step_log2=0, integral=True, vectors=vectors, least=3)
    scale = item_scale_of(asked(sigmas(7.0, 1.0), (matrix,), (ONE,)))
    steps = [number * 2**28 // 7 for number in (3, 4)]
    assert scale.clip_squared_steps == steps[0] ** 2 + steps[1] ** 2 + 2**56
    assert scale.bounds == (5.0, 1.0)


def test_what_no_steps_suit_is_refused_by_its_field() -> None:
    """Too much noise, an item lost beside another, numbers too large, and an item that is always zero."""
    zero = Extent(low=0, high=0, step_log2=-900, integral=False)
    assert refused(item_scale_of, asked(sigmas(20_000.0, 5.0), (ONE,), (ONE,))) == (
        "noise.sigma",
        "must give select[0] a sigma of at most 16384",
    )
    assert refused(item_scale_of, asked(sigmas(1000.0, 1e-4), (ONE,), (ONE,))) == (
        "select[0]",
        "would be lost in rounding beside the other items; ask it in a query of its own",
    )
    for sigma in (1e-40, 1e-300, 5e-324):
        assert refused(item_scale_of, asked(sigmas(sigma, 1.0), (ONE,), (ONE,)))[0] == "noise.sigma"
    tiny = ItemHalfWidths(field="noise.half_width", half_widths=(5e-324, 1.0), confidence=0.95)
    assert refused(item_scale_of, asked(tiny, (ONE,), (ONE,)))[0] == "noise.half_width"
    assert refused(item_scale_of, asked(sigmas(1.0, 1.0), (ONE,), (zero,))) == (
        "select[1]",
        "is always zero within the declared bounds",
    )
    large, small = (Extent(low=0, high=1, step_log2=step_log2, integral=False) for step_log2 in (20, -20))
    assert refused(item_scale_of, asked(sigmas(1.0, 1e3), (ONE,), (large, small)))[0] == "select[1]"


def test_zero_beside_another_functional_is_zero_in_steps_of_any_size() -> None:
    """However small its own steps are."""
    zero = Extent(low=0, high=0, step_log2=-2000, integral=False)
    scale = item_scale_of(asked(sigmas(1.0, 1.0), (ONE, zero), (ONE,)))
    assert scale.clip_squared_steps == 2 * 2**56
    assert ldexp(1.0, 28) == scale.size
