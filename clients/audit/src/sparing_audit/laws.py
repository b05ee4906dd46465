"""The statistics that the audit rejects by: tests of a law, bounds on proportions and means, and losses."""

import math
from statistics import NormalDist

import mpmath
import numpy as np
from numpy.typing import NDArray

from sparing_audit.curves import largest

Doubles = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Places = NDArray[np.int64]


def normal_p(draws: Doubles) -> float:
    """The p-value of Kolmogorov and Smirnov's test that draws (n,) are independent and standard normal."""
    return even_p(evened(draws))


def evened(draws: Doubles) -> Doubles:
    """Draws (n,) as numbers that are even in [0, 1] if the draws are standard normal."""
    return np.array([NormalDist().cdf(x) for x in draws.tolist()])


def even_p(draws: Doubles) -> float:
    """The p-value of the same test that draws (n,) are independent and evenly distributed in [0, 1].

    It uses the limit law with Stephens' (1970) correction for finite n, which is good to a few percent from n = 10 on.
    """
    ordered = np.sort(draws)
    steps, root = np.arange(ordered.size + 1) / ordered.size, math.sqrt(ordered.size)
    distance = float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))
    x = distance * (root + 0.12 + 0.11 / root)
    if x < 0.3:
        return 1.0
    return min(1.0, 2 * math.fsum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101)))


def mean_p(draws: Doubles) -> float:
    """The two-sided p-value of the mean of standard normal draws (n,). It detects a shift better than `normal_p`."""
    return math.erfc(abs(float(draws.sum())) / math.sqrt(2 * draws.size))


def student_p(draws: Doubles, mean: float) -> float:
    """The p-value of Student's test that the law of independent draws (n,) has this mean or a smaller one."""
    error, freedom = float(draws.std(ddof=1)) / math.sqrt(draws.size), draws.size - 1
    t = (float(draws.mean()) - mean) / error if error > 0 else 0.0
    tail = float(mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)) / 2
    return tail if t > 0 else 1 - tail


def standardised_loss(losses: Doubles, rho: float) -> Doubles:
    """Losses (n,) of a budget spent whole, so that their law becomes the standard normal one (theory, section 11).

    Those of blank victims have the opposite sign, so that in both worlds a loss that is too large is on the same side.
    """
    return (losses - rho) / math.sqrt(2 * rho)


def shortfalls(losses: Doubles, epsilon: float) -> Doubles:
    """[1 - e^(epsilon - L)]+ for losses (n,). The mean is at most delta where (epsilon, delta)-DP holds."""
    return -np.expm1(np.minimum(epsilon - losses, 0.0))


def chernoff_p(mean: float, bound: float, count: int) -> float:
    """A bound on the probability that `count` numbers in [0, 1], whose mean is at most `bound`, average to `mean`."""
    if mean <= bound:
        return 1.0
    if bound == 0:
        return 0.0
    gap = mean * math.log(mean / bound)
    if mean < 1:
        gap += (1 - mean) * math.log((1 - mean) / (1 - bound))
    return math.exp(-count * gap)


def proportion_upper(hits: int, count: int, error: float) -> float:
    """Clopper and Pearson's (1934) upper bound on a probability: at most a share `error` of samples gives one too low.

    It is the 1 - error quantile of the beta law with parameters hits + 1 and count - hits, by bisection at 25 digits.
    """
    if hits >= count:
        return 1.0
    with mpmath.workdps(25):
        return largest(
            lambda p: bool(mpmath.betainc(hits + 1, count - hits, 0, p, regularized=True) < 1 - mpmath.mpf(error))
        )
