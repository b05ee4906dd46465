"""The waits of others during an attack, in an open loop: a silence of seconds counts for every request that it delays.

Every `EVERY_S` each of a few requests is sent, even if those before it are not answered yet. A wait is counted from the
instant at which its request was due. The requests are sent from another process, which the attacker's work does not
delay.
"""

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Final

import uvloop

from loadtests.raw_http import Address, Cut, Wire

NUMBER: Final = b"{number}"
"""The place in a request where its number is put."""
EVERY_S: Final = 0.05
WITHIN_S: Final = 60.0
_IDLE_S: Final = 2.0


@dataclass(kw_only=True)
class Waits:
    """The waits of one kind of request, and the statuses of the replies."""

    taken_s: list[float] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)

    def at(self, share: float) -> float:
        """The quantile at this share, in seconds."""
        ordered = sorted(self.taken_s)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


@dataclass(kw_only=True)
class Others:
    """Sends each of `requests` until it is told to stop. `number` is the number of the last request sent."""

    address: Address
    requests: Mapping[str, bytes]
    number: int = 0
    waits: dict[str, Waits] = field(default_factory=dict)
    _idle: list[tuple[float, Wire]] = field(default_factory=list)

    async def ask_until(self, is_over: Event) -> dict[str, Waits]:
        """The waits by kind. Requests that are under way at the end are waited for."""
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
            reply = await wire.ask(self.requests[name].replace(NUMBER, b"%d" % number), within_s=WITHIN_S)
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


@contextmanager
def asked(others: Others) -> Iterator[dict[str, Waits]]:
    """Send requests from another process during the block. The waits are in the mapping after it."""
    context = multiprocessing.get_context("spawn")
    has_begun, is_over = context.Event(), context.Event()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_ask, args=(others, has_begun, is_over, theirs))
    process.start()
    waits: dict[str, Waits] = {}
    try:
        if not has_begun.wait(60):
            raise RuntimeError("others did not begin to ask")
        yield waits
        is_over.set()
        waits.update(ours.recv())
    finally:
        is_over.set()
        process.join(2 * WITHIN_S)


def _ask(others: Others, has_begun: Event, is_over: Event, told: Connection) -> None:
    has_begun.set()
    told.send(uvloop.run(others.ask_until(is_over)))
