"""The statistics against scipy's, and their power: each accepts what is right and rejects what is a little off."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparing_audit.laws import (
    chernoff_p,
    even_p,
    mean_p,
    normal_p,
    proportion_upper,
    shortfalls,
    standardised_loss,
    student_p,
)


@pytest.mark.parametrize("count", [20, 300, 5000])
@pytest.mark.parametrize("shift", [0.0, 0.05, 0.2])
def test_the_test_of_a_law_has_the_p_value_of_another_library(count: int, shift: float) -> None:
    """To a tenth, where the p-value is not tiny; the exact one is scipy's."""
    draws = np.random.default_rng(count).standard_normal(count) + shift
    exact = stats.kstest(draws, "norm").pvalue
    assert normal_p(draws) == pytest.approx(exact, rel=0.1, abs=1e-12)


@given(st.floats(0.001, 0.999), st.integers(10, 10_000))
def test_a_distance_has_a_probability(distance: float, count: int) -> None:
    """Between 0 and 1, and less for a larger distance."""
    even = (np.arange(count) + 0.5) / count
    assert 0 <= even_p(np.minimum(even + 1.1 * distance, 1)) <= even_p(np.minimum(even + distance, 1)) <= 1


def test_a_mean_has_the_p_value_of_a_normal_sum() -> None:
    """Two-sided, with n draws."""
    draws = np.full(25, 0.5)
    assert mean_p(draws) == pytest.approx(2 * stats.norm.sf(2.5))
    assert mean_p(-draws) == mean_p(draws)


@given(st.floats(-1, 1), st.integers(5, 4000))
def test_a_mean_of_unknown_variance_has_the_p_value_of_another_library(mean: float, count: int) -> None:
    """One-sided, by Student's law; of numbers that are all the same nothing is said."""
    draws = np.random.default_rng(count).standard_normal(count)
    exact = stats.ttest_1samp(draws, mean, alternative="greater").pvalue
    assert student_p(draws, mean) == pytest.approx(exact, rel=1e-6, abs=1e-9)
    assert student_p(np.ones(count), 0.0) == 0.5


def test_losses_of_both_worlds_have_one_law() -> None:
    """N(B, 2B) and N(-B, 2B); a loss that is too large is on the same side in both."""
    rng, rho = np.random.default_rng(3), 2.0
    noise = math.sqrt(2 * rho) * rng.standard_normal(4000)
    inside, blank = standardised_loss(rho + noise, rho), standardised_loss(-(-rho + noise), rho)
    larger = [standardised_loss(sign * (sign * 1.2 * rho + noise), rho) for sign in (1, -1)]

    assert normal_p(np.concatenate([inside, blank])) > 1e-3
    assert [each.mean() > 0.1 for each in larger] == [True, True]


@given(st.floats(-50, 50), st.floats(0, 20))
def test_a_shortfall_is_at_most_one(loss: float, epsilon: float) -> None:
    """[1 - e^(eps - L)]+."""
    (found,) = shortfalls(np.array([loss]), epsilon)
    assert found == pytest.approx(max(0.0, 1 - math.exp(min(epsilon - loss, 700))), rel=1e-9, abs=1e-12)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(0, 1))
def test_chernoff_bounds_the_binomial_tail(count: int, bound: float, share: float) -> None:
    """The exact tail of a mean is never above it."""
    hits = math.ceil(share * count)
    tail = stats.binom.sf(hits - 1, count, bound)
    assert tail <= chernoff_p(hits / count, bound, count) * (1 + 1e-9)


def test_chernoff_accepts_a_mean_within_the_bound_and_rejects_one_far_above() -> None:
    """And every mean above nothing."""
    assert chernoff_p(0.3, 0.3, 1000) == 1
    assert chernoff_p(0.4, 0.3, 1000) < 1e-9
    assert chernoff_p(1.0, 0.5, 3) == pytest.approx(1 / 8)
    assert chernoff_p(0.1, 0.0, 10) == 0


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (7, 4000), (3999, 4000)])
def test_the_bound_on_a_proportion_is_the_beta_quantile(hits: int, count: int) -> None:
    """The quantile is scipy's, at several errors; nothing below 1 bounds a proportion of all."""
    for error in (0.05, 1e-5):
        exact = stats.beta.ppf(1 - error, hits + 1, count - hits)
        assert proportion_upper(hits, count, error) == pytest.approx(exact, rel=1e-9)
    assert proportion_upper(count, count, 0.05) == 1
