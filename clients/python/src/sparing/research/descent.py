"""A gradient descent on Poisson samples, its filters, and the accounts of individuals."""

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
"""The losses, as in a query for a gradient: for labels that are numbers, labels 0 and 1, and classes from 0 on."""

LEAST_SHARE: Final = 0.01
"""The least charged length, as a share of the clip: a shorter gradient is charged as if it had this length."""
_ROUNDINGS: Final = 1 + 1e-11  # prices are a relative 1e-12 off
_COLUMNS_MAX: Final = 4096  # half of numpy's buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonDescent:
    """The settings of a descent, all of them public. Lengths are in the unit of the features.

    Attributes:
        loss: "squared" for half the square of the residual, "logistic" or "softmax" for the cross-entropy of two or
            several classes.
        l2_clip: C, the length to which a longer gradient is shortened.
        noise_multiplier: the standard deviation of the noise on each coordinate of a sum, over C; above 1 / 20.
        sampling_rate: q, the probability that an individual is sampled in a step; 1 means full batches.
        learning_rate: the factor of the mean gradient in a step; the mean is the noisy sum over q times `individuals`.
        steps: the number of steps.
        classes: the number of classes, for softmax only.
        individuals: a public number for this mean; by default the number of rows, which is then public.
        intervals: the number of intervals, in equal ratios, of the grid from C / 100 to C; norms are charged after
            rounding up to it.

    Raises:
        ValueError: a setting is out of its range; the message says which.
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
        """Raise ValueError for settings out of range."""
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
        """The standard deviation of the noise on each coordinate of a sum."""
        return self.noise_multiplier * self.l2_clip

    @property
    def grid(self) -> NoiseGrid:
        """The grid of norms over sigma at which steps are charged."""
        longest = self.l2_clip / self.sigma  # as a norm is divided, so that the clip is never beyond the grid
        return grid_of_equal_ratios(LEAST_SHARE * longest, longest, intervals=self.intervals)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonFilter(ABC):
    """A budget for each individual: (epsilon, delta)-DP for removing or adding it. Numbers may be given as texts."""

    epsilon: Number
    delta: Number

    @abstractmethod
    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:
        """The amounts (n,) that one step costs individuals with these mus, norms over sigma (n,)."""

    @property
    @abstractmethod
    def budget_units(self) -> int:
        """The budget in units of 2^-40 of the amount, rounded down. Raises ValueError if it cannot keep the promise."""

    def certified_steps(self, settings: PoissonDescent) -> int:
        """The number of steps that the budget affords if every gradient is as long as the clip.

        After these steps, a descent without a filter would have to end.
        """
        return self.budget_units // int(_charge_units(self, settings, settings.grid)[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiFilter(PoissonFilter):
    """A filter by the Rényi divergence of one order: Feldman and Zrnic 2021, Theorem 4.5.

    The amount that is added up is the divergence over the order.

    Attributes:
        order: the order, above 1 and at most 10,000, fixed beforehand.
        epsilon: the epsilon of the promise.
        delta: the delta of the promise.
    """

    order: float

    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:
        """The divergences (n,) of subsampled Gaussians, over the order: Mironov, Talwar and Zhang 2019."""
        prices: Doubles = subsampled_divergences(mus, rate=sampling_rate, orders=[self.order])[:, 0] / self.order
        return prices

    @property
    def budget_units(self) -> int:
        """The budget in units, by the conversion of Canonne, Kamath and Steinke 2020."""
        return _budget_units(RenyiAccounting(order=self.order), self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianFilter(PoissonFilter):
    """A filter by Gaussian DP, at any sampling rate: Koskela, Tobaben and Honkela 2023, Theorem 12.

    The amount that is added up is mu^2 / 2.
    """

    def prices(self, mus: Doubles, sampling_rate: float) -> Doubles:  # noqa: ARG002 - a sampled step is no cheaper
        """The amounts (n,) of a full batch, as no smaller mu holds for a sampled step."""
        return mus * mus / 2

    @property
    def budget_units(self) -> int:
        """The budget in units, by the curve of Gaussian DP."""
        return _budget_units(GAUSSIAN, self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonRun:
    """The result of a descent. Only the parameters depend on the samples directly; the rest depends on the parameters.

    Attributes:
        settings: the settings of the descent.
        parameters: (d,), or (classes, d) for softmax.
        active: (steps,) int64, the number of individuals in each step that could pay for their own gradient.
        budget: the budget of each individual, in the filter's amount; None without a filter.
        spent: (n,) the amount that each individual has spent, at most the budget; zeros without a filter.
        followed: (k,) the rows of the individuals whose own norms were counted.
        own: for each followed individual, the number of steps in each cell of the grid; steps that it could not pay are
            not counted.
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
        """The epsilons (k,) at this delta of some individuals, by default all followed ones, each at its best order.

        These epsilons look back at steps that depend on earlier results: they describe this run, and promise nothing
        (docs/natural-filters.md). Raises ValueError for an individual that was not followed, a delta outside (0, 1) and
        orders outside (1, 10,000].
        """
        divergences = self._own(individuals).divergences(rate=self.settings.sampling_rate, orders=orders)
        return epsilons_of_divergences(divergences, orders=orders, delta=delta)

    def loss_epsilons(self, individuals: Sequence[int] | None = None, *, delta: float) -> Doubles:
        """The epsilons (k,) by privacy loss distributions: smaller than those of `epsilons`, but slower to compute.

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
    """Run a descent from zero. On one machine with one thread of BLAS, equal seeds give equal runs, bit by bit.

    Args:
        features: (n, d) doubles, a row for each individual.
        labels: (n,) numbers: 0 and 1 for `logistic`, and 0 to classes - 1 for `softmax`.
        settings: the settings of the descent.
        seed: the seed of samples and noise.
        limit: the filter; without a filter, all individuals take part in every step.
        followed: the rows of the individuals whose own norms are counted; by default all rows. Without a filter, norms
            of other individuals are worked out only when these are sampled.
        after_step: called after each step with the number of steps so far and the parameters (d,) or (classes, d).

    Raises:
        ValueError: features or labels have a wrong shape or are not finite; labels do not suit the loss; the filter
            cannot promise its epsilon and delta; or parameters grow beyond doubles.
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
    """The charge (cells,) of a step for norms in each cell of the grid, in units, rounded up; cell 0 is free."""
    amounts = limit.prices(grid.charged, settings.sampling_rate)
    units = np.minimum(np.ceil(amounts * (UNITS_PER_RHO * _ROUNDINGS)), float(CHARGE_UNITS_MAX))
    found: NDArray[np.int64] = units.astype(np.int64)
    return found


