"""Private gradient descent on Poisson samples (DP-SGD), in which each individual is charged for its own gradient.

In each step every individual is sampled with probability q, gradients of the sampled are shortened to the clip C, and
noise of standard deviation sigma C is added to each coordinate of their sum. An individual's charge is that of the step
for a vector of its own norm, and it is charged for the chance of being sampled, whether or not it was: which
individuals were sampled is kept nowhere, and nothing that is returned depends on it but through the parameters.

With a filter, individuals whose next charge is more than what they have left are out of that step, sampled or not
(Feldman and Zrnic 2021, Algorithm 2). A filter adds up one number: the Rényi divergence of one order (Theorem 4.5), or
mu^2 / 2 of Gaussian DP (Koskela, Tobaben and Honkela 2023, Theorem 12), which sampling does not make smaller.

A simulation over public data, or the researcher's own, in the researcher's process: no query of the service is sampled
(docs/filters.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from service.accounting.accountings import GAUSSIAN
from service.accounting.conversions import amount_of_order, amount_of_units
from service.accounting.noise_grid import NoiseGrid, OwnSteps
from service.accounting.subsampled_rdp import subsampled_divergences
from sparing_papers.descent import softmax
from sparing_papers.digits import CLASSES, Digits

__all__ = ["Filter", "SampledDescent", "SampledFit", "filter_of_gaussian", "filter_of_order", "fit_samples"]

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledDescent:
    """The settings of a descent. Lengths are in the unit of the features."""

    clip: float  # C: the longest that a gradient may be
    multiplier: float  # sigma: the noise of a coordinate of a sum, in clips
    sampled: float  # q: the probability of each individual in each step
    rate: float  # of a step, per mean gradient of an expected sample
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The budget of each individual, and the price of a step by the cell of its norm over sigma C."""

    grid: NoiseGrid
    prices: Doubles  # (cells,)
    budget: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFit:
    """A descent that was made."""

    parameters: Doubles  # (classes, d)
    own: OwnSteps  # of the individuals that were followed, in their order
    spent: Doubles  # (n,) of the filter's budget; zeros without a filter
    active: list[int]  # individuals who could pay for their own gradient, of each step


def filter_of_order(
    grid: NoiseGrid, settings: SampledDescent, *, order: float, epsilon: Decimal, delta: Decimal
) -> Filter:
    """The filter by Rényi divergence of this order: Feldman and Zrnic 2021, Theorem 4.5. Raises ValueError."""
    prices = subsampled_divergences(grid.charged, rate=settings.sampled, orders=[order])[:, 0]
    return Filter(grid=grid, prices=prices, budget=float(amount_of_order(order, epsilon, delta, "optimal")) * order)


def filter_of_gaussian(grid: NoiseGrid, *, epsilon: Decimal, delta: Decimal) -> Filter:
    """The filter by Gaussian DP, whatever the sampling: Koskela et al. 2023, Theorem 12. Raises ValueError."""
    budget = float(amount_of_units(GAUSSIAN.budget_units(epsilon=epsilon, delta=delta)))
    return Filter(grid=grid, prices=grid.charged**2 / 2, budget=budget)


def fit_samples(
    digits: Digits,
    settings: SampledDescent,
    seed: Sequence[int],
    *,
    grid: NoiseGrid,
    followed: Sequence[int] = (),
    limit: Filter | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> SampledFit:
    """Descend from zero. The own norms of the `followed` are counted in the cells of the grid, step by step.

    The grid's last mu is at least 1 / multiplier. With a filter the norms of all individuals are worked out in each
    step, without it those of the sampled and the followed. Equal seeds give equal fits on one machine, bit by bit.
    Raises ValueError where a norm is beyond the grid.
    """
    source = np.random.default_rng(seed)
    people = len(digits.train)
    shown = np.asarray(followed, dtype=np.int64)
    own, spent, active = OwnSteps(grid, len(shown)), np.zeros(people), []
    parameters = np.zeros((CLASSES, digits.train.shape[1]))
    for step in range(settings.steps):
        is_active = np.ones(people, dtype=np.bool_)
        if limit is not None:
            is_active = _charge(digits, parameters, settings, limit, spent)
        active.append(int(np.count_nonzero(is_active)))
        _, lengths = _gradients(digits, shown, parameters, settings.clip)
        own.record(np.where(is_active[shown], lengths, 0.0), sigma=settings.multiplier * settings.clip)
        sampled = np.flatnonzero((source.random(people) < settings.sampled) & is_active)
        errors, _ = _gradients(digits, sampled, parameters, settings.clip)
        total = (errors.T @ digits.train[sampled]).astype(np.float64)
        total += source.normal(0, settings.multiplier * settings.clip, total.shape)
        parameters = parameters - settings.rate / (settings.sampled * people) * total
        tell((step + 1) / settings.steps)
    return SampledFit(parameters=parameters, own=own, spent=spent, active=active)


def _charge(
    digits: Digits, parameters: Doubles, settings: SampledDescent, limit: Filter, spent: Doubles
) -> NDArray[np.bool_]:
    """Charge all who can pay for their own gradient, in place; (n,) whether they can."""
    _, lengths = _gradients(digits, slice(None), parameters, settings.clip)
    prices = limit.prices[limit.grid.cells(lengths, sigma=settings.multiplier * settings.clip)]
    can_pay = spent + prices <= limit.budget
    spent += np.where(can_pay, prices, 0.0)
    found: NDArray[np.bool_] = can_pay
    return found


def _gradients(
    digits: Digits, rows: NDArray[np.int64] | slice, parameters: Doubles, clip: float
) -> tuple[NDArray[np.float32], Doubles]:
    """For these individuals the errors (n, classes) whose products with the features are gradients within the clip.

    And the lengths (n,) of those gradients.
    """
    features, labels = digits.train[rows], digits.train_labels[rows]
    errors = softmax(features, parameters)
    errors[np.arange(len(errors)), labels] -= 1
    squares = np.einsum("ij,ij->i", errors, errors, dtype=np.float64)
    squares *= np.einsum("ij,ij->i", features, features, dtype=np.float64)
    norms = np.sqrt(squares)
    lengths = np.minimum(norms, clip)
    errors *= (lengths / np.maximum(norms, np.finfo(float).tiny))[:, None].astype(np.float32)
    return errors, lengths
