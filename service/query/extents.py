"""Bounds, from declared bounds, on the coordinates that one row adds to: whole steps of a power of two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from service.arrays import Integers, Reals
from service.query.columns import rounded

TOTAL_MAX = 2**61  # of the sum over one individual's rows before clipping, and over all individuals after it
NORM_SQUARED_MAX = 2**61
STEPS_MIN = 256  # a value that is rounded to the grid must keep so many steps within its bound
ENTRY_BITS_MAX = 54
_NEARLY = 1 - 2.0**-20  # sums of squares in doubles are exact to far less: 2^20 of them to 2^-33


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vectors:
    """Some vectors (v of them, at least one) of at least one entry each. All entries are below 2^54 in size.

    Where items have steps of their own, each entry is meant times 2^shift, with its own shift from `shifts`.
    """

    starts: Integers  # (v,) where the entries of each begin
    entries: Integers  # (n,) one vector's after another's
    shifts: Integers | None = None  # (n,)

    def largest_squared(self, shift: int) -> int:
        """The squared norm of the longest vector with entries times 2^shift, rounded half up for a negative shift."""
        if self.shifts is not None:
            return self._largest_of_shifted(self.shifts + shift)
        if shift > 0:
            return self.largest_squared(0) << (2 * shift)
        return self.longest_squared(shifted(self.entries, shift))

    def _largest_of_shifted(self, shifts: Integers) -> int:
        """Return the longest squared norm with a shift for each entry. Doubles choose candidates, integers decide."""
        scaled = np.ldexp(self.entries.astype(np.float64), shifts)
        about = np.where(shifts < 0, np.floor(scaled + 0.5), scaled)
        return max(
            sum(rounded(int(self.entries[at]), int(shifts[at])) ** 2 for at in vector)
            for vector in self._longest(about)
        )

    def longest_squared(self, entries: Integers) -> int:
        """The squared norm of the longest vector, exactly, with these `entries` (n,) in place of the vectors' own.

        Doubles choose the few vectors that may be the longest, and integers decide.
        """
        longest = self._longest(entries.astype(np.float64))
        different = {tuple(entries[vector.start : vector.stop].tolist()) for vector in longest}
        largest: int = max(sum(entry * entry for entry in vector) for vector in different)
        return largest

    def _longest(self, about: Reals) -> Iterator[range]:
        """The places of the entries of each vector that may be the longest, by doubles near the entries (n,)."""
        squared = np.add.reduceat(np.square(about), self.starts)
        stops = np.append(self.starts[1:], about.size)
        return (range(self.starts[each], stops[each]) for each in np.flatnonzero(squared >= squared.max() * _NEARLY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The values that one row may add to a coordinate of a select item: `low..high` in steps of `2**step_log2`.

    Where a row of an item has several coordinates, `vectors` are all vectors that one row may add.
    """

    low: int
    high: int
    step_log2: int
    integral: bool  # a count or an integer column: grid 1 loses nothing
    is_once: bool = False  # an individual adds it once to a group, however many rows it has there
    vectors: Vectors | None = None
    least: int | None = None  # of several coordinates: the smallest of their largest values

    @property
    def largest(self) -> int:
        """The largest absolute value, in the extent's own steps."""
        return max(abs(self.low), abs(self.high))

    @property
    def squared(self) -> int:
        """The largest squared norm of what one row adds, in the extent's own steps."""
        return self.largest**2 if self.vectors is None else self.vectors.largest_squared(0)

    def steps(self, grid_log2: int) -> int:
        """The largest absolute value in steps of a grid, rounded half up as the engine rounds."""
        shift = self.step_log2 - grid_log2
        return max(abs(rounded(self.low, shift)), abs(rounded(self.high, shift)))

    def squared_steps(self, grid_log2: int) -> int:
        """The largest squared norm of what one row adds, in steps of a grid, rounded half up."""
        if self.vectors is None:
            return self.steps(grid_log2) ** 2
        return self.vectors.largest_squared(self.step_log2 - grid_log2)

    def survives(self, grid_log2: int) -> bool:
        """Tell whether the grid keeps the values: exactly, or in enough steps for rounding not to matter."""
        if self.step_log2 >= grid_log2 or self.largest == 0:
            return True
        least = None if self.least is None else rounded(self.least, self.step_log2 - grid_log2)
        return (self.steps(grid_log2) if least is None else least) >= STEPS_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBounds:
    """The bounds on the rows of one individual and on individuals that a scale depends on; all of them public."""

    rows: int  # as many count for one individual, at most
    groups: int  # in which the rows of one individual may be
    capacity: int  # at most so many individuals
    shared_by: int = 1  # as many rows of an individual may have the weight of `rows`; 1: each has its own

    def times_squared(self, extent: Extent) -> int:
        """The factor from the squared norm of one row to that of an individual's rows, all at their bounds.

        What is added once to a group adds up over groups, of which an individual is in one with each row.
        """
        return min(self.rows, self.groups) if extent.is_once else self.rows**2

    def natural_squared(self, joint: Sequence[Extent]) -> Fraction:
        """The squared norm in query units that no individual exceeds: its rows in one group, all at their bounds.

        The triangle inequality over rows; items over different columns add in different coordinates, so squares add.
        """
        squares = (extent.squared * self.times_squared(extent) * Fraction(4) ** extent.step_log2 for extent in joint)
        return sum(squares, start=Fraction(0))

    def fits(self, norm_squared: int) -> bool:
        """Tell whether vectors of this squared norm in steps, and their sum over all individuals, fit 64 bits."""
        return norm_squared <= NORM_SQUARED_MAX and norm_squared * self.capacity**2 <= TOTAL_MAX**2


def exponent_above(squared: Fraction) -> int:
    """The smallest e with sqrt(squared) <= 2^e, of a positive number."""
    exponent = (squared.numerator.bit_length() - squared.denominator.bit_length()) // 2 - 1
    while squared > Fraction(4) ** exponent:
        exponent += 1
    return exponent


def shifted(steps: Integers, shift: int) -> Integers:
    """The numbers `steps * 2**shift`, rounded half up, for steps below 2^54. The caller ensures that 2**shift fits."""
    if shift >= 0:
        return np.left_shift(steps, shift)
    if shift < -ENTRY_BITS_MAX - 1:
        return np.zeros_like(steps)
    return np.right_shift(steps + (1 << (-shift - 1)), -shift)
