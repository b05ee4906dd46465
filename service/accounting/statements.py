"""What may be said in words: how far off an answer may be, and what a limit promises an individual.

A promise is made of a limit, fixed in advance and never exceeded. What somebody has spent so far is a fact worth
showing, but read as a guarantee it is none: the total at a time that depends on the answers bounds nothing by itself.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from statistics import NormalDist

from service.core.budget import epsilon_of_units, mu_of_units
from service.core.units import rho_of_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a limit of rho promises: two worlds differing in one record give transcripts that are hard to tell apart."""

    rho: Decimal  # zCDP, when a record is blanked (zero-out)
    mu: float  # GDP, the same neighbours, sqrt(2 rho) rounded up
    epsilon: float  # at delta, the same neighbours, rounded up
    rho_replace_one: Decimal  # zCDP, when a record is replaced by any other: 4 rho
    mu_replace_one: float  # GDP: 2 mu, rounded up
    epsilon_replace_one: float  # at delta, rounded up
    delta: Decimal


def promise_of_limit(limit_units: int, delta: Decimal) -> Promise:
    """The promise of a hard limit, for both neighbouring relations.

    Replacing a record is blanking it and then writing another: by the triangle inequality of GDP mu doubles and rho
    quadruples, and a query with q(x') = -q(x) attains it. Raises ValueError for negative units or a delta outside
    (0, 1).
    """
    return Promise(
        rho=rho_of_units(limit_units),
        mu=mu_of_units(limit_units),
        epsilon=epsilon_of_units(limit_units, delta),
        rho_replace_one=rho_of_units(4 * limit_units),
        mu_replace_one=mu_of_units(4 * limit_units),
        epsilon_replace_one=epsilon_of_units(4 * limit_units, delta),
        delta=delta,
    )


def half_width(sigma: float, confidence: float, *, grid: float = 0.0) -> float:
    """The h for which a released number is within h of its exact sum with at least this confidence.

    `sigma` and `grid` in the query's units. The noise is grid * round(N(0, (sigma/grid)^2)); with the grid given, h is
    the least multiple of it that suffices: k steps are enough when the Gaussian stays within k + 1/2 of them. With
    grid 0 the rounding is left out, which changes h by at most half a step. Raises ValueError for arguments out of
    range.
    """
    reach = _quantile(confidence) * _positive("sigma", sigma)
    if grid == 0:
        return reach
    steps = math.ceil(reach / _positive("grid", grid) - 0.5)
    return max(0, steps) * grid


def sigma_for_half_width(half_width: float, confidence: float, *, grid: float = 0.0) -> float:
    """The largest sigma at which a released number is within `half_width` of its exact sum with this confidence.

    The inverse of `half_width`, in the same units: half_width(sigma_for_half_width(h)) <= h but for one rounding at
    grid 0. Raises ValueError for arguments out of range.
    """
    reach = _positive("half_width", half_width)
    if grid != 0:
        reach = (math.floor(reach / _positive("grid", grid)) + 0.5) * grid
    return math.nextafter(reach / _quantile(confidence), 0.0)


def _quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def _positive(name: str, value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return value
