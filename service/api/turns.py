"""The turns in which requests begin: a few in each round of the event loop, principals one after the other.

A thousand connections that one principal opens together are a thousand requests in one round of the event loop, and all
other requests would wait for them. So only a few begin in each round, and the others wait here before any work. Each
round begins one request of every principal in turn. Three groups of requests share the turns of one principal each:
those with credentials that this process does not know, those without a credential, and probes.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final

BEGUN_MAX: Final = 4
"""How many requests begin in one round; the first steps of all of them take a few milliseconds."""

STRANGERS: Final = "strangers"
"""The principal of all credentials that this process does not know."""


class Turns:
    """Lets requests begin. Belongs to one event loop."""

    def __init__(self, *, begun_max: int = BEGUN_MAX) -> None:
        self._begun_max, self._begun = begun_max, 0
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # the next to begin first
        self._round: asyncio.Handle | None = None

    async def wait(self, owner_of: Callable[[], Hashable]) -> None:
        """Wait until a request may begin. `owner_of`, which gives its principal, is called only if it has to wait."""
        if self._round is None:
            self._round = asyncio.get_running_loop().call_soon(self._next_round)
        if self._begun < self._begun_max and not self._waiting:
            self._begun += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner_of(), deque()).append(turn)
        await turn

    def _next_round(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < self._begun_max:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                self._begun += 1
        self._round = asyncio.get_running_loop().call_soon(self._next_round) if self._begun else None
