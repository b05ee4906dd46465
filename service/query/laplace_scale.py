"""The scale of Laplace noise by a stated precision, in steps of a grid. The counterpart of the precisions of a sigma.

Laplace noise Lap(b) has standard deviation sqrt(2) b. It is for queries in which an individual has one number: there
the L1 norm, by which it is priced, is the L2 norm of the clip.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import floor, inf, isqrt, ldexp
from typing import Final, NamedTuple

from service.core.half_widths import scale_steps_within
from service.core.laplace import STEPS_MAX, LaplacePrices, laplace_worst_case_units, longest_steps
from service.core.laws import Laplace
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN

_REFERENCES: Final = (2.0**32, 2.0**26, 2.0**20, 2.0**14, 2.0**8, 1.0)
"""Scales at which the longest vector is sought that costs so much: the first that is coarse enough for its root."""
_NEAR: Final = 2.0**-20


class NamedPrices(NamedTuple):
    """The prices of an accounting, and its name."""

    accounting: str
    prices: LaplacePrices

    def at(self, scale_steps: float) -> Laplace:
        """The law of Laplace noise at a scale."""
        return Laplace.priced(scale_steps, self.accounting, self.prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceHalfWidth:
    """A distance in query units that the noise keeps to at a confidence. The whole steps in it give the scale."""

    field: str
    half_width: float
    confidence: float

    def sigma_steps(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """The largest scale whose noise is within the half width."""
        return scale_steps_within(floor(ldexp(self.half_width, -grid_log2)), self.confidence)

    estimate = sigma_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceWorstCase:
    """The most that one individual may be charged, in ledger units, by an accounting's prices."""

    field: str
    units: int
    prices: LaplacePrices

    def sigma_steps(self, clip_squared_steps: int, _grid_log2: int) -> float:
        """A scale in steps at which a number at the clip costs at most `units`, larger by 2^-18 of it at most."""
        return _scale_steps(self.prices, self.units, _root_up(clip_squared_steps))

    estimate = sigma_steps


LaplacePrecision = LaplaceHalfWidth | LaplaceWorstCase


@lru_cache(maxsize=256)
def _scale_steps(prices: LaplacePrices, units: int, steps: int) -> float:
    """The scale for a number of so many steps: between those of a reference, in proportion, and bisected from there."""
    longest, reference = 0, 0.0
    for reference in _REFERENCES:
        longest = longest_steps(prices, units, reference)
        if longest < STEPS_MAX:
            break
    if longest == 0:
        return inf
    low, high = steps * reference / (longest + 1), steps * reference / longest
    if not SIGMA_STEPS_MIN <= low <= high <= SIGMA_STEPS_MAX:
        return high
    while laplace_worst_case_units(steps**2, high, prices) > units:
        high *= 1 + _NEAR
    while high - low > _NEAR * high:
        middle = (low + high) / 2
        if laplace_worst_case_units(steps**2, middle, prices) <= units:
            high = middle
        else:
            low = middle
    return high


def _root_up(squared: int) -> int:
    root = isqrt(squared)
    return root + (root * root < squared)
