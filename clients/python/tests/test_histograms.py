"""Histograms and quantiles, against simulated answers."""

import functools
import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.released import Numbers, in_bins, item_axis, released, rounded_noise, standard_error
from sparing import Answer, ConsistentHistogram, Quantile, bin_levels, combine, consistent_histogram

EDGES = list(range(65))
COUNTED = np.round(4000 * np.exp(-0.5 * ((np.arange(64) - 25) / 12) ** 2) / 30)
BELOW = [0.0, *accumulate(COUNTED)]
DRAWS = 200


def counts_at(edges: list[int], counted: Numbers = COUNTED) -> Numbers:
    """The counted numbers between edges."""
    return np.array([counted[low:high].sum() for low, high in pairwise(edges)])


def asked(rng: np.random.Generator, sigma: float, *, branching: int = 4) -> list[Answer]:
    """An answer for each level, with noise of sigma and grid 1."""
    levels: list[Any] = [group.json["bin"] for group in bin_levels("age", EDGES, branching=branching)]
    return [
        in_bins(
            counts_at(level["edges"]) + rounded_noise(rng, len(level["edges"]) - 1, sigma, 1.0),
            level["edges"],
            sigma=sigma,
            grid=1.0,
        )
        for level in levels
    ]


@functools.cache
def drawn(sigma: float, *, branching: int = 4) -> list[ConsistentHistogram]:
    """Histograms from DRAWS independent sets of answers."""
    rng = np.random.default_rng(17)
    return [consistent_histogram(asked(rng, sigma, branching=branching)) for _ in range(DRAWS)]


def true_quantile(probability: float) -> float:
    """The quantile of rows that are spread evenly in their bins."""
    return float(np.interp(probability * BELOW[-1], BELOW, EDGES))


def test_counts_are_unbiased_and_as_precise_as_they_say() -> None:
    """Ranges long and short; without consistency the long ones would vary twice as much."""
    found = drawn(20.0)
    assert np.mean([each.values for each in found], axis=0) == pytest.approx(COUNTED, abs=5 * 20 / math.sqrt(DRAWS))
    for low, high in ((0, 1), (3, 42), (16, 48), (0, 64), (31, 64)):
        estimates = [each.between(low, high) for each in found]
        values, stated = np.array([each.value for each in estimates]), estimates[0].standard_error
        assert np.mean(values) == pytest.approx(BELOW[high] - BELOW[low], abs=4 * stated / math.sqrt(DRAWS))
        assert np.std(values) == pytest.approx(stated, rel=4 / math.sqrt(2 * DRAWS))
        covered = [BELOW[high] - BELOW[low] in each.interval(0.8) for each in estimates]
        assert np.mean(covered) == pytest.approx(0.8, abs=3 * standard_error(0.8, DRAWS))
    assert found[0].between(3, 42).standard_error < 0.5 * 20 * math.sqrt(39)
    assert found[0].between(0, 1).standard_error < 0.97 * 20


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_quantiles_are_close_and_their_intervals_hardly_wider_than_needed(probability: float) -> None:
    """Without bias where the noise is small; intervals end at edges, so that they are up to two bins wider."""
    found = [each.quantile(probability, confidence=0.8) for each in drawn(20.0)]
    errors = np.array([each.value - true_quantile(probability) for each in found])
    widths = [each.interval.high - each.interval.low for each in found]

    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(DRAWS) + 0.02
    assert np.std(errors) < 0.6
    assert np.mean(widths) < 2 * 1.2816 * np.std(errors) + 2


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_intervals_of_quantiles_hold_at_least_as_often_as_they_say(probability: float) -> None:
    """Noise that moves a quantile by several bins; intervals with a quarter of the deviations would not."""
    truth, histograms = true_quantile(probability), drawn(120.0)
    held = {
        confidence: np.mean(
            [truth in each.quantile(probability, confidence=confidence).interval for each in histograms]
        )
        for confidence in (0.25, 0.8, 0.95)
    }

    assert held[0.8] >= 0.8 - 3 * standard_error(0.8, DRAWS)
    assert held[0.95] >= 0.95 - 3 * standard_error(0.95, DRAWS)
    assert held[0.25] < 0.8 - 3 * standard_error(0.8, DRAWS)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_the_ends_of_an_interval_are_what_the_noise_does_not_rule_out(probability: float) -> None:
    """By the variance of rows below less a share of all, in closed form for one level; the total is noisy too."""
    cuts = np.arange(65)
    variances = (120.0**2 + 1 / 12) * ((1 - probability) ** 2 * cuts + probability**2 * (64 - cuts))
    known = (120.0**2 + 1 / 12) * cuts
    differ = 0
    for each in drawn(120.0, branching=64)[:50]:
        below = np.array([0.0, *accumulate(each.values)])
        excess, found = below - probability * below[-1], each.quantile(probability, confidence=0.8).interval
        true, wrong = (
            (int(np.argmax(excess[1:] >= -slack[1:])), 64 - int(np.argmax((excess[:-1] <= slack[:-1])[::-1])))
            for slack in (1.2815515655 * np.sqrt(variances), 1.2815515655 * np.sqrt(known))
        )
        assert [found.low, found.high] == [*true]
        differ += true != wrong

    assert differ > 10


