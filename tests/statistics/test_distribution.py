"""The sampler's law, and that each test of it notices a sampler whose scale is one per cent off."""

import pytest

from service.core.noise import rounded_gaussian
from tests.core.injected import seeded
from tests.statistics.goodness import chi_square, moments

DRAWS = 4_000_000
SIGMAS = [0.3, 0.75, 3.0, 20.0, 1000.0]


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SIGMAS)
def test_draws_have_the_probabilities_of_the_rounded_gaussian(sigma: float) -> None:
    """Four million seeded draws pass at 1e-4; as many at 1.01 sigma are rejected beyond doubt."""
    assert chi_square(rounded_gaussian(DRAWS, sigma, seeded(11)), sigma) > 1e-4
    assert chi_square(rounded_gaussian(DRAWS, 1.01 * sigma, seeded(12)), sigma) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [*SIGMAS[1:], 2.0**24, 2.0**32])
def test_draws_have_the_moments_of_the_rounded_gaussian(sigma: float) -> None:
    """Also at sigmas whose single steps no histogram resolves."""
    assert moments(rounded_gaussian(DRAWS // 4, sigma, seeded(13)), sigma) > 1e-4
    assert (
        moments(rounded_gaussian(DRAWS // 4, 1.01 * sigma if sigma < 2**32 else 0.99 * sigma, seeded(14)), sigma)
        < 1e-12
    )


@pytest.mark.slow
def test_the_variance_is_not_that_of_the_discrete_gaussian() -> None:
    """At sigma 3/4 rounding adds 1/12: variance .6458, where the discrete Gaussian stays below .5625."""
    assert rounded_gaussian(DRAWS // 4, 0.75, seeded(15)).var() == pytest.approx(0.75**2 + 1 / 12, rel=5e-3)
