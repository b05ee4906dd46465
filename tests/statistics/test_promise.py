"""The statements to an individual hold when limits fall because of answers: the promise, and the bound on "so far".

Twenty thousand people take part in the core's own queries, each with a coordinate of its own, so that each is a trial
of its own: after every answer a rule that has seen it may lower the limit to what is spent, or to a little more, which
ends the trial where the loss is high. The promise is checked by the hockey stick of the realised loss L, the mean of
[1 - e^(epsilon - L)]+, which an (epsilon, delta) promise keeps within delta; the odometer by its tail, how many ever
had a loss above it. What was told before, the epsilon of the limit in force, fails the same check.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from math import ceil, log, pi, sqrt
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_banded

from service.accounting.accountings import GAUSSIAN, RenyiAccounting
from service.accounting.conversions import best_order
from service.accounting.statements import AccountStatement, statement_of_account
from service.arrays import Integers
from service.core.charge import UNITS_PER_RHO
from service.core.laws import Gaussian
from service.core.release import Contributions, QueryTerms
from service.core.renyi_filter import Accounts, Touched
from tests.core.injected import seeded
from tests.core.releases import answer

PEOPLE: Final = 20_000
ROUNDS: Final = 49
ROUNDS_DOUBLING: Final = 6
"""After so many rounds twice as much is spent: the more doublings, the oftener a loss can be high for once."""
EPSILON, DELTA = Decimal(1), Decimal("0.01")
BUDGET: Final = GAUSSIAN.budget_units(epsilon=EPSILON, delta=DELTA)
ONE_ORDER: Final = RenyiAccounting(order=best_order(EPSILON, DELTA, "optimal"))
VALUE: Final = 2**12
"""A coordinate in grid steps: so many that the rounding of the noise hardly changes a loss."""
ERRORS: Final = 4.5
"""Standard errors; a check that holds fails in one of 300,000 seeds."""

Floats = NDArray[np.float64]
Rule = Callable[[Floats, Integers], Any]


@dataclass(frozen=True)
class History:
    """The outcome for every individual: the loss at the end, and the account."""

    loss: Floats
    limit: Integers
    spent: Integers
    has_lost_more_than_shown: NDArray[np.bool_]
    has_lost_more_than_at_a_fixed_time: NDArray[np.bool_]
    has_lost_more_than_one_order_shows: NDArray[np.bool_]


def naive(units: int) -> float:
    """The epsilon that a spent total would stand for if it had been the limit from the beginning."""
    return GAUSSIAN.epsilon_of_units(units, DELTA)


@cache
def statement(limit: int, spent: int) -> AccountStatement:
    """The statement to an individual that began with the dataset's budget."""
    return statement_of_account(
        GAUSSIAN,
        largest_limit_units=BUDGET,
        limit_units=limit,
        spent_units=spent,
        spent_units_max=spent,
        budget_units=BUDGET,
        delta=DELTA,
    )


@cache
def so_far(limit: int, spent: int) -> float:
    """The odometer, also where it is not shown because the promise is smaller."""
    shown = statement(limit, spent).epsilon_so_far_time_uniform
    return GAUSSIAN.epsilon_time_uniform(spent, budget_units=BUDGET, delta=DELTA) if shown is None else shown


def bound_of_a_fixed_time(_: int, spent: int) -> float:
    """The bound on a loss at one time fixed beforehand, but with delta."""
    rho = spent / UNITS_PER_RHO
    return rho + 2 * sqrt(-rho * log(DELTA))


def so_far_by_one_order(_: int, spent: int) -> float:
    """The odometer of Rényi differential privacy, of the order that is best for the whole budget."""
    return ONE_ORDER.epsilon_time_uniform(spent, budget_units=BUDGET, delta=DELTA)


