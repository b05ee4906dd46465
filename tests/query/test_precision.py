"""The size of the noise by each way of asking for it."""

from fractions import Fraction
from math import floor, ldexp, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import PURE
from service.core.half_widths import scale_steps_within, sigma_steps_within
from service.core.mechanisms import GAUSSIAN_NOISE
from service.query.noise_ast import HalfWidth, LaplaceScale, Rho, Share, Sigma
from service.query.precision import FixedHalfWidth, FixedSize, WorstCase, precision_of
from service.query.problems import QueryProblem
from sparing import half_width
from tests.query.samples import BUDGET_UNITS, half_width_95

LAPLACE_NOISE = PURE.mechanisms["laplace"]


def test_laplace_noise_is_asked_for_by_its_scale_or_its_deviation() -> None:
    """A half width holds whole steps."""
    assert precision_of(LaplaceScale(scale=3.0), LAPLACE_NOISE, budget_units=1) == FixedSize(
        field="noise.scale", size=3.0
    )
    by_sigma = precision_of(Sigma(sigma=3.0), LAPLACE_NOISE, budget_units=1)
    assert by_sigma.size_steps(1, 0) == 3.0 / 2**0.5
    width = precision_of(HalfWidth(half_width=3.0, confidence=0.95), LAPLACE_NOISE, budget_units=1)
    assert width.size_steps(1, -4) == scale_steps_within(48, 0.95)


@given(st.floats(1e-100, 1e100), st.integers(-130, 130))
def test_a_sigma_in_steps_is_exact(sigma: float, grid_log2: int) -> None:
    """A grid is a power of two."""
    fixed = precision_of(Sigma(sigma=sigma), GAUSSIAN_NOISE, budget_units=BUDGET_UNITS)

    assert Fraction(fixed.size_steps(1, grid_log2)) * Fraction(2) ** grid_log2 == Fraction(sigma)


CONFIDENCES = st.floats(1e-9, 0.999999) | st.sampled_from([0.5, 0.95, 1 - 1e-12, 1 - 2**-53])


@given(st.floats(1e-3, 1e6), CONFIDENCES, st.integers(-40, 10))
def test_a_half_width_is_held_in_whole_steps_of_the_grid(half_width: float, confidence: float, grid_log2: int) -> None:
    """Noise lies on the grid: what is asked for between two of its multiples is the lower one."""
    asked = HalfWidth(half_width=half_width, confidence=confidence)
    precision = precision_of(asked, GAUSSIAN_NOISE, budget_units=BUDGET_UNITS)

    assert precision == FixedHalfWidth(
        field="noise.half_width", half_width=half_width, confidence=confidence, mechanism=GAUSSIAN_NOISE
    )
    held = sigma_steps_within(floor(Fraction(half_width) / Fraction(2) ** grid_log2), confidence)
    assert precision.size_steps(1, grid_log2) == precision.estimate(1, grid_log2) == held


@given(st.floats(0.5, 1e6), st.integers(-20, 10))
def test_the_95_percent_half_width_is_never_more_than_was_asked_for(half_width: float, grid_log2: int) -> None:
    """And less by less than a step of the grid; it is in query units."""
    steps = FixedHalfWidth(field="", half_width=half_width, confidence=0.95, mechanism=GAUSSIAN_NOISE).size_steps(
        1, grid_log2
    )
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
    assert precision_of(Rho(rho=rho), GAUSSIAN_NOISE, budget_units=BUDGET_UNITS) == WorstCase(
        field="noise.rho", units=units, mechanism=GAUSSIAN_NOISE
    )


@pytest.mark.parametrize("rho", [2.0**-41, nextafter(2.0**21, 3e6) + 1, 1e100])
def test_a_rho_that_no_ledger_holds_is_refused(rho: float) -> None:
    """Below one unit, or above every limit."""
    with pytest.raises(QueryProblem, match=r"^noise\.rho: "):
        precision_of(Rho(rho=rho), GAUSSIAN_NOISE, budget_units=BUDGET_UNITS)


def test_a_confidence_of_next_to_nothing_is_refused() -> None:
    """It would make the interval a point and sigma infinite."""
    with pytest.raises(QueryProblem, match=r"^noise\.confidence: "):
        precision_of(HalfWidth(half_width=1.0, confidence=1e-20), GAUSSIAN_NOISE, budget_units=BUDGET_UNITS)


@given(st.floats(2.0**-30, 1), st.integers(2**31, 2**61))
def test_a_share_is_that_part_of_the_budget_rounded_down(share: float, budget_units: int) -> None:
    """No individual is charged more than the share."""
    asked = precision_of(Share(share=share), GAUSSIAN_NOISE, budget_units=budget_units)
    assert asked == WorstCase(
        field="noise.share", units=floor(Fraction(share) * budget_units), mechanism=GAUSSIAN_NOISE
    )


@pytest.mark.parametrize(("share", "budget_units"), [(1e-9, 1000), (0.5, 1), (1, 0)])
def test_a_share_of_less_than_a_unit_is_refused(share: float, budget_units: int) -> None:
    """It would take endless noise."""
    with pytest.raises(QueryProblem, match=r"^noise\.share: is too small"):
        precision_of(Share(share=share), GAUSSIAN_NOISE, budget_units=budget_units)
