"""Coverage from public numbers alone: until when every individual is certainly in every answer.

An individual is left out only when its own charges go beyond its limit; no charge exceeds the query's public worst
case, C^2 / (2 sigma^2) rounded up to units, and no limit is below the dataset's public floor. So as long as the worst
cases asked so far add up to at most the floor, no individual can have been left out, whatever the data. Of who has in
fact been left out, nothing may be said that is not a charged query itself.
"""

from collections.abc import Iterable


def coverage_certified(worst_case_units: Iterable[int], limit_floor_units: int) -> bool:
    """Whether answers at these worst-case prices, all before and this one, certainly include every individual.

    All in units. Says nothing of individuals that lowered their own limit or paused. Raises ValueError for negative
    units.
    """
    prices = list(worst_case_units)
    _refuse_negative(limit_floor_units, *prices)
    return sum(prices) <= limit_floor_units


def answers_left(worst_case_units: int, *, spent_units: int, limit_floor_units: int) -> int:
    """How many more answers at one worst-case price certainly include everybody, after worst cases of `spent_units`.

    All in units, the price positive. With nothing spent these are the first floor(2 B sigma^2 / C^2) answers, but for
    the rounding of the price. Raises ValueError for negative units or a price of zero.
    """
    _refuse_negative(worst_case_units, spent_units, limit_floor_units)
    if worst_case_units == 0:
        raise ValueError("a query whose worst case is zero has no last answer")
    return max(0, limit_floor_units - spent_units) // worst_case_units


def _refuse_negative(*units: int) -> None:
    if min(units) < 0:
        raise ValueError(f"units must not be negative, got {min(units)}")
