"""A Redis that is dead, hostile or flushed counts as empty, is left alone for a while, and never raises."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from service.ledger.ports.cache import SharedEntry
from service.store.redis.client import LIFETIME_S, REST_S, RedisKeyValueStore
from service.store.redis.sealed import SealedCache
from tests.contracts.caches import GENESIS, KEY, account_slice, caches, chain, notice, shared_summary
from tests.contracts.stores import ANALYST
from tests.faults.meddling import OwnValkey

ADDRESS = ANALYST, "key-1"
NOWHERE = "unix:///nowhere/redis.sock"


@pytest.fixture
def cache(redis_url: str) -> Iterator[SealedCache]:
    """A cache before an empty server."""
    with caches(redis_url) as make:
        yield make()


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis"]:
    """Another client of the same server."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def fill(cache: SealedCache) -> None:
    """One value of each kind, and a bucket."""
    cache.share([shared_summary(), SharedEntry(genesis=GENESIS, entry=chain(1)[0]), account_slice(5)], [notice(1)])
    assert cache.take("somebody", per_s=1, burst=5) == 0


def held(server: "redis.Redis", name: str | bytes) -> bytes:
    """The stored value."""
    value = server.get(name)
    assert isinstance(value, bytes)
    return value


def knows(cache: SealedCache) -> list[bool]:
    """Tell whether the cache has the summary, the entry and the slice."""
    return [
        cache.summary(GENESIS) is not None,
        cache.entries(GENESIS, after=0, to=1) != [],
        cache.slices(GENESIS, [0]) != [],
    ]


def test_a_server_that_is_away_is_asked_once_and_then_left_alone(redis_url: str) -> None:
    """Until it has rested; a fault of one kind of query spares the others the wait."""
    clock = [100.0]
    with closing(SealedCache(RedisKeyValueStore(NOWHERE, timeout_s=0.05, clock=lambda: clock[0]), KEY)) as cache:
        assert cache.summary(GENESIS) is None
        values: RedisKeyValueStore = cache._values  # type: ignore[assignment]
        values._client = redis.Redis.from_url(redis_url)  # it is back
        assert (cache.take("b", per_s=1, burst=1), cache.audience()) == (None, 0)
        cache.share([shared_summary()], [])
        clock[0] += REST_S
        assert cache.summary(GENESIS) is None
        shared = shared_summary()
        cache.share([shared], [])
        assert cache.summary(GENESIS) == shared
        values._client.close()


def test_everything_is_unknown_where_no_server_answers() -> None:
    """No method raises."""
    with closing(
        SealedCache(RedisKeyValueStore(NOWHERE, timeout_s=0.05, clock=iter(range(1000)).__next__), KEY)
    ) as cache:
        cache.share([shared_summary()], [notice(1)])
        assert knows(cache) == [False, False, False]
        assert cache.take("b", per_s=1, burst=1) is None
        assert (cache.audience(), cache.listen(within_s=0.01)) == (0, [])


def test_nothing_lies_there_for_ever(cache: SealedCache, server: "redis.Redis") -> None:
    """So that a server with little memory may throw it away before it throws away a witness."""
    fill(cache)
    names = server.keys("*")
    assert len(names) == 4
    assert all(0 < server.ttl(name) <= LIFETIME_S for name in names)


def test_nothing_of_it_can_be_read(cache: SealedCache, server: "redis.Redis") -> None:
    """Neither in a name nor in a value: no principal, key, body, genesis or number."""
    canaries = [ANALYST.hex.encode(), str(ANALYST).encode(), b"canary", GENESIS.hex().encode(), GENESIS, b"values"]
    cache.share([shared_summary(b'{"values":["canary"]}')], [])
    fill(cache)
    for name in server.keys("*"):
        value = held(server, name)
        for canary in canaries:
            assert canary not in name
            assert canary not in value


@pytest.mark.parametrize("value", [b"", b"x", b"9" * 60, b"\xff" * 700, b"0" * 100_000])
def test_forged_values_are_unknown(cache: SealedCache, server: "redis.Redis", value: bytes) -> None:
    """A value that no replica has put there is not read; one shared anew is."""
    fill(cache)
    for name in server.keys("*"):
        server.set(name, value)
    assert knows(cache) == [False, False, False]
    assert cache.take("somebody", per_s=1, burst=5) in {0, 5.0}
    cache.share([shared_summary(), SharedEntry(genesis=GENESIS, entry=chain(1)[0])], [])
    assert knows(cache)[:2] == [True, True]


def test_values_that_changed_places_are_unknown(cache: SealedCache, server: "redis.Redis") -> None:
    """Each is bound to its own place: of another kind, another sequence, another slice."""
    first, second = chain(2)
    cache.share([shared_summary(), account_slice(5), account_slice(5, number=1)], [])
    cache.share([SharedEntry(genesis=GENESIS, entry=each) for each in (first, second)], [])
    names = server.keys("*")
    values = [held(server, name) for name in names]
    for name, value in zip(names, values[1:] + values[:1], strict=True):
        server.set(name, value)
    assert cache.summary(GENESIS) is None
    assert cache.entries(GENESIS, after=0, to=2) == []
    assert cache.slices(GENESIS, [0, 1]) == []


def test_keys_of_another_kind_affect_no_other(cache: SealedCache, server: "redis.Redis") -> None:
    """They are overwritten, or passed over."""
    fill(cache)
    for name in server.keys("*"):
        server.delete(name)
        server.rpush(name, "x")
    assert knows(cache) == [False, False, False]
    fill(cache)
    assert knows(cache) == [True, True, True]


def test_a_server_of_another_pepper_is_a_stranger(cache: SealedCache, redis_url: str) -> None:
    """It finds nothing, and is not understood."""
    fill(cache)
    with caches(redis_url, key=b"x" * 32) as make:
        stranger = make()
        assert knows(stranger) == [False, False, False]
        cache.listen(within_s=0.01)
        stranger.share([], [notice(7)])
        cache.share([], [notice(8)])
        assert [each.seq for each in cache.listen(within_s=30)] in ([], [8])


def test_a_server_that_sends_byte_by_byte_is_not_waited_for(tmp_path: Path) -> None:
    """The time-out is for the whole reply: a value of a thousand bytes would take twenty seconds."""
    server = OwnValkey(tmp_path)
    server.start()
    with caches(server.url) as make, caches(server.url, timeout_s=0.2) as make_hasty:
        cache, hasty = make(), make_hasty()
        cache.share([shared_summary()], [])
        assert cache.summary(GENESIS) is not None
        server.drip()
        assert hasty.summary(GENESIS) is None
    server.close()
