"""The rate limit: a bucket shared by replicas, a local one beside it, and no trust in the cache."""

from uuid import UUID

import pytest

from service.ledger.model.errors import RateLimited
from service.ledger.model.views import Principal
from service.ledger.ports.cache import NoCache
from service.store.redis.sealed import SealedCache
from service.writer.admission.rate_limit import BUCKETS_MAX, Limiter, Rate
from tests.memory.cache import MemoryKeyValueStore, MemoryServer

RATE = Rate(per_s=10, burst=5)


class Clock:
    """A clock that stands until the test moves it; for local buckets and those in the cache alike."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def seconds(self) -> float:
        return self.now_s

    def nanoseconds(self) -> int:
        return round(self.now_s * 1e9)


class Stubborn(NoCache):
    """A cache that refuses every request, for the longest time it can state."""

    def take(self, bucket: str, *, per_s: int, burst: int) -> float | None:
        return 1e9


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


def principal(number: int = 1) -> Principal:
    """A principal."""
    return Principal(
        id=UUID(int=number), role="analyst", name="ana", dataset=None, individual=None, allowance_units=None
    )


def admitted(limiter: Limiter, count: int, who: Principal | None = None) -> int:
    """The number of requests let in, of so many."""
    passed = 0
    for _ in range(count):
        try:
            limiter.admit(who or principal())
        except RateLimited:
            continue
        passed += 1
    return passed


def test_a_burst_passes_and_then_the_rate(clock: Clock) -> None:
    """Five at once, then ten a second, for each principal."""
    limiter = Limiter(RATE, NoCache(), clock=clock.seconds)
    assert admitted(limiter, 20) == 5
    assert admitted(limiter, 20, principal(2)) == 5
    for _ in range(30):
        clock.now_s += 0.1
        assert admitted(limiter, 3) == 1
    clock.now_s += 3600
    assert admitted(limiter, 20) == 5


def test_replicas_share_a_bucket(clock: Clock) -> None:
    """Alternating between replicas admits as many as one does, plus at most one at each whenever a bucket fills."""
    room = MemoryServer(clock.nanoseconds)
    limiters = [Limiter(RATE, SealedCache(MemoryKeyValueStore(room), bytes(32)), clock=clock.seconds) for _ in range(2)]
    assert sum(admitted(limiters[n % 2], 1) for n in range(40)) == 5
    passed = 0
    for n in range(100):
        clock.now_s += 0.05
        passed += admitted(limiters[n % 2], 1)
    assert 49 <= passed <= 50 + 2 * 5 / RATE.filling_s


def test_a_quiet_principal_is_let_in_against_the_cache(clock: Clock) -> None:
    """A hostile cache can only slow requests down: one at once, and one more whenever a bucket fills."""
    limiter = Limiter(RATE, Stubborn(), clock=clock.seconds)
    for _ in range(10):
        assert admitted(limiter, 4) == 1
        clock.now_s += RATE.filling_s


def test_a_generous_cache_does_not_raise_the_rate(clock: Clock) -> None:
    """A cache flushed between any two requests forgets everything."""
    room = MemoryServer(clock.nanoseconds)
    limiter = Limiter(RATE, SealedCache(MemoryKeyValueStore(room), bytes(32)), clock=clock.seconds)
    passed = 0
    for _ in range(100):
        room.buckets.clear()
        passed += admitted(limiter, 1)
    assert passed == 5


def test_the_wait_is_stated_in_whole_seconds_and_is_bounded(clock: Clock) -> None:
    """The bound is the time that a bucket takes to fill, whichever bucket refuses."""
    slow = Rate(per_s=1, burst=3)
    for cache in (NoCache(), Stubborn()):
        limiter = Limiter(slow, cache, clock=clock.seconds)
        admitted(limiter, 3)
        with pytest.raises(RateLimited) as refused:
            limiter.admit(principal())
        assert refused.value.retry_after_s in {1, 2, 3}
    assert RateLimited(0).retry_after_s == 1


def test_full_buckets_are_forgotten(clock: Clock) -> None:
    """A full bucket equals a new one, so it is dropped."""
    limiter = Limiter(RATE, NoCache(), clock=clock.seconds)
    for number in range(BUCKETS_MAX):
        limiter.admit(principal(number))
    clock.now_s += 1
    limiter.admit(principal())
    assert len(limiter._buckets) == 1
