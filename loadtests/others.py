"""The waits of others during an attack: an open loop, so that a silence of seconds counts as all that it delays.

Every `EVERY_S` each of a few requests is sent, whether or not those before it were answered, and waits are counted from
the instant at which it was due.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from loadtests.raw_http import Address, Cut, Wire

EVERY_S: Final = 0.05
WITHIN_S: Final = 60.0
_IDLE_S: Final = 2.0


@dataclass(kw_only=True)
class Waits:
    """The waits of one kind of request, and the statuses that it was told."""

    taken_s: list[float] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)

    def at(self, share: float) -> float:
        """The quantile, in seconds."""
        ordered = sorted(self.taken_s)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


@dataclass(kw_only=True)
class Others:
    """Asks each of `requests`, made from a number, until it is told to stop."""

    address: Address
    requests: Mapping[str, Callable[[int], bytes]]
    waits: dict[str, Waits] = field(default_factory=dict)
    _idle: list[tuple[float, Wire]] = field(default_factory=list)
    number: int = 0

    async def ask_until(self, is_over: asyncio.Event) -> dict[str, Waits]:
        """The waits by kind; those that are under way at the end are waited for."""
        self.waits = {name: Waits() for name in self.requests}
        async with asyncio.TaskGroup() as group:
            due_s = time.monotonic()
            while not is_over.is_set():
                for name in self.requests:
                    self.number += 1
                    group.create_task(self._ask(name, self.number, due_s))
                due_s += EVERY_S
                await asyncio.sleep(max(due_s - time.monotonic(), 0))
        return self.waits

    async def _ask(self, name: str, number: int, due_s: float) -> None:
        waits = self.waits[name]
        try:
            wire = self._kept() or await Wire.to(self.address)
            reply = await wire.ask(self.requests[name](number), within_s=WITHIN_S)
        except Cut:
            waits.told["cut"] += 1
        else:
            waits.told[str(reply.status)] += 1
            if reply.closes:
                wire.close()
            else:
                self._idle.append((time.monotonic(), wire))
        waits.taken_s.append(time.monotonic() - due_s)

    def _kept(self) -> Wire | None:
        while self._idle:
            since_s, wire = self._idle.pop()
            if time.monotonic() < since_s + _IDLE_S:
                return wire
            wire.close()
        return None
