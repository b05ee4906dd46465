"""Estimates from noisy numbers: right without noise, and intervals that hold what was counted as often as they say."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from service.query.estimates import (
    QUANTILE_95,
    DeviationOf,
    DifferenceOf,
    Estimate,
    Estimator,
    Itself,
    MeanOf,
    Noisy,
    QuantileOf,
    RatioOf,
    VarianceOf,
    isotonic,
)

Numbers = NDArray[np.float64]
LOW, HIGH, HALF = 0.0, 120.0, 60.0
MEAN, VARIANCE, DEVIATION = MeanOf(LOW, 60.0, HIGH), VarianceOf(HALF), DeviationOf(HALF)
DRAWS = 2_000


def sums_of(values: Numbers) -> list[float]:
    """The sum above the middle, the count and the squares of those that are not NULL."""
    above = values[~np.isnan(values)] - 60
    return [float(above.sum()), float(above.size), float((above**2 - 1800).sum())]


def noisy(numbers: Sequence[float], sigmas: Sequence[float], rng: np.random.Generator | None = None) -> list[Noisy]:
    """The numbers with noise on a fine grid."""
    drawn = [0.0] * len(sigmas) if rng is None else [float(each) for each in rng.normal(0, sigmas)]
    return [
        Noisy((number + noise,), sigma, sigma * 2.0**-28)
        for number, noise, sigma in zip(numbers, drawn, sigmas, strict=True)
    ]


def allowed(confidence: float, draws: int) -> float:
    """Three standard errors of the share of so many draws."""
    return 3 * math.sqrt(confidence * (1 - confidence) / draws)


def quantile_at(confidence: float) -> float:
    """The two-sided quantile of a normal number."""
    return float(norm.ppf((1 + confidence) / 2))


def test_the_literal_is_the_quantile_rounded_up() -> None:
    """By a few units in the last place, so that no interval is too narrow."""
    assert 0 < QUANTILE_95 / quantile_at(0.95) - 1 < 1e-13


def test_estimates_are_those_of_the_values_without_noise() -> None:
    """A mean, a variance, a deviation, a ratio and a number of rows of which one has no value."""
    values = np.array([10.0, 20.0, 90.0, math.nan])
    parts = noisy(sums_of(values), (1e-9, 1e-9, 1e-9))
    for estimator, wanted in ((MEAN, np.nanmean), (VARIANCE, np.nanvar), (DEVIATION, np.nanstd)):
        found = estimator.of(parts[: 2 if estimator is MEAN else 3], QUANTILE_95)
        assert found.value == pytest.approx(wanted(values))
        assert found.interval.low == pytest.approx(found.value) == found.interval.high
        assert found.is_reliable
    assert RatioOf().of(parts[:2], QUANTILE_95).value == pytest.approx(float(np.nanmean(values)) - 60)
    difference = DifferenceOf(MEAN).of([*parts[:2], *noisy([30.0, 3.0], (1e-9, 1e-9))], QUANTILE_95)
    assert difference.value == pytest.approx(70 - 40)


def test_a_number_has_the_half_width_of_its_answer() -> None:
    """The least multiple of the grid that the noise keeps to."""
    found = Itself().of([Noisy((40.0,), 2.0, 0.5)], QUANTILE_95)
    assert (found.value, found.interval.low, found.interval.high) == (40.0, 36.0, 44.0)
    assert found.standard_error == pytest.approx(math.sqrt(4 + 0.25 / 12))


@pytest.mark.parametrize("people", [150, 2_000])
@pytest.mark.parametrize("ages", [(35.0, 20.0), (110.0, 4.0)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_hold_the_averages_as_often_as_they_say(
    people: int, ages: tuple[float, float], confidence: float
) -> None:
    """In groups of noisy counts and of precise ones, near the middle and near a bound, with a fifth of them NULL.

    Intervals of nine tenths of the width hold them less often than is said: the test can fail.
    """
    rng = np.random.default_rng(people)
    values = np.clip(np.rint(rng.normal(*ages, people)), LOW, HIGH)
    values[: people // 5] = math.nan
    numbers, sigmas = sums_of(values), [bound / math.sqrt(0.01) for bound in (HALF, 1.0, 1800.0)]
    draws = [noisy(numbers, sigmas, rng) for _ in range(DRAWS)]
    quantile = quantile_at(confidence)
    for estimator, truth, count in (
        (MEAN, np.nanmean(values), 2),
        (VARIANCE, np.nanvar(values), 3),
        (DEVIATION, np.nanstd(values), 3),
    ):
        found = [estimator.of(parts[:count], quantile).interval for parts in draws]
        assert np.mean([each.low <= truth <= each.high for each in found]) > confidence - allowed(confidence, DRAWS)
        if people == 2_000 and estimator is MEAN:
            narrow = [abs(truth - (each.low + each.high) / 2) <= 0.45 * (each.high - each.low) for each in found]
            assert np.mean(narrow) < confidence - allowed(confidence, DRAWS)


@pytest.mark.parametrize(
    "estimator", [Itself(), MEAN, VARIANCE, DEVIATION, RatioOf()], ids=lambda each: type(each).__name__
)
def test_differences_hold_as_often_as_they_say(estimator: Estimator) -> None:
    """Between two groups, of every item of which there is one."""
    rng = np.random.default_rng(7)
    count = {Itself: 1, MeanOf: 2, RatioOf: 2}.get(type(estimator), 3)
    groups = [np.clip(rng.normal(*law, 1_500), LOW, HIGH) for law in ((40.0, 15.0), (60.0, 25.0))]
    numbers = [number for values in groups for number in sums_of(values)[:count]]
    sigmas = [10 * bound for bound in (HALF, 1.0, 1800.0)[:count]] * 2
    exact = DifferenceOf(estimator).of(noisy(numbers, [sigma * 1e-9 for sigma in sigmas]), QUANTILE_95).value

    draws = [DifferenceOf(estimator).of(noisy(numbers, sigmas, rng), QUANTILE_95).interval for _ in range(DRAWS)]
    share = np.mean([each.low <= exact <= each.high for each in draws])
    assert abs(share - 0.95) < allowed(0.95, DRAWS) + 0.01
    narrow = [abs(exact - (each.low + each.high) / 2) <= 0.45 * (each.high - each.low) for each in draws]
    assert np.mean(narrow) < 0.95 - allowed(0.95, DRAWS)


# What the noise makes of small groups


def test_intervals_keep_to_what_is_possible() -> None:
    """A group of hardly anyone has a mean between the bounds, and a variance from 0 to the square of their half."""
    parts = noisy(sums_of(np.array([110.0])), [bound * 10 for bound in (HALF, 1.0, 1800.0)])
    ends = {MEAN: (LOW, HIGH), VARIANCE: (0.0, HALF**2), DEVIATION: (0.0, HALF)}
    for estimator, (low, high) in ends.items():
        found = estimator.of(parts[: 2 if estimator is MEAN else 3], QUANTILE_95)
        assert (found.interval.low, found.interval.high, found.is_reliable) == (low, high, False)


@pytest.mark.parametrize("total", [-100_000.0, 100_000.0])
def test_an_interval_beyond_a_bound_begins_there_and_keeps_its_width(total: float) -> None:
    """One of width 0 would be a certainty, which the noise does not leave."""
    found = MEAN.of(noisy([total, 1000.0], (60.0, 1.0)), QUANTILE_95)
    assert found.value == (LOW if total < 0 else HIGH)
    assert found.value in {found.interval.low, found.interval.high}
    assert 0 < found.interval.high - found.interval.low < 1


def test_a_variance_that_the_noise_makes_negative_has_a_deviation_of_0() -> None:
    """A variance is not cut off: the mean of many would be too large."""
    parts = noisy([0.0, 100.0, -190_000.0], (60.0, 1.0, 1800.0))
    variance, deviation = (estimator.of(parts, QUANTILE_95) for estimator in (VARIANCE, DEVIATION))
    assert (variance.value, deviation.value, deviation.standard_error) == (-100, 0, math.inf)


@pytest.mark.parametrize("estimator", [MEAN, VARIANCE, DEVIATION, RatioOf()], ids=lambda each: type(each).__name__)
def test_a_group_of_nobody_has_no_value(estimator: Estimator) -> None:
    """And a difference with it has none either."""
    parts = noisy([5.0, 0.0, 5.0], (60.0, 1.0, 1800.0))[: 2 if estimator in (MEAN, RatioOf()) else 3]
    found, difference = estimator.of(parts, QUANTILE_95), DifferenceOf(estimator).of(parts * 2, QUANTILE_95)
    for each in (found, difference):
        assert math.isnan(each.value)
        assert not each.is_reliable
    assert (difference.interval.low, difference.interval.high) == (-math.inf, math.inf)
    unbounded = RatioOf().of(noisy([5.0, 1.9], (1.0, 1.0)), QUANTILE_95)
    assert (unbounded.interval.low, unbounded.interval.high) == (-math.inf, math.inf)


# Quantiles


def quantile_of(probability: float, edges: Sequence[float], *, is_whole: bool = False) -> QuantileOf:
    """The estimator within the outermost edges, or the whole numbers within them."""
    return QuantileOf(probability, tuple(map(float, edges)), edges[0], edges[-1] - is_whole, is_whole)


def counted(values: Any, edges: Sequence[float], sigma: float, rng: np.random.Generator | None = None) -> Noisy:
    """Noisy counts between the edges."""
    counts = np.histogram(values, edges)[0] + (0 if rng is None else rng.normal(0, sigma, len(edges) - 1))
    return Noisy(tuple(map(float, counts)), sigma, sigma * 2.0**-28)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_quantiles_hold_as_often_as_they_say(probability: float) -> None:
    """Their intervals go from an edge to an edge, so that they hold more often; of a quarter of the width, less."""
    rng = np.random.default_rng(3)
    edges = range(0, 121, 2)
    values = rng.gamma(6.0, 7.0, 3_000).clip(0, 119.9)
    truth, estimator = float(np.quantile(values, probability)), quantile_of(probability, edges)
    draws = [estimator.of([counted(values, edges, 20.0, rng)], QUANTILE_95) for _ in range(300)]

    assert np.mean([each.interval.low <= truth <= each.interval.high for each in draws]) > 0.95 - allowed(0.95, 300)
    assert np.mean([each.value for each in draws]) == pytest.approx(truth, abs=2)
    quarters = [abs(truth - (each.interval.low + each.interval.high) / 2) * 8 for each in draws]
    widths = [each.interval.high - each.interval.low for each in draws]
    assert np.mean(np.less_equal(quarters, widths)) < 0.95 - allowed(0.95, 300)


@pytest.mark.parametrize(
    ("low", "high", "ages"), [(1, 5, [5] * 9), (1, 5, [5] * 6 + [4] * 4), (0, 1, [1] * 9), (0, 1, [0] * 9)]
)
def test_a_quantile_of_few_whole_numbers_is_one_of_them(low: int, high: int, ages: list[int]) -> None:
    """Each has its own bin, so the largest is not counted with the one before it."""
    edges = range(low, high + 2)
    found = quantile_of(0.5, edges, is_whole=True).of([counted(ages, edges, 0.25)], QUANTILE_95)
    assert found.value == found.interval.low == found.interval.high == sorted(ages)[len(ages) // 2]
    assert found.is_reliable
    assert not found.is_interpolated


def test_a_quantile_of_a_coarse_bin_is_interpolated() -> None:
    """Its bin has more than a tenth of the rows; a quantile of hardly anybody is not reliable."""
    edges = range(0, 121, 30)
    found = quantile_of(0.5, edges).of([counted(np.arange(120), edges, 0.1)], QUANTILE_95)
    assert (found.value, found.is_interpolated, found.is_reliable) == (60.0, True, True)
    few = quantile_of(0.5, edges).of([counted([50], edges, 10.0)], QUANTILE_95)
    assert (few.interval.low, few.interval.high, few.is_reliable) == (0, 120, False)


def of_levels(levels: Sequence[float]) -> list[float]:
    """The rising numbers with the least sum of squares, by the formula of largest averages of smallest."""
    sums = np.concatenate([[0.0], np.cumsum(levels)])

    def average(start: int, stop: int) -> float:
        return float((sums[stop] - sums[start]) / (stop - start))

    count = len(levels)
    return [
        max(min(average(start, stop) for stop in range(at + 1, count + 1)) for start in range(at + 1))
        for at in range(count)
    ]


def test_isotonic_regression_is_the_formula_of_averages() -> None:
    """For numbers that rise, fall, and do both."""
    rng = np.random.default_rng(5)
    for count in (1, 2, 7, 20):
        levels = [float(each) for each in rng.normal(0, 1, count)]
        assert isotonic(levels) == pytest.approx(of_levels(levels))


def test_an_estimate_is_frozen() -> None:
    """Two of the same numbers are equal."""
    made: Callable[[], Estimate] = lambda: MEAN.of(noisy([1.0, 9.0], (1.0, 1.0)), QUANTILE_95)  # noqa: E731 - twice
    assert made() == made()
