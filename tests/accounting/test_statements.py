"""What is said in words is true: widths cover, promises bound."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.accounting.statements import half_width, promise_of_limit, sigma_for_half_width
from service.core.budget import budget_units
from service.core.noise import rounded_gaussian
from service.core.units import UNITS_PER_RHO
from tests.core.injected import seeded

CONFIDENCES = st.floats(0.01, 0.999999)


def coverage(sigma: float, steps: int) -> float:
    """The probability that round(N(0, sigma^2)) is within so many steps of 0."""
    return float(1 - 2 * stats.norm.sf((steps + 0.5) / sigma))


@given(st.floats(0.3, 1e6), CONFIDENCES)
def test_on_a_grid_the_width_is_the_least_that_covers(sigma: float, confidence: float) -> None:
    """For the rounded noise as it is: one step less would cover less than was said."""
    steps = half_width(sigma, confidence, grid=1.0)

    assert steps == int(steps)
    assert coverage(sigma, int(steps)) >= confidence - 1e-12
    assert steps == 0 or coverage(sigma, int(steps) - 1) < confidence + 1e-12


@given(st.floats(1e-6, 1e12), CONFIDENCES)
def test_without_a_grid_it_is_the_normal_quantile(sigma: float, confidence: float) -> None:
    """Both directions."""
    width = half_width(sigma, confidence)

    assert width == pytest.approx(sigma * stats.norm.ppf((1 + confidence) / 2), rel=1e-9)
    assert sigma_for_half_width(width, confidence) == pytest.approx(sigma, rel=1e-12)
    assert sigma_for_half_width(width, confidence) <= sigma


@given(st.integers(0, 10**6), CONFIDENCES, st.integers(-20, 20))
def test_on_a_grid_the_sigma_is_the_largest_for_the_width(steps: int, confidence: float, grid_log2: int) -> None:
    """There and back is within the width, and a hair more sigma is not."""
    grid = 2.0**grid_log2
    width = (steps + 0.25) * grid
    sigma = sigma_for_half_width(width, confidence, grid=grid)

    assert half_width(sigma, confidence, grid=grid) <= width
    assert half_width(sigma * (1 + 1e-12), confidence, grid=grid) > width


@pytest.mark.parametrize(
    ("sigma", "confidence", "grid", "width"),
    [(20.0, 0.95, 0.0, 39.19927969), (20.0, 0.95, 1.0, 39.0), (0.3, 0.95, 1.0, 1.0), (0.3, 0.9, 1.0, 0.0)],
)
def test_widths_by_hand(sigma: float, confidence: float, grid: float, width: float) -> None:
    """At sigma .3 zero noise has probability .9044, so that 95 % take a whole step."""
    assert half_width(sigma, confidence, grid=grid) == pytest.approx(width, abs=1e-8)


def test_the_noise_keeps_to_the_width_as_often_as_said() -> None:
    """A hundred thousand seeded draws at sigma 3: 95 % and no less are within the width, and 99 % are not."""
    draws = abs(rounded_gaussian(100_000, 3.0, seeded(51)))

    assert 0.95 <= (draws <= half_width(3.0, 0.95, grid=1.0)).mean() < 0.975


# The replace-one epsilons of the theory note, for budgets of these epsilons at delta 1e-5.
@pytest.mark.parametrize(
    ("epsilon", "replace_one"),
    [("0.3", 0.638641), ("0.5", 1.067299), ("0.8", 1.717046), ("1", 2.154677), ("2", 4.392911)],
)
def test_a_promise_states_both_neighbouring_relations(epsilon: str, replace_one: float) -> None:
    """Blanking a record: what the curator asked for. Replacing one: twice mu, four times rho."""
    delta = Decimal("1e-5")
    promise = promise_of_limit(budget_units(epsilon=Decimal(epsilon), delta=delta), delta)

    assert promise.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert promise.epsilon_replace_one == pytest.approx(replace_one, abs=1e-6)
    assert promise.mu_replace_one == pytest.approx(2 * promise.mu, rel=1e-15)
    assert Fraction(promise.rho_replace_one) == 4 * Fraction(promise.rho)
    assert promise.mu**2 / 2 >= float(promise.rho) * (1 - 1e-15)
    assert promise.delta == delta


def test_a_limit_of_nothing_promises_everything() -> None:
    """Nobody can tell anything."""
    promise = promise_of_limit(0, Decimal("1e-9"))

    assert [promise.rho, promise.rho_replace_one] == [Decimal(0), Decimal(0)]
    assert [promise.mu, promise.epsilon, promise.epsilon_replace_one] == [0.0, 0.0, 0.0]


def test_rho_is_exact_in_a_promise() -> None:
    """A dozen digits, none of them rounded."""
    assert promise_of_limit(UNITS_PER_RHO // 64, Decimal("1e-6")).rho == Decimal("0.015625")


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_widths_and_sigmas_are_positive(value: float) -> None:
    """Mistakes are named."""
    with pytest.raises(ValueError, match="sigma"):
        half_width(value, 0.95)
    with pytest.raises(ValueError, match="half_width"):
        sigma_for_half_width(value, 0.95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_a_confidence_is_between_nothing_and_certainty(confidence: float) -> None:
    """A normal number is certain of nothing."""
    with pytest.raises(ValueError, match="confidence"):
        half_width(1.0, confidence)
    with pytest.raises(ValueError, match="confidence"):
        sigma_for_half_width(1.0, confidence)


@pytest.mark.parametrize("grid", [-1.0, math.nan, math.inf])
def test_a_grid_is_positive_or_absent(grid: float) -> None:
    """In both directions."""
    with pytest.raises(ValueError, match="grid"):
        half_width(1.0, 0.95, grid=grid)
    with pytest.raises(ValueError, match="grid"):
        sigma_for_half_width(1.0, 0.95, grid=grid)
