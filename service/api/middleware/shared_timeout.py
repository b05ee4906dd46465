"""One event-loop timer shared by all operations with the same timeout: one for each costs more than most take.

The first to come is the first to be late. So the timer is set for the one waited for longest, and only when it rings is
any of them looked at; most have come and gone by then.
"""

import asyncio
from collections.abc import Callable, Hashable
from itertools import takewhile
from typing import Generic, Protocol, TypeVar

T = TypeVar("T", bound=Hashable)


class Loop(Protocol):
    """The methods of an event loop that are used here."""

    def time(self) -> float:
        """Its clock, in seconds."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call once, when the clock shows `when`."""


class SharedTimeout(Generic[T]):
    """Waits for each for `limit_s`, and calls `lose` with each that has not ended by then, once.

    Belongs to one event loop at a time.
    """

    def __init__(
        self, limit_s: float, lose: Callable[[T], None], running: Callable[[], Loop] = asyncio.get_running_loop
    ) -> None:
        self._limit_s, self._lose, self._running = limit_s, lose, running
        self._since_s: dict[T, float] = {}  # in the order of their beginning
        self._loop: Loop | None = None  # in which the timer is set, if it is

    def begin(self, one: T) -> None:
        """From now on `one` is waited for."""
        loop = self._running()
        now_s = self._since_s[one] = loop.time()
        if self._loop is not loop:  # the loop before may have ended while the timer was set
            self._set(loop, now_s)

    def end(self, one: T) -> None:
        """It has ended, in time or not."""
        self._since_s.pop(one, None)

    def _set(self, loop: Loop, since_s: float) -> None:
        self._loop = loop
        loop.call_at(since_s + self._limit_s, self._look)

    def _look(self) -> None:
        loop, self._loop = self._running(), None
        now_s = loop.time()
        for one, _ in list(takewhile(lambda each: each[1] + self._limit_s <= now_s, self._since_s.items())):
            del self._since_s[one]
            self._lose(one)
        longest_s = next(iter(self._since_s.values()), None)
        if longest_s is not None:
            self._set(loop, longest_s)
