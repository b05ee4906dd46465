"""The normal distribution: quantiles, half widths of noise at their confidence, and the chi-square tail."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparing import half_width
from sparing._normal import chi_square_tail, two_sided_quantile


@given(st.floats(1e-6, 1 - 1e-9))
def test_a_quantile_holds_its_probability_and_hardly_more(confidence: float) -> None:
    """Rounded up: a normal number is within it at least as often."""
    quantile = two_sided_quantile(confidence)
    assert quantile == pytest.approx(stats.norm.isf((1 - confidence) / 2), rel=1e-7, abs=1e-9)
    assert stats.norm.sf(quantile) <= (1 - confidence) / 2 * (1 + 1e-12)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, float("nan")])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    """Neither 0 nor 1."""
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1"):
        two_sided_quantile(confidence)


@given(st.floats(1e-6, 4000), st.integers(1, 3000))
def test_the_tail_is_that_of_scipy(number: float, degrees: int) -> None:
    """Also where it is next to 0 or 1; a degree more or less is another number."""
    tail = chi_square_tail(number, degrees)
    assert tail == pytest.approx(stats.chi2.sf(number, degrees), rel=1e-9, abs=1e-12)


def test_nothing_cannot_be_large() -> None:
    """Without degrees of freedom or with a sum of 0, the tail is everything."""
    assert chi_square_tail(0.0, 0) == chi_square_tail(0.0, 7) == 1
    assert chi_square_tail(2.0, 2) == pytest.approx(0.36787944117144233)
    assert chi_square_tail(2.0, 3) != pytest.approx(0.36787944117144233, abs=0.1)


@pytest.mark.parametrize(
    ("sigma", "grid", "confidence", "width"),
    [
        (0.3, 1, 0.9, 0),
        (0.3, 1, 0.95, 1),
        (0.5, 1, 0.95, 1),
        (1, 1, 0.95, 2),
        (3, 1, 0.95, 6),
        (20, 1, 0.95, 39),
        (20, 1, 0.99, 52),
        (10, 0.5, 0.95, 19.5),
    ],
)
def test_a_half_width_is_whole_steps_of_the_grid(sigma: float, grid: float, confidence: float, width: float) -> None:
    """The least one that holds enough of the rounded noise; one step less does not."""
    assert half_width(sigma=sigma, grid=grid, confidence=confidence) == width
    assert math.erf((width + grid / 2) / sigma / math.sqrt(2)) >= confidence
    assert width == 0 or math.erf((width - grid / 2) / sigma / math.sqrt(2)) < confidence


def test_the_confidence_is_95_per_cent_unless_another_is_given() -> None:
    """The confidence is that of `half_width_95`."""
    assert half_width(sigma=20, grid=1) == 39


@pytest.mark.parametrize(
    ("sigma", "grid", "confidence"),
    [(0, 1, 0.9), (math.inf, 1, 0.9), (1, 0, 0.9), (1, math.nan, 0.9), (1, 1, 0), (1, 1, 1), (1, 1, math.nan)],
)
def test_mistakes_are_named(sigma: float, grid: float, confidence: float) -> None:
    """Invalid arguments raise errors instead of returning a number."""
    with pytest.raises(ValueError, match="must be"):
        half_width(sigma=sigma, grid=grid, confidence=confidence)
