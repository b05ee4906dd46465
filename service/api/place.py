"""A place: threads for one kind of work. Principals take turns in it, and only work of that kind waits there.

It counts turns by itself, before the library's limiter of threads, which knows no principals and refuses nothing.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread

from service.ledger.model.errors import TooManyAtOnce

T = TypeVar("T")

THREADS: Final = 4
"""How many threads a place has; more would wait for the interpreter's lock, or for a session with the database."""


@dataclass(slots=True, eq=False)
class _Owner:
    """The requests of one principal in one place."""

    running: int = 0
    waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)

    @property
    def present(self) -> int:
        return self.running + len(self.waiting)


class Place:
    """Threads for one kind of work. Belongs to one event loop.

    Without `waiting_max` nothing is refused; this is for work that is bounded elsewhere, or must be finished.
    """

    def __init__(self, name: str, *, threads: int = THREADS, waiting_max: int | None = None) -> None:
        """`name` is the work in words, as in "too many requests wait for {name}"."""
        self.name, self.threads, self.waiting_max = name, threads, waiting_max
        self.threads_own = max(threads // 2, 1)
        self.running = 0
        self._limiter = CapacityLimiter(threads)
        self._owners: OrderedDict[Hashable, _Owner] = OrderedDict()  # the next to have a turn first

    @property
    def is_empty(self) -> bool:
        """Tell whether no work waits here or is under way."""
        return not self._owners

    async def run(self, owner: Hashable, work: Callable[[], T]) -> T:
        """Do a principal's work in a thread of this place at the principal's turn.

        Raises TooManyAtOnce, and what `work` raises.
        """
        await self._turn(owner)
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(owner)

    async def _turn(self, owner: Hashable) -> None:
        own = self._owners.setdefault(owner, _Owner())
        if self.running < self.threads and own.running < self.threads_own:  # then none of the principal's waits
            self._begin(owner, own)
            return
        if self.waiting_max is not None and own.present >= self.waiting_max:
            raise TooManyAtOnce(self.name, self.waiting_max)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(owner)
            else:
                own.waiting.remove(turn)
                self._forget_if_gone(owner)
            raise

    def _begin(self, owner: Hashable, own: _Owner) -> None:
        self._owners.move_to_end(owner)
        own.running += 1
        self.running += 1

    def _end(self, owner: Hashable) -> None:
        self._owners[owner].running -= 1
        self.running -= 1
        self._forget_if_gone(owner)
        self._begin_next()

    def _begin_next(self) -> None:
        """Give a thread that has become free to the next principal."""
        able = (each for each in self._owners.items() if each[1].waiting and each[1].running < self.threads_own)
        found = next(able, None)
        if found is None:
            return
        owner, own = found  # strangers are None
        self._begin(owner, own)
        own.waiting.popleft().set_result(None)

    def _forget_if_gone(self, owner: Hashable) -> None:
        if self._owners[owner].present == 0:
            del self._owners[owner]


class PlacesByName:
    """A place for each dataset, or for each role: made when its first work comes, forgotten when it is empty."""

    def __init__(self, name: str, *, waiting_max: int) -> None:
        self._name, self._waiting_max = name, waiting_max
        self._places: dict[str, Place] = {}

    async def run(self, which: str, owner: Hashable, work: Callable[[], T]) -> T:
        """Do a principal's work in the place `which`. Raises TooManyAtOnce, and what `work` raises."""
        place = self._places.setdefault(which, Place(self._name, waiting_max=self._waiting_max))
        try:
            return await place.run(owner, work)
        finally:
            if place.is_empty and self._places.get(which) is place:
                del self._places[which]
