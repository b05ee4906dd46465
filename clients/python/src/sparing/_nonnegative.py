"""Counts without negative numbers: the nearest vector that counts can have."""

import math
from collections.abc import Iterable
from itertools import accumulate


def nonnegative(values: Iterable[float], *, total: float | None = None) -> tuple[float, ...]:
    """The nearest vector without negative numbers, and with the given total if there is one.

    Without a total, each negative number becomes 0. With a total, the same amount is taken from every number before
    negative numbers become 0. This is the projection on a simplex, which never moves the numbers further from the true
    vector, if the true vector has this total. Both ways bias small numbers upwards, all the more if many are small.
    Without a total, the sum grows too. So work out sums and quantiles first, and do this last.

    Args:
        values: the numbers, of an answer or of consistent tables.
        total: the total that the result has, known or estimated.

    Returns:
        The numbers, in their order; their sum is the total to rounding.

    Raises:
        ValueError: a number is not finite, the total is negative or not finite, or there are no numbers for a positive
            total.

    Source: Held, Wolfe & Crowder, Validation of subgradient optimization, Math. Programming 6 (1974).
    """
    given = tuple(values)
    if not all(map(math.isfinite, given)):
        raise ValueError("values must be finite")
    if total is None:
        return tuple(max(value, 0.0) for value in given)
    if not (total >= 0 and math.isfinite(total)):
        raise ValueError(f"total must be finite and not negative, got {total}")
    if not given and total > 0:
        raise ValueError(f"values must not be empty, as their total is {total}")
    taken = _taken(given, total)
    return tuple(max(value - taken, 0.0) for value in given)


def _taken(values: tuple[float, ...], total: float) -> float:
    """The number t for which the positive ones among the differences `value - t` add up to the total."""
    largest = sorted(values, reverse=True)
    taken = 0.0
    for count, (value, whole) in enumerate(zip(largest, accumulate(largest), strict=True), start=1):
        if count > 1 and value * count <= whole - total:
            break
        taken = (whole - total) / count
    return taken
