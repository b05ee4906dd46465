"""Many connections at once: analysts that ask all kinds of things, think for a moment, and sometimes go away."""

import heapq
import json
import random
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loadtests.wires import PeerConnection, Reply

THINKS_S = 0.02
GOES = 0.03
GOES_WITHIN_S = 0.03

Ask = Callable[[PeerConnection, str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer: what was asked, and the instants of the monotonic clock between which it was under way."""

    kind: str
    key: str
    answer: Reply
    sent_ns: int
    heard_ns: int

    @property
    def document(self) -> Any:
        """The body."""
        return json.loads(self.answer.body)


@dataclass(slots=True)
class _Asker:
    wire: PeerConnection
    kind: str = ""
    key: str = ""
    sent_ns: int = 0
    goes_at_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Crowd:
    """Connections to one server, with the keys of several analysts."""

    url: str
    keys: list[str]
    connections: int
    source: random.Random
    heard: list[Heard] = field(default_factory=list)
    gone: int = 0
    _asked: int = 0

    def ask(self, count: int, kinds: dict[str, Ask]) -> None:
        """Ask until so many requests have been sent, and wait for all answers."""
        askers = [_Asker(PeerConnection(self.url, self.keys[n % len(self.keys)])) for n in range(self.connections)]
        try:
            self._ask(count, kinds, askers)
        finally:
            for asker in askers:
                asker.wire.close()

    def _ask(self, count: int, kinds: dict[str, Ask], askers: list[_Asker]) -> None:
        ready = [(time.monotonic(), n) for n in range(len(askers))]
        with selectors.DefaultSelector() as selector:
            while (ready and self._asked < count) or selector.get_map():
                while ready and self._asked < count and ready[0][0] <= time.monotonic():
                    number = heapq.heappop(ready)[1]
                    self._send(askers[number], kinds)
                    selector.register(askers[number].wire, selectors.EVENT_READ, number)
                for key, _ in selector.select(0.002):
                    self._hear(askers[key.data], key.data, selector, ready)
                for number in [key.data for key in selector.get_map().values()]:
                    self._go(askers[number], number, selector, ready)

    def _send(self, asker: _Asker, kinds: dict[str, Ask]) -> None:
        asker.kind = self.source.choice(list(kinds))
        self._asked += 1
        asker.key = f"k{self._asked}"
        request = kinds[asker.kind](asker.wire, asker.key)
        goes = self.source.random() < GOES
        asker.wire.refresh()
        asker.sent_ns = time.monotonic_ns()
        asker.wire.begin(request)
        asker.goes_at_s = time.monotonic() + self.source.uniform(0, GOES_WITHIN_S) if goes else None

    def _hear(
        self, asker: _Asker, number: int, selector: selectors.BaseSelector, ready: list[tuple[float, int]]
    ) -> None:
        answer = asker.wire.advance()
        if answer is not None:
            self.heard.append(
                Heard(
                    kind=asker.kind, key=asker.key, answer=answer, sent_ns=asker.sent_ns, heard_ns=time.monotonic_ns()
                )
            )
            selector.unregister(asker.wire)
            heapq.heappush(ready, (time.monotonic() + self.source.uniform(0, THINKS_S), number))

    def _go(self, asker: _Asker, number: int, selector: selectors.BaseSelector, ready: list[tuple[float, int]]) -> None:
        if asker.goes_at_s is not None and asker.goes_at_s <= time.monotonic():
            selector.unregister(asker.wire)
            asker.wire.reconnect()
            self.gone += 1
            heapq.heappush(ready, (time.monotonic() + self.source.uniform(0, THINKS_S), number))
