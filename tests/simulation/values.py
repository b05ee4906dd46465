"""The cache of a world: it loses, delays, keeps old values and puts them in each other's places, by the seed.

Rates and draws are its own, so that a seed without a cache stays the run that it was.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

from service.store.redis.sealed import Item, Swap
from service.testing.cache import MemoryKeyValueStore, MemoryServer
from tests.simulation.scheduler import Scheduler


class Liar:
    """What the shelves of all replicas have in common, and how it misbehaves."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self.room = MemoryServer(clock_ns=lambda: 0)
        self.scheduler, self.random = scheduler, random
        self.rates = {
            name: random.choice([0.0, 0.0, 0.2, 0.6]) for name in ("lost", "old", "swapped", "flushed", "deaf")
        }
        self.before: dict[str, bytes] = {}
        self.counts: Counter[str] = Counter()

    def happens(self, what: str) -> bool:
        """Draw it by its rate, and count it."""
        if self.random.random() >= self.rates[what]:
            return False
        self.counts[what] += 1
        return True

    def heal(self) -> None:
        """It behaves from now on; what it holds stays as it is."""
        self.rates = dict.fromkeys(self.rates, 0.0)


class LyingShelf(MemoryKeyValueStore):
    """One replica's way to it; every call is a journey on which others may overtake."""

    def __init__(self, liar: Liar) -> None:
        super().__init__(liar.room)
        self._liar = liar

    @property
    def has_news(self) -> bool:
        """Whether a message waits."""
        return self._heard is not None and not self._heard.empty()

    def get(self, names: Sequence[str]) -> list[object]:
        liar = self._liar
        liar.scheduler.pause()
        if liar.happens("lost"):
            return []
        held = super().get(names)
        if liar.happens("old"):
            held = [liar.before.get(name, value) for name, value in zip(names, held, strict=True)]
        if liar.happens("swapped") and liar.room.values:
            anything = sorted(liar.room.values)
            held = [liar.room.values[liar.random.choice(anything)] for _ in names]
        liar.counts["found"] += any(value is not None for value in held)
        return held

    def put(self, items: Sequence[Item], swaps: Sequence[Swap], messages: Sequence[bytes]) -> None:
        liar = self._liar
        liar.scheduler.pause()
        if liar.happens("flushed"):
            liar.before = dict(liar.room.values)
            liar.room.values.clear()
        if not liar.happens("lost"):
            super().put(items, swaps, [] if liar.happens("deaf") else messages)
        liar.scheduler.pause()


class SteppedThreads(Executor):
    """Threads that are tasks of the world."""

    def __init__(self, scheduler: Scheduler, place: str) -> None:
        self._scheduler, self._place = scheduler, place

    def submit(self, run: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        self._scheduler.spawn(f"{self._place} recalls", self._place, lambda: run(*arguments, **named))
        return Future()
