"""Approximations by the central limit theorem: the mu of Gaussian differential privacy near to a composition.

Nothing here is a bound. The privacy loss of many small steps is nearly normal, and so nearly that of one Gaussian step.
These functions do not bound the error, which is larger at small deltas: for q = .01, mu = 1, 1,000 steps and delta
1e-5, epsilon is 1.618 by the central limit, and truly 1.828. They must not be used for a promise or a filter.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparing._rooms.research import Real, delta_of_mu
from sparing.research.noise_grid import OwnSteps
from sparing.research.privacy_loss import Steps
from sparing.research.subsampled_rdp import refuse_mus, refuse_rate

_MU_MOST = 1000.0


def central_limit_mu_approximation(steps: Sequence[Steps]) -> float:
    """The approximate mu of a composition: the root of the sum of q^2 (e^(mu^2) - 1) over its steps; 0 without steps.

    It is the limit for many steps T with small q root(T) (Bu, Dong, Long and Su 2020, Section 3). This approximation is
    mostly below the truth. For steps at a rate of 1 it is exact, as these add mu^2 to the sum. Raises ValueError as
    `subsampled_divergences` does.
    """
    for mu, rate, _ in steps:
        refuse_mus(np.array([mu]))
        refuse_rate(rate)
    return math.sqrt(math.fsum(count * _square(mu, rate) for mu, rate, count in steps))


def central_limit_mus_approximation(own: OwnSteps, *, rate: float) -> NDArray[np.float64]:
    """The approximate mu (n,) of each individual's own steps at this sampling rate; by its own counts alone."""
    refuse_rate(rate)
    squares = np.zeros(len(own.counts))
    for cell, mu in enumerate(own.grid.charged.tolist()):
        squares += own.counts[:, cell] * _square(mu, rate)
    return np.sqrt(squares)


def upper_mu_approximation(delta_at: Callable[[float], float], epsilons: Sequence[float]) -> float:
    """The least mu whose curve of delta is at least `delta_at` at these epsilons, by bisection to a relative 1e-9.

    With `ComposedLosses.delta` as `delta_at`, it is the approximate upper bound of Koskela, Tobaben and Honkela 2023
    (Section 5, Figure 1 on the left). It is no true bound, as their condition (5.1) is for all real epsilons and both
    directions. For a subsampled Gaussian with some mu, at large epsilons, the result is at least this mu, whatever the
    rate. Raises ValueError if there is no epsilon, an epsilon is negative, or no mu up to 1000 is enough.
    """
    wanted = [(epsilon, delta_at(epsilon)) for epsilon in epsilons]
    if not wanted:
        raise ValueError("a curve is looked at somewhere")

    def is_above(mu: float) -> bool:
        return all(_delta(epsilon, mu) >= delta for epsilon, delta in wanted)

    low, high = 0.0, _MU_MOST
    if not is_above(high):
        raise ValueError(f"no mu up to {_MU_MOST} is above the curve")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return high


def _delta(epsilon: float, mu: float) -> Real:
    return delta_of_mu(epsilon, mu)


def _square(mu: float, rate: float) -> float:
    return mu * mu if rate == 1 else rate * rate * math.expm1(mu * mu)
