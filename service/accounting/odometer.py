"""The time-uniform odometer: a bound on an individual's privacy loss so far that holds at every moment at once.

The loss L after charges that sum to rho, read at a fixed time, stays below rho + 2 sqrt(rho ln(1/delta)) but with
probability delta. Read at a time that depends on the answers it does not: a reader that stops as soon as L is high
finds it above far more often. So levels of rho are fixed beforehand, the budget and its halves, quarters and so on, and
delta is shared among them, 6 / (pi^2 (j + 1)^2) of it for the j-th. By Ville's inequality the loss stays below a
level's bound for as long as the spent total is within the level, but with the level's share of delta; all levels
together fail with at most delta, whatever decides the time of reading (Whitehouse et al. 2023; Lecuyer 2021).
"""

import math
from decimal import Decimal
from typing import Final

from service.core.units import UNITS_PER_RHO

_ROUNDING: Final = 1 + 1e-12
"""Far more than the formula's six roundings in binary can lose."""


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


def _bound(budget_units: int, level: int, delta: Decimal) -> float:
    """The bound on the loss while the spent total is within budget / 2^level, except with its share of delta."""
    rho = math.ldexp(budget_units / UNITS_PER_RHO, -level)
    # ln(1 / delta_j) for delta_j = 6 delta / (pi^2 (j + 1)^2); a Decimal's logarithm knows deltas that no float holds.
    share = math.log(math.pi**2 / 6) + 2 * math.log(level + 1) - float(delta.ln())
    return (rho + 2 * math.sqrt(rho * share)) * _ROUNDING
