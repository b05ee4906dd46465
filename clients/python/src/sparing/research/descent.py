"""A descent on Poisson samples, its filters, and the accounts of individuals."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._rooms.research import CHARGE_UNITS_MAX, GAUSSIAN, UNITS_PER_RHO, Accounting, RenyiAccounting
from sparing.research.admitted_steps import ORDERS
from sparing.research.noise_grid import NoiseGrid, OwnSteps, grid_of_equal_ratios
from sparing.research.own_losses import epsilons_of_own_steps
from sparing.research.subsampled_rdp import MU_MAX, epsilons_of_divergences, refuse_rate, subsampled_divergences

Doubles = NDArray[np.float64]
Number = float | str | Decimal
Loss = Literal["squared", "logistic", "softmax"]
"""The losses of a query for a gradient, in this order for labels that are numbers, 0 and 1, and classes from 0 on."""

LEAST_SHARE: Final = 0.01
"""The least share of the clip that is charged: a shorter gradient is charged as this."""
_ROUNDINGS: Final = 1 + 1e-11  # prices are a relative 1e-12 off
_COLUMNS_MAX: Final = 4096  # half of numpy's buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonDescent:
    """The settings of a descent, all of them public. Lengths are in the unit of the features.

    Attributes:
        loss: half the square of the residual, or the cross-entropy of two classes or of several.
        l2_clip: C, the longest that a gradient may be.
        noise_multiplier: sigma, the noise of a coordinate of a sum in clips; above 1 / 20.
        sampling_rate: q, the probability of each individual in each step; 1 is a full batch.
        learning_rate: of a step, per mean gradient: a sum is divided by q times `individuals`.
        steps: how many.
        classes: of softmax alone, which has parameters for each.
        individuals: by which a mean is meant, a public number; by default the rows that there are, public with it.
        intervals: of the grid: norms are charged rounded up to one of the equal ratios from C / 100 to C.

    Raises:
        ValueError: a setting is out of its range; named in the message.
    """

    loss: Loss
    l2_clip: float
    noise_multiplier: float
    sampling_rate: float
    learning_rate: float
    steps: int
    classes: int | None = None
    individuals: int | None = None
    intervals: int = 92

    def __post_init__(self) -> None:
        """Refuse settings of no descent."""
        refuse_rate(self.sampling_rate)
        is_softmax = self.loss == "softmax"
        kept = {
            "loss must be squared, logistic or softmax": is_softmax or self.loss in ("squared", "logistic"),
            "l2_clip must be above 0": 0 < self.l2_clip < np.inf,
            f"noise_multiplier must be above 1 / {MU_MAX:g}": 1 / MU_MAX < self.noise_multiplier < np.inf,
            "sampling_rate must be above 0": self.sampling_rate > 0,
            "learning_rate must be a number": np.isfinite(self.learning_rate),
            "steps must be at least 1": self.steps >= 1,
            "classes go with softmax, at least two": (self.classes or 0) >= 2 if is_softmax else self.classes is None,
            "individuals must be at least 1": self.individuals is None or self.individuals >= 1,
            "intervals must be at least 1": self.intervals >= 1,
        }
        wrong = [message for message, is_kept in kept.items() if not is_kept]
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def sigma(self) -> float:
        """The standard deviation of each coordinate of a sum."""
        return self.noise_multiplier * self.l2_clip

    @property
    def grid(self) -> NoiseGrid:
        """The norms over sigma at which steps are charged."""
        longest = self.l2_clip / self.sigma  # as a norm is divided, so that the clip is never beyond the grid
        return grid_of_equal_ratios(LEAST_SHARE * longest, longest, intervals=self.intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonFilter(ABC):
    """A budget for each individual: (epsilon, delta)-DP for removing or adding it. Decimals may come as texts."""

    epsilon: Number
    delta: Number

    @abstractmethod
    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:
        """The amounts (n,) of one step for norms over sigma (n,)."""

    @property
    @abstractmethod
    def budget_units(self) -> int:
        """The budget in 2^-40 of the amount, rounded down. Raises ValueError where the guarantee cannot be promised."""

    def certified_steps(self, settings: PoissonDescent) -> int:
        """The steps for which a gradient may be as long as the clip every time: a descent without a filter ends there.

        0 where the first one is more than the budget.
        """
        return self.budget_units // int(_charge_units(self, settings, settings.grid)[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiFilter(PoissonFilter):
    """A filter by the Rényi divergence of one order: Feldman and Zrnic 2021, Theorem 4.5.

    The amount is the divergence over the order.

    Attributes:
        order: above 1 and at most 10,000, fixed beforehand.
        epsilon: of the promise.
        delta: of the promise.
    """

    order: float

    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:
        """The divergences of a subsampled Gaussian over the order: Mironov, Talwar and Zhang 2019."""
        prices: Doubles = subsampled_divergences(mus, rate=sampling_rate, orders=[self.order])[:, 0] / self.order
        return prices

    @property
    def budget_units(self) -> int:
        """The budget by the conversion of Canonne, Kamath and Steinke 2020."""
        return _budget_units(RenyiAccounting(order=self.order), self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianFilter(PoissonFilter):
    """A filter by Gaussian DP, with any sampling: Koskela, Tobaben and Honkela 2023, Theorem 12.

    The amount is mu^2 / 2.
    """

    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:  # noqa: ARG002 - a sampled step is no cheaper
        """The amounts of a full batch: no smaller mu holds for a sampled step."""
        return mus * mus / 2

    @property
    def budget_units(self) -> int:
        """The budget by the curve of Gaussian DP."""
        return _budget_units(GAUSSIAN, self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonRun:
    """A descent that was made. Nothing in it but the parameters depends on the samples, and by them all else.

    Attributes:
        settings: of the descent.
        parameters: (d,), or of softmax (classes, d).
        active: (steps,) int64, the individuals that could pay for their own gradient, of each step.
        budget: of each individual, in the filter's amount; None without a filter.
        spent: (n,) of it, at most the budget; zeros without a filter.
        followed: (k,) the rows whose own norms were counted, in their order.
        own: how often the norms of the followed fell into each cell of the grid, over the steps that they could pay.
    """

    settings: PoissonDescent
    parameters: Doubles
    active: NDArray[np.int64]
    budget: float | None
    spent: Doubles
    followed: NDArray[np.int64]
    own: OwnSteps

    def epsilons(
        self, individuals: Sequence[int] | None = None, *, delta: float, orders: Sequence[float] = ORDERS
    ) -> Doubles:
        """The own epsilon at this delta of some individuals, by default of all followed, each by its best order.

        They look back at steps that answers have chosen: they describe this run, and promise nothing
        (docs/natural-filters.md). Raises ValueError for an individual that was not followed, a delta outside (0, 1) and
        orders outside (1, 10,000].
        """
        divergences = self._own(individuals).divergences(rate=self.settings.sampling_rate, orders=orders)
        return epsilons_of_divergences(divergences, orders=orders, delta=delta)

    def loss_epsilons(self, individuals: Sequence[int] | None = None, *, delta: float) -> Doubles:
        """The epsilons by privacy loss distributions: smaller than those of `epsilons`, and slower.

        Koskela, Tobaben and Honkela 2023, Appendix D. Raises ValueError for an individual that was not followed and a
        delta outside [1e-20, 1).
        """
        own, settings = self._own(individuals), self.settings
        return epsilons_of_own_steps(own, rate=settings.sampling_rate, steps_max=settings.steps, delta=delta)

    def _own(self, individuals: Sequence[int] | None) -> OwnSteps:
        if individuals is None:
            return self.own
        places = {row: place for place, row in enumerate(self.followed.tolist())}
        unknown = [row for row in individuals if row not in places]
        if unknown:
            raise ValueError(f"individual {unknown[0]} was not followed")
        found = OwnSteps(self.own.grid, len(individuals))
        found.counts[:] = self.own.counts[[places[row] for row in individuals]]
        return found


def descend(
    features: ArrayLike,
    labels: ArrayLike,
    settings: PoissonDescent,
    *,
    seed: int | Sequence[int],
    limit: PoissonFilter | None = None,
    followed: Sequence[int] | None = None,
    after_step: Callable[[int, Doubles], None] | None = None,
) -> PoissonRun:
    """Descend from zero. Equal seeds give equal runs on one machine with one thread of BLAS, bit by bit.

    Args:
        features: (n, d) doubles, a row for each individual.
        labels: (n,) numbers; 0 and 1 of `logistic`, and 0 to classes - 1 of `softmax`.
        settings: of the descent.
        seed: of samples and noise.
        limit: the filter; without one everybody is in every step.
        followed: rows whose own norms are counted; by default all. Without a filter others' are worked out only where
            sampled, and not counted.
        after_step: called with the number of steps made and the parameters (d,) or (classes, d) then.

    Raises:
        ValueError: features or labels of another shape, not finite, or labels that are none of the loss; a filter that
            cannot promise its epsilon and delta; parameters that have grown beyond doubles.
    """
    descent = _Descent(features, labels, settings, limit, followed)
    source = np.random.default_rng(seed)
    parameters = np.zeros((settings.classes or 1, descent.features.shape[1]))
    people = settings.individuals or len(descent.features)
    active = np.zeros(settings.steps, dtype=np.int64)
    for step in range(settings.steps):
        is_active = descent.charge(parameters)
        active[step] = np.count_nonzero(is_active)
        total = descent.noisy_sum(parameters, is_active, source)
        parameters = parameters - settings.learning_rate / (settings.sampling_rate * people) * total
        if after_step is not None:
            after_step(step + 1, _shaped(parameters, settings))
    return descent.run(parameters, active)


def _shaped(parameters: Doubles, settings: PoissonDescent) -> Doubles:
    return parameters if settings.loss == "softmax" else parameters[0]


@lru_cache(maxsize=64)  # a tenth of a second each
def _budget_units(accounting: Accounting, limit: PoissonFilter) -> int:
    return accounting.budget_units(epsilon=Decimal(str(limit.epsilon)), delta=Decimal(str(limit.delta)))


def _charge_units(limit: PoissonFilter, settings: PoissonDescent, grid: NoiseGrid) -> NDArray[np.int64]:
    """The charge (cells,) of a step by the cell of a norm, rounded up; cell 0 is free."""
    amounts = limit.prices(grid.charged, settings.sampling_rate)
    units = np.minimum(np.ceil(amounts * (UNITS_PER_RHO * _ROUNDINGS)), float(CHARGE_UNITS_MAX))
    found: NDArray[np.int64] = units.astype(np.int64)
    return found


class _Descent:
    """The rows of all individuals, and their accounts."""

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        settings: PoissonDescent,
        limit: PoissonFilter | None,
        followed: Sequence[int] | None,
    ) -> None:
        self.features = np.ascontiguousarray(features, dtype=np.float64)
        if self.features.ndim != 2 or not np.isfinite(self.features).all():
            raise ValueError("features must be a matrix of finite numbers, a row for each individual")
        people = len(self.features)
        self.labels = _labels(labels, settings, people)
        self.settings = settings
        self.squares = squares_of_rows(self.features)
        self.rows = np.arange(people) if followed is None else np.array(followed, dtype=np.int64)
        if not ((self.rows >= 0) & (self.rows < people)).all():
            raise ValueError(f"followed must be rows from 0 to {people - 1}")
        self.shown = slice(None) if followed is None else self.rows
        self.accounts = _Accounts(settings, limit, people, self.rows)

    def charge(self, parameters: Doubles) -> NDArray[np.bool_]:
        """Charge a step at these parameters, sampled or not; (n,) the individuals that can pay for it."""
        if self.accounts.limit is None:
            _, lengths = self.gradients(self.shown, parameters)
            self.accounts.count(lengths)
            return np.ones(len(self.features), dtype=np.bool_)
        _, lengths = self.gradients(slice(None), parameters)
        is_active = self.accounts.charge(lengths)
        self.accounts.count(np.where(is_active, lengths, 0.0)[self.shown])
        return is_active

    def noisy_sum(self, parameters: Doubles, is_active: NDArray[np.bool_], source: np.random.Generator) -> Doubles:
        """The gradients of a sample of the active, with noise; the sample is gone when this returns."""
        sampled = np.flatnonzero((source.random(len(self.features)) < self.settings.sampling_rate) & is_active)
        errors, _ = self.gradients(sampled, parameters)
        total: Doubles = errors.T @ self.features[sampled]
        total += source.normal(0, self.settings.sigma, total.shape)
        return total

    def gradients(self, rows: NDArray[np.int64] | slice, parameters: Doubles) -> tuple[Doubles, Doubles]:
        """The errors (k, classes) of these individuals whose products with the features are gradients within the clip.

        The second result is the lengths (k,) of those gradients. Each row is computed by itself: a library's product of
        matrices may differ in its last digit with the number of other rows.
        """
        errors = self.errors(products_with_rows(self.features[rows], parameters), self.labels[rows])
        norms = np.sqrt(squares_of_rows(errors) * self.squares[rows])
        lengths = np.minimum(norms, self.settings.l2_clip)
        errors *= (lengths / np.maximum(norms, np.finfo(float).tiny))[:, None]
        return errors, lengths

    def errors(self, scores: Doubles, labels: NDArray[Any]) -> Doubles:
        """The predictions (k, classes) less the labels (k,); the scores are overwritten."""
        if self.settings.loss == "softmax":
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
            scores[np.arange(len(scores)), labels] -= 1
            return scores
        if self.settings.loss == "logistic":
            scores = (1 + np.tanh(scores / 2)) / 2
        residuals: Doubles = scores - labels[:, None]
        return residuals

    def run(self, parameters: Doubles, active: NDArray[np.int64]) -> PoissonRun:
        """The run of a descent, with all that is shown of it."""
        accounts = self.accounts
        return PoissonRun(
            settings=self.settings,
            parameters=_shaped(parameters, self.settings),
            active=active,
            budget=None if accounts.limit is None else accounts.budget_units / UNITS_PER_RHO,
            spent=accounts.spent_units / UNITS_PER_RHO,
            followed=self.rows,
            own=accounts.own,
        )


class _Accounts:
    """The accounts of individuals, functions of their own norms alone."""

    def __init__(
        self, settings: PoissonDescent, limit: PoissonFilter | None, people: int, followed: NDArray[np.int64]
    ) -> None:
        self.limit, self.sigma, self.grid = limit, settings.sigma, settings.grid
        self.own = OwnSteps(self.grid, len(followed))
        self.spent_units = np.zeros(people, dtype=np.int64)
        if limit is not None:
            self.budget_units = limit.budget_units
            self.charge_units = _charge_units(limit, settings, self.grid)

    def charge(self, lengths: Doubles) -> NDArray[np.bool_]:
        """Charge all that can pay for a gradient of their own length (n,); (n,) whether they can."""
        charges = self.charge_units[self.grid.cells(lengths, sigma=self.sigma)]
        can_pay: NDArray[np.bool_] = self.spent_units + charges <= self.budget_units
        self.spent_units += np.where(can_pay, charges, 0)
        return can_pay

    def count(self, lengths: Doubles) -> None:
        """Count the lengths (k,) of the followed, 0 where an individual was out of the step."""
        self.own.record(lengths, sigma=self.sigma)


def squares_of_rows(matrix: Doubles) -> Doubles:
    """The squared length (n,) of each row of a matrix (n, d): the same bit by bit whatever the other rows."""
    squares: Doubles = sum(np.einsum("ij,ij->i", part, part) for part in _blocks(matrix))
    return squares


def products_with_rows(matrix: Doubles, parameters: Doubles) -> Doubles:
    """The products (n, k) of the rows of a matrix (n, d) with those of parameters (k, d), as `squares_of_rows`."""
    blocks = zip(_blocks(matrix), _blocks(parameters), strict=True)
    products: Doubles = sum(np.einsum("ij,kj->ik", left, right) for left, right in blocks)
    return products


def _blocks(matrix: Doubles) -> Iterator[Doubles]:
    """The columns in blocks within numpy's buffer: beyond it, the order of a sum depends on the number of rows."""
    for start in range(0, max(matrix.shape[1], 1), _COLUMNS_MAX):
        yield matrix[:, start : start + _COLUMNS_MAX]


def _labels(labels: ArrayLike, settings: PoissonDescent, people: int) -> NDArray[Any]:
    """The labels as one number for each individual, of the kind that the loss takes. Raises ValueError."""
    found = np.asarray(labels, dtype=np.float64)
    if found.shape != (people,) or not np.isfinite(found).all():
        raise ValueError(f"labels must be {people} finite numbers, one for each individual")
    if settings.loss == "squared":
        return found
    classes = settings.classes or 2
    if not np.isin(found, np.arange(classes)).all():
        raise ValueError(f"labels of {settings.loss} must be whole numbers from 0 to {classes - 1}")
    return found.astype(np.int64)
