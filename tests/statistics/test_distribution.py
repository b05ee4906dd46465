"""The samplers' laws, and that each test of one notices a sampler whose scale is one per cent off."""

import numpy as np
import pytest
from scipy import stats

from service.core.laplace import rounded_laplace
from service.core.noise import rounded_gaussian
from tests.core.injected import seeded
from tests.statistics.goodness import chi_square, moments

DRAWS = 4_000_000
SIGMAS = [0.3, 0.75, 3.0, 20.0, 1000.0]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_draws_have_the_probabilities_of_the_rounded_gaussian(sigma: float) -> None:
    """Four million seeded draws pass at 1e-4; as many at 1.01 sigma are rejected beyond doubt."""
    assert chi_square(rounded_gaussian(DRAWS, sigma, seeded(11)), sigma) > 1e-4
    assert chi_square(rounded_gaussian(DRAWS, 1.01 * sigma, seeded(12)), sigma) < 1e-12


@pytest.mark.parametrize("sigma", [*SIGMAS[1:], 2.0**24, 2.0**32])
def test_draws_have_the_moments_of_the_rounded_gaussian(sigma: float) -> None:
    """Also at sigmas whose single steps no histogram resolves."""
    assert moments(rounded_gaussian(DRAWS // 4, sigma, seeded(13)), sigma) > 1e-4
    assert (
        moments(rounded_gaussian(DRAWS // 4, 1.01 * sigma if sigma < 2**32 else 0.99 * sigma, seeded(14)), sigma)
        < 1e-12
    )


def test_the_variance_is_not_that_of_the_discrete_gaussian() -> None:
    """At sigma 3/4 rounding adds 1/12: variance .6458, where the discrete Gaussian stays below .5625."""
    assert rounded_gaussian(DRAWS // 4, 0.75, seeded(15)).var() == pytest.approx(0.75**2 + 1 / 12, rel=5e-3)


@pytest.mark.parametrize("scale", SIGMAS)
def test_draws_have_the_probabilities_of_the_rounded_laplace(scale: float) -> None:
    """Four million seeded draws pass at 1e-4; as many at 1.01 of the scale are rejected beyond doubt."""
    assert chi_square(rounded_laplace(DRAWS, scale, seeded(16)), scale, stats.laplace) > 1e-4
    assert chi_square(rounded_laplace(DRAWS, 1.01 * scale, seeded(17)), scale, stats.laplace) < 1e-12


@pytest.mark.parametrize("scale", [1000.0, 2.0**24, 2.0**32])
def test_laplace_draws_are_as_far_from_zero_as_they_should_be(scale: float) -> None:
    """Also at scales whose single steps no histogram resolves: uniform by the law itself, and not by one of .99 b."""
    for drawn_at, accepted in ((scale, True), (0.99 * scale, False)):
        draws = rounded_laplace(DRAWS, drawn_at, seeded(18))
        unrounded = draws + (np.random.default_rng(5).random(draws.size) - 0.5)
        places = (stats.laplace.cdf(unrounded / scale) * 64).astype(np.int64)
        found = stats.chisquare(np.bincount(places, minlength=64)).pvalue
        assert (found > 1e-4) if accepted else (found < 1e-12)
        assert abs(np.sign(draws).mean()) < 5e-3


def test_the_laplace_noise_is_not_discrete() -> None:
    """At b = 1 zero has the probability 1 - e^-1/2 = .3935, where the discrete Laplace has tanh(1/2) = .4621."""
    assert (rounded_laplace(DRAWS // 4, 1.0, seeded(19)) == 0).mean() == pytest.approx(1 - np.exp(-0.5), abs=2e-3)
