"""Progress of a long command: a line now and then on stderr. A short command prints none."""

import sys
import time
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 5.0


class ProgressLines:
    """Prints lines at least EVERY_S seconds apart; the first comes EVERY_S seconds after the beginning."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._told_at = clock()

    def see(self, what: str, done: int, of: int, unit: str) -> None:
        """Note that `done` of `of` units are done, and print it if a line is due."""
        now = self._clock()
        if now < self._told_at + EVERY_S:
            return
        self._told_at = now
        print(f"{what}: {done:,} of {of:,} {unit}", file=sys.stderr, flush=True)
