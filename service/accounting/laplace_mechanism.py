"""Laplace noise of any scale at an accounting's prices, in grid steps.

Laplace noise Lap(b) has standard deviation sqrt(2) b. It is for queries in which an individual has one number. The L1
norm, by which Laplace noise is priced, is then the same as the L2 norm of the clip.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isqrt
from typing import ClassVar, Final

from service.core.half_widths import scale_steps_within
from service.core.laplace import STEPS_MAX, LaplacePrices, laplace_worst_case_units, longest_steps
from service.core.laws import Laplace, Law
from service.core.mechanisms import Mechanism
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN

_REFERENCES: Final = (2.0**32, 2.0**26, 2.0**20, 2.0**14, 2.0**8, 1.0)
"""Scales at which the longest affordable vector is sought. The first at which it is below STEPS_MAX is taken."""
_NEAR: Final = 2.0**-20


@dataclass(frozen=True)
class LaplaceMechanism(Mechanism):
    """Laplace noise at the prices of an accounting, which is given by its name."""

    accounting: str
    prices: LaplacePrices = field(repr=False, compare=False)

    law: ClassVar = Laplace
    of_one_number: ClassVar = True

    @property
    def name(self) -> str:  # type: ignore[override]  # read alone
        """The word `laplace` and the accounting's name."""
        return f"{Laplace.word} {self.accounting}"

    def at(self, size_steps: float) -> Law:
        """The law at a scale. Raises ValueError for a scale outside [0.3, 2^32]."""
        return Laplace.priced(size_steps, self.accounting, self.prices)

    def size_for(self, norm_squared: int, units: int) -> float:
        """The least scale at which a number with this square costs at most `units`, or up to 2^-18 of it more."""
        return _scale_steps(self.prices, units, _root_up(norm_squared))

    def estimate_for(self, norm_squared: int, units: int) -> float:
        """The scale of `size_for`, which is cached."""
        return self.size_for(norm_squared, units)

    def size_within(self, steps: int, confidence: float) -> float:
        """The scale of `scale_steps_within`."""
        return scale_steps_within(steps, confidence)


@lru_cache(maxsize=256)
def _scale_steps(prices: LaplacePrices, units: int, steps: int) -> float:
    """The scale for a number of `steps` steps: bisected between two scales that a reference gives in proportion."""
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
