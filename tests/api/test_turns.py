"""Turns: a crowd of one principal's requests begins a few in a round of the event loop, and others begin between."""

import asyncio
from collections.abc import Hashable

from service.api.turns import Turns


class Crowd:
    """Requests that note in which round of the event loop they began."""

    def __init__(self, *, begun_max: int) -> None:
        self.turns, self.round = Turns(begun_max=begun_max), 0
        self.begun: list[tuple[int, Hashable]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def come(self, owner: Hashable, number: int) -> list["asyncio.Task[None]"]:
        """Begin `number` requests of one principal at once."""
        came = [asyncio.create_task(self._begin(owner)) for _ in range(number)]
        self.tasks += came
        return came

    async def _begin(self, owner: Hashable) -> None:
        await self.turns.wait(lambda: owner)
        self.begun.append((self.round, owner))

    async def pass_rounds(self, number: int) -> None:
        """Let the event loop go on for so many rounds."""
        for _ in range(number):
            await asyncio.sleep(0)
            self.round += 1

    async def pass_all(self) -> list[Hashable]:
        """All have begun; the order in which they did."""
        while not all(task.done() for task in self.tasks):
            await self.pass_rounds(1)
        return [owner for _, owner in self.begun]


async def test_a_round_begins_so_many_at_most() -> None:
    """The rest waits."""
    crowd = Crowd(begun_max=3)
    crowd.come("crowd", 20)
    await crowd.pass_all()
    in_rounds = [round_ for round_, _ in crowd.begun]
    assert max(map(in_rounds.count, in_rounds)) == 3


async def test_anothers_request_begins_in_the_next_turn() -> None:
    """However many of the crowd came before it: two rounds pass until it asks, and one more."""
    crowd = Crowd(begun_max=2)
    crowd.come("crowd", 100)
    await crowd.pass_rounds(3)
    before = len(crowd.begun)
    crowd.come("other", 1)
    order = await crowd.pass_all()
    assert order.index("other") - before <= 3 * 2
    assert order.count("crowd") == 100


async def test_principals_take_turns() -> None:
    """One that came first has no more of them."""
    crowd = Crowd(begun_max=1)
    for owner in "abc":
        crowd.come(owner, 3)
    order = await crowd.pass_all()
    assert order == ["a", *"abc", *"abc", *"bc"]


async def test_what_comes_alone_does_not_wait() -> None:
    """No round passes before it begins, and no principal is asked for."""
    turns = Turns(begun_max=2)
    for _ in range(5):
        waiting = turns.wait(_never_asked)
        try:
            waiting.send(None)
        except StopIteration:
            await asyncio.sleep(0)
        else:
            raise AssertionError("it waits")


async def test_a_request_that_was_cancelled_takes_no_turn() -> None:
    """Those behind it begin."""
    crowd = Crowd(begun_max=1)
    first, gone, last = crowd.come("a", 3)
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([first, gone, last])
    assert [len(crowd.begun), gone.cancelled(), last.cancelled()] == [2, True, False]


def _never_asked() -> Hashable:
    raise AssertionError("asked for its principal")
