"""The mu of Gaussian differential privacy that compositions are near to, by the central limit theorem: approximations.

Nothing here is a bound. The loss of many small steps is nearly normal, and then nearly that of one Gaussian step; how
far it is from it these functions do not say, and at small deltas it is farther: of q = .01, mu = 1, 1,000 steps and
delta 1e-5 the epsilon by the central limit is 1.618, and in truth 1.828. No promise and no filter may come from them.
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
    """About the mu of a composition: the root of the sum of q^2 (e^(mu^2) - 1) over its steps; 0 of no step.

    The limit of many steps with small q root(T) (Bu, Dong, Long and Su 2020, Section 3). An approximation, mostly below
    the truth; at a rate of 1 the exact mu is used, the root of the sum of mu^2. Raises ValueError as
    `subsampled_divergences`.
    """
    for mu, rate, _ in steps:
        refuse_mus(np.array([mu]))
        refuse_rate(rate)
    return math.sqrt(math.fsum(count * _square(mu, rate) for mu, rate, count in steps))


def central_limit_mus_approximation(own: OwnSteps, *, rate: float) -> NDArray[np.float64]:
    """The mus (n,) for each individual's own steps, each sampled at this rate; a function of its own counts."""
    refuse_rate(rate)
    squares = np.zeros(len(own.counts))
    for cell, mu in enumerate(own.grid.charged.tolist()):
        squares += own.counts[:, cell] * _square(mu, rate)
    return np.sqrt(squares)


def upper_mu_approximation(delta_at: Callable[[float], float], epsilons: Sequence[float]) -> float:
    """The least mu whose curve is not below this one at these epsilons, by bisection to a relative 1e-9.

    The approximate upper bound of Koskela, Tobaben and Honkela 2023 (Section 5, Figure 1 on the left), with
    `ComposedLosses.delta` as the curve. An approximation: their condition (5.1) is for all real epsilons and both
    directions, and of a subsampled Gaussian with mu the least such mu is at least its own, whatever the rate, as
    epsilon grows. Raises ValueError where there is no epsilon, one is negative or no mu up to 1000 is enough.
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
