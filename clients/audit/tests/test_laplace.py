"""Rounded Laplace noise as the audit knows it: against sums of its probabilities, and against noise drawn otherwise."""

import math

import numpy as np
import pytest

from sparing_audit.laplace import laplace_losses, laplace_quantiles, size_of
from sparing_audit.laws import even_p

SCALES = [0.3, 1.0, 2.5, 40.0]


def probability(k: int, scale: float) -> float:
    """The probability of round(Lap(scale)) = k, by the distribution function."""

    def beyond(x: float) -> float:
        return 0.5 * math.exp(-x / scale)

    return 1 - 2 * beyond(0.5) if k == 0 else beyond(abs(k) - 0.5) - beyond(abs(k) + 0.5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("counted", [1, -3])
def test_a_loss_is_the_log_of_a_ratio_of_probabilities(scale: float, counted: int) -> None:
    """And never above the price of pure differential privacy, however large an answer is."""
    steps = np.arange(-6, 7)
    expected = [math.log(probability(k - counted, scale) / probability(k, scale)) for k in steps.tolist()]
    assert laplace_losses(steps, np.full(13, counted), scale) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    far = laplace_losses(np.array([-(10**9), 10**9]), np.full(2, counted), scale)
    assert np.abs(far).max() == pytest.approx(abs(counted) / scale)


def test_the_largest_loss_of_one_step_is_below_that_of_discrete_noise() -> None:
    """At a scale of one step the mean loss is .3679 at most, and of discrete Laplace noise .4621."""
    steps = np.arange(-60, 61)
    losses = laplace_losses(steps, np.ones(121, dtype=np.int64), 1.0)
    mean = sum(probability(k - 1, 1.0) * loss for k, loss in zip(steps.tolist(), losses.tolist(), strict=True))
    assert mean < math.exp(-1) < 0.4621


@pytest.mark.parametrize("scale", SCALES)
def test_sizes(scale: float) -> None:
    """The mean of |k| and its variance, as sums."""
    weights = {k: probability(k, scale) for k in range(-int(40 * scale) - 9, int(40 * scale) + 10)}
    mean = math.fsum(abs(k) * weight for k, weight in weights.items())
    variance = math.fsum(k * k * weight for k, weight in weights.items()) - mean**2
    assert size_of(scale) == pytest.approx((mean, variance / mean**2), rel=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_quantiles_are_even_under_the_law_and_not_beside_it(scale: float) -> None:
    """A scale that is 5 % too small, and discrete noise of a small scale, are rejected."""
    rng = np.random.default_rng(3)

    def p_of(noise: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> float:
        return even_p(laplace_quantiles(noise, scale, rng))

    assert p_of(np.rint(rng.laplace(0, scale, 40_000)).astype(np.int64)) > 1e-4
    assert p_of(np.rint(rng.laplace(0, 0.85 * scale, 40_000)).astype(np.int64)) < 1e-4
    if scale <= 1:
        geometric = rng.geometric(-math.expm1(-1 / scale), (2, 40_000))
        assert p_of(geometric[0] - geometric[1]) < 1e-4
