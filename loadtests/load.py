"""A load of keep-alive connections with almost no client cost, so that two cores measure the server and not its client.

An ordinary HTTP client takes two milliseconds of processor time a request, which is more than the measured endpoint
takes. This one writes prepared bytes and reads as far as Content-Length says.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast
from urllib.parse import urlsplit

import uvloop

Body = Callable[[int], bytes]
"""The function that gives the body of the n-th request."""


class Refused(Exception):
    """The server did not answer 200. A benchmark of refusals would be fast and worthless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of a server and the bytes to send."""

    url: str
    headers: Mapping[str, str]
    body: Body


def load(*targets: Target, connections: int, seconds: float) -> list[float]:
    """Keep `connections` busy for `seconds`, each with one request after the other.

    Returns the seconds of every request. The targets take turns at the connections.
    """
    return uvloop.run(_load(targets, connections, seconds))


async def _load(targets: Sequence[Target], connections: int, seconds: float) -> list[float]:
    until = time.perf_counter() + seconds
    askers = [_Asker(targets[number % len(targets)], until, number) for number in range(connections)]
    loop = asyncio.get_running_loop()
    for number, asker in enumerate(askers):
        parts = urlsplit(targets[number % len(targets)].url)
        await loop.create_connection(partial(_Asker.itself, asker), parts.hostname or "", parts.port or 80)
    for asker in askers:
        asker.ask()
    await asyncio.gather(*(asker.ended for asker in askers))
    return [duration for asker in askers for duration in asker.durations]


class _Asker(asyncio.Protocol):
    """One connection that sends the next request when the response to the last one has come."""

    def __init__(self, target: Target, until: float, number: int) -> None:
        parts = urlsplit(target.url)
        fixed = {"Host": parts.netloc, "Content-Type": "application/json", **target.headers}
        lines = [f"POST {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fixed.items())]
        self._head = "\r\n".join(lines).encode()
        self._body, self._until, self._place = target.body, until, number * 1_000_003
        self._started, self._buffer = 0.0, b""
        self.durations: list[float] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def itself(self) -> "_Asker":
        """A factory of protocols for an event loop."""
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self) -> None:
        """Send one request with a new idempotency key."""
        self._place += 1
        body, key = self._body(self._place), os.urandom(12).hex()
        self._started = time.perf_counter()
        self._transport.write(
            b"%b\r\nIdempotency-Key: %b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, key.encode(), len(body), body)
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        at = head.lower().index(b"content-length:") + len(b"content-length:")
        if len(rest) < int(head[at:].split(b"\r\n", 1)[0]):
            return
        self._buffer = b""
        now = time.perf_counter()
        if not head.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(Refused(head.partition(b"\r\n")[0].decode() + " " + rest.decode()[:200]))
        elif now < self._until:
            self.durations.append(now - self._started)
            self.ask()
        else:
            self._transport.close()
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or Refused("the server closed the connection"))
