"""The statements that may be made, in words, of limits: a promise, and what is spent so far.

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
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from service.accounting.accountings import Accounting
from service.core.charge import rho_of_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Promise of a limit: two worlds differing in one record give transcripts that are hard to tell apart."""

    rho: Decimal  # in the accounting's unit, when a record is blanked (zero-out)
    mu: float | None  # of GDP, the same neighbours, rounded up; None under another accounting
    epsilon: float  # at delta, the same neighbours, rounded up
    rho_replace_one: Decimal | None  # when a record is replaced by any other; None: nothing of this unit follows
    mu_replace_one: float | None  # of GDP, rounded up
    epsilon_replace_one: float | None  # at delta, rounded up; None: nothing follows
    delta: Decimal


@lru_cache(maxsize=256)  # two epsilons of ten milliseconds each, and few limits
def promise_of_limit(accounting: Accounting, limit_units: int, delta: Decimal) -> Promise:
    """The promise of a hard limit, for both neighbouring relations.

    Raises ValueError for negative units or a delta outside (0, 1).
    """
    replaced = accounting.units_replace_one(limit_units)
    return Promise(
        rho=rho_of_units(limit_units),
        mu=accounting.mu_of_units(limit_units),
        epsilon=accounting.epsilon_of_units(limit_units, delta),
        rho_replace_one=None if replaced is None else rho_of_units(replaced),
        mu_replace_one=None if replaced is None else accounting.mu_of_units(replaced),
        epsilon_replace_one=accounting.epsilon_replace_one(limit_units, delta),
        delta=delta,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatement:
    """The statement to an individual of its account."""

    promise: Promise  # of the largest limit ever in force; lowering it changes nothing about answers that have left
    share_spent: float  # of the limit in force now
    epsilon_so_far_time_uniform: float | None  # at the promise's delta; None where the promise is no larger
    promise_epsilon_advisory: float | None  # of the same limit while all noise is Gaussian; None otherwise


def statement_of_account(
    accounting: Accounting,
    *,
    largest_limit_units: int,
    limit_units: int,
    spent_units: int,
    spent_units_max: int,
    budget_units: int,
    delta: Decimal,
    is_all_gaussian: bool = False,
) -> AccountStatement:
    """The promise, the share of the limit that is spent, and the odometer, for zeroing out this individual's record.

    `spent_units_max` is what may truly be spent, more than the spent total where a restore has forgotten charges;
    `budget_units` is the dataset's, which bounds both. The odometer bounds the tail of the loss, which the promise does
    not: where it is not below the promise nothing is said, rather than the promise's number under the odometer's name.
    `is_all_gaussian` says that no answer has had other noise than Gaussian.
    """
    promise = promise_of_limit(accounting, largest_limit_units, delta)
    spent = max(spent_units, spent_units_max)
    so_far = accounting.epsilon_time_uniform(spent, budget_units=budget_units, delta=delta)
    return AccountStatement(
        promise=promise,
        share_spent=spent_units / limit_units if limit_units else 1.0,
        epsilon_so_far_time_uniform=so_far if so_far < promise.epsilon else None,
        promise_epsilon_advisory=advisory_epsilon(accounting, largest_limit_units, delta) if is_all_gaussian else None,
    )


@lru_cache(maxsize=256)
def advisory_epsilon(accounting: Accounting, limit_units: int, delta: Decimal) -> float | None:
    """The epsilon of a limit at this delta while all noise is Gaussian, where the accounting promises a larger one.

    The limit is fixed beforehand, so that the answers until the first with other noise are a filter of GDP, whatever
    chooses queries. Advisory, since that one ends it. Raises ValueError as `promise_of_limit`.
    """
    return accounting.epsilon_of_gaussians(limit_units, delta) if accounting.has_advisory else None


def discretised_units(spent_units: int, step_units: int) -> int:
    """The discretised odometer: a spent total in whole steps, rounded up; all in units.

    For each m fixed beforehand the answers that leave while this is at most m steps are a filter with m steps as its
    limit, and have its promise under any accounting. Of the m that is read at a time that depends on the answers that
    is not said. The counter of the papers begins again from zero with each filter of a step, whose rest is lost, so
    that it reads the same or more. Raises ValueError for a negative total and a step below 1. Source: Feldman and
    Zrnic 2020 (v1), section 5; Koskela, Tobaben and Honkela 2023, appendix C.5.
    """
    if spent_units < 0 or step_units < 1:
        raise ValueError(f"a total must not be negative and a step positive, got {spent_units} and {step_units}")
    return -(-spent_units // step_units) * step_units
