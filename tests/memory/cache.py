"""A key-value store in one process's memory: Redis's twin. Any number of caches may share one `MemoryServer`.

Leases on datasets in one process's memory: the twin of `service.store.postgres.leases`.

The witness's twin in one process's memory: the same contract, nothing durable.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from service.ledger.model.rows import Lease, ReplicaAddress, WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.redis.sealed import Item, Seal, Swap

_MESSAGES_MAX: Final = 1024


class MemoryServer:
    """The state that several key-value stores of one process have in common. Thread-safe."""

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """`clock_ns` times the buckets."""
        self.values: dict[str, bytes] = {}
        self.buckets: dict[str, int] = {}
        self.listeners: list[queue.Queue[object]] = []
        self.clock_ns = clock_ns
        self.door = threading.Lock()


class MemoryKeyValueStore:
    """The key-value store of one cache."""

    def __init__(self, room: MemoryServer) -> None:
        self._room = room
        self._heard: queue.Queue[object] | None = None

    def get(self, names: Sequence[str]) -> list[object]:
        with self._room.door:
            return [self._room.values.get(name) for name in names]

    def put(self, items: Sequence[Item], swaps: Sequence[Swap], messages: Sequence[bytes]) -> None:
        with self._room.door:
            self._room.values.update(items)
            for name, stamp, value in swaps:
                held = self._room.values.get(name)
                if held is None or Seal.stamp(held) == stamp:
                    self._room.values[name] = value
            for listener in self._room.listeners:
                for message in messages:
                    if not listener.full():
                        listener.put_nowait(message)

    def audience(self) -> int:
        with self._room.door:
            return len(self._room.listeners)

    def listen(self, *, within_s: float) -> list[object]:
        if self._heard is None:
            self._heard = queue.Queue(_MESSAGES_MAX)
            with self._room.door:
                self._room.listeners.append(self._heard)
        try:
            messages = [self._heard.get(timeout=within_s)]
        except queue.Empty:
            return []
        while not self._heard.empty():
            messages.append(self._heard.get_nowait())
        return messages

    def take(self, name: str, *, interval_us: int, burst: int) -> object:
        with self._room.door:
            now_us = self._room.clock_ns() // 1000
            full_at_us = max(self._room.buckets.get(name, 0), now_us) + interval_us
            wait_us = full_at_us - now_us - burst * interval_us
            if wait_us > 0:
                return wait_us
            self._room.buckets[name] = full_at_us
            return 0

    def close(self) -> None:
        with self._room.door:
            if self._heard in self._room.listeners:
                self._room.listeners.remove(self._heard)


class MemoryLeases:
    """The port's Leases, by a clock that counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[int, tuple[ReplicaAddress, float]] = {}
        self._lock = threading.Lock()

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        with self._lock:
            now = self._clock()
            holder, until = self._held.get(dataset_id, (replica, now))
            if holder.id == replica.id or not now < until <= now + 2 * lease_s:
                holder, until = self._held[dataset_id] = replica, now + lease_s
            return Lease(dataset_id=dataset_id, replica=holder, left_s=until - now)

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        with self._lock:
            now = self._clock()
            for dataset_id, (holder, _) in self._held.items():
                if holder.id == replica.id:
                    self._held[dataset_id] = replica, now + lease_s
            leases = [
                Lease(dataset_id=key, replica=each, left_s=until - now) for key, (each, until) in self._held.items()
            ]
        return [lease for lease in leases if 0 < lease.left_s <= 2 * lease_s]

    def release(self, replica: ReplicaAddress) -> None:
        with self._lock:
            for dataset_id, (holder, until) in self._held.items():
                if holder.id == replica.id:
                    self._held[dataset_id] = replica, min(until, self._clock())


class MemoryWitness:
    """The port's Witness."""

    def __init__(self) -> None:
        self.kept: dict[str, list[WitnessRecord]] = {}
        self.is_gone = False
        self._lock = threading.Lock()

    def check(self) -> None:
        if self.is_gone:
            raise WitnessUnavailable("ENOENT")

    def history(self, dataset: str) -> list[WitnessRecord]:
        with self._lock:
            return list(self.kept.get(dataset, ()))

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self.kept)

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        with self._lock:
            records = self.kept.setdefault(dataset, [])
            before = records[-1] if records else None
            if before is None or before.position < record.position:
                records.append(record)
            return before

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        return partial(self.write, dataset, record)
