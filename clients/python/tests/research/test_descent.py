"""Descent on Poisson samples: against an individual at a time, its filters' promises, and what it refuses."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN, RenyiAccounting
from sparing.research import GaussianFilter, PoissonDescent, PoissonFilter, RenyiFilter, descend
from sparing.research.privacy_loss import Steps, epsilon_of_steps
from sparing.research.subsampled_rdp import epsilons_of_divergences

PEOPLE = 60
SOFTMAX = PoissonDescent(
    loss="softmax", classes=4, l2_clip=1.5, noise_multiplier=8.0, sampling_rate=0.3, learning_rate=1.0, steps=12
)
BY_ORDER = RenyiFilter(order=20, epsilon=0.65, delta="1e-5")
BY_GDP = GaussianFilter(epsilon=1.4, delta="1e-5")


def settings_of(loss: Any) -> PoissonDescent:
    """The settings for each loss."""
    return replace(SOFTMAX, loss=loss, classes=4 if loss == "softmax" else None)


def data_of(loss: str, seed: int = 3, people: int = PEOPLE) -> tuple[np.ndarray, np.ndarray]:
    """Features of lengths from short to long, and labels that they foretell a little."""
    source = np.random.default_rng([seed, people])
    features = source.normal(size=(people, 5)) * source.uniform(0.05, 1.0, size=(people, 1))
    scores = features @ source.normal(size=(5, 4)) + source.normal(size=(people, 4)) / 2
    labels = {"squared": scores[:, 0], "logistic": scores[:, 0] > 0, "softmax": scores.argmax(axis=1)}
    return features, labels[loss]


def gradient_of(loss: str, at: np.ndarray, vector: np.ndarray, label: float) -> np.ndarray:
    """The gradient of one individual's loss (classes, d), as the textbook has it."""
    scores = at @ vector
    if loss == "softmax":
        errors = np.exp(scores) / np.exp(scores).sum() - (np.arange(len(scores)) == label)
    elif loss == "logistic":
        errors = 1 / (1 + np.exp(-scores)) - label
    else:
        errors = scores - label
    return np.outer(errors, vector)


