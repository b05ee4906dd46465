"""Integer vectors side by side, and the exact squared norm of the longest one, rounded to coarser steps or not."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Integers

__all__ = ["BITS_MAX", "Vectors", "shifted"]

BITS_MAX = 54
_ABOUT = 2.0**-20  # sums of squares in doubles are exact to far less: 2^20 of them to 2^-33


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vectors:
    """Some vectors (v of them, at least one) of at least one entry each, all of less than 2^54 in size."""

    starts: Integers  # (v,) where the entries of each begin
    entries: Integers  # (n,) one vector's after another's

    def largest_squared(self, shift: int) -> int:
        """The squared norm of the longest vector, exactly, with entries times 2^shift, rounded half up if that is less.

        Doubles choose the few vectors that may be the longest, and integers decide.
        """
        if shift > 0:
            return self.largest_squared(0) << (2 * shift)
        entries = shifted(self.entries, shift)
        about = np.add.reduceat(np.square(entries.astype(np.float64)), self.starts)
        stops = np.append(self.starts[1:], entries.size)
        longest = np.flatnonzero(about >= about.max() * (1 - _ABOUT))
        different = {tuple(entries[self.starts[each] : stops[each]].tolist()) for each in longest}
        largest: int = max(sum(entry * entry for entry in vector) for vector in different)
        return largest


def shifted(steps: Integers, shift: int) -> Integers:
    """`steps * 2**shift` of numbers of less than 2^54, rounded half up. To the left the caller knows that they fit."""
    if shift >= 0:
        return np.left_shift(steps, shift)
    if shift < -BITS_MAX - 1:
        return np.zeros_like(steps)
    return np.right_shift(steps + (1 << (-shift - 1)), -shift)
