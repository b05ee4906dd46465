"""The individuals of a block that a query touches: a list of slots where these are few, a stretch of slots where many.

Both forms are an index and marks. Arrays "by place" have one element for each listed slot, or for each slot of the
stretch; elements at places that are not marked mean nothing. Over a stretch every operation is one pass through memory
in order, and no list of slots is ever made. The form of a block decides about time alone (tests/laws/test_forms.py).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import compress

__all__ = ["Touched"]


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """Slots by place (p of them), and which of these are touched.

    `index` is a strictly increasing list of slots (p,) int64, or a slice of p slots with step 1; `marks` (p,) are True
    at the touched ones, and None where all of a list are. Raises IndexError for slots out of order or below zero,
    ValueError for marks of another shape or type, and for a stretch without marks.
    """

    index: NDArray[np.int64] | slice
    marks: NDArray[np.bool_] | None = None
    size: int = field(init=False)  # places
    begin: int = field(init=False)  # the first slot that a place is for; 0 without places
    end: int = field(init=False)  # the slot after the last; 0 without places

    def __post_init__(self) -> None:
        """Refuse slots of which one could be charged twice: a repeated one would be let through on the same balance."""
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

    def among(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the places `which` (p,) that are touched, (p,)."""
        return which if self.marks is None else np.logical_and(which, self.marks)

    def slots(self, which: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The touched slots, or those of the places `which` (p,): strictly increasing."""
        marks = self.marks if which is None else which
        if not isinstance(self.index, slice):
            return self.index if marks is None else compress(self.index, marks)
        slots = np.flatnonzero(np.asarray(marks))
        slots += self.begin
        return slots