def one_by_one(
    loss: str, settings: PoissonDescent, limit: PoissonFilter, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters, spent totals and steps that were charged, an individual at a time."""
    features, labels = data_of(loss)
    source = np.random.default_rng(seed)
    spent, charged = np.zeros(len(features)), np.zeros(len(features))
    prices = limit.prices(settings.grid.charged, settings.sampling_rate)
    budget = limit.budget_units / 2**40
    at = np.zeros((settings.classes or 1, features.shape[1]))
    for _ in range(settings.steps):
        coins, total = source.random(len(features)), np.zeros_like(at)
        for person, (vector, label) in enumerate(zip(features, labels, strict=True)):
            gradient = gradient_of(loss, at, vector, float(label))
            norm = float(np.linalg.norm(gradient))
            length = min(norm, settings.l2_clip)
            (cell,) = settings.grid.cells(np.array([length]), sigma=settings.sigma)
            if spent[person] + prices[cell] > budget:
                continue
            spent[person] += prices[cell]
            charged[person] += 1
            if coins[person] < settings.sampling_rate:
                total += gradient * (length / norm)
        noise = source.normal(0, settings.noise_multiplier * settings.l2_clip, at.shape)
        at = at - settings.learning_rate / (settings.sampling_rate * len(features)) * (total + noise)
    return at, spent, charged


@pytest.mark.parametrize("limit", [BY_ORDER, BY_GDP], ids=["order", "gdp"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_a_step_is_that_of_one_individual_at_a_time(loss: str, limit: PoissonFilter) -> None:
    """Some individuals run out, and are charged for no further step that is as dear."""
    settings = replace(settings_of(loss), steps=40)
    parameters, spent, charged = one_by_one(loss, settings, limit, 1)
    run = descend(*data_of(loss), settings, seed=1, limit=limit)

    assert run.parameters.shape == ((4, 5) if loss == "softmax" else (5,))
    assert run.parameters == pytest.approx(parameters if loss == "softmax" else parameters[0], abs=1e-9)
    assert run.spent == pytest.approx(spent, abs=1e-10)
    assert run.own.counts[:, 1:].sum(axis=1).tolist() == charged.tolist()
    assert run.active[0] == PEOPLE > run.active[-1] > 0
    assert run.active.sum() == charged.sum()


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_without_a_filter_a_step_is_the_update_of_dp_sgd(loss: str) -> None:
    """Thudi et al. 2023: theta - eta / L (U + N(0, sigma^2 C^2)), with U the sum of g / max(1, |g| / C) over a sample.

    L, the mean size of a sample, is q n. Here some gradients are longer than the clip, and some are not.
    """
    settings = replace(settings_of(loss), l2_clip=0.4)
    features, labels = data_of(loss)
    source, norms = np.random.default_rng(4), []
    at = np.zeros((settings.classes or 1, features.shape[1]))
    for _ in range(settings.steps):
        update = np.zeros_like(at)
        for person in np.flatnonzero(source.random(PEOPLE) < settings.sampling_rate):
            gradient = gradient_of(loss, at, features[person], float(labels[person]))
            norms.append(float(np.linalg.norm(gradient)))
            update += gradient / max(1, norms[-1] / settings.l2_clip)
        noise = source.normal(0, settings.noise_multiplier * settings.l2_clip, at.shape)
        at = at - settings.learning_rate / (settings.sampling_rate * PEOPLE) * (update + noise)
    run = descend(features, labels, settings, seed=4)

    assert min(norms) < settings.l2_clip < max(norms)
    assert run.parameters == pytest.approx(at if loss == "softmax" else at[0], abs=1e-9)


def test_the_parameters_of_each_step_are_told() -> None:
    """The last ones are those of the run; fewer steps with the same seed are the beginning of more."""
    told: list[tuple[int, bytes]] = []
    features, labels = data_of("logistic")
    settings = settings_of("logistic")
    run = descend(features, labels, settings, seed=5, after_step=lambda step, at: told.append((step, at.tobytes())))
    shorter = descend(features, labels, replace(settings, steps=7), seed=5)

    assert [step for step, _ in told] == list(range(1, 13))
    assert told[-1][1] == run.parameters.tobytes()
    assert told[6][1] == shorter.parameters.tobytes()


def test_it_learns_what_there_is_to_learn() -> None:
    """Three thousand people at (1, 1e-5): the direction of the labels is found."""
    source = np.random.default_rng(8)
    features = source.normal(size=(3000, 3)) / 2
    labels = features @ [1.0, -2.0, 0.0] + source.normal(size=3000) / 4 > 0
    settings = replace(settings_of("logistic"), l2_clip=0.5, sampling_rate=0.1, learning_rate=4, steps=200)
    run = descend(features, labels, settings, seed=2, limit=replace(BY_ORDER, epsilon=1))
    right = np.mean((features @ run.parameters > 0) == labels)

    assert right > 0.88
    assert run.epsilons(delta=1e-5).max() <= 1


@pytest.mark.parametrize("order", [12.0, 20.5])
def test_a_filter_by_one_order_keeps_its_promise(order: float) -> None:
    """All that was charged is within the budget, to which (1, 1e-5) is converted, and the last step had no room."""
    settings = replace(settings_of("squared"), steps=900)
    limit = RenyiFilter(order=order, epsilon=1, delta="1e-5")
    run = descend(*data_of("squared"), settings, seed=1, limit=limit)
    divergences = run.own.divergences(rate=settings.sampling_rate, orders=[order])

    assert run.spent == pytest.approx(divergences[:, 0] / order, rel=1e-7)
    assert (run.spent >= divergences[:, 0] / order).all()
    assert epsilons_of_divergences(divergences, orders=[order], delta=1e-5).max() <= 1
    assert run.budget == RenyiAccounting(order=order).budget_units(epsilon=Decimal(1), delta=Decimal("1e-5")) / 2**40
    worst = run.budget / limit.certified_steps(settings)
    assert 0 <= run.budget - run.spent.max() < worst
    assert run.active[-1] < PEOPLE


def test_gaussian_dp_has_nothing_from_sampling() -> None:
    """It admits as many steps at the clip as of a full batch, and Rényi divergence of an order far more."""
    guarantee: Any = {"epsilon": 1, "delta": "1e-5"}
    settings = replace(SOFTMAX, sampling_rate=0.01)
    gaussian, by_order = GaussianFilter(**guarantee), RenyiFilter(order=12, **guarantee)
    mu = math.sqrt(2 * gaussian.budget_units / 2**40)

    assert GAUSSIAN.epsilon_of_units(gaussian.budget_units, Decimal("1e-5")) == pytest.approx(1, abs=1e-9)
    assert gaussian.certified_steps(settings) == int(mu**2 * 8.0**2) == 4
    assert gaussian.certified_steps(replace(settings, sampling_rate=1.0)) == 4
    assert by_order.certified_steps(settings) > 1000 * gaussian.certified_steps(settings)
    assert by_order.certified_steps(replace(settings, noise_multiplier=0.1)) == 0


def test_own_epsilons_are_those_of_the_own_steps() -> None:
    """By orders and by losses, of chosen individuals in their order; losses say less."""
    settings = settings_of("softmax")
    run = descend(*data_of("softmax"), settings, seed=1, followed=[7, 3, 40])
    counts = run.own.counts[1]
    steps = [
        Steps(float(run.own.grid.charged[cell]), settings.sampling_rate, int(counts[cell]))
        for cell in np.flatnonzero(counts)
    ]

    assert run.followed.tolist() == [7, 3, 40]
    assert run.budget is None
    assert not run.spent.any()
    assert run.loss_epsilons([3], delta=1e-5)[0] == pytest.approx(epsilon_of_steps(steps, delta=1e-5), abs=1e-3)
    every = run.epsilons(delta=1e-5)
    assert run.epsilons([40, 7], delta=1e-5).tolist() == [every[2], every[0]]
    by_losses = run.loss_epsilons(delta=1e-5)
    assert (by_losses < every).all()
    assert run.loss_epsilons([3], delta=1e-5).tolist() == [by_losses[1]]
    assert run.epsilons(delta=1e-5, orders=[12])[1] >= every[1]
    with pytest.raises(ValueError, match="individual 5 was not followed"):
        run.epsilons([7, 5], delta=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss must be"),
        ({"l2_clip": 0.0}, "l2_clip must be above 0"),
        ({"noise_multiplier": 0.05}, "noise_multiplier must be above 1 / 20"),
        ({"sampling_rate": 0.0}, "sampling_rate must be above 0"),
        ({"sampling_rate": 1.5}, "a sampling rate must be"),
        ({"learning_rate": math.nan}, "learning_rate must be a number"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"classes": None}, "classes go with softmax"),
        ({"loss": "squared"}, "classes go with softmax"),
        ({"individuals": 0}, "individuals must be at least 1"),
        ({"intervals": 0}, "intervals must be at least 1"),
    ],
)
def test_settings_that_are_none_are_refused(change: dict[str, Any], message: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=message):
        replace(SOFTMAX, **change)


@pytest.mark.parametrize(
    ("features", "labels", "more", "message"),
    [
        ([1.0, 2.0], [0, 1], {}, "features must be a matrix"),
        ([[1.0], [math.inf]], [0, 1], {}, "features must be a matrix"),
        ([[1.0], [2.0]], [0], {}, "labels must be 2 finite numbers"),
        ([[1.0], [2.0]], [0, math.nan], {}, "labels must be 2 finite numbers"),
        ([[1.0], [2.0]], [0, 4], {}, "labels of softmax must be whole numbers from 0 to 3"),
        ([[1.0], [2.0]], [0, 0.5], {}, "labels of softmax must be whole numbers from 0 to 3"),
        ([[1.0], [2.0]], [0, 1], {"followed": [2]}, "followed must be rows from 0 to 1"),
        ([[1.0], [2.0]], [0, 1], {"limit": RenyiFilter(order=1.5, epsilon=1, delta="1e-5")}, "must be above"),
    ],
)
def test_data_that_no_descent_can_have_are_refused(
    features: list[Any], labels: list[Any], more: dict[str, Any], message: str
) -> None:
    """Before the first step."""
    with pytest.raises(ValueError, match=message):
        descend(features, labels, SOFTMAX, seed=1, **more)


def test_a_descent_that_diverges_ends() -> None:
    """An individual whose norm is no number would be charged for nothing."""
    features, labels = data_of("squared")
    with pytest.raises(ValueError, match="norms must be from 0"), np.errstate(all="ignore"):
        descend(features, labels, replace(settings_of("squared"), learning_rate=1e308, steps=40), seed=1)


@pytest.mark.parametrize(("clip", "multiplier"), [(0.7, 3.0), (0.1, 4.9), (1.1, 7.7), (3.3, 0.3)])
def test_the_clip_is_within_the_grid(clip: float, multiplier: float) -> None:
    """However both are rounded; at most the quotient is one."""
    features, labels = data_of("squared")
    settings = replace(settings_of("squared"), l2_clip=clip, noise_multiplier=multiplier, steps=1)
    run = descend(100 * features, labels + 100, settings, seed=1)

    assert run.own.counts[:, -1].sum() > PEOPLE / 2
