"""The public scale: grid, clip, noise and worst case."""

from dataclasses import replace
from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.charge import worst_case_units
from service.core.laws import Gaussian
from service.core.mechanisms import GAUSSIAN_NOISE
from service.query.extents import NORM_SQUARED_MAX, TOTAL_MAX, Extent
from service.query.precision import FixedHalfWidth, FixedSize, Precision, WorstCase
from service.query.problems import QueryProblem
from service.query.scale import Scale, ScaleRequest, scale_of
from tests.query.samples import refused

ONE = Extent(low=1, high=1, step_log2=0, integral=True)
SIGMA_20 = FixedSize(field="noise.sigma", size=20)


def within(half_width: float, confidence: float = 0.95) -> FixedHalfWidth:
    """A half width that is asked for."""
    return FixedHalfWidth(
        field="noise.half_width", half_width=half_width, confidence=confidence, mechanism=GAUSSIAN_NOISE
    )


def integer(low: int, high: int) -> Extent:
    """The extent of an integer column."""
    return Extent(low=low, high=high, step_log2=0, integral=True)


def real(largest: float, low: float = 0) -> Extent:
    """The extent of a real column whose bounds are whole steps."""
    step_log2 = (int(largest).bit_length() if largest >= 1 else 1) - 52
    step = Fraction(2) ** step_log2
    return Extent(low=round(low / step), high=round(largest / step), step_log2=step_log2, integral=False)


def request(
    *extents: Extent, clip: float | None = None, noise: Precision = SIGMA_20, rows: int = 1, capacity: int = 10**6
) -> ScaleRequest:
    """A request for one of these sums."""
    return ScaleRequest(
        extents=extents, joint=extents, rows=rows, groups=1, capacity=capacity, l2_clip=clip, precision=noise
    )


def refused_field(asked: ScaleRequest) -> str:
    """The field for which a request is refused."""
    return refused(scale_of, asked)[0]


def test_what_is_added_once_is_bounded_by_groups_and_rows() -> None:
    """One individual of four rows is in at most four of its groups, once in each."""
    once = Extent(low=1, high=1, step_log2=0, integral=True, is_once=True)
    count = Extent(low=1, high=1, step_log2=0, integral=True)
    for groups, norm_squared in ((1, 1), (3, 3), (9, 4)):
        asked = replace(request(once, rows=4), groups=groups)
        assert scale_of(asked).clip_squared_steps == norm_squared
        both = replace(request(once, count, rows=4), groups=groups)
        assert scale_of(both).clip_squared_steps == norm_squared + 16


def test_counts_are_on_grid_1() -> None:
    """A person adds 1, the noise is whole, and nothing is scaled."""
    assert scale_of(request(ONE)) == Scale(
        grid_log2=0,
        clip_squared_steps=1,
        clip_binds=False,
        l2_clip=1.0,
        charged_squared_steps=1,
        l2_charged=1.0,
        law=Gaussian(20.0),
        worst_case_units=worst_case_units(1, 20.0),
    )


@pytest.mark.parametrize(
    ("half_width", "confidence", "sigma"),
    [
        (10, 0.95, 10.5 / 1.959964),
        (10.9, 0.95, 10.5 / 1.959964),
        (1, 0.95, 1.5 / 1.959964),
        (0.1, 0.9, 0.5 / 1.644854),  # nine in ten answers are exact
    ],
)
def test_a_half_width_on_grid_1_is_counted_in_whole_people(half_width: float, confidence: float, sigma: float) -> None:
    """10.9 people are 10 and no part of an eleventh; the noise may round to 10 from up to 10.5."""
    scale = scale_of(request(ONE, noise=within(half_width, confidence)))

    assert scale.grid_log2 == 0
    assert scale.size == pytest.approx(sigma, rel=1e-6)


def test_a_half_width_finds_a_grid_as_a_sigma_does() -> None:
    """The grid is chosen by the very sigma that the half width is on it."""
    scale = scale_of(request(real(500), noise=within(5000, 0.9)))

    assert scale == scale_of(request(real(500), noise=FixedSize(field="noise.sigma", size=scale.size)))
    assert scale.size == pytest.approx(5000 / 1.644854, rel=1e-6)


def test_select_items_add_as_squares_and_rows_add_as_numbers() -> None:
    """Different coordinates are orthogonal; all of a person's rows may fall on the same one."""
    scale = scale_of(request(ONE, integer(-7, 3), rows=10))

    assert scale.clip_squared_steps == 100 * (1 + 49)
    assert scale.l2_clip == pytest.approx(5000**0.5)


