"""Intervals hold the noise as often as they say: by the sum of its law, at sixty digits."""

import math
from functools import partial

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.half_widths import half_width_steps, laplace_half_width_steps, scale_steps_within, sigma_steps_within
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN

REALS = mpmath.MPContext()
REALS.dps = 60
SIGMAS = [0.3, 0.5, 1.0, 3.0, 20.0]
CONFIDENCES = st.one_of(st.floats(0.01, 0.999999), st.sampled_from([0.5, 0.9, 0.95, 0.99, 1 - 2**-40, 1 - 2**-53]))
TINY = 1e-12  # of sigma


def below(z: float) -> mpmath.mpf:
    """Phi."""
    return REALS.erfc(-REALS.mpf(z) / REALS.sqrt(2)) / 2


def probability(step: int, sigma: float) -> mpmath.mpf:
    """That round(N(0, sigma^2)) is this step."""
    scale = REALS.mpf(sigma)
    return below((step + REALS.mpf(0.5)) / scale) - below((step - REALS.mpf(0.5)) / scale)


def held(steps: int, sigma: float) -> mpmath.mpf:
    """The probability that the noise is at most so many steps from 0, one step at a time."""
    return REALS.fsum(probability(step, sigma) for step in range(-steps, steps + 1))


def held_in_one(steps: int, sigma: float) -> mpmath.mpf:
    """The probability within `steps` in one term, for any number of steps."""
    return REALS.erf((steps + REALS.mpf(0.5)) / REALS.mpf(sigma) / REALS.sqrt(2))


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("confidence", [0.5, 0.68, 0.9, 0.95, 0.99, 0.999999])
def test_a_width_holds_what_it_says_and_one_step_less_does_not(sigma: float, confidence: float) -> None:
    """Summed over the steps of the law. None of it is left to a tolerance."""
    steps = half_width_steps(sigma, confidence)

    assert held(steps, sigma) >= REALS.mpf(confidence)
    assert steps == 0 or held(steps - 1, sigma) < REALS.mpf(confidence)


@given(st.floats(SIGMA_STEPS_MIN, SIGMA_STEPS_MAX), CONFIDENCES)
@example(0.5, 0.6826894921370859)  # 2 Phi(1) - 1: half a step is the quantile, and the last digit decides
@example(2.0**32, 1 - 2**-53)
def test_every_width_is_the_least_that_holds_enough(sigma: float, confidence: float) -> None:
    """Over the whole range of the sampler: enough without a tolerance, the least but for a hair of sigma."""
    steps = half_width_steps(sigma, confidence)

    assert held_in_one(steps, sigma) >= REALS.mpf(confidence)
    assert steps == 0 or held_in_one(steps - 1, sigma * (1 + TINY)) < REALS.mpf(confidence)


@given(st.integers(0, 2**33), CONFIDENCES)
@example(0, 0.6826894921370859)
def test_a_sigma_is_the_largest_whose_noise_is_held(steps: int, confidence: float) -> None:
    """There and back is within the width, and a hair more sigma is not."""
    sigma = sigma_steps_within(steps, confidence)

    assert held_in_one(steps, sigma) >= REALS.mpf(confidence)
    assert held_in_one(steps, sigma * (1 + TINY)) < REALS.mpf(confidence)
    assert half_width_steps(sigma, confidence) <= steps
    assert half_width_steps(sigma * (1 + TINY), confidence) > steps


@given(st.floats(5e-324, 0.5), st.integers(0, 100))
def test_a_small_confidence_is_exceeded_rather_than_missed(confidence: float, steps: int) -> None:
    """One minus it is rounded, on the safe side."""
    assert held_in_one(steps, sigma_steps_within(steps, confidence)) >= REALS.mpf(confidence)


def test_summing_steps_and_the_one_term_agree() -> None:
    """The cells of the law are neighbours: only the outermost edges remain."""
    for sigma in SIGMAS:
        assert abs(held(7, sigma) - held_in_one(7, sigma)) < REALS.mpf(10) ** -50


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_a_sigma_is_positive(sigma: float) -> None:
    """Mistakes are named."""
    with pytest.raises(ValueError, match="sigma_steps"):
        half_width_steps(sigma, 0.95)


def test_a_width_is_not_negative() -> None:
    """Nothing is nearer than nothing."""
    with pytest.raises(ValueError, match="steps"):
        sigma_steps_within(-1, 0.95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_a_confidence_is_between_nothing_and_certainty(confidence: float) -> None:
    """A normal number is certain of nothing."""
    for of_confidence in (partial(half_width_steps, 1.0), partial(sigma_steps_within, 1)):
        with pytest.raises(ValueError, match="confidence"):
            of_confidence(confidence)


SOME_CONFIDENCES = st.floats(1e-6, 1 - 1e-9)


@given(st.integers(0, 2**40), SOME_CONFIDENCES)
def test_laplace_noise_stays_within_the_steps_at_the_confidence(steps: int, confidence: float) -> None:
    """1 - e^(-(k + 1/2) / b) is the confidence, less a part in 10^13 of b; and back again."""
    scale = scale_steps_within(steps, confidence)
    assert -math.expm1(-(steps + 0.5) / scale) >= confidence * (1 - 1e-13)
    assert laplace_half_width_steps(scale, confidence) <= steps
    assert laplace_half_width_steps(scale * (1 + 1e-9), confidence) <= steps * (1 + 2e-9) + 1


@given(st.floats(0.3, 2.0**32), SOME_CONFIDENCES)
def test_a_half_width_holds_laplace_noise(scale: float, confidence: float) -> None:
    """And one step less does not, but for rounding."""
    steps = laplace_half_width_steps(scale, confidence)
    assert -math.expm1(-(steps + 0.5) / scale) >= confidence * (1 - 1e-12)
    assert steps == 0 or -math.expm1(-(steps - 0.5) / scale) <= confidence * (1 + 1e-9) + 1e-15


def test_no_scale_is_for_what_is_no_confidence() -> None:
    """Nor negative steps."""
    for confidence in (0.0, 1.0):
        with pytest.raises(ValueError, match="confidence"):
            laplace_half_width_steps(1.0, confidence)
    with pytest.raises(ValueError, match="steps"):
        scale_steps_within(-1, 0.5)
