"""The three ways to ask for noise, and the sigma that each comes to."""

from fractions import Fraction
from math import nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from service.core.charge import worst_case_units
from service.query.language import HalfWidth, Rho, Sigma
from service.query.precision import FixedSigma, WorstCase, half_width_95, precision_of
from service.query.problems import QueryProblem


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
    fixed = precision_of(Sigma(sigma=sigma))

    assert Fraction(fixed.sigma_steps(1, grid_log2)) * Fraction(2) ** grid_log2 == Fraction(sigma)


@pytest.mark.parametrize("confidence", [1e-9, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-12, 1 - 2**-53])
def test_a_half_width_is_a_two_sided_normal_quantile(confidence: float) -> None:
    """Of the given confidence, also where one minus it is nearly nothing."""
    precision = precision_of(HalfWidth(half_width=10.0, confidence=confidence))

    assert isinstance(precision, FixedSigma)
    assert precision.field == "noise.half_width"
    assert precision.sigma == pytest.approx(10 / norm.isf((1 - confidence) / 2), rel=1e-7)


def test_the_95_percent_half_width_undoes_itself() -> None:
    """Asking for half a width at 95 % gives back that half width."""
    precision = precision_of(HalfWidth(half_width=10.0, confidence=0.95))

    assert isinstance(precision, FixedSigma)
    assert half_width_95(precision.sigma) == pytest.approx(10, rel=1e-12)
    assert half_width_95(1) == pytest.approx(1.9599639845400545, rel=1e-12)


@pytest.mark.parametrize(("rho", "units"), [(2.0**-40, 1), (0.01, 10995116277), (2.0**21, 2**61)])
def test_a_rho_is_rounded_down_to_units(rho: float, units: int) -> None:
    """No individual is charged more than was offered."""
    assert precision_of(Rho(rho=rho)) == WorstCase(field="noise.rho", units=units)


@pytest.mark.parametrize("rho", [2.0**-41, nextafter(2.0**21, 3e6) + 1, 1e100])
def test_a_rho_that_no_ledger_holds_is_refused(rho: float) -> None:
    """Below one unit, or above every limit."""
    with pytest.raises(QueryProblem, match=r"^noise\.rho: "):
        precision_of(Rho(rho=rho))


def test_a_confidence_of_next_to_nothing_is_refused() -> None:
    """It would make the interval a point and sigma infinite."""
    with pytest.raises(QueryProblem, match=r"^noise\.confidence: "):
        precision_of(HalfWidth(half_width=1.0, confidence=1e-20))
