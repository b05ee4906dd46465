"""The public scale: grid, clip, noise and worst case, and the sigma of each of the four ways to ask for noise."""

from dataclasses import replace
from fractions import Fraction
from math import floor, isqrt, ldexp, nextafter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.core.charge import worst_case_units
from service.core.half_widths import sigma_steps_within
from service.core.laws import Gaussian
from service.query.extents import Extent
from service.query.noise_ast import HalfWidth, Rho, Share, Sigma
from service.query.problems import QueryProblem
from service.query.scale import (
    NORM_SQUARED_MAX,
    TOTAL_MAX,
    FixedHalfWidth,
    FixedSigma,
    Scale,
    ScaleRequest,
    SoughtPrecision,
    WorstCase,
    precision_of,
    scale_of,
)
from sparing import half_width
from tests.query.samples import BUDGET_UNITS, half_width_95, refused

ONE = Extent(low=1, high=1, step_log2=0, integral=True)
SIGMA_20 = FixedSigma(field="noise.sigma", sigma=20)


def within(half_width: float, confidence: float = 0.95) -> FixedHalfWidth:
    """A half width that is asked for."""
    return FixedHalfWidth(field="noise.half_width", half_width=half_width, confidence=confidence)


def integer(low: int, high: int) -> Extent:
    """The extent of an integer column."""
    return Extent(low=low, high=high, step_log2=0, integral=True)


def real(largest: float, low: float = 0) -> Extent:
    """The extent of a real column whose bounds are whole steps."""
    step_log2 = (int(largest).bit_length() if largest >= 1 else 1) - 52
    step = Fraction(2) ** step_log2
    return Extent(low=round(low / step), high=round(largest / step), step_log2=step_log2, integral=False)


