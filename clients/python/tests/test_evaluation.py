"""Accuracy and the area under the curve from noisy counts: exact without noise, and errors that hold what they say."""

from math import inf, isnan
from typing import Any

import numpy as np
import pytest

from clients.python.tests.released import released
from sparing import Answer
from sparing._evaluation import Evaluation, evaluation_of_bins, evaluation_of_counts

BINS, PEOPLE, RUNS, SIGMA = 8, 2000, 400, 12.0
CENTRES = (np.arange(BINS) + 0.5) / BINS


def answer(counts: Any, sigma: float) -> Answer:
    """An answer of counts."""
    values = np.ravel(counts).astype(float)
    return released(values, [{} for _ in values], sigma=sigma)


def sample(rng: np.random.Generator) -> Any:
    """Counts by target and bin of people whose probabilities are right."""
    places = rng.integers(0, BINS, PEOPLE)
    target = rng.random(PEOPLE) < CENTRES[places]
    return np.stack([np.bincount(places[~target], minlength=BINS), np.bincount(places[target], minlength=BINS)])


def judged(rng: np.random.Generator, sigma: float) -> Evaluation:
    """One sample, counted with noise."""
    counts = sample(rng)
    return evaluation_of_bins(answer(counts + rng.normal(0, sigma, counts.shape), sigma), BINS, negative=BINS // 2)


def test_without_noise_they_are_those_of_the_people() -> None:
    """Ties within a bin count half."""
    found = evaluation_of_bins(answer([[3, 1, 0, 0], [0, 1, 1, 2]], 0.0), 4, negative=2)
    pairs = [(low, high) for low, many in enumerate([3, 1, 0, 0]) for _ in range(many) for high in (1, 2, 3, 3)]
    area = sum(1.0 if high > low else 0.5 if high == low else 0.0 for low, high in pairs) / len(pairs)
    assert (found.n_individuals, found.accuracy) == (8, 7 / 8)
    assert found.auc == pytest.approx(area)
    assert found.calibration is not None
    assert found.calibration.tolist() == [[3, 0], [2, 1], [1, 1], [2, 2]]


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_standard_errors_are_those_of_many_samples(sigma: float) -> None:
    """With the noise and without; a half of each would be told from it."""
    rng = np.random.default_rng(5)
    found = [judged(rng, sigma) for _ in range(RUNS)]
    for numbers, errors in (
        ([each.accuracy for each in found], [each.accuracy_se for each in found]),
        ([each.auc or 0 for each in found], [each.auc_se or 0 for each in found]),
    ):
        assert np.std(numbers) == pytest.approx(np.mean(errors), rel=0.2)


def test_a_share_of_two_counts_has_the_error_of_both() -> None:
    """Their noise is independent."""
    rng, found = np.random.default_rng(6), []
    for _ in range(RUNS):
        right, noise = rng.binomial(PEOPLE, 0.7), rng.normal(0, SIGMA, 2)
        found.append(evaluation_of_counts(answer([right + noise[0]], SIGMA), answer([PEOPLE + noise[1]], SIGMA)))
    assert np.mean([each.accuracy for each in found]) == pytest.approx(0.7, abs=0.005)
    assert np.std([each.accuracy for each in found]) == pytest.approx(np.mean([f.accuracy_se for f in found]), rel=0.2)


def test_where_noise_leaves_nobody_there_is_no_number() -> None:
    """Not a number, and no division by zero."""
    empty = evaluation_of_bins(answer([[0, -3], [0, 1]], 3.0), 2, negative=1)
    alone = evaluation_of_bins(answer([[0, -1], [0, 4]], 3.0), 2, negative=1)
    assert all(map(isnan, (empty.accuracy, empty.accuracy_se, empty.auc or 0, empty.auc_se or 0)))
    assert alone.accuracy == pytest.approx(4 / 3)
    assert isnan(alone.auc or 0)


def test_an_area_of_few_has_no_error_that_is_known() -> None:
    """Fourteen with the target are within five deviations of the noise from none."""
    found = evaluation_of_bins(answer([[500, 500], [4, 10]], 3.0), 2, negative=1)
    assert found.auc == pytest.approx(0.607, abs=1e-3)
    assert found.auc_se == inf


@pytest.mark.parametrize("shift", [0.0, 3.5, 6.0], ids=["half", "five per cent", "half a per cent"])
def test_the_area_is_as_often_within_its_errors_as_they_say(shift: float) -> None:
    """People and noise are others each time, at every rate; with half the errors it would not be."""
    rng, scores = np.random.default_rng(7), np.linspace(-2, 2, 32_001)[:-1]
    having = 1 / (1 + np.exp(shift - scores))
    shares = np.concatenate([(1 - having).reshape(32, -1).sum(axis=1), having.reshape(32, -1).sum(axis=1)]) / 32_000

    def area(cells: Any, noise: float) -> tuple[float, float]:
        found = evaluation_of_bins(answer(cells + rng.normal(0, noise, 64), 13.0), 32, negative=16)
        assert found.auc is not None
        assert found.auc_se is not None
        return found.auc, found.auc_se

    people = 400_000
    truth, _ = area(shares * people, 0.0)
    draws = [area(rng.multinomial(people, shares), 13.0) for _ in range(4_000)]
    deviations = np.array([abs(found - truth) / error for found, error in draws])
    assert 0.935 < np.mean(deviations < 1.96) < 0.97
    assert np.mean(deviations < 0.98) < 0.8
