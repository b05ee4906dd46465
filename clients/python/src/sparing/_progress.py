"""A bar for long batches, drawn on one line of standard error."""

import sys
from collections.abc import Callable

BatchProgress = Callable[[int, int], object] | bool
"""A function that is called with the number of queries that came back and the number of all; True means a bar."""

_WIDTH = 30


def told_of(progress: BatchProgress | None) -> Callable[[int, int], object] | None:
    """The function to call, or None. Raises TypeError for anything but a function, True, False or None."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _draw
    if not callable(progress):
        raise TypeError(f"progress takes a function of two numbers, or True, not {progress!r}")
    return progress


def _draw(done: int, count: int) -> None:
    filled = _WIDTH * done // count
    end = "\n" if done == count else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done} of {count} queries{end}")
    sys.stderr.flush()
