"""The four ways to ask for noise, and the sigma that each comes to."""

from fractions import Fraction
from math import floor, ldexp, nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from service.core.charge import worst_case_units
from service.query.language import HalfWidth, Rho, Share, Sigma
from service.query.problems import QueryProblem
from service.query.scale import FixedHalfWidth, WorstCase, half_width_95, precision_of
from sparing import half_width
from tests.query.samples import BUDGET_UNITS


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


@pytest.mark.parametrize("confidence", [1e-9, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-12, 1 - 2**-53])
def test_on_a_fine_grid_a_half_width_is_a_two_sided_normal_quantile(confidence: float) -> None:
    """Of the given confidence, also where one minus it is nearly nothing."""
    precision = precision_of(HalfWidth(half_width=10.0, confidence=confidence), budget_units=BUDGET_UNITS)

    assert precision == FixedHalfWidth(field="noise.half_width", half_width=10.0, confidence=confidence)
    sigma = ldexp(precision.sigma_steps(1, -40), -40)
    assert sigma == pytest.approx(10 / norm.isf((1 - confidence) / 2), rel=1e-6)
    assert precision.estimate(1, -40) == precision.sigma_steps(1, -40)


@given(st.floats(1e-3, 1e6), st.floats(0.01, 0.999999), st.integers(-20, 10))
def test_a_half_width_buys_the_most_noise_that_it_holds(half_width: float, confidence: float, grid_log2: int) -> None:
    """Noise lies on the grid: what is asked for between two of its multiples is the lower one."""
    steps = floor(half_width / 2.0**grid_log2)
    sigma = FixedHalfWidth(field="", half_width=half_width, confidence=confidence).sigma_steps(1, grid_log2)

    assert 2 * norm.cdf((steps + 0.5) / sigma) - 1 == pytest.approx(confidence, abs=1e-12)


@given(st.floats(0.5, 1e6), st.integers(-20, 10))
def test_the_95_percent_half_width_is_never_more_than_was_asked_for(half_width: float, grid_log2: int) -> None:
    """And less by less than a step of the grid."""
    steps = FixedHalfWidth(field="", half_width=half_width, confidence=0.95).sigma_steps(1, grid_log2)
    stated = half_width_95(sigma=ldexp(steps, grid_log2), grid_log2=grid_log2)

    assert half_width - 2.0**grid_log2 < stated <= half_width


def test_a_half_width_is_in_query_units() -> None:
    """Whole steps, times the grid."""
    assert half_width_95(sigma=20.0, grid_log2=0) == 39.0
    assert half_width_95(sigma=20.0, grid_log2=2) == 40.0
    assert half_width_95(sigma=20.0, grid_log2=-40) == pytest.approx(20 * 1.9599639845400545, rel=1e-12)


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
