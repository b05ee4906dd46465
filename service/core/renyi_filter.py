"""The individual filter: each has a limit, and one that cannot pay for a query is left out of it.

Feldman and Zrnic (2021), Algorithm 2, Corollary 4.7 and Remark 4.4: if an individual takes part in a query only while
its spent total, this query's charge included, stays within its limit B, then the whole adaptive transcript is B-zCDP
for that individual. Koskela, Tobaben and Honkela (2023), Theorem 12: it is sqrt(2 B)-GDP, the queries being Gaussian.
That is the skip rule. Under the drop rule an individual that was left out once is left out of every later query too;
its active set is the S_t of Corollary 4.7. Fewer individuals take part than under the skip rule, so that the same sums
of charges stay within B. Both rules decide from the individual's own record and the answers so far alone. A paused
individual is left out too, and the promise stays B.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, Mask, compress, first, is_uniform
from service.core.charge import LIMIT_UNITS_MAX


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The individuals of a block that a query touches: slots by place (p of them), and which of these are touched.

    The slots are a list where they are few, and a stretch where they are many. Arrays "by place" have one element for
    each listed slot, or for each slot of the stretch. Their elements at places that are not marked mean nothing. Over a
    stretch every operation is one pass through memory in order, and no list of slots is made. The form of a block
    affects time alone (tests/laws/test_forms_of_entries.py).

    `index` is a strictly increasing list of slots (p,) int64, or a slice of p slots with step 1. `marks` (p,) are True
    at the touched slots; None means that all slots of a list are touched. Raises IndexError for slots out of order or
    below zero. Raises ValueError for marks of another shape or type, and for a stretch without marks.
    """

    index: Integers | slice
    marks: Mask | None = None
    size: int = field(init=False)  # places
    begin: int = field(init=False)  # the first slot that a place is for; 0 without places
    end: int = field(init=False)  # the slot after the last; 0 without places

    def __post_init__(self) -> None:
        """Refuse a repeated slot: both of its places would see the same balance, and it would be charged twice."""
        index = self.index
        if isinstance(index, slice):
            if self.marks is None or index.step is not None or not 0 <= index.start <= index.stop:
                raise ValueError("a stretch has a start, a stop and marks")
            begin, end, size = index.start, index.stop, index.stop - index.start
        else:
            size = index.size
            begin, end = (int(index[0]), int(index[-1]) + 1) if size > 0 else (0, 0)
            if begin < 0 or not (index[1:] > index[:-1]).all():
                raise IndexError("slots must be strictly increasing and not negative")
        if self.marks is not None and (self.marks.shape != (size,) or self.marks.dtype != np.bool_):
            raise ValueError("one mark for each place")
        for name, value in (("size", size), ("begin", begin), ("end", end)):
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """The number of slots that are touched."""
        return self.size if self.marks is None else int(np.count_nonzero(self.marks))

    def among(self, which: Mask) -> Mask:
        """The mask (p,) of the places in `which` (p,) that are touched."""
        return which if self.marks is None else np.logical_and(which, self.marks)

    def slots(self, which: Mask | None = None) -> Integers:
        """The touched slots, or those at the places in the mask `which` (p,): strictly increasing."""
        marks = self.marks if which is None else which
        if not isinstance(self.index, slice):
            return self.index if marks is None else compress(self.index, marks)
        slots = np.flatnonzero(np.asarray(marks))
        slots += self.begin
        return slots