def test_the_excess_below_a_quantile_is_as_precise_as_its_variance_says() -> None:
    """A deviation that takes the total for known is too large, and is rejected."""
    probability, cut, rows = 0.9, 41, drawn(20.0, branching=64)
    excess = [each.between(0, cut).value - probability * each.between(0, 64).value for each in rows]
    stated = math.sqrt((20.0**2 + 1 / 12) * ((1 - probability) ** 2 * cut + probability**2 * (64 - cut)))
    error = 4 / math.sqrt(2 * DRAWS)

    assert np.std(excess) == pytest.approx(stated, rel=error)
    assert np.std(excess) != pytest.approx(rows[0].between(0, cut).standard_error, rel=error)


def test_levels_lower_the_error_of_the_median_at_the_same_cost() -> None:
    """Three levels of sigma 20 cost as much as one of 20 / sqrt(3), whose median has an error 1.7 times as large."""
    errors = {}
    for branching, sigma in ((4, 20.0), (64, 20.0 / math.sqrt(3))):
        found = [each.quantile(0.5).value for each in drawn(sigma, branching=branching)]
        errors[branching] = float(np.std(found))

    assert errors[64] > 1.5 * errors[4]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_quantiles_of_hardly_noisy_counts_are_right(counts: list[float], first: float, second: float) -> None:
    """Below the value is the stated share; a larger share is not further down."""
    counts[len(counts) // 2] += 1.0
    edges = list(range(len(counts) + 1))
    histogram = consistent_histogram([in_bins(counts, edges, sigma=1e-9, grid=1e-12)])
    low, high = (histogram.quantile(p) for p in sorted((first, second)))

    assert low.value <= high.value
    for each in (low, high):
        share = np.interp(each.value, edges, [0.0, *accumulate(counts)]) / sum(counts)
        assert share == pytest.approx(each.probability, abs=1e-6)
        assert each.interval.low - 1e-6 <= each.value <= each.interval.high + 1e-6


def test_a_hopeless_quantile_is_anywhere() -> None:
    """Noise far above the counts, or a negative total, gives the whole range and no error."""
    for counts in ([3.0, -2.0, 1.0], [-1000.0, -500.0, -800.0], [0.0, 0.0, 0.0]):
        found = consistent_histogram([in_bins(counts, [0, 10, 20, 30], sigma=1000.0)]).quantile(0.5)
        assert (found.interval.low, found.interval.high) == (0, 30)
        assert 0 <= found.value <= 30


def test_quantiles_by_hand() -> None:
    """Falling sums are averaged with their neighbours before they cross 0."""
    histogram = consistent_histogram([in_bins([10.0, 30.0, -20.0, 20.0], [0, 10, 20, 30, 40], sigma=1e-6, grid=1e-9)])

    found = histogram.quantile(0.25)
    assert isinstance(found, Quantile)
    assert found.probability == 0.25
    assert found.value == pytest.approx(10)
    # The sums are 0, 10, 40, 20, 40: less half the total they are -20, -10, 20, 0, 20, and 20 and 0 become 10 and 10.
    assert histogram.quantile(0.5).value == pytest.approx(15)
    for probability in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="probability must be above 0 and below 1"):
            histogram.quantile(probability)


