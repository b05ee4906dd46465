"""The limit on a principal's requests: a token bucket that all replicas share, and one of this replica's own.

The limit is decided before any data are read, from principal, frequency and time alone. What the cache says of the
shared bucket may be wrong, so that it can neither lift the limit nor lock a principal out. This replica lets no
principal exceed the rate. If it has let in no request of a principal in the time that a bucket takes to fill, it lets
in the next one, whatever the cache says.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple
from uuid import UUID

from service.ledger.model.errors import RateLimited
from service.ledger.model.views import Principal
from service.ledger.ports.cache import Cache

BUCKETS_MAX: Final = 10_000
_ROUNDING_S: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The rate of requests for each principal: `per_s` a second, and up to `burst` at once."""

    per_s: int
    burst: int

    @property
    def filling_s(self) -> float:
        """The seconds that an empty bucket takes to fill."""
        return self.burst / self.per_s


class Limiter:
    """A limit that lets requests pass at a rate. Thread-safe."""

    def __init__(self, rate: Rate, cache: Cache, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with full buckets; `clock` counts seconds."""
        self._rate, self._cache, self._clock = rate, cache, clock
        self._buckets: dict[UUID, _Bucket] = {}
        self._lock = threading.Lock()

    def admit(self, principal: Principal) -> None:
        """Count a request of the principal. Raises RateLimited."""
        now = self._clock()
        before = self._take(principal.id, now)
        wait_s = self._cache.take(principal.id.hex, per_s=self._rate.per_s, burst=self._rate.burst)
        is_quiet = now - before.admitted_at >= self._rate.filling_s
        if wait_s is not None and wait_s > 0 and not is_quiet:
            self._give_back(principal.id, before)
            raise RateLimited(ceil(min(wait_s, self._rate.filling_s)))

    def _take(self, principal_id: UUID, now: float) -> "_Bucket":
        """Take a token of this replica's own bucket and return the bucket as it was before. Raises RateLimited."""
        with self._lock:
            if len(self._buckets) >= BUCKETS_MAX:
                quiet_since = now - self._rate.filling_s
                self._buckets = {each: it for each, it in self._buckets.items() if it.admitted_at > quiet_since}
            before = self._buckets.get(principal_id, _FULL)
            full_at = max(before.full_at, now) + 1 / self._rate.per_s
            wait_s = full_at - now - self._rate.filling_s
            if wait_s > _ROUNDING_S:
                raise RateLimited(ceil(wait_s))
            self._buckets[principal_id] = _Bucket(full_at, now)
            return before

    def _give_back(self, principal_id: UUID, before: "_Bucket") -> None:
        with self._lock:
            now = self._buckets.get(principal_id, _FULL)
            self._buckets[principal_id] = _Bucket(now.full_at - 1 / self._rate.per_s, before.admitted_at)


class _Bucket(NamedTuple):
    """The instants at which the bucket is full again and at which the principal was last let in."""

    full_at: float
    admitted_at: float


_FULL: Final = _Bucket(float("-inf"), float("-inf"))
