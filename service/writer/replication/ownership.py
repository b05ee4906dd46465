"""Ownership of datasets: one process at a time works on a dataset, by a lease; the others forward to it.

With time slots, a dataset's requests follow one schedule. Two processes would have two schedules, and the lock of the
dataset's row would delay one process by the real duration of the other's work, which analysts could then measure.

The lease decides only which process works. Charges are right even if two processes do, because of the dataset's lock,
its fence and the conditions of an append. A process stops considering itself the owner before its lease can have
expired: it counts on a monotonic clock from before it sent the renewal, and subtracts `MARGIN_S`.
"""

import hmac
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from service.background import Background
from service.incidents import report_incident
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import Lease, ReplicaAddress
from service.ledger.ports.store import Leases, StoreUnavailable

LEASE_S: Final = 3.0
RENEWAL_EVERY_S: Final = 1.0
MARGIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Known:
    """The last known owner of a dataset, good until an instant of this process' clock."""

    replica: ReplicaAddress
    until: float


class Ownership(Background):
    """The leases of one process. Thread-safe; `step` renews or releases, and `open` starts a thread that steps."""

    def __init__(
        self, *, leases: Leases, replica: ReplicaAddress, pepper: Pepper, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin without leases; `clock` counts seconds and never goes back.

        `pepper` proves to other processes that this one is `replica`.
        """
        super().__init__()
        self.replica = replica
        self._leases, self._pepper, self._clock = leases, pepper, clock
        self._known: dict[int, _Known] = {}  # replaced, never changed in place: readers take no lock
        self._kept: frozenset[int] = frozenset()
        self._is_leaving = False
        self._moved: Callable[[Collection[int]], None] = lambda _: None
        self._lock = threading.Lock()

    def watch(self, moved: Callable[[Collection[int]], None]) -> None:
        """Have `moved` called with the datasets whose owner is another process, each time that the leases are read."""
        self._moved = moved

    # Owners

    def at_hand(self, dataset_id: int) -> ReplicaAddress | None:
        """The known owner; None when the store has to be asked. Touches no database."""
        known = self._known.get(dataset_id)
        return None if known is None or self._clock() >= known.until else known.replica

    def claim(self, dataset_id: int) -> ReplicaAddress:
        """The owner according to the store; it is this process if there was no other.

        Raises StoreUnavailable, and Unavailable when this process is leaving.
        """
        with self._lock:
            if self._is_leaving:
                raise Unavailable
            sent = self._clock()
            lease = self._leases.claim(dataset_id, self.replica, lease_s=LEASE_S)
            self._known = {**self._known, dataset_id: self._noted(lease, sent)}
        if lease.replica.id != self.replica.id:
            self._moved([dataset_id])
        return lease.replica

    def invalidate(self, dataset_id: int, owner: ReplicaAddress) -> None:
        """Forget that `owner` is the owner, because it cannot be reached or says that it is not."""
        with self._lock:
            known = self._known.get(dataset_id)
            if known is not None and known.replica.id == owner.id:
                self._known = {key: known for key, known in self._known.items() if key != dataset_id}

    def is_here(self, owner: ReplicaAddress) -> bool:
        """Tell whether the owner is this process."""
        return owner.id == self.replica.id

    def admits(self, dataset_id: int) -> bool:
        """Tell whether this process may work on a dataset: it is the owner, or was the owner when it began to leave."""
        owner = self.at_hand(dataset_id)
        return (owner is not None and self.is_here(owner)) or dataset_id in self._kept

    # What one process shows another

    def proof(self, challenge: bytes) -> bytes:
        """The answer to a challenge that only this process can give, as text."""
        return self._pepper.forwarding_proof(self.replica.id, challenge).hex().encode()

    def is_proof(self, replica: ReplicaAddress, challenge: bytes, proof: bytes) -> bool:
        """Tell whether the answer to a challenge was given by `replica`."""
        expected = self._pepper.forwarding_proof(replica.id, challenge).hex().encode()
        return hmac.compare_digest(expected, proof)

    def seal(self, replica: ReplicaAddress, request: bytes) -> bytes:
        """The seal of a request that this process sends to `replica`, as text."""
        return self._pepper.request_seal(replica.id, request).hex().encode()

    def is_seal(self, request: bytes, seal: bytes) -> bool:
        """Tell whether a request was sealed for this process by a process that has the pepper."""
        return hmac.compare_digest(self.seal(self.replica, request), seal)

    # The life of it

    def leave(self) -> None:
        """Take no new ownership, and have all leases released so that others take over. Signal handlers may call this.

        Requests that this process has accepted are still worked on. A signal handler may interrupt another call of
        `leave`. The inner call must not set the event again, or it would wait for the event's lock for ever.
        """
        if self._is_leaving:
            return
        self._kept = frozenset(key for key, known in self._known.items() if self.is_here(known.replica))
        self._is_leaving = True
        self._closed.set()

    def step(self) -> None:
        """Renew all leases and read those of others; when leaving, release all leases. Raises StoreUnavailable."""
        with self._lock:
            if self._is_leaving:
                self._known = {}
                self._leases.release(self.replica)
                return
            sent = self._clock()
            leases = self._leases.renew(self.replica, lease_s=LEASE_S)
            self._known = {lease.dataset_id: self._noted(lease, sent) for lease in leases}
        elsewhere = [lease.dataset_id for lease in leases if not self.is_here(lease.replica)]
        if elsewhere:
            self._moved(elsewhere)

    def open(self) -> None:
        """Start the thread that steps."""
        self._begin_thread(self._run, "ownership")

    def close(self) -> None:
        """Release all leases, and stop. A lease that the store does not release in time expires by itself."""
        self.leave()
        super().close()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closed.wait(RENEWAL_EVERY_S)
            try:
                self.step()
            except StoreUnavailable:
                continue  # what is neither renewed nor released expires
            except Exception as error:  # noqa: BLE001 - the thread must go on, or every lease would expire
                report_incident(error, "renewal of leases")

    def _noted(self, lease: Lease, sent: float) -> _Known:
        """The owner, known until its lease may expire: the store's clock began to count at `sent` or later."""
        left_s = LEASE_S - MARGIN_S if self.is_here(lease.replica) else lease.left_s
        return _Known(lease.replica, sent + left_s)
