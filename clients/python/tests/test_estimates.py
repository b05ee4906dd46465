"""Ratios and variances, against simulated noise: each group of a large answer is one draw of it."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clients.python.tests.released import Numbers, in_groups, released, rounded_noise, standard_error
from sparing import Answer, Estimate, Interval, Ratio, combine, ratios, variances

DRAWS = 4_000
EVERYTHING = Interval(low=-math.inf, high=math.inf)


def drawn(counted: float, sigma: float, *, item: str = "count", seed: int) -> Answer:
    """An answer whose groups all have the same counted number."""
    noise = rounded_noise(np.random.default_rng(seed), DRAWS, sigma, 2.0**-10)
    return in_groups(counted + noise, item, sigma=sigma, grid=2.0**-10)


def drawn_ratios(numerator: float, denominator: float, *, sigma: float = 1.0) -> tuple[Ratio, ...]:
    """Ratios of numbers with noise of sigma over numbers with noise of 1."""
    return ratios(drawn(numerator, sigma, item="sum(spend)", seed=1), drawn(denominator, 1.0, seed=2))


def coverage(intervals: list[Interval], truth: float) -> float:
    """How often intervals hold a number."""
    return sum(truth in interval for interval in intervals) / len(intervals)


def around(centres: Any, half_widths: Any) -> list[Interval]:
    """Intervals of these half widths."""
    return [Interval(low=float(c - h), high=float(c + h)) for c, h in zip(centres, half_widths, strict=True)]


def spread_of(estimates: tuple[Estimate, ...]) -> tuple[float, float]:
    """The standard deviation over the draws, and the standard error that is stated on average."""
    return float(np.std([each.value for each in estimates])), float(np.mean([e.standard_error for e in estimates]))


@pytest.mark.parametrize(("numerator", "denominator"), [(0.0, 6.0), (20.0, 6.0), (300.0, 10.0), (50.0, 100.0)])
def test_fiellers_interval_holds_the_ratio_as_often_as_it_says(numerator: float, denominator: float) -> None:
    """To three standard errors, for denominators that are not taken for 0."""
    found = drawn_ratios(numerator, denominator)

    for confidence in (0.8, 0.95):
        covered = coverage([each.interval(confidence) for each in found], numerator / denominator)
        assert covered == pytest.approx(confidence, abs=3 * standard_error(confidence, DRAWS))


def test_an_interval_without_the_noise_of_the_denominator_is_rejected() -> None:
    """It would hold a ratio of 1 in 83 of 100 cases, and one of 30 in 5."""
    for numerator, most in ((10.0, 0.88), (300.0, 0.1)):
        found = drawn_ratios(numerator, 10.0)
        wrong = around([each.value for each in found], [1.96 / abs(each.denominator) for each in found])
        assert coverage(wrong, numerator / 10) < most


@pytest.mark.parametrize("denominator", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_a_denominator_that_may_be_0_makes_the_interval_endless(denominator: float) -> None:
    """It then holds the ratio trivially, so that coverage is at least as stated; symmetric intervals miss it."""
    found = drawn_ratios(30.0, denominator)
    intervals = [each.interval() for each in found]
    truth = 30 / denominator if denominator else math.inf
    endless = [abs(each.denominator) <= 1.959963 for each in found]

    assert coverage(intervals, truth) >= 0.95 - 3 * standard_error(0.95, DRAWS)
    assert [interval == EVERYTHING for interval in intervals] == endless
    assert sum(each.is_reliable for each in found) < 0.05 * DRAWS
    if denominator in {2.0, 3.0}:
        delta = around([each.value for each in found], [1.96 * each.standard_error for each in found])
        assert coverage(delta, truth) < 0.93


@pytest.mark.parametrize("numerator", [0.0, 5.0, 50.0, 500.0])
def test_a_reliable_denominator_bears_the_delta_method(numerator: float) -> None:
    """Five standard deviations from 0: 93 to 97 in 100, as the module says, and almost all misses on one side."""
    found = drawn_ratios(numerator, 5.0)
    delta = around([each.value for each in found], [1.96 * each.standard_error for each in found])
    too_high = [interval.low > numerator / 5 for interval in delta]

    assert 0.93 - 0.01 < coverage(delta, numerator / 5) < 0.97 + 0.005
    if numerator:
        assert sum(too_high) < 0.002 * DRAWS
    assert 0.4 < sum(each.is_reliable for each in found) / DRAWS < 0.6


def test_the_standard_error_of_a_ratio_is_its_spread() -> None:
    """At a precise denominator, without bias; half of it would be missing without the denominator's noise."""
    found = drawn_ratios(100.0, 50.0, sigma=2.0)
    spread, stated = spread_of(found)

    assert spread == pytest.approx(stated, rel=4 / math.sqrt(2 * DRAWS) + 0.005)
    assert np.mean([each.value for each in found]) == pytest.approx(2, abs=4 * stated / math.sqrt(DRAWS) + 0.001)
    assert spread > 1.3 * 2 / 50


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-2, 1e3), st.floats(1e-2, 1e3), st.floats(0.5, 0.99))
def test_the_ends_are_as_far_off_as_noise_is_allowed_to_be(
    numerator: float, denominator: float, sigma: float, sigma_below: float, confidence: float
) -> None:
    """|N - r D| is q standard deviations of N - r D at both ends, and the value lies between them."""
    (ratio,) = ratios(
        in_groups([numerator], sigma=sigma), in_groups([denominator], "sum(spend)", sigma=sigma_below, grid=1e-9)
    )
    interval = ratio.interval(confidence)
    assume(interval != EVERYTHING)
    quantile = Estimate(label={}, value=0, standard_error=1).interval(confidence).high

    assert interval.low <= ratio.value <= interval.high
    for end in (interval.low, interval.high):
        excess = abs(numerator - end * denominator)
        allowed = quantile * math.sqrt(ratio.numerator_variance + end**2 * ratio.denominator_variance)
        assert excess == pytest.approx(allowed, rel=1e-5, abs=1e-6 * (abs(numerator) + abs(end * denominator)))
    wider = ratio.interval((1 + confidence) / 2)
    assert wider.low <= interval.low
    assert interval.high <= wider.high


