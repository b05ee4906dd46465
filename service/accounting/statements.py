"""The statements that may be made, in words, of limits: a promise, what is spent so far, and the coverage of answers.

A promise is made of a limit, fixed in advance and never exceeded. An individual's spent total so far is a fact worth
showing, but read as a guarantee it is none: the total at a time that depends on the answers bounds nothing by itself.
A limit lowered to that total is no better: so the promise stays that of the largest limit there ever was, and what is
said of "so far" is said by the time-uniform odometer.

The odometer bounds the privacy loss at every moment at once. The loss L after charges that sum to rho, read at a fixed
time, stays below rho + 2 sqrt(rho ln(1/delta)) but with probability delta. Read at a time that depends on the answers
it does not: a reader that stops as soon as L is high finds it above far more often. So levels of rho are fixed
beforehand, the budget and its halves, quarters and so on, and delta is shared among them, 6 / (pi^2 (j + 1)^2) of it
for the j-th. By Ville's inequality the loss stays below a level's bound for as long as the spent total is within the
level, but with the level's share of delta; all levels together fail with at most delta, whatever decides the time of
reading (Whitehouse et al. 2023; Lecuyer 2021).

Coverage follows from public numbers alone. An individual is left out only when its own charges go beyond its limit; no
charge exceeds the query's public worst case, C^2 / (2 sigma^2) rounded up to units, and no limit is below the dataset's
public floor. So as long as the worst cases asked so far add up to at most the floor, no individual can have been left
out, whatever the data. Of who has in fact been left out, nothing may be said that is not a charged query itself.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import sqrt
from typing import Final

from service.core.budget import is_certified, mu_of_units_exactly, refuse_delta
from service.core.charge import UNITS_PER_RHO, rho_of_units

_ROUNDING: Final = 1 + 1e-12
"""Far more than the formula's six roundings in binary can lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Promise of a limit of rho: two worlds differing in one record give transcripts that are hard to tell apart."""

    rho: Decimal  # zCDP, when a record is blanked (zero-out)
    mu: float  # GDP, the same neighbours, sqrt(2 rho) rounded up
    epsilon: float  # at delta, the same neighbours, rounded up
    rho_replace_one: Decimal  # zCDP, when a record is replaced by any other: 4 rho
    mu_replace_one: float  # GDP: 2 mu, rounded up
    epsilon_replace_one: float  # at delta, rounded up
    delta: Decimal


def mu_of_units(units: int) -> float:
    """The mu of GDP that a total of `units` stands for, sqrt(2 rho), rounded up.

    Raises ValueError for negative units.
    """
    if units < 0:
        raise ValueError(f"units must not be negative, got {units}")
    return math.nextafter(float(mu_of_units_exactly(units)), math.inf) if units > 0 else 0.0


def epsilon_of_units(units: int, delta: Decimal) -> float:
    """The epsilon that a limit of `units` promises at this delta: certified, and at most a 1e-12th above the least one.

    `units` may exceed LIMIT_UNITS_MAX, for statements about groups. Raises ValueError for negative units or a delta
    outside (0, 1).
    """
    if units < 0:
        raise ValueError(f"units must not be negative, got {units}")
    refuse_delta(delta)
    if is_certified(0.0, units, delta):
        return 0.0
    low, high = 0.0, 1.0
    while not is_certified(high, units, delta):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if is_certified(middle, units, delta):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=256)  # two epsilons of ten milliseconds each, and few limits
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatement:
    """The statement to an individual of its account."""

    promise: Promise  # of the largest limit ever in force; lowering it changes nothing about answers that have left
    share_spent: float  # of the limit in force now
    epsilon_so_far_time_uniform: float | None  # at the promise's delta; None where the promise is no larger


def statement_of_account(
    *,
    largest_limit_units: int,
    limit_units: int,
    spent_units: int,
    spent_units_max: int,
    budget_units: int,
    delta: Decimal,
) -> AccountStatement:
    """The promise, the share of the limit that is spent, and the odometer, for zeroing out this individual's record.

    `spent_units_max` is what may truly be spent, more than the spent total where a restore has forgotten charges;
    `budget_units` is the dataset's, which bounds both. The odometer bounds the tail of the loss, which the promise does
    not: where it is not below the promise nothing is said, rather than the promise's number under the odometer's name.
    """
    promise = promise_of_limit(largest_limit_units, delta)
    so_far = epsilon_time_uniform(max(spent_units, spent_units_max), budget_units=budget_units, delta=delta)
    return AccountStatement(
        promise=promise,
        share_spent=spent_units / limit_units if limit_units else 1.0,
        epsilon_so_far_time_uniform=so_far if so_far < promise.epsilon else None,
    )


def epsilon_time_uniform(spent_units: int, *, budget_units: int, delta: Decimal) -> float:
    """The epsilon that the loss has stayed below at every moment up to a spent total, but with probability delta.

    `budget_units` is the largest spent total there can be, fixed before the first answer. It rises with what is spent
    and is 0 where nothing is. Raises ValueError unless 0 <= spent_units <= budget_units and 0 < delta < 1.
    """
    if not 0 <= spent_units <= budget_units:
        raise ValueError(f"spent units must be from 0 to {budget_units}, got {spent_units}")
    if not (delta.is_finite() and 0 < delta < 1):
        raise ValueError(f"delta must be above 0 and below 1, got {delta}")
    if spent_units == 0:
        return 0.0
    # Every level that the spent total is within bounds the loss: the least of them does.
    finest = (budget_units // spent_units).bit_length() - 1
    return min(_bound(budget_units, level, delta) for level in range(finest + 1))


def coverage_certified(worst_case_units: Iterable[int], limit_floor_units: int) -> bool:
    """Whether answers at these worst-case prices, all before and this one, certainly include every individual.

    All in units. Says nothing of individuals that lowered their own limit or paused. Raises ValueError for negative
    units.
    """
    prices = list(worst_case_units)
    if min([limit_floor_units, *prices]) < 0:
        raise ValueError(f"units must not be negative, got {min([limit_floor_units, *prices])}")
    return sum(prices) <= limit_floor_units


def largest_countable_norm(sigma: float, limit_floor_units: int) -> float:
    """Sigma * sqrt(2 * limit floor in rho): the longest vector that an untouched budget of the floor can pay for.

    In the unit of `sigma`. A longer one is left out of the answer for an individual whose limit is the floor. Raises
    ValueError for negative units. Theory: the charge ||q||^2 / (2 sigma^2), solved for the norm.
    """
    if limit_floor_units < 0:
        raise ValueError(f"units must not be negative, got {limit_floor_units}")
    return sigma * sqrt(2 * limit_floor_units / UNITS_PER_RHO)


def _bound(budget_units: int, level: int, delta: Decimal) -> float:
    """The bound on the loss while the spent total is within budget / 2^level, except with its share of delta."""
    rho = math.ldexp(budget_units / UNITS_PER_RHO, -level)
    # ln(1 / delta_j) for delta_j = 6 delta / (pi^2 (j + 1)^2); a Decimal's logarithm knows deltas that no float holds.
    share = math.log(math.pi**2 / 6) + 2 * math.log(level + 1) - float(delta.ln())
    return (rho + 2 * math.sqrt(rho * share)) * _ROUNDING
