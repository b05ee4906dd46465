"""The statistics that the audit rejects by: tests of a law, bounds on proportions and means, and losses."""

import math
from statistics import NormalDist

import mpmath
import numpy as np
from numpy.typing import NDArray

from sparing_audit.curves import largest

__all__ = [
    "Booleans",
    "Doubles",
    "Places",
    "chernoff_p",
    "even_p",
    "evened",
    "kolmogorov_p",
    "mean_p",
    "normal_of_student",
    "normal_p",
    "proportion_upper",
    "shortfalls",
    "standardised_loss",
]

Doubles = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Places = NDArray[np.int64]


def normal_p(draws: Doubles) -> float:
    """The p-value of Kolmogorov and Smirnov's test that draws (n,) are independent and standard normal."""
    return even_p(evened(draws))


def evened(draws: Doubles) -> Doubles:
    """Standard normal draws (n,) as evenly distributed numbers in [0, 1]."""
    return np.array([NormalDist().cdf(x) for x in draws.tolist()])


def even_p(draws: Doubles) -> float:
    """The p-value of the same test that draws (n,) are independent and evenly distributed in [0, 1].

    By the limit law with Stephens' (1970) correction for finite n, which is good to a few percent from n = 10 on.
    """
    ordered = np.sort(draws)
    steps = np.arange(ordered.size + 1) / ordered.size
    return kolmogorov_p(float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))), ordered.size)


def kolmogorov_p(distance: float, count: int) -> float:
    """The probability that a sample of `count` lies further than `distance` from its own law."""
    root = math.sqrt(count)
    x = distance * (root + 0.12 + 0.11 / root)
    if x < 0.3:
        return 1.0
    return min(1.0, 2 * math.fsum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101)))


def mean_p(draws: Doubles) -> float:
    """The two-sided p-value of the mean of independent standard normal draws (n,): of a shift it sees more."""
    return math.erfc(abs(float(draws.sum())) / math.sqrt(2 * draws.size))


def normal_of_student(t: float, freedom: int) -> float:
    """The standard normal number that is as unlikely as Student's t at so many degrees of freedom (Wallace, 1959)."""
    z = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.copysign(z, t)


def standardised_loss(losses: Doubles, rho: float, *, is_in: bool) -> Doubles:
    """Losses (n,) at a budget spent whole, so that their law becomes the standard normal one (theory, section 11).

    Those of blank victims change their sign, so that in both worlds a loss that is too large is on the same side.
    """
    return ((losses if is_in else -losses) - rho) / math.sqrt(2 * rho)


def shortfalls(losses: Doubles, epsilon: float) -> Doubles:
    """[1 - e^(epsilon - L)]+ of losses (n,); its mean is at most delta where (epsilon, delta)-DP holds."""
    return -np.expm1(np.minimum(epsilon - losses, 0.0))


def chernoff_p(mean: float, bound: float, count: int) -> float:
    """A bound on the probability that `count` numbers in [0, 1], of mean `bound` at most, average to `mean`."""
    if mean <= bound:
        return 1.0
    if bound == 0:
        return 0.0
    gap = mean * math.log(mean / bound)
    if mean < 1:
        gap += (1 - mean) * math.log((1 - mean) / (1 - bound))
    return math.exp(-count * gap)


def proportion_upper(hits: int, count: int, error: float) -> float:
    """Clopper and Pearson's (1934) upper bound on a probability: at most `error` of samples put it too low.

    It is the 1 - error quantile of the beta law with hits + 1 and count - hits, by bisection at 25 digits.
    """
    if hits >= count:
        return 1.0
    with mpmath.workdps(25):
        return largest(
            lambda p: bool(mpmath.betainc(hits + 1, count - hits, 0, p, regularized=True) < 1 - mpmath.mpf(error))
        )
