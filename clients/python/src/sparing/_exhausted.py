"""The running counts of exhausted individuals, from the released ticks of a dataset's monitor.

Tick t is (R x)_t + noise, where x_k is the number of individuals first counted at tick k. The coefficient of R between
ticks at distance n is C(2n, n) / 4^n, rounded to 2^-20. The inverse of R applied to the ticks, and summed up, gives the
running counts without a bias. As R is nearly the square root of the running sum, this operation is nearly R itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final

from sparing._models import MonitorTicks

_STEP: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustedCount:
    """The number of exhausted individuals at a tick, among those that took part in ticks until then."""

    tick: int  # from 1
    value: float
    standard_error: float  # of the noise: the errors of nearby ticks go together


def exhausted_counts(monitor: MonitorTicks) -> tuple[ExhaustedCount, ...]:
    """The running counts, one for each tick."""
    weights = weights_of(len(monitor.values))
    squares = 0.0
    counts: list[ExhaustedCount] = []
    for tick, weight in enumerate(weights, start=1):
        squares += weight * weight
        value = sum(map(mul, weights[:tick], reversed(monitor.values[:tick])))
        counts.append(ExhaustedCount(tick=tick, value=value, standard_error=monitor.sigma * math.sqrt(squares)))
    return tuple(counts)


def weights_of(ticks: int) -> Sequence[float]:
    """The weights (ticks,) with which a running count adds up ticks; weight n is that of the tick n before.

    They are the coefficients of the power series 1 / ((1 - z) R(z)): the running sum after the inverse of R.
    """
    steps, central = [_STEP], 1
    for n in range(1, ticks):
        central = central * 2 * (2 * n - 1) // n
        steps.append(((central * 2 * _STEP) + (1 << 2 * n)) >> 2 * n + 1)
    coefficients = [step / _STEP for step in steps]
    weights: list[float] = []
    for n in range(ticks):
        weights.append(1.0 - sum(map(mul, coefficients[1 : n + 1], reversed(weights))))
    return weights
