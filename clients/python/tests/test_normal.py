"""Quantiles and tails, against scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

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
