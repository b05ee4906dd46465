"""Leases on datasets in one process's memory: the twin of `service.store.postgres.leases`."""

import threading
import time
from collections.abc import Callable

from service.workflows.model.rows import Lease, ReplicaAddress


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
            if holder.id == replica.id or until <= now:
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
        return [lease for lease in leases if lease.left_s > 0]

    def release(self, replica: ReplicaAddress) -> None:
        with self._lock:
            for dataset_id, (holder, until) in self._held.items():
                if holder.id == replica.id:
                    self._held[dataset_id] = replica, min(until, self._clock())