def by_values(of: Callable[[int, int], float], limit: Integers, spent: Integers) -> Floats:
    """`of` for every individual's limit and spent total, of which few are different."""
    limits, which = np.unique(limit, return_inverse=True)
    totals, of_these = np.unique(spent, return_inverse=True)
    pairs, whose = np.unique(which * totals.size + of_these, return_inverse=True)
    return np.array([of(int(limits[n // totals.size]), int(totals[n % totals.size])) for n in pairs.tolist()])[whose]


def never(loss: Floats, _: Integers) -> Any:
    """No limit is lowered."""
    return np.zeros(loss.shape, dtype=np.bool_)


def above_what_was_told(loss: Floats, spent: Integers) -> Any:
    """Stop as soon as the loss is above what a limit lowered to this would be said to promise."""
    return loss > naive(int(spent.max()))


def above_so_far(loss: Floats, spent: Integers) -> Any:
    """Stop as soon as the loss is at half of what the odometer shows."""
    return loss > 0.5 * so_far(BUDGET, int(spent.max()))


def ahead(loss: Floats, spent: Integers) -> Any:
    """Stop as soon as the loss is two standard deviations above what it is on the average."""
    rho = spent.max() / UNITS_PER_RHO
    return loss > rho + 2 * float(np.sqrt(2 * rho))


def above_the_promise(loss: Floats, _: Integers) -> Any:
    """Stop as soon as the loss is above the promised epsilon."""
    return loss > float(EPSILON)


RULES: Final[list[Rule]] = [never, above_what_was_told, above_so_far, ahead, above_the_promise]


@cache
def history(rule: Rule, *, is_in: bool, slack: int = 0) -> History:
    """All losses, in the world with all records or in the one without; `slack` rounds more are left when lowering.

    The loss is the logarithm of how much likelier the answers are in the world that is, for each person alone.
    """
    accounts = Accounts.of(
        spent=np.zeros(PEOPLE, dtype=np.int64),
        limits=np.full(PEOPLE, BUDGET, dtype=np.int64),
        paused=np.zeros(PEOPLE, dtype=np.bool_),
    )
    entropy, slots = seeded(1 + 2 * RULES.index(rule) + is_in), np.arange(PEOPLE)
    loss, (is_above, is_above_naive, is_above_order) = np.zeros(PEOPLE), np.zeros((3, PEOPLE), np.bool_)
    for round_ in range(ROUNDS):
        sigma = sqrt(VALUE**2 / (2 * (due(round_) - due(round_ - 1)) / UNITS_PER_RHO))
        block = Contributions(
            touched=Touched(slots),
            norms_squared=np.full(PEOPLE, VALUE**2),
            dimension=PEOPLE,
            owners=None,
            coordinates=slots,
            values=np.full(PEOPLE, VALUE if is_in else 0),
        )
        release = answer(
            [block],
            accounts,
            QueryTerms(dimension=PEOPLE, law=Gaussian(sigma), norm_squared_max=VALUE**2),
            entropy=entropy,
        )
        active = release.blocks[0].active
        gained = (release.values - VALUE / 2) * VALUE / sigma**2
        loss += np.where(active, gained if is_in else -gained, 0)
        is_above |= loss > by_values(so_far, accounts.limits, accounts.spent)
        is_above_naive |= loss > by_values(bound_of_a_fixed_time, accounts.limits, accounts.spent)
        is_above_order |= loss > by_values(so_far_by_one_order, accounts.limits, accounts.spent)
        lowers = np.flatnonzero(rule(loss, accounts.spent) & active)
        lowered = accounts.spent + (due(round_ + slack) - due(round_))
        accounts.set_limits(lowers, np.minimum(accounts.limits, lowered)[lowers])
    return History(loss, accounts.limits, accounts.spent, is_above, is_above_naive, is_above_order)


def due(round_: int) -> int:
    """The spent total after a round, of an individual active in all: doubling, and a unit of rounding for each."""
    if round_ < 0:
        return 0
    doublings = (round_ + 1 - ROUNDS) / ROUNDS_DOUBLING
    return ceil((BUDGET - ROUNDS) * float(2.0**doublings))


def exceeds(mean: float, error: float) -> bool:
    """Tell whether a mean is above delta by more than chance."""
    return mean > float(DELTA) + ERRORS * error


def hockey_stick(loss: Floats, epsilon: Floats) -> tuple[float, float]:
    """The mean of [1 - e^(epsilon - L)]+ and its standard error."""
    sticks = np.maximum(-np.expm1(epsilon - loss), 0)
    return float(sticks.mean()), float(sticks.std() / sqrt(sticks.size))


def tail(is_above: NDArray[np.bool_]) -> tuple[float, float]:
    """The share of those above, and its standard error, were it delta."""
    return float(is_above.mean()), sqrt(float(DELTA) / is_above.size)


@pytest.mark.parametrize(
    ("rule", "is_in", "slack"), [*product(RULES, [True, False], [0]), *product(RULES[1:3], [True], [3])]
)
def test_no_rule_for_lowering_limits_breaks_what_is_told(rule: Rule, is_in: bool, slack: int) -> None:
    """The promise at the end, whatever the limit is by then; the odometer at every moment."""
    found = history(rule, is_in=is_in, slack=slack)
    promised = by_values(lambda limit, spent: statement(limit, spent).promise.epsilon, found.limit, found.spent)

    assert not exceeds(*hockey_stick(found.loss, promised))
    assert not exceeds(*tail(found.has_lost_more_than_shown))
    assert not exceeds(*tail(found.has_lost_more_than_one_order_shows))


@pytest.mark.parametrize(("rule", "slack"), [(above_what_was_told, 0), (above_what_was_told, 3), (ahead, 0)])
def test_the_epsilon_of_a_lowered_limit_is_exceeded(rule: Rule, slack: int) -> None:
    """The earlier statement, which was found to be wrong; with no limit lowered it is the promise, and holds."""
    lowered = history(rule, is_in=True, slack=slack)
    assert exceeds(*hockey_stick(lowered.loss, by_values(lambda limit, _: naive(limit), lowered.limit, lowered.spent)))
    usual = history(never, is_in=True)
    assert not exceeds(*hockey_stick(usual.loss, by_values(lambda limit, _: naive(limit), usual.limit, usual.spent)))


@pytest.mark.parametrize(("delta", "probability"), [(0.1, 0.4307), (0.01, 0.0736), (0.001, 0.00956)])
def test_a_reader_at_every_instant_finds_the_loss_above_the_bound_of_a_fixed_time(
    delta: float, probability: float
) -> None:
    """The numbers of docs/filters.md: what is spent grows from 0.0001 to 100, and the loss is a Brownian motion.

    At a total of rho it is rho + sqrt(2) W(rho), so that W(rho) / sqrt(rho), an Ornstein-Uhlenbeck process of the
    logarithm of rho, must stay below sqrt(2 ln(1/delta)): Kolmogorov's backward equation, by Crank and Nicolson.
    """
    bound = sqrt(2 * log(1 / delta))
    places, step = np.linspace(-8, bound, 601, retstep=True)
    instant = log(10**6) / 1500
    up, down = 0.5 / step**2 - places / (4 * step), 0.5 / step**2 + places / (4 * step)
    up[0], down[0] = 1 / step**2, 0  # reflected where nobody comes
    generator = np.array([[0, *up[:-1]], [-1 / step**2] * 600 + [0], [*down[1:-1], 0, 0]])  # ended at the bound
    stays = np.array([1.0] * 600 + [0])
    identity = np.array([[0.0], [1.0], [0.0]])
    for number in range(1500):
        implicit = 1.0 if number < 8 else 0.5  # the start is not smooth
        moved = generator[1] * stays
        moved[:-1] += generator[0, 1:] * stays[1:]
        moved[1:] += generator[2, :-1] * stays[:-1]
        known = stays + (1 - implicit) * instant * moved
        stays = solve_banded((1, 1), identity - implicit * instant * generator, known)
    density = np.exp(-(places**2) / 2) / sqrt(2 * pi)
    assert 1 - np.trapezoid(stays * density, places) == pytest.approx(probability, rel=2e-3)


def test_the_bound_of_a_fixed_time_is_exceeded_at_some_time() -> None:
    """The odometer without its levels: rho + 2 sqrt(rho ln(1/delta)) of what is spent, at every moment."""
    lost = history(never, is_in=True).has_lost_more_than_at_a_fixed_time
    assert exceeds(*tail(lost))
