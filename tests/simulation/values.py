"""The cache of a world: it loses, delays, returns old values and exchanges values, by the seed.

It has rates and draws of its own, so that the runs of seeds without a cache do not change.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from service.store.redis.sealed import Item, Swap
from tests.memory.cache import MemoryKeyValueStore, MemoryServer
from tests.simulation.scheduler import Scheduler


class Liar:
    """The values that all replicas share, and the faults of the cache."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self.room = MemoryServer(clock_ns=lambda: 0)
        self.scheduler, self.random = scheduler, random
        self.rates = {
            name: random.choice([0.0, 0.0, 0.2, 0.6]) for name in ("lost", "old", "swapped", "flushed", "deaf")
        }
        self.before: dict[str, bytes] = {}
        self.counts: Counter[str] = Counter()

    def happens(self, what: str) -> bool:
        """Draw a fault by its rate, and count it."""
        if self.random.random() >= self.rates[what]:
            return False
        self.counts[what] += 1
        return True

    def heal(self) -> None:
        """End all faults; the stored values stay as they are."""
        self.rates = dict.fromkeys(self.rates, 0.0)


class FaultyKeyValueStore(MemoryKeyValueStore):
    """One replica's client of the shared values; other tasks may run during every call."""

    def __init__(self, liar: Liar) -> None:
        super().__init__(liar.room)
        self._liar = liar

    @property
    def has_messages(self) -> bool:
        """Tell whether a notice waits to be read."""
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
