"""The scale of Laplace noise by a stated precision, in steps of a grid. The counterpart of the precisions of a sigma.

Laplace noise Lap(b) has standard deviation sqrt(2) b. It is for queries in which an individual has one number: there
the L1 norm, by which it is priced, is the L2 norm of the clip.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import floor, inf, isqrt, ldexp
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from service.core.half_widths import scale_steps_within
from service.core.laplace import LaplacePrices, laplace_charge_units, laplace_worst_case_units
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN

_REFERENCES: Final = (2.0**32, 2.0**26, 2.0**20, 2.0**14, 2.0**8, 1.0)
"""Scales at which the longest vector is sought that costs so much: the first that is coarse enough for its root."""
_STEPS_MAX: Final = 2**31 - 1
_NEAR: Final = 2.0**-20
_PARTS: Final = np.arange(1, 2**11 + 1)
"""The numbers of steps that are priced at a time: three times eleven bits are enough for each."""


class NamedPrices(NamedTuple):
    """The prices of an accounting, and the mechanism by which an entry names them."""

    mechanism: str
    prices: LaplacePrices


@dataclass(frozen=True, eq=False)
class PricesAtScale:
    """The prices at the one scale of a query, worked out with its plan: a table takes milliseconds to make."""

    mechanism: str
    scale_steps: float
    table: tuple[int, NDArray[np.int64] | None]

    @classmethod
    def of(cls, laplace: NamedPrices, scale_steps: float) -> Self:
        """The table at a scale."""
        return cls(laplace.mechanism, scale_steps, laplace.prices(scale_steps))

    def __call__(self, scale_steps: float) -> tuple[int, NDArray[np.int64] | None]:
        """The table. Raises ValueError for another scale."""
        if scale_steps != self.scale_steps:
            raise ValueError(f"the prices are of the scale {self.scale_steps}, not {scale_steps}")
        return self.table


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


@lru_cache(maxsize=4096)  # an answer states the longest that its dataset's limits pay for
def longest_steps(prices: LaplacePrices, units: int, scale_steps: float) -> int:
    """The largest number of steps, at most 2^31 - 1, that costs at most `units` at a scale: prices do not fall."""
    low, high = 0, _STEPS_MAX
    while low < high:
        steps = low + (high - low) * _PARTS // _PARTS.size  # the last is high; all between, where they are so few
        charges = laplace_charge_units(steps * steps, scale_steps, prices, norm_squared_max=_STEPS_MAX**2)
        paid = int(np.searchsorted(charges, units, side="right"))
        low, high = (int(steps[paid - 1]) if paid > 0 else low, int(steps[paid]) - 1 if paid < steps.size else high)
    return low


@lru_cache(maxsize=256)
def _scale_steps(prices: LaplacePrices, units: int, steps: int) -> float:
    """The scale for a number of so many steps: between those of a reference, in proportion, and bisected from there."""
    longest, reference = 0, 0.0
    for reference in _REFERENCES:
        longest = longest_steps(prices, units, reference)
        if longest < _STEPS_MAX:
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