def request(
    *extents: Extent, clip: float | None = None, noise: SoughtPrecision = SIGMA_20, rows: int = 1, capacity: int = 10**6
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

    assert scale == scale_of(request(real(500), noise=FixedSigma(field="noise.sigma", sigma=scale.size)))
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
        (4.0, FixedSigma(field="noise.sigma", sigma=0.5), -28),  # s = 30
        (4.0, FixedSigma(field="noise.sigma", sigma=2.0**12), -16),  # s = 18, sigma exactly 2^28 steps
        (4.0, FixedSigma(field="noise.sigma", sigma=2.0**16), -16),  # s = 18, sigma exactly 2^32 steps
    ],
)
def test_a_binding_clip_takes_the_finest_grid_that_the_noise_allows(
    clip: float, noise: SoughtPrecision, grid_log2: int
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
    scale = scale_of(request(real(0.3), noise=FixedSigma(field="noise.sigma", sigma=1e3)))
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
    scale = scale_of(request(integer(0, 10**9), rows=4096, noise=WorstCase(field="noise.rho", units=2**40)))

    assert scale.grid_log2 > 0
    assert scale.clip_squared_steps >= 4**17
    # 2^31 squared is more than a squared norm may be, whatever the capacity.
    assert scale_of(request(integer(0, 2**31), capacity=1)).grid_log2 == 1


def test_a_count_is_not_lost_beside_a_large_sum() -> None:
    """A grid above 1 would round every 1 to 0; the noise of more steps is drawn more slowly, but is still drawn."""
    scale = scale_of(request(ONE, real(1e7), noise=FixedSigma(field="noise.sigma", sigma=1e9)))

    assert scale.grid_log2 == 0
    assert scale.law.size_steps > 2**28
    assert refused_field(request(ONE, real(1e12))) == "select[0]"
    assert (
        refused_field(request(real(1e15), real(1.0), noise=FixedSigma(field="noise.sigma", sigma=1e9))) == "select[1]"
    )


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (request(integer(0, 0)), "select"),
        (request(ONE, noise=FixedSigma(field="noise.sigma", sigma=0.29)), "noise.sigma"),
        (request(ONE, noise=within(0.98)), "noise.half_width"),
        (request(ONE, noise=within(2e10)), "noise.half_width"),
        (request(ONE, noise=WorstCase(field="noise.rho", units=6 * 2**40)), "noise.rho"),
        (request(ONE, noise=FixedSigma(field="noise.sigma", sigma=2.0**32 + 1)), "noise.sigma"),
        (request(ONE, noise=WorstCase(field="noise.rho", units=1), rows=2**20), "noise.rho"),
        (request(real(500), noise=FixedSigma(field="noise.sigma", sigma=1e-8)), "noise.sigma"),
        (request(real(500), noise=FixedSigma(field="noise.sigma", sigma=1e8)), "noise.sigma"),
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
        assert said in refused(scale_of, request(ONE, noise=FixedSigma(field="noise.sigma", sigma=sigma)))[1]


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
    sigma = st.floats(1e-30, 1e40).map(lambda value: FixedSigma(field="noise.sigma", sigma=value))
    width = st.builds(within, st.floats(1e-30, 1e40), st.floats(1e-9, 1 - 2**-53))
    units = st.integers(0, 61).map(lambda log2: WorstCase(field="noise.rho", units=2**log2))
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


@pytest.mark.slow
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


@given(st.integers(1, 2**61), st.integers(1, 2**61))
@example(2, 15)  # the float estimate is too small by a little
def test_a_worst_case_gives_the_smallest_sigma_that_keeps_to_it(clip_squared_steps: int, units: int) -> None:
    """By the ledger's own arithmetic: the next smaller double would be charged a unit more than was offered."""
    sigma = WorstCase(field="noise.rho", units=units).sigma_steps(clip_squared_steps, 0)

    assert worst_case_units(clip_squared_steps, sigma) <= units
    assert worst_case_units(clip_squared_steps, nextafter(sigma, 0)) > units


@given(st.integers(1, 2**61), st.integers(1, 2**61))
def test_the_estimate_is_the_sigma_to_a_few_parts_in_10_to_the_15(clip_squared_steps: int, units: int) -> None:
    """So the grid is chosen by the sigma that will be used."""
    worst_case = WorstCase(field="noise.rho", units=units)

    assert worst_case.estimate(clip_squared_steps, 0) == pytest.approx(
        worst_case.sigma_steps(clip_squared_steps, 0), rel=1e-14
    )


@given(st.floats(1e-100, 1e100), st.integers(-130, 130))
def test_a_sigma_in_steps_is_exact(sigma: float, grid_log2: int) -> None:
    """A grid is a power of two."""
    fixed = precision_of(Sigma(sigma=sigma), budget_units=BUDGET_UNITS)

    assert Fraction(fixed.sigma_steps(1, grid_log2)) * Fraction(2) ** grid_log2 == Fraction(sigma)


CONFIDENCES = st.floats(1e-9, 0.999999) | st.sampled_from([0.5, 0.95, 1 - 1e-12, 1 - 2**-53])


@given(st.floats(1e-3, 1e6), CONFIDENCES, st.integers(-40, 10))
def test_a_half_width_is_held_in_whole_steps_of_the_grid(half_width: float, confidence: float, grid_log2: int) -> None:
    """Noise lies on the grid: what is asked for between two of its multiples is the lower one."""
    asked = HalfWidth(half_width=half_width, confidence=confidence)
    precision = precision_of(asked, budget_units=BUDGET_UNITS)

    assert precision == FixedHalfWidth(field="noise.half_width", half_width=half_width, confidence=confidence)
    held = sigma_steps_within(floor(Fraction(half_width) / Fraction(2) ** grid_log2), confidence)
    assert precision.sigma_steps(1, grid_log2) == precision.estimate(1, grid_log2) == held


@given(st.floats(0.5, 1e6), st.integers(-20, 10))
def test_the_95_percent_half_width_is_never_more_than_was_asked_for(half_width: float, grid_log2: int) -> None:
    """And less by less than a step of the grid; it is in query units."""
    steps = FixedHalfWidth(field="", half_width=half_width, confidence=0.95).sigma_steps(1, grid_log2)
    stated = half_width_95(sigma=ldexp(steps, grid_log2), grid_log2=grid_log2)

    assert half_width - 2.0**grid_log2 < stated <= half_width


@given(st.floats(0.3, 2.0**32), st.integers(-40, 10))
def test_the_python_client_works_out_the_same(sigma_steps: float, grid_log2: int) -> None:
    """It cannot import the service, and has the formula a second time."""
    sigma = ldexp(sigma_steps, grid_log2)

    assert half_width(sigma=sigma, grid=2.0**grid_log2) == half_width_95(sigma=sigma, grid_log2=grid_log2)


@pytest.mark.parametrize(("rho", "units"), [(2.0**-40, 1), (0.01, 10995116277), (2.0**21, 2**61)])
def test_a_rho_is_rounded_down_to_units(rho: float, units: int) -> None:
    """No individual is charged more than was offered."""
    assert precision_of(Rho(rho=rho), budget_units=BUDGET_UNITS) == WorstCase(field="noise.rho", units=units)


@pytest.mark.parametrize("rho", [2.0**-41, nextafter(2.0**21, 3e6) + 1, 1e100])
def test_a_rho_that_no_ledger_holds_is_refused(rho: float) -> None:
    """Below one unit, or above every limit."""
    with pytest.raises(QueryProblem, match=r"^noise\.rho: "):
        precision_of(Rho(rho=rho), budget_units=BUDGET_UNITS)


def test_a_confidence_of_next_to_nothing_is_refused() -> None:
    """It would make the interval a point and sigma infinite."""
    with pytest.raises(QueryProblem, match=r"^noise\.confidence: "):
        precision_of(HalfWidth(half_width=1.0, confidence=1e-20), budget_units=BUDGET_UNITS)


@given(st.floats(2.0**-30, 1), st.integers(2**31, 2**61))
def test_a_share_is_that_part_of_the_budget_rounded_down(share: float, budget_units: int) -> None:
    """No individual is charged more than the share."""
    asked = precision_of(Share(share=share), budget_units=budget_units)
    assert asked == WorstCase(field="noise.share", units=floor(Fraction(share) * budget_units))


@pytest.mark.parametrize(("share", "budget_units"), [(1e-9, 1000), (0.5, 1), (1, 0)])
def test_a_share_of_less_than_a_unit_is_refused(share: float, budget_units: int) -> None:
    """It would take endless noise."""
    with pytest.raises(QueryProblem, match=r"^noise\.share: is too small"):
        precision_of(Share(share=share), budget_units=budget_units)
