"""The individual filter: each has a limit, and one that cannot pay for a query is left out of it (the skip rule).

Feldman and Zrnic (2021), Algorithm 2, Corollary 4.7 and Remark 4.4: if an individual takes part in a query only
while its spent total, this query's charge included, stays within its limit B, then the whole adaptive transcript is
B-zCDP for that individual. Koskela, Tobaben and Honkela (2023), Theorem 12: it is sqrt(2 B)-GDP, the queries being
Gaussian. A paused individual is left out as well, whatever is left; the limit, and so the promise, stays B.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import is_uniform
from service.core.units import LIMIT_UNITS_MAX

DENSE = 8  # a stretch of slots is read whole if at least every eighth is touched; it decides speed alone


class FilterViolation(Exception):
    """A charge would have taken an individual above its limit, or below zero; nothing was debited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accounts:
    """The spent total and the limit of every individual, and whether it has paused, by slot.

    `spent` and `limit` (n,), int64 units in [0, LIMIT_UNITS_MAX]. A spent total above its limit is allowed: a limit may
    be lowered. `paused` (n,) decides in `active` alone. Raises ValueError for arrays of other shapes, types or ranges.
    """

    spent: NDArray[np.int64]
    limit: NDArray[np.int64]
    paused: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Refuse accounts on which the filter's arithmetic could go wrong."""
        shapes = {self.spent.shape, self.limit.shape, self.paused.shape}
        if len(shapes) > 1 or self.spent.ndim != 1 or self.paused.dtype != np.bool_:
            raise ValueError(f"one limit and one pause for each spent total, got shapes {shapes}")
        for units in (self.spent, self.limit):
            if units.dtype != np.int64 or (units.size > 0 and (units.min() < 0 or units.max() > LIMIT_UNITS_MAX)):
                raise ValueError("spent totals and limits are int64 units between 0 and LIMIT_UNITS_MAX")

    def first(self, size: int) -> "Accounts":
        """The accounts of the first `size` slots, in the same memory; of sound accounts any part is sound."""
        part = object.__new__(Accounts)
        object.__setattr__(part, "spent", self.spent[:size])
        object.__setattr__(part, "limit", self.limit[:size])
        object.__setattr__(part, "paused", self.paused[:size])
        return part

    def active(self, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The active individuals: spent + charge <= limit, equality included (Algorithm 2, line 3), and not paused.

        `slots` (k,) strictly increasing, `charges` (k,) units in [0, CHARGE_UNITS_MAX]. Returns (k,) booleans.
        Raises IndexError for slots out of order or out of range.
        """
        reach = self._reach(slots)
        if isinstance(reach, slice) or not is_uniform(charges) or DENSE * slots.size < slots[-1] - slots[0]:
            totals: NDArray[np.int64] = self.spent[reach] + charges
            can_pay: NDArray[np.bool_] = np.less_equal(totals, self.limit[reach])
            return np.greater(can_pay, self.paused[reach], out=can_pay)  # true and not paused
        # Many pay alike: reading the whole stretch in order is quicker than picking two numbers for each of them.
        stretch = slice(int(slots[0]), int(slots[-1]) + 1)
        room = self.limit[stretch] - self.spent[stretch]
        if room.min() >= charges[0] and not self.paused[stretch].any():
            return np.ones(slots.shape, dtype=np.bool_)
        active: NDArray[np.bool_] = np.greater(room >= charges[0], self.paused[stretch]).take(slots - stretch.start)
        return active

    def debit(self, slots: NDArray[np.int64], charges: NDArray[np.int64]) -> None:
        """Spend the charges: all of them or, when one of them is above a limit or negative, none.

        Checked again although `active` has let them through: that the sum is within the limit on every path is the
        theorem's one premise about the ledger. A pause does not count here: what was charged before it is replayed
        after it, and a burn charges paused individuals too. Shapes and IndexError as in `active`; raises
        FilterViolation.
        """
        reach = self._reach(slots)
        totals = self.spent[reach] + charges
        if not ((charges >= 0) & (totals <= self.limit[reach])).all():
            raise FilterViolation("a charge is negative or goes beyond its individual's limit")
        self.spent[reach] = totals

    def _reach(self, slots: NDArray[np.int64]) -> NDArray[np.int64] | slice:
        """The slots as an index: a slice where they are consecutive, which numpy reads without copying.

        A repeated slot would be let through twice and debited once, and a negative one would be another individual's.
        """
        first, last = (int(slots[0]), int(slots[-1])) if slots.size > 0 else (0, -1)
        if first < 0 or last >= self.spent.size or not (slots[1:] > slots[:-1]).all():
            raise IndexError("slots must be strictly increasing and within the accounts")
        return slice(first, last + 1) if last - first + 1 == slots.size else slots
