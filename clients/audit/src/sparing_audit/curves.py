"""The audit's own privacy curves: delta as a function of epsilon, and the budgets that they allow.

They are written from the papers, not from the service's code, so that both agree only if both are right.
"""

import math
from collections.abc import Callable

import mpmath

DIGITS = 50


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP at epsilon: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (Dong, Roth and Su, Cor. 1)."""
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    with mpmath.workdps(DIGITS):
        slope, half = mpmath.mpf(epsilon) / mpmath.mpf(mu), mpmath.mpf(mu) / 2
        return float(mpmath.ncdf(half - slope) - mpmath.exp(epsilon) * mpmath.ncdf(-half - slope))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose GDP curve is within delta at epsilon, rounded down."""
    return largest(lambda mu: gaussian_delta(epsilon, mu) <= delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon at which the curve of mu-GDP reaches delta; 0 where it is below delta from the start."""
    return largest(lambda epsilon: gaussian_delta(epsilon, mu) > delta)


def concentrated_delta(epsilon: float, rho: float) -> float:
    """The delta that rho-zCDP implies at epsilon: the infimum over orders of Canonne, Kamath and Steinke (2020).

    Every order gives a valid bound. So an order found in floating point can only make the bound less tight.
    """
    if rho == 0:
        return max(0.0, -math.expm1(epsilon))
    order = math.nextafter(largest(lambda order: _slope(order, rho) < epsilon), math.inf)
    return renyi_delta(epsilon, order * rho, order)


def concentrated_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta), rounded down."""
    return largest(lambda rho: concentrated_delta(epsilon, rho) <= delta)


def renyi_budget(epsilon: float, delta: float, order: float) -> float:
    """The largest Rényi divergence of one order that implies (epsilon, delta), as in `concentrated_delta`."""
    return epsilon + (math.log(delta) - _log_factor(order)) / (order - 1)


def renyi_delta(epsilon: float, divergence: float, order: float) -> float:
    """The delta that a Rényi divergence of one order implies at epsilon, as in `concentrated_delta`."""
    return min(1.0, math.exp((order - 1) * (divergence - epsilon) + _log_factor(order)))


def largest(fits: Callable[[float], bool]) -> float:
    """The largest double, from 0 on, that fits a condition that holds up to some number; 0 if none fits."""
    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _slope(order: float, rho: float) -> float:
    """The epsilon at which this order gives the best bound. It increases with the order."""
    return (2 * order - 1) * rho + math.log1p(-1 / order) if order > 1 else -math.inf


def _log_factor(order: float) -> float:
    """The logarithm of (1 - 1/order)^order / (order - 1)."""
    return order * math.log1p(-1 / order) - math.log(order - 1)
