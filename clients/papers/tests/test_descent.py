"""Gradient descent with the filter: each step against Algorithm 3 in plain Python, and its promise."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sparing_papers.descent import LOGISTIC, Descent, area_under_curve, fit, losses, percent_right
from sparing_papers.digits import CLASSES
from sparing_papers.labelled import Labelled
from sparing_papers.made_up import made_up_digits

DIGITS = made_up_digits(3, individuals=60, tests=200)
Gradient = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
SETTINGS = Descent(clip=0.7, noise=2.0, rate=3.0, budget=5 * 0.7**2, steps=12)


def softmax_gradient(at: np.ndarray, vector: np.ndarray, label: int) -> np.ndarray:
    """The gradient of one individual's cross-entropy, of several classes."""
    scores = at @ vector
    error = np.exp(scores - scores.max())
    error /= error.sum()
    error[label] -= 1
    return np.outer(error, vector)


def logistic_gradient(at: np.ndarray, vector: np.ndarray, label: int) -> np.ndarray:
    """The gradient of one individual's cross-entropy, of labels 0 and 1."""
    gradient: np.ndarray = (1 / (1 + np.exp(-(at @ vector))) - label)[:, None] * vector
    return gradient


def one_by_one(
    data: Labelled, settings: Descent, seed: list[int], at: np.ndarray, gradient_of: Gradient
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 3 from some parameters, an individual at a time, in doubles."""
    source = np.random.default_rng(seed)
    spent = np.zeros(len(data.train))
    for _ in range(settings.steps):
        total = np.zeros_like(at)
        for person, (vector, label) in enumerate(zip(data.train, data.train_labels, strict=True)):
            gradient = gradient_of(at, vector, int(label))
            norm = np.linalg.norm(gradient)
            length = min(norm, settings.clip, np.sqrt(max(0.0, settings.budget - spent[person])))
            total += gradient * (length / norm)
            spent[person] += length**2
        at = at - settings.rate / len(data.train) * (total + source.normal(0, settings.noise, at.shape))
    return at, spent


def test_a_step_is_algorithm_3_one_individual_at_a_time() -> None:
    """Parameters and spent totals, to the precision of single floats; some individuals run out."""
    start = np.zeros((CLASSES, DIGITS.train.shape[1]))
    parameters, spent = one_by_one(DIGITS, SETTINGS, [1], start, softmax_gradient)
    found = fit(DIGITS, SETTINGS, [1])

    assert found.parameters[12] == pytest.approx(parameters, abs=2e-4)
    assert found.spent[12] == pytest.approx(spent, abs=2e-4)
    assert 0 < found.active[-1] < 60


def test_without_the_filter_the_certified_steps_are_the_same() -> None:
    """A budget that nobody can reach changes no step before the certified ones are over, and later ones do differ."""
    free = fit(DIGITS, replace(SETTINGS, budget=1e9), [1], kept=[5])
    held = fit(DIGITS, SETTINGS, [1], kept=[5])

    assert SETTINGS.certified == 5
    assert np.array_equal(free.parameters[5], held.parameters[5])
    assert not np.array_equal(free.parameters[12], held.parameters[12])


def test_no_individual_spends_more_than_the_budget() -> None:
    """So that all steps are B / (2 sigma^2 C^2)-zCDP, and the exhausted have spent it whole."""
    found = fit(DIGITS, replace(SETTINGS, steps=60), [2])

    assert found.spent[60].max() == SETTINGS.budget
    assert np.count_nonzero(found.spent[60] == SETTINGS.budget) == 60 - np.count_nonzero(
        found.spent[60] < SETTINGS.budget
    )
    assert SETTINGS.rho == pytest.approx(5 * 0.7**2 / (2 * 2.0**2))


def test_equal_seeds_give_equal_fits() -> None:
    """Bit by bit; another seed has other noise."""
    first, again, other = (fit(DIGITS, SETTINGS, [seed]) for seed in (1, 1, 2))

    assert np.array_equal(first.parameters[12], again.parameters[12])
    assert np.array_equal(first.spent[12], again.spent[12])
    assert not np.array_equal(first.parameters[12], other.parameters[12])


def test_an_individual_is_charged_by_its_own_record_and_the_answers() -> None:
    """With the same noise and parameters, nobody else's spent total moves when an individual is blanked."""
    blanked = DIGITS.train.copy()
    blanked[7] = 0
    one = replace(SETTINGS, steps=1)
    found = [fit(each, one, [1]).spent[1] for each in (DIGITS, replace(DIGITS, train=blanked))]

    assert np.flatnonzero(found[0] != found[1]).tolist() == [7]
    assert found[1][7] == 0


def test_a_model_that_knows_nothing_has_the_loss_of_a_guess() -> None:
    """And is right as often as one that always names the first digit."""
    nothing = np.zeros((CLASSES, DIGITS.test.shape[1]))

    assert losses(DIGITS.test, DIGITS.test_labels, nothing) == pytest.approx(np.log(10))
    assert percent_right(DIGITS.test, DIGITS.test_labels, nothing) == 100 * np.mean(DIGITS.test_labels == 0)


def test_a_logistic_step_is_algorithm_3_one_individual_at_a_time() -> None:
    """With labels of 0 and 1 and one row of parameters; losses are cross-entropies."""
    data = replace(DIGITS, train_labels=DIGITS.train_labels % 2, test_labels=DIGITS.test_labels % 2)
    at, spent = one_by_one(data, SETTINGS, [1], np.zeros((1, data.train.shape[1])), logistic_gradient)
    found = fit(data, SETTINGS, [1], loss=LOGISTIC)
    chances = 1 / (1 + np.exp(-(data.test @ at[0])))

    assert found.parameters[12] == pytest.approx(at, abs=2e-4)
    assert found.spent[12] == pytest.approx(spent, abs=2e-4)
    assert 0 < found.active[-1] < 60
    expected = -np.log(np.where(data.test_labels == 1, chances, 1 - chances))
    assert LOGISTIC.losses(data.test, data.test_labels, at) == pytest.approx(expected, abs=1e-5)


def test_an_area_under_the_curve_is_its_definition() -> None:
    """The share of pairs in the right order, equal scores counted half; of unlike labels alone."""
    source = np.random.default_rng(5)
    features = source.integers(-3, 4, (70, 1)).astype(np.float32)
    labels = (features[:, 0] + source.normal(0, 3, 70) > 0).astype(np.int64)
    one = np.ones((1, 1))
    pairs = np.sign(features[labels == 1] - features[labels == 0].T).astype(float) / 2 + 0.5

    assert 0.5 < area_under_curve(features, labels, one) < 0.95
    assert area_under_curve(features, labels, one) == pytest.approx(float(pairs.mean()), rel=1e-12)
    assert area_under_curve(features, labels, -one) == pytest.approx(1 - float(pairs.mean()), rel=1e-12)
    assert area_under_curve(features, labels, 0 * one) == 0.5
    with pytest.raises(ValueError, match="needs both labels"):
        area_under_curve(features, np.ones(70, dtype=np.int64), one)
