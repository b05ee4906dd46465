"""Coverage from public numbers alone: until when every individual is certainly in every answer.

An individual is left out only when its own charges go beyond its limit; no charge exceeds the query's public worst
case, C^2 / (2 sigma^2) rounded up to units, and no limit is below the dataset's public floor. So as long as the worst
cases asked so far add up to at most the floor, no individual can have been left out, whatever the data. Of who has in
fact been left out, nothing may be said that is not a charged query itself.
"""

from collections.abc import Iterable
from math import sqrt

from service.core.units import UNITS_PER_RHO


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