@pytest.mark.parametrize(
    ("clip", "noise", "grid_log2"),
    [
        (3.0, SIGMA_20, -23),  # s = 30 would make sigma 20 / 2^-28 > 2^28 steps; s = 25 is the largest that does not
        (4.0, SIGMA_20, -23),  # a power of two is its own upper end: 4 = 2^2
        (4.0, FixedSize(field="noise.sigma", size=0.5), -28),  # s = 30
        (4.0, FixedSize(field="noise.sigma", size=2.0**12), -16),  # s = 18, sigma exactly 2^28 steps
        (4.0, FixedSize(field="noise.sigma", size=2.0**16), -16),  # s = 18, sigma exactly 2^32 steps
    ],
)
def test_a_binding_clip_takes_the_finest_grid_that_the_noise_allows(
    clip: float, noise: Precision, grid_log2: int
) -> None:
    """The clip spans between 2^17 and 2^30 steps, and sigma at most 2^28 if that is possible."""
    scale = scale_of(request(integer(0, 100), clip=clip, noise=noise))

    assert scale.grid_log2 == grid_log2
    assert scale.clip_squared_steps == int(Fraction(clip) ** 2 / Fraction(4) ** grid_log2)
    assert scale.clip_binds
    assert scale.l2_clip == clip


def test_a_clip_above_the_natural_bound_changes_nothing() -> None:
    """The smaller of the two counts."""
    for extents in ([ONE], [real(500)], [ONE, integer(0, 120)]):
        assert scale_of(request(*extents, clip=1e6)) == scale_of(request(*extents))
    assert scale_of(request(ONE, clip=1.0)) == scale_of(request(ONE))


def test_a_real_bound_that_is_not_a_multiple_of_the_grid_does_not_bind_by_rounding() -> None:
    """The natural bound is counted in the steps that a value at the bound is rounded to."""
    scale = scale_of(request(real(0.3), noise=FixedSize(field="noise.sigma", size=1e3)))
    steps = isqrt(scale.clip_squared_steps)

    assert not scale.clip_binds
    assert steps**2 == scale.clip_squared_steps
    assert steps == int(Fraction(0.3) / Fraction(2) ** scale.grid_log2 + Fraction(1, 2))


def test_negative_values_are_rounded_half_up_too() -> None:
    """-1.5 steps are -1 and 1.5 steps are 2: the bound is the larger of what the two ends become."""
    assert Extent(low=-3, high=2, step_log2=-1, integral=False).steps(0) == 1
    assert Extent(low=-2, high=3, step_log2=-1, integral=False).steps(0) == 2
    assert Extent(low=-5, high=3, step_log2=1, integral=False).steps(0) == 10


def test_integers_too_large_for_grid_1_are_rounded_rather_than_refused() -> None:
    """An integer column over many rows: 4,096 x 10^9 has more than 2^30.5 steps, and rounding costs 2^-29 of it."""
    scale = scale_of(
        request(integer(0, 10**9), rows=4096, noise=WorstCase(field="noise.rho", units=2**40, mechanism=GAUSSIAN_NOISE))
    )

    assert scale.grid_log2 > 0
    assert scale.clip_squared_steps >= 4**17
    # 2^31 squared is more than a squared norm may be, whatever the capacity.
    assert scale_of(request(integer(0, 2**31), capacity=1)).grid_log2 == 1


