"""The places in which requests wait for a thread: one for each kind of work, with threads that no other kind can take.

Every hop to a thread names its place here; the default pool of the event loop's library is used by nobody, because
through it each kind of work would wait for every other.

place         who waits there                                                       threads
lookups       credentials that are looked up, all that wait in one batch            1
probes        /readyz                                                               1
pages         the pages and the guide                                               2
rates         the counting of requests by a rate limit                              4
owners        forwarding: the look-up of a dataset and of its owner                 4
sign_ins      sign-ins by an identity provider                                      4
bodies        bodies that are read off the event loop, and spools of uploads        4
queries       queries that are compiled and handed to their writer                  4
answers       large answers that are written after their release                    4
reads         reads, by role                                                        4 for each role
acts          acts on a dataset's records of accounts, by dataset                   4 for each dataset
long_acts     uploads, corrections and other acts beside the writer, by dataset     4 for each dataset
changes       acts that concern no dataset                                          4

Waiting takes no thread. Within a place principals take turns, one of them is worked on in half of the threads at most,
and so many of its requests as `waiting_max` says are there at once. Beyond that its next one is refused.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar
from weakref import WeakKeyDictionary

from anyio import CapacityLimiter, to_thread

from service.workflows.model.errors import TooManyAtOnce

T = TypeVar("T")

THREADS: Final = 4
"""The threads of a place; more would wait for the interpreter's lock, or for a session with the database."""


class PlaceSettings(Protocol):
    """The settings of places."""

    @property
    def waiting_max(self) -> int:
        """The requests of one principal that may be in one place at once."""

    @property
    def queries_waiting_max(self) -> int:
        """The same of queries."""

    @property
    def strangers_max(self) -> int:
        """The requests with keys not recognised lately that may wait to be looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBounds:
    """How many requests of one principal may be in one place at once, waiting or worked on."""

    waiting_max: int = 32
    queries_waiting_max: int = 1024
    strangers_max: int = 1024

    @classmethod
    def of(cls, settings: PlaceSettings) -> "PlaceBounds":
        """The bounds that the settings say."""
        return cls(
            waiting_max=settings.waiting_max,
            queries_waiting_max=settings.queries_waiting_max,
            strangers_max=settings.strangers_max,
        )


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

    Without `waiting_max` nothing is refused: for work that is bounded elsewhere, or must be finished.
    """

    def __init__(self, name: str, *, threads: int = THREADS, waiting_max: int | None = None) -> None:
        """`name` is the work in words, as in "too many requests wait for {name}"."""
        self.name, self.threads, self.waiting_max = name, threads, waiting_max
        self.threads_own = max(threads // 2, 1)
        self.running = 0
        self._limiter = CapacityLimiter(threads)
        self._owners: OrderedDict[Hashable, _Owner] = OrderedDict()  # the next to have a turn first

    @property
    def waiting(self) -> int:
        """How many requests wait for a thread."""
        return sum(len(owner.waiting) for owner in self._owners.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here or is worked on."""
        return not self._owners

    async def run(self, owner: Hashable, work: Callable[[], T]) -> T:
        """Do a principal's work in a thread of this place, once it is its turn. Raises TooManyAtOnce, and as `work`."""
        await self._turn(owner)
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(owner)

    async def _turn(self, owner: Hashable) -> None:
        own = self._owners.setdefault(owner, _Owner())
        if self.running < self.threads and own.running < self.threads_own:  # then none of the principal's waits
            self._begin(own)
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

    def _begin(self, own: _Owner) -> None:
        own.running += 1
        self.running += 1

    def _end(self, owner: Hashable) -> None:
        self._owners[owner].running -= 1
        self.running -= 1
        self._forget_if_gone(owner)
        self._begin_next()

    def _begin_next(self) -> None:
        """Give a thread that has become free to the principal whose turn it is."""
        able = (each for each, own in self._owners.items() if own.waiting and own.running < self.threads_own)
        owner = next(able, None)
        if owner is None:
            return
        own = self._owners[owner]
        self._owners.move_to_end(owner)
        self._begin(own)
        own.waiting.popleft().set_result(None)

    def _forget_if_gone(self, owner: Hashable) -> None:
        if self._owners[owner].present == 0:
            del self._owners[owner]


class PlacesByName:
    """A place for each dataset, or for each role: made when one comes, forgotten when it is empty."""

    def __init__(self, name: str, *, waiting_max: int) -> None:
        self._name, self._waiting_max = name, waiting_max
        self._places: dict[str, Place] = {}

    async def run(self, which: str, owner: Hashable, work: Callable[[], T]) -> T:
        """Do a principal's work in the place of this name. Raises TooManyAtOnce, and as `work`."""
        place = self._places.setdefault(which, Place(self._name, waiting_max=self._waiting_max))
        try:
            return await place.run(owner, work)
        finally:
            if place.is_empty and self._places.get(which) is place:
                del self._places[which]


class Places:
    """All places of one event loop."""

    def __init__(self, bounds: PlaceBounds) -> None:
        waiting_max = bounds.waiting_max
        self.lookups = Place("the look-up of a key", threads=1)
        self.probes = Place("a probe", threads=1)
        self.pages = Place("a page", threads=2)
        self.rates = Place("the rate limit")
        self.owners = Place("the owner of a dataset")
        self.sign_ins = Place("a sign-in", waiting_max=waiting_max)
        self.bodies = Place("the reading of a body", waiting_max=bounds.queries_waiting_max)
        self.queries = Place("a query", waiting_max=bounds.queries_waiting_max)
        self.answers = Place("an answer")
        self.reads = PlacesByName("a read", waiting_max=waiting_max)
        self.acts = PlacesByName("an act on this dataset", waiting_max=waiting_max)
        self.long_acts = PlacesByName("an act on the records of this dataset", waiting_max=waiting_max)
        self.changes = Place("a change", waiting_max=waiting_max)


class PlacesOfLoops:
    """The places of an application: a server has one event loop, a test may have several one after the other."""

    def __init__(self, bounds: PlaceBounds | None = None) -> None:
        self.bounds = bounds or PlaceBounds()
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Places] = WeakKeyDictionary()

    def here(self) -> Places:
        """The places of the running event loop."""
        loop = asyncio.get_running_loop()
        return self._of_loop.get(loop) or self._of_loop.setdefault(loop, Places(self.bounds))
