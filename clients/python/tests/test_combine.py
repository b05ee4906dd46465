"""Combinations: the least variance, intervals that hold, and only answers that are alike and independent."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clients.python.tests.released import in_groups, item_axis, released, rounded_noise, standard_error
from sparing import Answer, Combined, combine, missing_sigma
from sparing._combine import noise_variance

DRAWS = 4_000
SIGMAS = st.floats(1e-3, 1e6)


def answers_of(sigmas: list[float], *, grid: float, seed: int = 5) -> list[Answer]:
    """Answers to a query whose counted numbers are 0, each with DRAWS numbers."""
    rng = np.random.default_rng(seed)
    return [in_groups(rounded_noise(rng, DRAWS, sigma, grid), sigma=sigma, grid=grid) for sigma in sigmas]


def coverage(values: Any, half_width: float) -> float:
    """How often intervals of this half width hold 0."""
    return float(np.mean(np.abs(values) <= half_width))


def test_the_variance_is_that_of_inverse_variance_weights() -> None:
    """Released numbers show it to four standard errors of the draws; the plain mean is far worse."""
    answers = answers_of([1.0, 2.0, 4.0], grid=2.0**-10)
    combined = combine(answers)
    spread = np.std(combined.values)
    plain = np.std(np.mean([answer.values for answer in answers], axis=0))

    assert isinstance(combined.sigma, float)
    assert combined.sigma == pytest.approx(1 / math.sqrt(1 + 1 / 4 + 1 / 16))
    assert spread == pytest.approx(combined.sigma, rel=4 / math.sqrt(2 * DRAWS))
    assert abs(np.mean(combined.values)) < 4 * combined.sigma / math.sqrt(DRAWS)
    assert plain > 1.5 * combined.sigma


def test_numbers_of_the_active_at_different_times_are_not_combined() -> None:
    """Each is of the accounts of its own time; one alone is as it is."""
    axes = [{"select": [{"select": "active(0.1)", "offset": 0, "size": 1}]}]
    first, later = (released([value], [{"select": "active(0.1)"}], axes=axes) for value in (90.0, 70.0))
    assert combine([first]).value == 90.0
    with pytest.raises(ValueError, match="active individuals at different times"):
        combine([first, later])


def test_intervals_of_fine_grids_cover_as_often_as_they_say() -> None:
    """To three standard errors, and the intervals would not do for the plain mean of the answers."""
    answers = answers_of([1.0, 2.0, 4.0], grid=2.0**-10)
    width = combine(answers).half_width(0.9)

    assert coverage(combine(answers).values, width) == pytest.approx(0.9, abs=3 * standard_error(0.9, DRAWS))
    assert coverage(np.mean([answer.values for answer in answers], axis=0), width) < 0.8


@pytest.mark.parametrize("sigmas", [[0.3], [0.4, 0.4], [0.3, 0.5, 1.0], [1.5], [3.0, 2.0]])
def test_intervals_of_coarse_grids_cover_at_least_as_often(sigmas: list[float]) -> None:
    """Sigmas of a fraction of a grid step or a few; without the half step they would not at 0.4."""
    combined = combine(answers_of(sigmas, grid=1.0))

    for confidence in (0.5, 0.9, 0.99):
        covered = coverage(combined.values, combined.half_width(confidence))
        assert covered >= confidence - 3 * standard_error(confidence, DRAWS)
    if sigmas == [0.4, 0.4]:
        assert coverage(combined.values, combined.half_width(0.9) - 0.5) < 0.8


def test_simultaneous_intervals_hold_all_at_once() -> None:
    """Ninety in 100 of 2,000 answers with five numbers, and far fewer without the correction."""
    rng = np.random.default_rng(8)
    held = {True: 0, False: 0}
    for _ in range(2000):
        pair = [in_groups(rng.normal(0, sigma, 5), sigma=sigma) for sigma in (1.0, 2.0)]
        for simultaneous in held:
            held[simultaneous] += all(0 in around for around in combine(pair).intervals(0.9, simultaneous=simultaneous))

    assert held[True] / 2000 == pytest.approx(0.9, abs=3 * standard_error(0.9, 2000))
    assert held[False] / 2000 < 0.7


@given(st.lists(SIGMAS, min_size=1, max_size=6), st.data())
def test_the_order_of_answers_does_not_matter(sigmas: list[float], data: st.DataObject) -> None:
    """Not by a bit."""
    answers = [in_groups([place / 3, -place], sigma=sigma) for place, sigma in enumerate(sigmas)]

    assert combine(data.draw(st.permutations(answers))) == combine(answers)
    assert math.fsum(combine(answers).weights) == pytest.approx(1)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6), SIGMAS)
def test_answers_of_one_sigma_are_averaged(values: list[float], sigma: float) -> None:
    """And the variance falls with their number."""
    combined = combine(in_groups([value], sigma=sigma) for value in values)

    assert combined.value == pytest.approx(sum(values) / len(values), rel=1e-9, abs=1e-6)
    assert combined.sigma == pytest.approx(sigma / math.sqrt(len(values)))


@given(st.lists(SIGMAS, min_size=1, max_size=6))
def test_another_answer_never_makes_it_worse(sigmas: list[float]) -> None:
    """The combination is at least as precise as each of its answers, and lies between them."""
    combined = combine(in_groups([float(place)], sigma=sigma) for place, sigma in enumerate(sigmas))

    assert max(combined.sigmas) <= min(sigmas) * (1 + 1e-12)
    assert -1e-9 <= combined.value <= len(sigmas) - 1 + 1e-9


@given(SIGMAS, st.floats(1e-4, 0.9999))
def test_a_refinement_reaches_the_wanted_sigma_at_no_waste(sigma: float, share: float) -> None:
    """The rho of both queries, 1 / (2 sigma^2) each, is that of one query at the wanted sigma."""
    have, wanted = in_groups([0.0], sigma=sigma), sigma * share
    asked = missing_sigma(have, wanted)

    assert asked is not None
    assert combine([have, in_groups([0.0], sigma=asked)]).sigma == pytest.approx(wanted)
    assert 1 / sigma**2 + 1 / asked**2 == pytest.approx(1 / wanted**2)
    assert missing_sigma(combine([have, in_groups([0.0], sigma=asked)]), wanted * 1.001) is None


def test_nothing_is_asked_for_what_is_there() -> None:
    """A second answer of the same sigma halves the variance; a larger sigma is reached already."""
    have = in_groups([0.0], sigma=10.0)

    assert missing_sigma(have, 10.0) is None
    assert missing_sigma(have, 10.0 / math.sqrt(2)) == pytest.approx(10.0)
    for wanted in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="wanted_sigma must be positive and finite"):
            missing_sigma(have, wanted)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (in_groups([1.0, 2.0, 3.0]), r"answers\[1\] has 3 numbers, and answers\[0\] has 2"),
        (in_groups([1.0, 2.0], "sum(spend)"), r"number 0 is .*'sum\(spend\)'.* in answers\[1\], and .*'count'"),
        (in_groups([1.0, 2.0], axes=({"column": "age"},)), r"answers\[1\] has the axes \[{'column': 'age'}\], and"),
        (in_groups([1.0, 2.0], epoch=2), r"answers\[1\] is of epoch 2, and answers\[0\] of epoch 1"),
        (replace(in_groups([1.0, 2.0]), labels=()), r"answers\[1\] has 0 labels, and answers\[0\] has 2"),
    ],
)
def test_answers_that_differ_are_refused(other: Answer, message: str) -> None:
    """The difference is named."""
    with pytest.raises(ValueError, match=message):
        combine([in_groups([1.0, 2.0]), other])


def test_the_same_noise_does_not_count_twice() -> None:
    """An answer given twice, and one that was reused, which has the id of its original."""
    answer = in_groups([1.0])

    for again in (answer, replace(answer, reused=True)):
        with pytest.raises(ValueError, match=rf"answers\[2\] and answers\[0\] are one answer, {answer.id}, with"):
            combine([answer, in_groups([2.0]), again])
    with pytest.raises(ValueError, match="answers must not be empty"):
        combine([])


@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.75, 1.0, 1.5, 3.0, 20.0])
def test_the_variance_of_the_noise_is_stated_with_its_rounding(sigma: float) -> None:
    """Exact from a step up, too large below; sigma squared alone would be too small."""
    steps = np.arange(1, 400)
    exact = float(np.sum((2 * steps - 1) * 2 * stats.norm.sf((steps - 0.5) / sigma)))
    claimed = noise_variance(in_groups([0.0], sigma=2 * sigma, grid=2.0)) / 4

    assert claimed >= exact * (1 - 1e-6)
    if sigma >= 1:
        assert claimed == pytest.approx(exact, rel=1e-6)
        assert exact > sigma**2 * (1 + 1e-5)


def test_the_variance_of_a_combination_is_that_of_its_answers() -> None:
    """With the rounding of each."""
    pair = [in_groups([0.0], sigma=3.0, grid=1.0), in_groups([0.0], sigma=4.0, grid=2.0)]
    first, second = combine(pair).weights

    assert first == pytest.approx(16 / 25)
    assert noise_variance(combine(pair)) == pytest.approx(first**2 * (9 + 1 / 12) + second**2 * (16 + 4 / 12))


def by_items(values: list[float], sigma: tuple[float, ...] | float) -> Answer:
    """Two groups of a count and a sum."""
    labels = [{"group": group, "select": item} for group in (0, 1) for item in ("count", "sum(x)")]
    axes = ({"column": "group", "size": 2}, {"select": [item_axis("count"), item_axis("sum(x)", offset=1)]})
    grid = tuple(each / 2**20 for each in sigma) if isinstance(sigma, tuple) else sigma / 2**20
    return released(values, labels, axes=axes, sigma=sigma, grid=grid)


def test_each_item_has_weights_of_its_own() -> None:
    """By hand: the count's answers weigh 16/25 and 9/25, the sum's 1/2 each; also beside an answer with one sigma."""
    pair = [by_items([1.0, 10.0, 2.0, 20.0], (3.0, 100.0)), by_items([2.0, 20.0, 4.0, 40.0], (4.0, 100.0))]
    combined = combine(pair)

    assert combined.values == pytest.approx((1.36, 15.0, 2.72, 30.0))
    assert combined.sigma == pytest.approx((2.4, 100 / math.sqrt(2)))
    assert combined.sigmas == pytest.approx((2.4, 100 / math.sqrt(2)) * 2)
    widths = [(each.high - each.low) / 2 for each in combined.intervals()]
    assert widths == pytest.approx([1.96 * sigma for sigma in combined.sigmas], rel=1e-4)
    assert noise_variance(combined, 3) == pytest.approx(5000)
    for number in (combined.half_width, lambda: combined.weights):
        with pytest.raises(ValueError, match="the 2 items have precisions of their own"):
            number()
    assert repr(combined).startswith("Combined(1.4 ± 4.7, 15 ± 139, ")

    beside = combine([pair[0], by_items([2.0, 20.0, 4.0, 40.0], 4.0)])
    assert beside.values[:2] == pytest.approx((1.36, (10 + 20 * 625) / 626))
    assert beside.sigma == pytest.approx((2.4, 100 / math.sqrt(626)))


def test_a_combination_reads_like_an_answer() -> None:
    """Names, intervals and one line."""
    pair = [in_groups([1.0], sigma=3.0), in_groups([2.0], sigma=3.0, coverage_certified=False)]
    combined = combine(pair)

    assert isinstance(combined, Combined)
    assert (combined.labels, combined.axes, combined.dimension) == (pair[0].labels, (), 1)
    assert not combined.coverage_certified
    assert combined.interval(0.5).low < 1.5 < combined.interval(0.5).high
    assert repr(combined) == "Combined(1.5 ± 4.2, dimension=1, answers=2)"
    with pytest.raises(ValueError, match="2 values"):
        combine([in_groups([1.0, 2.0])]).interval()
    for confidence in (0, 1):
        with pytest.raises(ValueError, match="confidence"):
            combined.half_width(confidence)
