"""Debits that are taken back when their optimistic commit is refused."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.engine.counters import Counters

Integers = NDArray[np.int64]


@dataclass(slots=True)
class TentativeDebits:
    """The values that each change overwrote, and the slots that each query was counted for."""

    found: list[tuple[Integers, Integers, Integers]] = field(default_factory=list)
    counted: list[tuple[Integers, Integers]] = field(default_factory=list)

    def note(self, array: Integers, places: Integers) -> None:
        """Keep `array[places]` before it is changed."""
        self.found.append((array, places, array[places]))

    def take_back(self, counters: Counters) -> None:
        """Undo all changes, the last one first; the order of counters does not matter."""
        for array, places, values in reversed(self.found):
            array[places] = values
        for charged, left_out in self.counted:
            counters.take_back(charged, left_out)
