"""The time-uniform odometer: its formula, its shares of delta, and that it rises with what is spent."""

import math
from decimal import Decimal

import mpmath
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO

BUDGETS = st.integers(1, LIMIT_UNITS_MAX)
DELTAS = st.sampled_from([Decimal(text) for text in ("1e-400", "1e-12", "1e-6", "0.01", "0.5", "0.99")])


def level_bound(budget_units: int, level: int, delta: Decimal) -> mpmath.mpf:
    """The sum rho + 2 sqrt(rho ln(1 / delta_j)), to forty digits."""
    with mpmath.workdps(40):
        rho = mpmath.mpf(budget_units) / UNITS_PER_RHO / 2**level
        share = 6 * mpmath.mpf(str(delta)) / (mpmath.pi**2 * (level + 1) ** 2)
        return rho + 2 * mpmath.sqrt(rho * mpmath.log(1 / share))


@given(BUDGETS, st.data(), DELTAS)
def test_it_is_the_least_bound_of_the_levels_that_hold_what_is_spent(
    budget: int, data: st.DataObject, delta: Decimal
) -> None:
    """Levels are the budget halved again and again; none that lies below what is spent counts."""
    spent = data.draw(st.integers(1, budget))
    least = min(level_bound(budget, level, delta) for level in range(64) if spent << level <= budget)

    shown = GAUSSIAN.epsilon_time_uniform(spent, budget_units=budget, delta=delta)

    assert least <= shown <= least * (1 + mpmath.mpf("1e-11"))


def test_the_levels_share_delta() -> None:
    """All levels together fail with at most delta: their shares, recomputed from the bounds shown, sum to it."""
    budget = 2**60
    rhos = [budget / UNITS_PER_RHO / 2**level for level in range(61)]
    shown = [
        GAUSSIAN.epsilon_time_uniform(budget >> level, budget_units=budget, delta=Decimal("1e-6"))
        for level in range(61)
    ]
    # ln(1/delta_j) = (epsilon - rho)^2 / (4 rho); for a small delta each level's own bound is the least one.
    shares = [math.exp(-((epsilon - rho) ** 2) / (4 * rho)) for epsilon, rho in zip(shown, rhos, strict=True)]

    assert 0.98e-6 < sum(shares) <= 1e-6


@given(BUDGETS, st.data(), DELTAS)
def test_it_rises_with_what_is_spent_and_starts_at_nothing(budget: int, data: st.DataObject, delta: Decimal) -> None:
    """Also for deltas so large that a coarser level bounds the loss better than a finer one."""
    less, more = sorted(data.draw(st.tuples(st.integers(0, budget), st.integers(0, budget))))

    shown = [GAUSSIAN.epsilon_time_uniform(spent, budget_units=budget, delta=delta) for spent in (0, less, more)]

    assert shown == sorted(shown)
    assert shown[0] == 0
