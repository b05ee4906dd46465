"""Descent on Poisson samples: against an individual at a time, what is charged, and where the coins are not."""

import logging
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN
from service.accounting.noise_grid import grid_of_equal_ratios
from service.accounting.subsampled_rdp import epsilons_of_divergences
from sparing_papers.digits import CLASSES, Digits
from sparing_papers.made_up import made_up_digits
from sparing_papers.sampled_descent import (
    Filter,
    SampledDescent,
    SampledFit,
    filter_of_gaussian,
    filter_of_order,
    fit_samples,
)

DIGITS = made_up_digits(3, individuals=60, tests=200)
SETTINGS = SampledDescent(clip=3.0, multiplier=2.0, sampled=0.3, rate=1.0, steps=12)
GRID = grid_of_equal_ratios(0.005, 0.5, intervals=30)
EVERYBODY = range(60)
LIMIT = Filter(grid=GRID, prices=GRID.charged**2 / 2, budget=0.5**2 / 2 * 7.5)


def one_by_one(digits: Digits, settings: SampledDescent, limit: Filter, seed: list[int]) -> tuple[np.ndarray, ...]:
    """Parameters, spent totals and steps that were charged, an individual at a time, in doubles."""
    source = np.random.default_rng(seed)
    people = len(digits.train)
    spent, charged = np.zeros(people), np.zeros(people)
    at = np.zeros((CLASSES, digits.train.shape[1]))
    noise = settings.multiplier * settings.clip
    for _ in range(settings.steps):
        coins, total = source.random(people), np.zeros_like(at)
        for person, (vector, digit) in enumerate(zip(digits.train, digits.train_labels, strict=True)):
            scores = at @ vector
            error = np.exp(scores - scores.max())
            error /= error.sum()
            error[digit] -= 1
            gradient = np.outer(error, vector)
            norm = float(np.linalg.norm(gradient))
            length = min(norm, settings.clip)
            (cell,) = limit.grid.cells(np.array([length]), sigma=noise)
            if spent[person] + limit.prices[cell] > limit.budget:
                continue
            spent[person] += limit.prices[cell]
            charged[person] += 1
            if coins[person] < settings.sampled:
                total += gradient * (length / norm)
        at = at - settings.rate / (settings.sampled * people) * (total + source.normal(0, noise, at.shape))
    return at, spent, charged


def test_a_step_is_that_of_one_individual_at_a_time() -> None:
    """To the precision of single floats; some individuals run out, and are charged for no further step."""
    parameters, spent, charged = one_by_one(DIGITS, SETTINGS, LIMIT, [1])
    found = fit_samples(DIGITS, SETTINGS, [1], grid=GRID, followed=EVERYBODY, limit=LIMIT)

    assert found.parameters == pytest.approx(parameters, abs=2e-4)
    assert found.spent == pytest.approx(spent, abs=1e-12)
    assert found.own.counts[:, 1:].sum(axis=1).tolist() == charged.tolist()
    assert found.active[0] == 60 > found.active[-1] > 0


def test_everybody_is_charged_whether_sampled_or_not() -> None:
    """At a rate at which hardly anybody is sampled, each of the followed has all steps."""
    found = fit_samples(DIGITS, replace(SETTINGS, sampled=0.01), [1], grid=GRID, followed=[5, 7])

    assert found.own.counts[:, 1:].sum(axis=1).tolist() == [12, 12]
    assert found.active == [60] * 12
    assert not found.spent.any()


def test_the_coins_are_in_nothing_but_the_parameters(caplog: pytest.LogCaptureFixture) -> None:
    """With steps of length 0, runs of other coins are equal bit by bit; and nothing is logged."""
    caplog.set_level(logging.DEBUG)
    still = replace(SETTINGS, rate=0.0)
    first, second = (fit_samples(DIGITS, still, [seed], grid=GRID, followed=EVERYBODY, limit=LIMIT) for seed in (1, 2))

    assert contents(first) == contents(second)
    assert caplog.records == []
    moving = [fit_samples(DIGITS, SETTINGS, [seed], grid=GRID, followed=EVERYBODY) for seed in (1, 2, 1)]
    assert contents(moving[0]) != contents(moving[1])
    assert contents(moving[0]) == contents(moving[2])


def contents(found: SampledFit) -> tuple[bytes, ...]:
    """All that a fit says."""
    return (found.parameters.tobytes(), found.own.counts.tobytes(), found.spent.tobytes(), repr(found.active).encode())


@pytest.mark.parametrize("order", [12.0, 20.5])
def test_a_filter_by_one_order_keeps_its_promise(order: float) -> None:
    """All that was charged is within the budget, to which (1, 1e-5) is converted, and the last step had no room."""
    settings = replace(SETTINGS, steps=60)
    limit = filter_of_order(GRID, settings, order=order, epsilon=Decimal(1), delta=Decimal("1e-5"))
    found = fit_samples(DIGITS, settings, [1], grid=GRID, followed=EVERYBODY, limit=limit)
    divergences = found.own.divergences(rate=settings.sampled, orders=[order])

    assert found.spent == pytest.approx(divergences[:, 0], rel=1e-12)
    assert epsilons_of_divergences(divergences, orders=[order], delta=1e-5).max() <= 1
    assert 0 <= limit.budget - found.spent.max() < limit.prices[-1]
    assert found.active[-1] < 60


def test_gaussian_dp_has_nothing_from_sampling() -> None:
    """It admits as many steps at the clip as of a full batch, and Rényi divergence of an order far more."""
    settings = replace(SETTINGS, sampled=0.01)
    budgets = {"epsilon": Decimal(1), "delta": Decimal("1e-5")}
    gaussian = filter_of_gaussian(GRID, **budgets)
    by_order = filter_of_order(GRID, settings, order=12.0, **budgets)
    mu = math.sqrt(2 * gaussian.budget)

    assert GAUSSIAN.epsilon_of_units(GAUSSIAN.budget_units(**budgets), Decimal("1e-5")) == pytest.approx(1, abs=1e-9)
    assert mu**2 / 2 == pytest.approx(GAUSSIAN.budget_units(**budgets) / 2**40, rel=1e-12)
    steps = [int(each.budget / each.prices[-1]) for each in (gaussian, by_order)]
    assert steps[0] == int(mu**2 / 0.5**2) == 0
    assert steps[1] > 1000


def test_a_norm_beyond_the_grid_is_refused() -> None:
    """Nobody would be charged for it."""
    with pytest.raises(ValueError, match="norms must be from 0"):
        fit_samples(DIGITS, replace(SETTINGS, multiplier=1.0), [1], grid=GRID, followed=[0])
