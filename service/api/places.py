"""The places in which requests wait for a thread: one for each kind of work, with threads that no other kind can take.

Every hop to a thread names its place here; the default pool of the event loop's library is not used, because
through it each kind of work would wait for every other.

place         who waits there                                                       threads
lookups       credentials that are looked up, all that wait in one batch            1
probes        /readyz                                                               1
pages         files of the guide, and the pages until they are made                  2
rates         the counting of requests by a rate limit                              4
owners        forwarding: the look-up of a dataset and of its owner                 4
sign_ins      sign-ins by a key, and sign-outs                                      4
streams       the looks of event streams                                            4
providers     sign-ins by an identity provider                                      16
spools        uploads that are written to the disk as they come, and unpacked       4
bodies        bodies that are read off the event loop, by role                      4 for each role
queries       queries that are compiled and handed to their writer                  4
answers       large answers that are written after their release                    4
reads         reads, by role                                                        4 for each role
long_reads    summaries, forecasts and divergences, by dataset                      4 for each dataset
acts          acts on a dataset's records of accounts, by dataset                   4 for each dataset
long_acts     uploads, corrections and other acts beside the writer, by dataset     4 for each dataset
changes       acts that concern no dataset                                          4

Each role has its own places for reads and bodies, so that no analyst waits for work whose length depends on data.
Waiting takes no thread. In a place principals take turns. One principal's requests are worked on in half of the threads
at most, and `waiting_max` of them are there at once. Beyond that its next request is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from fastapi import Request

from service.api.lookups import Lookups
from service.api.place import Place, PlacesByName
from service.api.turns import Turns
from service.bounds import QUERIES_WAITING_MAX, STRANGERS_MAX, STREAMS_MAX, WAITING_MAX

PROVIDER_THREADS: Final = 16
"""More threads than elsewhere: an identity provider takes long, and a thread that waits for it takes nothing else."""

Kind = Literal["acts", "changes", "long_acts", "long_reads", "queries", "reads", "sign_ins"]

KINDS: Final[Mapping[str, Kind]] = {
    "append_rows": "long_acts",
    "archive_dataset": "long_acts",
    "ask_for_my_erasure": "acts",
    "correct_record": "long_acts",
    "create_individuals_keys": "long_acts",
    "delete_dataset": "long_acts",
    "end_my_pause": "acts",
    "erase_individual": "long_acts",
    "extend_dataset": "long_acts",
    "lower_my_limit": "acts",
    "open_epoch": "acts",
    "make_forecast": "long_reads",
    "preview": "queries",
    "preview_file": "long_acts",
    "read_budget_summary": "long_reads",
    "read_divergence": "long_reads",
    "sign_in": "sign_ins",
    "sign_out": "sign_ins",
}
"""The kind of an operation by its name.

Every other GET is one of the reads, every other operation one of the changes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBounds:
    """How many requests of one principal each place holds at most, waiting or under way."""

    waiting_max: int = WAITING_MAX
    queries_waiting_max: int = QUERIES_WAITING_MAX
    strangers_max: int = STRANGERS_MAX
    streams_max: int = STREAMS_MAX


class Places:
    """All places of one event loop."""

    def __init__(self, bounds: PlaceBounds) -> None:
        waiting_max = bounds.waiting_max
        self.turns = Turns()
        self.lookups = Lookups(Place("the look-up of a key", threads=1), strangers_max=bounds.strangers_max)
        self.probes = Place("a probe", threads=1)
        self.pages = Place("a page", threads=2)
        self.rates = Place("the rate limit")
        self.owners = Place("the owner of a dataset")
        self.sign_ins = Place("a sign-in", waiting_max=waiting_max)
        self.providers = Place("the identity provider", threads=PROVIDER_THREADS)
        self.streams = Place("the events of a dataset")
        self.spools = Place("an upload")
        self.bodies = PlacesByName("the reading of a body", waiting_max=bounds.queries_waiting_max)
        self.queries = Place("a query", waiting_max=bounds.queries_waiting_max)
        self.answers = Place("an answer")
        self.reads = PlacesByName("a read", waiting_max=waiting_max)
        self.long_reads = PlacesByName("a long read of this dataset", waiting_max=waiting_max)
        self.acts = PlacesByName("an act on this dataset", waiting_max=waiting_max)
        self.long_acts = PlacesByName("an act on the records of this dataset", waiting_max=waiting_max)
        self.changes = Place("a change", waiting_max=waiting_max)

    def of(self, kind: Kind, *, owner: Hashable, role: str, dataset: str) -> "Running":
        """Give the place of a principal's operation of this kind; `dataset` is empty where it concerns none."""
        place: Place | PlacesByName = getattr(self, kind)
        if isinstance(place, Place):
            return partial(place.run, owner)
        return partial(place.run, role if kind == "reads" else dataset, owner)


Running = Callable[[Callable[[], Any]], Awaitable[Any]]
"""A function that runs work in a place."""

_running: Final[ContextVar[Running]] = ContextVar("running")


def run_endpoint_by(running: Running) -> None:
    """Have `running` run the endpoint of the current request, if the endpoint is no coroutine."""
    _running.set(running)


def at_once(made: Callable[..., Any]) -> Callable[..., Any]:
    """A dependency as a coroutine that calls it in the event loop; for one that only combines values."""

    @wraps(made)
    async def making(**values: Any) -> Any:  # noqa: ANN401 - as it is made
        return made(**values)

    return making


def in_its_place(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """The endpoint as a coroutine that runs where `run_endpoint_by` says, not in the framework's default pool."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def placed(**values: Any) -> Any:  # noqa: ANN401 - as the endpoint
        return await _running.get()(partial(endpoint, **values))

    return placed


class PlacesOfLoops:
    """The places of an application, by event loop: a server has one loop, a test may have several in succession."""

    def __init__(self, bounds: PlaceBounds | None = None) -> None:
        self.bounds = bounds or PlaceBounds()
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Places] = WeakKeyDictionary()

    def here(self) -> Places:
        """The places of the running event loop."""
        loop = asyncio.get_running_loop()
        return self._of_loop.get(loop) or self._of_loop.setdefault(loop, Places(self.bounds))


def current_places(request: Request) -> Places:
    """The places in which the requests of this application wait for threads."""
    places: PlacesOfLoops = request.app.state.places
    return places.here()