def test_a_count_is_not_lost_beside_a_large_sum() -> None:
    """A grid above 1 would round every 1 to 0; the noise of more steps is drawn more slowly, but is still drawn."""
    scale = scale_of(request(ONE, real(1e7), noise=FixedSize(field="noise.sigma", size=1e9)))

    assert scale.grid_log2 == 0
    assert scale.law.size_steps > 2**28
    assert refused_field(request(ONE, real(1e12))) == "select[0]"
    assert refused_field(request(real(1e15), real(1.0), noise=FixedSize(field="noise.sigma", size=1e9))) == "select[1]"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (request(integer(0, 0)), "select"),
        (request(ONE, noise=FixedSize(field="noise.sigma", size=0.29)), "noise.sigma"),
        (request(ONE, noise=within(0.98)), "noise.half_width"),
        (request(ONE, noise=within(2e10)), "noise.half_width"),
        (request(ONE, noise=WorstCase(field="noise.rho", units=6 * 2**40, mechanism=GAUSSIAN_NOISE)), "noise.rho"),
        (request(ONE, noise=FixedSize(field="noise.sigma", size=2.0**32 + 1)), "noise.sigma"),
        (request(ONE, noise=WorstCase(field="noise.rho", units=1, mechanism=GAUSSIAN_NOISE), rows=2**20), "noise.rho"),
        (request(real(500), noise=FixedSize(field="noise.sigma", size=1e-8)), "noise.sigma"),
        (request(real(500), noise=FixedSize(field="noise.sigma", size=1e8)), "noise.sigma"),
        (request(real(1e15), clip=1e-3), "per_individual.l2_clip"),
        (request(ONE, capacity=2**62), "select"),
        (request(ONE, integer(0, 2**53), rows=4096), "select"),
    ],
)
def test_what_fits_no_grid_is_refused_by_its_field(asked: ScaleRequest, field: str) -> None:
    """Public numbers decide, and the field that the analyst can change is named."""
    assert refused_field(asked) == field


def test_the_refusal_says_which_sigma_will_do() -> None:
    """In query units, so that it can be used."""
    for sigma, said in ((0.1, "at least 0.3"), (1e10, "at most 4.29497e+09")):
        assert said in refused(scale_of, request(ONE, noise=FixedSize(field="noise.sigma", size=sigma)))[1]


@st.composite
def requests(draw: st.DrawFn) -> ScaleRequest:
    """Requests over the whole range that schema and language allow."""
    columns = st.one_of(
        st.just(ONE),
        st.tuples(st.integers(-(2**53), 2**53), st.integers(0, 2**53)).map(lambda ends: integer(min(ends), max(ends))),
        st.builds(
            lambda low, high, step_log2: Extent(low=low, high=high, step_log2=step_log2, integral=False),
            st.integers(-(2**52), 2**50),
            st.integers(2**51 + 1, 2**52),
            st.integers(-152, 50),
        ),
    )
    sigma = st.floats(1e-30, 1e40).map(lambda value: FixedSize(field="noise.sigma", size=value))
    width = st.builds(within, st.floats(1e-30, 1e40), st.floats(1e-9, 1 - 2**-53))
    units = st.integers(0, 61).map(lambda log2: WorstCase(field="noise.rho", units=2**log2, mechanism=GAUSSIAN_NOISE))
    extents = draw(st.lists(columns, min_size=1, max_size=3).map(tuple))
    return ScaleRequest(
        extents=extents,
        joint=extents,
        rows=draw(st.sampled_from([1, 2, 4096, 2**20])),
        groups=draw(st.sampled_from([1, 3, 2**20])),
        capacity=draw(st.sampled_from([1, 10**6, 2**31])),
        l2_clip=draw(st.none() | st.floats(1e-30, 1e30)),
        precision=draw(sigma | width | units),
    )


@settings(max_examples=300)
@given(requests())
def test_every_scale_keeps_its_bounds(asked: ScaleRequest) -> None:
    """Overflow, range of sigma, steps of the clip, and the charge: for whatever is not refused."""
    try:
        scale = scale_of(asked)
    except QueryProblem as problem:
        assert problem.errors[0].field.partition("[")[0] in {  # noqa: PT017 - a refusal is one of the two outcomes
            "select",
            "noise.sigma",
            "noise.half_width",
            "noise.rho",
            "per_individual.l2_clip",
        }
        return
    grid = Fraction(2) ** scale.grid_log2
    assert 0.3 <= scale.law.size_steps <= 2**32
    assert Fraction(scale.law.size_steps) * grid == Fraction(scale.size)
    assert scale.clip_squared_steps <= NORM_SQUARED_MAX
    assert scale.clip_squared_steps * asked.capacity**2 <= TOTAL_MAX**2
    assert all(extent.steps(scale.grid_log2) * asked.rows <= TOTAL_MAX for extent in asked.extents)
    assert scale.worst_case_units == worst_case_units(scale.clip_squared_steps, scale.law.size_steps)
    assert scale.grid_log2 == 0 or scale.clip_squared_steps >= 4**17 - 2**20
    assert scale.grid_log2 <= 0 or ONE not in asked.extents
    if asked.l2_clip is not None:
        assert scale.l2_clip <= asked.l2_clip
    if scale.clip_binds:
        assert scale.clip_squared_steps == int(Fraction(scale.l2_clip) ** 2 / grid**2)
