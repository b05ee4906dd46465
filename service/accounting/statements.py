"""The statements that may be made, in words, of limits: a promise, and what is spent so far.

A promise is made of a limit, which is fixed in advance and never exceeded. An individual's spent total so far is a fact
worth showing, but no guarantee: the total at a time that depends on the answers bounds nothing by itself. Nor does a
limit that is lowered to that total. So the promise stays that of the largest limit there ever was, and a statement
about "so far" is made by the time-uniform odometer.

The odometer bounds the privacy loss at every moment at once. The loss L after charges that sum to rho, read at a fixed
time, stays below rho + 2 sqrt(rho ln(1/delta)) except with probability delta. At a time that depends on the answers
that is not true: a reader that stops as soon as L is high finds it above the bound far more often. So levels of rho are
fixed beforehand: the budget, its half, its quarter and so on. They share delta, and the j-th level has 6 / (pi^2 (j +
1)^2) of it. By Ville's inequality the loss stays below a level's bound for as long as the spent total is within the
level, except with the level's share of delta. All levels together fail with probability at most delta, whatever decides
the time of reading (Whitehouse et al. 2023; Lecuyer 2021).
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from service.accounting.accountings import Accounting
from service.core.charge import rho_of_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise of a limit: two worlds that differ in one record give transcripts that are hard to tell apart."""

    rho: Decimal  # in the accounting's unit, when a record is blanked (zero-out)
    mu: float | None  # of GDP, the same neighbours, rounded up; None under another accounting
    epsilon: float  # at delta, the same neighbours, rounded up
    rho_replace_one: Decimal | None  # when a record is replaced by any other; None: nothing of this unit follows
    mu_replace_one: float | None  # of GDP, rounded up
    epsilon_replace_one: float | None  # at delta, rounded up; None: nothing follows
    delta: Decimal


@lru_cache(maxsize=256)  # two epsilons of ten milliseconds each, and few limits
def promise_of_limit(accounting: Accounting, limit_units: int, delta: Decimal) -> Promise:
    """The promise of a hard limit, for blanking a record and for replacing one.

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
    """The statement of its account that an individual is given."""

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

    `spent_units_max` is the most that may truly be spent: more than the spent total where a restore has forgotten
    charges. `budget_units` is the dataset's budget, which bounds both totals. The odometer is given only where it is
    below the promise. It bounds the tail of the loss, which the promise does not, and the promise's number would not be
    true under its name. `is_all_gaussian` says that every answer so far has had Gaussian noise.
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
    """The epsilon of a limit at this delta while all noise is Gaussian; None for an accounting without `has_advisory`.

    The limit is fixed beforehand. So the answers before the first one with other noise are a filter of GDP, whatever
    chooses the queries. The epsilon is advisory, because an answer with other noise ends it. Raises ValueError as
    `promise_of_limit`.
    """
    return accounting.epsilon_of_gaussians(limit_units, delta) if accounting.has_advisory else None


def discretised_units(spent_units: int, step_units: int) -> int:
    """The discretised odometer: a spent total in whole steps, rounded up; all in units.

    For each m fixed beforehand, the answers that leave while this number is at most m steps are a filter with a limit
    of m steps. They have the promise of that limit under any accounting. This does not hold for an m that is read at a
    time that depends on the answers. The counter of the papers starts a new filter for each step and loses the rest of
    the last one, so that it reads the same or more. Raises ValueError for a negative total and a step below 1. Source:
    Feldman and Zrnic 2020 (v1), section 5; Koskela, Tobaben and Honkela 2023, appendix C.5.
    """
    if spent_units < 0 or step_units < 1:
        raise ValueError(f"a total must not be negative and a step positive, got {spent_units} and {step_units}")
    return -(-spent_units // step_units) * step_units
