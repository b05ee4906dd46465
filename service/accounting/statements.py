"""The statements that may be made, in words, of what a limit promises an individual.

A promise is made of a limit, fixed in advance and never exceeded. An individual's spent total so far is a fact worth
showing, but read as a guarantee it is none: the total at a time that depends on the answers bounds nothing by itself.
A limit lowered to that total is no better: so the promise stays that of the largest limit there ever was, and what is
said of "so far" is said by the time-uniform odometer.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from service.accounting.odometer import epsilon_time_uniform
from service.core.budget import epsilon_of_units, mu_of_units
from service.core.units import rho_of_units


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
