"""The numbers of equal Gaussian steps that several accountants admit under one (epsilon, delta), for comparison only.

| accountant | full batch | Poisson-subsampled |
|---|---|---|
| simple conversion | B* of Feldman and Zrnic 2021, Theorem 4.8 | the best order, Fact 2.4 |
| optimal conversion | Canonne, Kamath and Steinke 2020, Prop. 12 | the best order, Prop. 12 |
| Gaussian DP | Koskela, Tobaben and Honkela 2023, Theorem 12 | the same: a subsampled step is mu-GDP, and no less |
| privacy loss distributions | never above the truth | never above the truth |
| central limit | exact | an approximation, which admits more than is within (epsilon, delta) |

For a subsampled Gaussian, the Rényi divergence over the order, D_a / a, tends to mu^2 / 2 as the order a grows. So zCDP
and GDP gain nothing from sampling. Accountants of all orders, or of the whole distribution, do gain.
"""

from decimal import Decimal
from typing import Final, NamedTuple

import numpy as np

from sparing._rooms.research import (
    GAUSSIAN,
    Conversion,
    Real,
    amount_of_best_order,
    amount_of_order,
    amount_of_units,
    real,
)
from sparing.research.central_limit import central_limit_mu_approximation
from sparing.research.privacy_loss import STEPS_MAX, Steps, epsilon_of_steps
from sparing.research.subsampled_rdp import subsampled_divergences

ORDERS: Final = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 257))
"""The orders tried for subsampled steps: 1.1, 1.2, ... 10.9, and whole orders from 11 to 256."""


class AdmittedSteps(NamedTuple):
    """The largest number of steps that each accountant admits, at most STEPS_MAX."""

    simple_conversion: int
    optimal_conversion: int
    gaussian: int
    loss_distribution: int
    central_limit_approximation: int


def admitted_steps(mu: float, *, rate: float, epsilon: Decimal, delta: Decimal) -> AdmittedSteps:
    """The largest numbers of steps with this mu (norm / sigma) and sampling rate that are within (epsilon, delta).

    Raises ValueError for arguments that `Accounting.budget_units` or `composed_losses` refuses.
    """
    largest_rho = amount_of_units(GAUSSIAN.budget_units(epsilon=epsilon, delta=delta))
    approximate = central_limit_mu_approximation([Steps(mu, rate, 1)])
    return AdmittedSteps(
        simple_conversion=_by_orders(mu, rate, epsilon, delta, "simple"),
        optimal_conversion=_by_orders(mu, rate, epsilon, delta, "optimal"),
        gaussian=_most(largest_rho / (real(mu) ** 2 / 2)),
        loss_distribution=_by_losses(mu, rate, epsilon, delta),
        central_limit_approximation=_most(largest_rho / (real(approximate) ** 2 / 2)),
    )


def _by_orders(mu: float, rate: float, epsilon: Decimal, delta: Decimal, conversion: Conversion) -> int:
    """The number of steps by Rényi divergences, at the best order; for full batches, every order gives the same rho."""
    if rate == 1:
        return _most(amount_of_best_order(epsilon, delta, conversion) / (real(mu) ** 2 / 2))
    (divergences,) = subsampled_divergences(np.array([mu]), rate=rate, orders=ORDERS).tolist()
    return max(
        _most(amount_of_order(float(order), epsilon, delta, conversion) * order / real(divergence))
        for order, divergence in zip(ORDERS, divergences, strict=True)
    )


def _by_losses(mu: float, rate: float, epsilon: Decimal, delta: Decimal) -> int:
    """The number of steps by privacy loss distributions, found by bisection, as epsilon rises with the steps."""

    def is_within(count: int) -> bool:
        return epsilon_of_steps([Steps(mu, rate, count)], delta=float(delta)) <= epsilon

    low, high = 0, 1
    while high <= STEPS_MAX and is_within(high):
        low, high = high, 2 * high
    high = min(high, STEPS_MAX + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if is_within(middle):
            low = middle
        else:
            high = middle
    return low


def _most(steps: Real) -> int:
    """A real number of steps, rounded down to a whole number from 0 to STEPS_MAX."""
    return max(0, min(int(steps), STEPS_MAX))