def test_a_mean_for_each_group_from_one_answer() -> None:
    """In the order of the numerators, named by both items."""
    labels = [{"country": c, "select": item} for c in ("NO", "SE") for item in ("count", "sum(spend)")]
    answer = released([100.0, 5000.0, 200.0, 4000.0], labels, sigma=3.0, grid=0.0)
    found = ratios((answer, "sum(spend)"), (answer, "count"))

    assert [each.value for each in found] == [50, 20]
    assert found[0].label == {"country": "NO", "select": "sum(spend) / count"}
    assert found[0].standard_error == pytest.approx(3 / 100 * math.sqrt(1 + 50**2))
    assert all(each.is_reliable for each in found)


def test_shares_of_a_total_and_of_groups() -> None:
    """A denominator with fewer columns is that of the whole group, also of a combination."""
    labels = [{"country": c, "select": "histogram(member)", "member": m} for c in ("NO", "SE") for m in (False, True)]
    parts = released([30.0, 70.0, 10.0, 40.0], labels)
    by_country = in_groups([100.0, 50.0])
    countries = released(by_country.values, [{"country": c, "select": "count"} for c in ("NO", "SE")])
    total = combine([released([150.0], [{"select": "count"}]) for _ in range(2)])

    assert [each.value for each in ratios(parts, countries)] == [0.3, 0.7, 0.2, 0.8]
    assert [each.value for each in ratios(parts, total)] == pytest.approx([0.2, 7 / 15, 1 / 15, 4 / 15])
    with pytest.raises(ValueError, match=r"denominators has no count of the group {'country': 'NO', 'member': False}"):
        ratios(parts, by_country)


def test_a_number_is_not_divided_by_itself() -> None:
    """Its noise would be taken for two; another answer to the same query is fine."""
    answer = in_groups([10.0])
    with pytest.raises(ValueError, match="numerators and denominators are both count of one answer"):
        ratios(answer, combine([in_groups([9.0]), answer]))
    with pytest.raises(ValueError, match=r"sums and counts are both count of one answer"):
        variances(in_groups([3.0]), answer, answer)
    assert ratios(answer, in_groups([5.0]))[0].value == 2