class FilterViolation(Exception):
    """A charge would have taken an individual above its limit, or below zero; nothing was debited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accounts:
    """The limit of every individual, the room that is left below it, and whether it has paused, by slot.

    `limits` and `room` (n,) are int64 units. `limits` are in [0, LIMIT_UNITS_MAX], and so are the spent totals, which
    are `limits - room`. The filter thus reads and writes one number for each individual, its room. Room may be below
    zero, because a limit may be lowered below the spent total. `paused` (n,) affects `active` alone. Raises ValueError
    for arrays of other shapes, types or ranges.
    """

    limits: Integers
    room: Integers
    paused: Mask

    def __post_init__(self) -> None:
        """Refuse accounts on which the filter's arithmetic could go wrong."""
        shapes = {self.room.shape, self.limits.shape, self.paused.shape}
        if len(shapes) > 1 or self.room.ndim != 1 or self.paused.dtype != np.bool_:
            raise ValueError(f"one limit and one pause for each spent total, got shapes {shapes}")
        if not self.room.dtype == self.limits.dtype == np.int64:
            raise ValueError("limits and room are int64 units")
        _refuse_outside("limits", self.limits)
        _refuse_outside("spent totals", self.spent)

    @classmethod
    def of(cls, *, spent: Integers, limits: Integers, paused: Mask) -> Self:
        """Accounts from spent totals (n,) in units. Raises ValueError as the class does."""
        if spent.shape != limits.shape or spent.dtype != np.int64:
            raise ValueError("one int64 spent total for each limit")
        _refuse_outside("spent totals", spent)
        return cls(limits=limits, room=limits - spent, paused=paused)

    @property
    def size(self) -> int:
        """The number of slots."""
        return self.room.size

    @property
    def spent(self) -> Integers:
        """The spent total of every individual, (n,) units: a copy."""
        return self.limits - self.room

    def spent_of(self, slots: Integers | slice) -> Integers:
        """The spent totals of some slots (k,), (k,) units: a copy."""
        spent: Integers = self.limits[slots] - self.room[slots]
        return spent

    def set_limits(self, slots: Integers | slice | int, units: Integers | int) -> None:
        """Give some slots (k,) limits (k,); their spent totals stay. Raises ValueError for units out of range."""
        _refuse_outside("limits", np.asarray(units))
        self.room[slots] += units - self.limits[slots]
        self.limits[slots] = units

    def set_spent(self, slots: Integers | slice, units: Integers | int) -> None:
        """Set the spent totals of some slots (k,), for loading a dataset. Raises ValueError for units out of range."""
        _refuse_outside("spent totals", np.asarray(units))
        self.room[slots] = self.limits[slots] - units

    def first(self, size: int) -> "Accounts":
        """The accounts of the first `size` slots, in the same memory. They are not checked again."""
        part = object.__new__(Accounts)
        for name in ("limits", "room", "paused"):
            object.__setattr__(part, name, getattr(self, name)[:size])
        return part

    def active(self, touched: Touched, charges: Integers, dropped: NDArray[np.uint8] | None = None) -> Mask:
        """The active individuals: spent + charge <= limit, equality included (Algorithm 2, line 3), and not paused.

        `charges` (p,) by place of `touched`, units in [0, CHARGE_UNITS_MAX]; where `dropped` (p,) is positive, none is
        active. Returns (p,) booleans, False where not touched. Raises IndexError for slots beyond the accounts.
        """
        self._refuse_beyond(touched)
        active: Mask = np.greater_equal(self.room[touched.index], charges)
        np.greater(active, self.paused[touched.index], out=active)  # true and not paused
        if dropped is not None:
            np.greater(active.view(np.uint8), dropped, out=active)  # 1 and 0
        return active if touched.marks is None else np.logical_and(active, touched.marks, out=active)

    def debit(self, touched: Touched, active: Mask, charges: Integers) -> Integers:
        """Spend the charges of the active: all of them or, when one of them is above a limit or negative, none.

        `active` and `charges` (p,) are by place of `touched`. Returns the units that each place has spent, (p,), zero
        where not active. The limit is checked here again, although `active` has checked it: that no sum exceeds its
        limit on any path is the theorem's one premise about the ledger. A pause is ignored here: charges from before a
        pause are replayed after it, and a burn charges paused individuals too. Raises IndexError for slots beyond the
        accounts, FilterViolation for a charge above a limit or below zero.
        """
        self._refuse_beyond(touched)
        debited = active.astype(np.int64)
        debited *= charges
        room = self.room[touched.index]
        room -= debited
        is_beyond = np.less(room, 0)
        is_negative = first(charges) < 0 if is_uniform(charges) else (charges < 0).any()
        if is_negative or np.logical_and(is_beyond, active, out=is_beyond).any():
            room += debited  # of a stretch, it is the accounts' own memory
            raise FilterViolation("a charge is negative or goes beyond its individual's limit")
        if not isinstance(touched.index, slice):
            self.room[touched.index] = room
        return debited

    def take_back(self, touched: Touched, active: Mask, charges: Integers) -> None:
        """Undo a debit that never became durable. Raises FilterViolation for more than was spent; IndexError too."""
        self._refuse_beyond(touched)
        debited = active * charges
        room = self.room[touched.index] + debited
        if debited.min(initial=0) < 0 or (room > self.limits[touched.index]).any():
            raise FilterViolation("more is taken back than was spent")
        self.room[touched.index] = room

    def _refuse_beyond(self, touched: Touched) -> None:
        if touched.end > self.room.size:
            raise IndexError("slots must be within the accounts")


def _refuse_outside(name: str, units: Integers) -> None:
    if units.size > 0 and (units.min() < 0 or units.max() > LIMIT_UNITS_MAX):
        raise ValueError(f"{name} are between 0 and LIMIT_UNITS_MAX")
