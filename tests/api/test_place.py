"""Places: threads for one kind of work, fair between principals, and bounded for each."""

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from service.api.place import Place, PlacesByName
from service.ledger.model.errors import TooManyAtOnce
from tests.waiting import PATIENCE_S, settled


def waiting_in(place: Place) -> int:
    """How many requests wait for a thread."""
    return sum(len(owner.waiting) for owner in place._owners.values())


class Work:
    """Works that wait in their threads for a gate, and note that they have begun."""

    def __init__(self) -> None:
        self.gate, self.begun = Event(), list[str]()

    def of(self, owner: str) -> Callable[[], None]:
        """The work of one."""

        def work() -> None:
            self.begun.append(owner)
            self.gate.wait(30)  # in a failed test too

        return work


async def test_one_principal_is_worked_on_in_half_of_the_threads_and_others_find_one_at_once() -> None:
    """Its other requests wait in the event loop, where they hold no thread."""
    place, work = Place("a test", threads=4), Work()
    crowd = [asyncio.create_task(place.run("crowd", work.of("crowd"))) for _ in range(10)]
    await settled()
    assert (place.running, waiting_in(place)) == (2, 8)
    assert await place.run("other", lambda: "done") == "done"
    work.gate.set()
    await asyncio.gather(*crowd)
    assert place.is_empty


async def test_strangers_share_a_turn() -> None:
    """They have no id: all of them are one owner, None, whose requests wait and go on like those of others."""
    place, work = Place("a test", threads=2), Work()
    first = asyncio.create_task(place.run(None, work.of("first")))
    await settled()
    others = [asyncio.create_task(place.run(None, work.of("other"))) for _ in range(3)]
    await settled()
    assert (place.running, waiting_in(place)) == (1, 3)
    work.gate.set()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(first, *others)
    assert place.is_empty


async def test_principals_take_turns() -> None:
    """A principal that comes after a crowd waits for one of its requests, and not for all."""
    place, work, order = Place("a test", threads=1), Work(), list[str]()
    first = asyncio.create_task(place.run("crowd", work.of("crowd")))
    await settled()
    crowd = [asyncio.create_task(place.run("crowd", lambda: order.append("crowd"))) for _ in range(3)]
    await settled()
    other = asyncio.create_task(place.run("other", lambda: order.append("other")))
    await settled()
    work.gate.set()
    await asyncio.gather(first, other, *crowd)
    assert order == ["crowd", "other", "crowd", "crowd"]


async def test_beyond_its_bound_a_principal_is_refused_in_words_and_another_is_not() -> None:
    """Requests that wait are worked on all the same."""
    place, work = Place("a test", threads=2, waiting_max=3), Work()
    crowd = [asyncio.create_task(place.run("crowd", work.of("crowd"))) for _ in range(3)]
    await settled()
    refused = asyncio.create_task(place.run("crowd", work.of("crowd")))
    await settled()
    other = asyncio.create_task(place.run("other", lambda: "done"))
    work.gate.set()
    await asyncio.gather(*crowd)
    with pytest.raises(TooManyAtOnce, match="At most 3 requests with one key may wait at once for a test"):
        await refused
    assert await other == "done"
    assert (work.begun, place.is_empty) == (["crowd"] * 3, True)


async def test_a_request_that_goes_gives_its_turn_back() -> None:
    """Before its turn has come, and at the moment at which it comes."""
    place, work = Place("a test", threads=1), Work()
    first = asyncio.create_task(place.run("one", work.of("one")))
    await settled()
    waits, comes = (asyncio.create_task(place.run(name, lambda: None)) for name in ("waits", "comes"))
    await settled()
    waits.cancel()
    await settled()
    assert (place.running, waiting_in(place)) == (1, 1)
    work.gate.set()
    await first  # and the turn of the next has come, whose task has not gone on yet
    comes.cancel()
    await asyncio.gather(waits, comes, return_exceptions=True)
    assert place.is_empty
    assert await place.run("other", lambda: "done") == "done"


async def test_an_error_leaves_the_place() -> None:
    """It is the caller's."""
    place = Place("a test")
    with pytest.raises(ZeroDivisionError):
        await place.run("one", lambda: 1 / 0)
    assert place.is_empty


async def test_a_full_place_of_one_name_is_not_felt_in_another() -> None:
    """Such as that of a dataset whose upload takes long."""
    places, work = PlacesByName("a test", waiting_max=100), Work()
    crowd = [asyncio.create_task(places.run("long", str(each), work.of("long"))) for each in range(45)]
    await settled()
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await places.run("other", "crowd", lambda: "done") == "done"
    finally:
        work.gate.set()
        await asyncio.gather(*crowd)
    assert places._places == {}  # nothing is kept of names without requests