def test_nothing_is_divided_by_0() -> None:
    """The value is no number, the error infinite, and the interval everything."""
    (ratio,) = ratios(in_groups([1.0]), in_groups([0.0]))
    (variance,) = variances(in_groups([1.0], "sum((x * x))"), in_groups([1.0], "sum(x)"), in_groups([0.0]))

    for found in (ratio, variance):
        assert math.isnan(found.value)
        assert found.standard_error == math.inf
        assert not found.is_reliable
        assert found.interval() == EVERYTHING


def drawn_variances(numbers: Numbers, *, sigmas: tuple[float, float, float]) -> tuple[Estimate, ...]:
    """Variances from noisy sums of squares, sums and counts of these numbers."""
    squares = drawn(float(np.sum(numbers**2)), sigmas[0], item="sum((x * x))", seed=3)
    sums = drawn(float(np.sum(numbers)), sigmas[1], item="sum(x)", seed=4)
    return variances(squares, sums, drawn(len(numbers), sigmas[2], seed=5))


@pytest.mark.parametrize("sigmas", [(300.0, 1.0, 0.1), (1.0, 40.0, 0.1), (1.0, 1.0, 8.0), (300.0, 20.0, 3.0)])
def test_variances_have_the_spread_that_they_state(sigmas: tuple[float, float, float]) -> None:
    """Whichever of the three numbers is the noisy one; intervals hold the counted variance."""
    numbers = np.random.default_rng(9).gamma(4.0, 2.0, 1000)
    found = drawn_variances(numbers, sigmas=sigmas)
    spread, stated = spread_of(found)

    assert spread == pytest.approx(stated, rel=4 / math.sqrt(2 * DRAWS) + 0.01)
    assert np.mean([each.value for each in found]) == pytest.approx(np.var(numbers), abs=0.1 * stated)
    covered = coverage([each.interval(0.9) for each in found], float(np.var(numbers)))
    assert covered == pytest.approx(0.9, abs=3 * standard_error(0.9, DRAWS) + 0.003)


@pytest.mark.parametrize("sigmas", [(1.0, 40.0, 0.1), (1.0, 1.0, 8.0)])
def test_a_variance_without_the_noise_of_sums_and_counts_is_rejected(sigmas: tuple[float, float, float]) -> None:
    """The error of the squares alone is a small part of the spread."""
    found = drawn_variances(np.random.default_rng(9).gamma(4.0, 2.0, 1000), sigmas=sigmas)
    assert spread_of(found)[0] > 10 * sigmas[0] / 1000


@pytest.mark.parametrize("count", [60.0, 80.0, 160.0])
@pytest.mark.parametrize("mean", [0.0, -50.0])
def test_the_interval_of_a_variance_holds_it_near_an_unreliable_count(count: float, mean: float) -> None:
    """A count of six standard deviations up, with a mean near the middle and near a bound of -60 to 60.

    The standard errors of the delta method hold it in 93 to 94 of 100 cases there.
    """
    squares, sums = (25.0 + mean**2 - 1800) * count, mean * count
    found = variances(
        drawn(squares, 1800 * 15.0, item="sum((x * x))", seed=11),
        drawn(sums, 60 * 10.0, item="sum(x)", seed=12),
        drawn(count, 10.0, seed=13),
    )
    truth = 25.0 - 1800
    allowed = 3 * standard_error(0.95, DRAWS)

    assert coverage([each.interval() for each in found], truth) > 0.95 - allowed
    if count == 60 and mean:
        delta = around([each.value for each in found], [1.96 * each.standard_error for each in found])
        assert coverage(delta, truth) < 0.95 - allowed


def test_a_variance_by_hand() -> None:
    """The numbers 1, 2, 3 and 6: squares 50, sum 12, variance 3.5."""
    (found,) = variances(
        in_groups([50.0], "sum((x * x))", sigma=1.0, grid=0.0),
        in_groups([12.0], "sum(x)", sigma=2.0, grid=0.0),
        in_groups([4.0], sigma=0.5, grid=0.0),
    )
    assert found.value == 3.5
    assert found.label == {"group": 0, "select": "sum((x * x)) / count - (sum(x) / count)^2"}
    # By the derivatives 1/4, -2 * 12 / 4^2 and -50 / 4^2 + 2 * 12^2 / 4^3:
    assert found.standard_error == pytest.approx(math.sqrt(0.25**2 + (1.5 * 2) ** 2 + (1.375 * 0.5) ** 2))
