"""The individual filter: everyone has a limit, and whoever cannot pay for a query is left out of it (the skip rule).

Feldman and Zrnic (2021), Algorithm 2, Corollary 4.7 and Remark 4.4: if an individual takes part in a query only
while its spent total, this query's charge included, stays within its limit B, then the whole adaptive transcript is
B-zCDP for that individual. Koskela, Tobaben and Honkela (2023), Theorem 12: it is sqrt(2 B)-GDP, the queries being
Gaussian.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.uniform import is_uniform
from service.core.units import LIMIT_UNITS_MAX

DENSE = 8  # a stretch of slots is read whole if at least every eighth is touched; it decides speed alone


class FilterViolation(Exception):
    """A charge would have taken somebody above a limit, or below zero; nothing was debited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accounts:
    """What everyone has spent and may spend, by slot.

    Both (n,), int64 units in [0, LIMIT_UNITS_MAX]. A spent total above its limit is allowed: a limit may be lowered.
    Raises ValueError for arrays of other shapes, types or ranges.
    """

    spent: NDArray[np.int64]
    limit: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse accounts on which the filter's arithmetic could go wrong."""
        if self.spent.shape != self.limit.shape or self.spent.ndim != 1:
            raise ValueError(f"one limit for each spent total, got shapes {self.spent.shape} and {self.limit.shape}")
        for units in (self.spent, self.limit):
            if units.dtype != np.int64 or (units.size > 0 and (units.min() < 0 or units.max() > LIMIT_UNITS_MAX)):
                raise ValueError("spent totals and limits are int64 units between 0 and LIMIT_UNITS_MAX")

    def active(self, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Who can pay: spent + charge <= limit, equality included (Algorithm 2, line 3).

        `slots` (k,) strictly increasing, `charges` (k,) units in [0, CHARGE_UNITS_MAX]. Returns (k,) booleans.
        Raises IndexError for slots out of order or out of range.
        """
        reach = self._reach(slots)
        if isinstance(reach, slice) or not is_uniform(charges) or DENSE * slots.size < slots[-1] - slots[0]:
            totals: NDArray[np.int64] = self.spent[reach] + charges
            return np.less_equal(totals, self.limit[reach])
        # Many pay alike: reading the whole stretch in order is quicker than picking two numbers for each of them.
        stretch = slice(int(slots[0]), int(slots[-1]) + 1)
        room = self.limit[stretch] - self.spent[stretch]
        if room.min() >= charges[0]:
            return np.ones(slots.shape, dtype=np.bool_)
        active: NDArray[np.bool_] = (room >= charges[0]).take(slots - stretch.start)
        return active

    def debit(self, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> None:
        """Spend the charges: everyone's or, when one of them is above a limit or negative, nobody's.

        Checked again although `active` has let them through: that the sum is within the limit on every path is the
        theorem's one premise about the ledger. Shapes and IndexError as in `active`; raises FilterViolation.
        """
        reach = self._reach(slots)
        totals = self.spent[reach] + charges
        if not ((charges >= 0) & (totals <= self.limit[reach])).all():
            raise FilterViolation("a charge is negative or goes beyond its individual's limit")
        self.spent[reach] = totals

    def _reach(self, slots: NDArray[np.int64]) -> NDArray[np.int64] | slice:
        """The slots as an index: a slice where they are consecutive, which numpy reads without copying.

        A repeated slot would be let through twice and debited once, and a negative one would be somebody else's.
        """
        if slots.size == 0:
            return slice(0, 0)
        first, last = int(slots[0]), int(slots[-1])
        if first < 0 or last >= self.spent.size or not (slots[1:] > slots[:-1]).all():
            raise IndexError("slots must be strictly increasing and within the accounts")
        return slice(first, last + 1) if last - first + 1 == slots.size else slots
