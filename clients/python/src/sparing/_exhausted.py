"""The running counts of exhausted individuals, from the ticks of a dataset's monitor that were released.

Tick t has R x + noise, where x_k are the individuals counted first at tick k and R has the coefficients
C(2n, n) / 4^n, in steps of 2^-20, at each distance n of ticks. The inverse of R, applied to the ticks and summed, gives
the running counts without a bias. R is nearly the square root of running sums, so that what is applied is nearly R.
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
    """The number of individuals that a tick counted as exhausted, of those that took part in ticks until then."""

    tick: int  # from 1
    value: float
    standard_error: float  # of the noise: the errors of nearby ticks go together


def exhausted_counts(monitor: MonitorTicks) -> tuple[ExhaustedCount, ...]:
    """The running counts, a tick each."""
    weights = weights_of(len(monitor.values))
    squares = 0.0
    counts: list[ExhaustedCount] = []
    for tick, weight in enumerate(weights, start=1):
        squares += weight * weight
        value = sum(map(mul, weights[:tick], reversed(monitor.values[:tick])))
        counts.append(ExhaustedCount(tick=tick, value=value, standard_error=monitor.sigma * math.sqrt(squares)))
    return tuple(counts)


def weights_of(ticks: int) -> Sequence[float]:
    """The weight of the tick n before, from 0 on: running sums after the inverse of the coefficients.

    The power series of 1 / ((1 - z) R(z)), number by number.
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