def test_one_of_several_groups() -> None:
    """The other columns are fixed; an item is named beside its answer."""
    axes: list[dict[str, object]] = [
        {"column": "country", "size": 2, "categories": ["NO", "SE"]},
        {"column": "age", "size": 2, "edges": [0, 18, 65]},
        {"select": [item_axis("count"), item_axis("sum(spend)", offset=1)]},
    ]
    labels = [
        {"country": country, "age": age, "select": item}
        for country in ("NO", "SE")
        for age in ("[0, 18)", "[18, 65]")
        for item in ("count", "sum(spend)")
    ]
    answer = released([float(number) for number in range(8)], labels, axes=axes)
    found = consistent_histogram([(answer, "count")], within={"country": "SE"})

    assert (found.column, found.edges, found.values) == ("age", (0, 18, 65), (4, 6))
    assert repr(found) == "ConsistentHistogram(age from 0 to 65, bins=2, coverage_certified=True)"
    assert found.between(18, 65).label == {"age": (18, 65)}
    with pytest.raises(ValueError, match=r"levels\[0\] has 0 numbers for 2 bins within {'country': 'DK'}"):
        consistent_histogram([(answer, "count")], within={"country": "DK"})


def test_the_rounding_of_the_noise_counts() -> None:
    """A grid of six sigma adds three times the variance of the Gaussian."""
    histogram = consistent_histogram([in_bins([9.0, 21.0], [0, 18, 65], sigma=1.0, grid=6.0)])
    assert histogram.between(0, 65).standard_error == pytest.approx(math.sqrt(8))


def test_a_combined_level_is_as_good_as_its_answers() -> None:
    """Two answers for a level are given as one or as two: the same histogram."""
    first, second = in_bins([9.0, 21.0], [0, 18, 65], sigma=1.0), in_bins([11.0, 19.0], [0, 18, 65], sigma=2.0)
    one, two = consistent_histogram([combine([first, second])]), consistent_histogram([first, second])

    assert one.values == pytest.approx(two.values)
    assert one.values == pytest.approx((9.4, 20.6))
    assert one.between(0, 18).standard_error == pytest.approx(two.between(0, 18).standard_error)


FINE = in_bins([1.0, 2.0, 3.0, 4.0], [0, 10, 20, 30, 40])


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([], "levels must not be empty"),
        ([FINE, FINE], r"levels\[1\] and levels\[0\] are one answer"),
        ([FINE, in_bins([1.0], [0, 30])], r"levels\[1\] is from 0 to 30, and levels\[0\] from 0 to 40"),
        ([in_bins([1.0, 2.0], [0, 15, 40]), FINE], r"levels\[0\] has the edge 15, and the finer levels\[1\] has not"),
        ([FINE, in_bins([1.0], [0, 40], column="x")], r"levels\[1\] has the column x, levels\[0\] age"),
        ([FINE, in_bins([1.0], [0, 40], epoch=2)], r"levels\[1\] is of epoch 2"),
    ],
)
def test_levels_that_do_not_fit_are_refused(levels: list[Any], message: str) -> None:
    """The difference and its place are named."""
    with pytest.raises(ValueError, match=message):
        consistent_histogram(levels)


def test_ranges_are_between_edges() -> None:
    """Other ends are named."""
    histogram = consistent_histogram([FINE])
    with pytest.raises(ValueError, match="low must be an edge of age, got 5"):
        histogram.between(5, 20)
    with pytest.raises(ValueError, match="low must be below high, got 20 and 20"):
        histogram.between(20, 20)
