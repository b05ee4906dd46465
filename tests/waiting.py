"""The waits of tests for other threads and processes: for a condition, with a limit that only a failure reaches.

Tests read no clock and sleep nowhere else. A limit asserts no duration: it is far above what a slow machine takes.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator

PATIENCE_VARIABLE = "SPARING_TEST_PATIENCE_S"
PATIENCE_S = float(os.environ.get(PATIENCE_VARIABLE, "240"))
"""The limit of every wait, below that of a whole test; seeded bugs, most of which make one end, are given less."""
BETWEEN_S = 0.005
TURNS = 50
"""Turns of an event loop in which everything that is ready has run; threads are waited for with a condition."""


class NeverCameError(AssertionError):
    """A condition that was waited for did not become true."""


def until(holds: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Return when it holds. Raises NeverCameError after the limit; what the condition raises is passed on."""
    for _ in _trials(holds, patience_s):
        time.sleep(BETWEEN_S)


async def until_async(holds: Callable[[], object], *, patience_s: float = PATIENCE_S) -> None:
    """Wait as `until` does, between the turns of an event loop."""
    for _ in _trials(holds, patience_s):
        await asyncio.sleep(BETWEEN_S)


async def settled() -> None:
    """Let the event loop turn until everything that is ready has run."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def _trials(holds: Callable[[], object], patience_s: float) -> Iterator[None]:
    """A step for each trial that failed. Raises NeverCameError."""
    end_s = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end_s:
            raise NeverCameError
        yield