class _Descent:
    """The rows and the accounts of all individuals in a descent."""

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
        """Charge all individuals for a step at these parameters, and return flags (n,) of those that can pay."""
        if self.accounts.limit is None:
            _, lengths = self.gradients(self.shown, parameters)
            self.accounts.count(lengths)
            return np.ones(len(self.features), dtype=np.bool_)
        _, lengths = self.gradients(slice(None), parameters)
        is_active = self.accounts.charge(lengths)
        self.accounts.count(np.where(is_active, lengths, 0.0)[self.shown])
        return is_active

    def noisy_sum(self, parameters: Doubles, is_active: NDArray[np.bool_], source: np.random.Generator) -> Doubles:
        """The sum of the gradients of sampled active individuals, with noise. The sample itself is not kept."""
        sampled = np.flatnonzero((source.random(len(self.features)) < self.settings.sampling_rate) & is_active)
        errors, _ = self.gradients(sampled, parameters)
        total: Doubles = errors.T @ self.features[sampled]
        total += source.normal(0, self.settings.sigma, total.shape)
        return total

    def gradients(self, rows: NDArray[np.int64] | slice, parameters: Doubles) -> tuple[Doubles, Doubles]:
        """The scaled errors (k, classes) of these individuals, and the lengths (k,) of their clipped gradients.

        An individual's clipped gradient is the outer product of its row of errors with its features. Each row is
        computed by itself, as a library's product of matrices may depend in its last digit on the number of other rows.
        """
        errors = self.errors(products_with_rows(self.features[rows], parameters), self.labels[rows])
        norms = np.sqrt(squares_of_rows(errors) * self.squares[rows])
        lengths = np.minimum(norms, self.settings.l2_clip)
        errors *= (lengths / np.maximum(norms, np.finfo(float).tiny))[:, None]
        return errors, lengths

    def errors(self, scores: Doubles, labels: NDArray[Any]) -> Doubles:
        """The predictions (k, classes) less the labels (k,); `scores` (k, classes) are overwritten."""
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
        """The result of a descent that ended with these parameters."""
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
    """The accounts of individuals; each account depends on that individual's own norms alone."""

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
        """Charge individuals that can pay for gradients of these lengths (n,); return flags (n,) of those that can."""
        charges = self.charge_units[self.grid.cells(lengths, sigma=self.sigma)]
        can_pay: NDArray[np.bool_] = self.spent_units + charges <= self.budget_units
        self.spent_units += np.where(can_pay, charges, 0)
        return can_pay

    def count(self, lengths: Doubles) -> None:
        """Count a step of the followed individuals, with gradients of these lengths (k,); 0 if left out of the step."""
        self.own.record(lengths, sigma=self.sigma)


def squares_of_rows(matrix: Doubles) -> Doubles:
    """The squared length (n,) of each row of a matrix (n, d); other rows do not change it in a single bit."""
    squares: Doubles = sum(np.einsum("ij,ij->i", part, part) for part in _blocks(matrix))
    return squares


def products_with_rows(matrix: Doubles, parameters: Doubles) -> Doubles:
    """The products (n, k) of rows of a matrix (n, d) with rows of parameters (k, d); other rows do not change them."""
    blocks = zip(_blocks(matrix), _blocks(parameters), strict=True)
    products: Doubles = sum(np.einsum("ij,kj->ik", left, right) for left, right in blocks)
    return products


def _blocks(matrix: Doubles) -> Iterator[Doubles]:
    """The columns in blocks that fit numpy's buffer; in larger blocks, sums depend on the number of rows."""
    for start in range(0, max(matrix.shape[1], 1), _COLUMNS_MAX):
        yield matrix[:, start : start + _COLUMNS_MAX]


def _labels(labels: ArrayLike, settings: PoissonDescent, people: int) -> NDArray[Any]:
    """The labels (n,) in the form that the loss takes. Raises ValueError for labels that do not suit it."""
    found = np.asarray(labels, dtype=np.float64)
    if found.shape != (people,) or not np.isfinite(found).all():
        raise ValueError(f"labels must be {people} finite numbers, one for each individual")
    if settings.loss == "squared":
        return found
    classes = settings.classes or 2
    if not np.isin(found, np.arange(classes)).all():
        raise ValueError(f"labels of {settings.loss} must be whole numbers from 0 to {classes - 1}")
    return found.astype(np.int64)
