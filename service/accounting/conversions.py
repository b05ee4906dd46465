"""From totals of charges to (epsilon, delta), by the conversion of each accounting; every result is certified.

Gaussian differential privacy has an exact curve: mu-GDP is (epsilon, delta)-DP for every epsilon >= 0 and

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

(Dong, Roth and Su 2022, Corollary 2.13), which increases in mu and decreases in epsilon. Rényi differential privacy of
order a and divergence D is (epsilon, delta)-DP where D is at most epsilon less

    (ln(1/delta) + (a - 1) ln(1 - 1/a) - ln a) / (a - 1)        "optimal": Canonne, Kamath and Steinke 2020, Prop. 12
    ln(1/delta) / (a - 1)                                       "simple": Feldman and Zrnic 2021, Fact 2.4

Zero-concentrated DP of rho is Rényi differential privacy of divergence a rho at every order a > 1. So it is (epsilon,
delta)-DP where the condition holds at one order. A divergence is stated as D / a, over its order: a Gaussian then costs
its rho at every order.
"""

import math
from decimal import Decimal
from typing import Any, Final, Literal

import mpmath

from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO

EPSILON_MAX: Final = 1_000_000
ORDER_MAX: Final = 1_000_000

Real = Any  # an mpmath real; the library carries no types
Conversion = Literal["optimal", "simple"]

# A context of our own: the library's own one is global and mutable. 100 digits leave 30 after the worst cancellation.
_REALS: Final = mpmath.MPContext()
_REALS.dps = 100
MARGIN: Final = 1 + _REALS.mpf(10) ** -30
"""A factor larger than the rounding errors of arithmetic at 100 digits."""
_EXCESS_RANGE: Final = (-40.0, 40.0)
"""The range of ln(a - 1) in which the best order a is sought."""


def _fill_constant_caches() -> None:
    """Compute pi, ln 2 and e once, beyond any precision used here.

    The library's caches of constants must not grow in several threads at a time. After this call they need not grow
    again.
    """
    with _REALS.workdps(4000):
        for constant in (_REALS.pi, _REALS.ln2, _REALS.e):
            _ = +constant


_fill_constant_caches()


def delta_of_mu(epsilon: Decimal | float, mu: Real) -> Real:
    """The smallest delta for which mu-GDP implies (epsilon, delta)-DP, to at least 30 digits.

    `mu` is any non-negative real, also one of mpmath. Both arguments are without units. Raises ValueError for negative
    ones.
    """
    level, scale = real(epsilon), _REALS.mpf(mu)
    if level < 0 or scale < 0:
        raise ValueError(f"epsilon and mu must not be negative, got {epsilon} and {mu}")
    if scale == 0:
        return _REALS.zero
    return _phi(scale / 2 - level / scale) - _REALS.exp(level) * _phi(-scale / 2 - level / scale)


def mu_of_units_exactly(units: int) -> Real:
    """The mu of GDP that a total of `units` stands for, sqrt(2 rho), to 100 digits."""
    return _REALS.sqrt(_REALS.mpf(2 * units) / UNITS_PER_RHO)


def amount_of_order(order: float, epsilon: Decimal | float, delta: Decimal, conversion: Conversion) -> Real:
    """The largest D / a for which Rényi differential privacy of order a is (epsilon, delta)-DP; below zero for none.

    `order` is a > 1. The result has 100 digits. Raises ValueError for an order of at most 1, a negative epsilon and a
    delta outside (0, 1).
    """
    refuse_delta(delta)
    level, a = real(epsilon), _REALS.mpf(order)
    if level < 0 or not a > 1:
        raise ValueError(f"epsilon must not be negative and an order is above 1, got {epsilon} and {order}")
    lost = -_REALS.log(real(delta))
    if conversion == "optimal":
        lost += (a - 1) * _REALS.log1p(-1 / a) - _REALS.log(a)
    return (level - lost / (a - 1)) / a


def amount_of_best_order(epsilon: Decimal | float, delta: Decimal, conversion: Conversion) -> Real:
    """The largest rho for which rho-zCDP is (epsilon, delta)-DP, by the conversion at the best order.

    By the simple conversion this is B* of Feldman and Zrnic, Theorem 4.8, in a form without cancellation. By the
    optimal conversion it is taken at an order found in floats: the amount hardly changes near the best order, and the
    bound is true at any order. Raises the errors of `amount_of_order`.
    """
    if conversion == "optimal":
        return amount_of_order(best_order(epsilon, delta, conversion), epsilon, delta, conversion)
    refuse_delta(delta)
    level, share = real(epsilon), -_REALS.log(real(delta))
    return (level / (_REALS.sqrt(share + level) + _REALS.sqrt(share))) ** 2


def best_order(epsilon: Decimal | float, delta: Decimal, conversion: Conversion) -> float:
    """The order with the largest amount, to some ten digits.

    The amount rises up to the best order and falls beyond it, since the bound on ln delta is convex in the order. The
    sign of its slope is bisected.
    """
    share, level = -float(delta.ln()), float(epsilon)
    low, high = _EXCESS_RANGE
    for _ in range(80):
        middle = (low + high) / 2
        excess = math.exp(middle)
        gained = math.log1p(excess) if conversion == "optimal" else 0.0  # ln a
        lost = (share - gained) / excess + (middle - gained if conversion == "optimal" else 0.0)
        if (share - gained) * (1 + excess) / excess**2 > level - lost:
            low = middle
        else:
            high = middle
    return 1 + math.exp(low)


def least_order(epsilon: Decimal | float, delta: Decimal, conversion: Conversion) -> float:
    """The order above which some positive amount gives (epsilon, delta)-DP, to some ten digits."""
    low, high = _EXCESS_RANGE[0], math.log(best_order(epsilon, delta, conversion) - 1)
    for _ in range(60):
        middle = (low + high) / 2
        if amount_of_order(1 + math.exp(middle), epsilon, delta, conversion) > 0:
            high = middle
        else:
            low = middle
    return 1 + math.exp(high)


def log_delta_of_order(order: float, amount: Real, epsilon: float) -> Real:
    """The logarithm of the least delta at this epsilon under Rényi differential privacy with D = a * amount.

    Canonne, Kamath and Steinke 2020, Proposition 12: e^((a - 1) (D - epsilon)) (1 - 1/a)^a / (a - 1).
    """
    a = _REALS.mpf(order)
    return (a - 1) * (a * amount - real(epsilon)) + a * _REALS.log1p(-1 / a) - _REALS.log(a - 1)


def units_of(amount: Real) -> int:
    """An amount in units, rounded down with the margin; at least 0 and at most LIMIT_UNITS_MAX."""
    return max(0, min(int(_REALS.floor(amount / MARGIN * UNITS_PER_RHO)), LIMIT_UNITS_MAX))


def amount_of_units(units: int) -> Real:
    """The amount that units stand for, exactly."""
    return _REALS.mpf(units) / UNITS_PER_RHO


def real(number: Decimal | float) -> Real:
    """A number to 100 digits. A float is taken by its exact value, a Decimal by its digits."""
    return _REALS.mpf(number if isinstance(number, float) else str(number))


def _phi(x: Real) -> Real:
    """The standard normal distribution function, accurate relative to its value in the far left tail too."""
    return _REALS.erfc(-x / _REALS.sqrt(2)) / 2


def refuse_delta(delta: Decimal) -> None:
    """Raise ValueError unless 0 < delta < 1."""
    if not (delta.is_finite() and 0 < delta < 1):
        raise ValueError(f"delta must be above 0 and below 1, got {delta}")
