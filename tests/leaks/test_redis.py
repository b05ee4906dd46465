"""Redis tells no count, of people, acts or queries, to any reader."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
import redis

from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import WitnessRecord
from service.store.witness.combined import encode
from service.store.witness.redis import RedisWitness
from tests.contracts.caches import account_slice, caches
from tests.leaks.opaque import fixed_in, fixed_places, written

DATASET = "canary-" + "0f" * 32
FEW = WitnessRecord(fence=1, seq=0, acts=1, slots=0, worst_case_total_units=0, hash=bytes(32))
MANY = replace(FEW, fence=3, seq=7_654_321, acts=2_345_678, slots=1_234_567, worst_case_total_units=2**61 + 12_345)
TIMES = 32
PEPPER = Pepper(bytes(32))


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis"]:
    """An observer of an empty Redis."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def held(server: "redis.Redis") -> dict[bytes, bytes]:
    """All that lies there."""
    return {name: server.get(name) for name in server.keys("*")}  # type: ignore[misc]


def opened(redis_url: str) -> RedisWitness:
    """One process's witness there."""
    return RedisWitness(redis_url, PEPPER.witness_key())


def witnessed(redis_url: str, server: "redis.Redis", first: WitnessRecord) -> tuple[set[bytes], list[bytes]]:
    """Every name and value that was seen while a history was witnessed that begins with `first`, from two processes."""
    names: set[bytes] = set()
    values: list[bytes] = []
    with closing(opened(redis_url)) as one, closing(opened(redis_url)) as other:
        for n in range(TIMES):
            (one, other)[n % 2].write(DATASET, replace(first, seq=first.seq + n // 3, acts=first.acts + n - n // 3))
            seen = held(server)
            names |= seen.keys()
            values += seen.values()
    server.flushall()
    return names, values


def test_a_witness_looks_the_same_at_every_position(redis_url: str, server: "redis.Redis") -> None:
    """One name, one size, and no byte that stays: of an empty dataset and of one of a million people alike."""
    few, many = (witnessed(redis_url, server, first) for first in (FEW, MANY))
    assert few[0] == many[0]
    assert {len(value) for value in (*few[1], *many[1])} == {len(few[1][0])}
    for names, values in (few, many):
        assert len(values) == len(set(values)) == TIMES
        assert fixed_places(values) == []
        assert [name for name in names if b"canary" in name or b"0f0f" in name] == []
    numbers = [MANY.seq, MANY.acts, MANY.slots, MANY.worst_case_total_units]
    canaries = [*written(numbers), b"canary", DATASET.encode()]
    assert [each for each in canaries for value in many[1] if each in value] == []


def test_a_slice_of_accounts_does_not_tell_where_it_was_taken(redis_url: str, server: "redis.Redis") -> None:
    """Neither the sequence nor the number of acts, though a newer slice takes the place of an older one."""
    seen: list[bytes] = []
    with caches(redis_url) as make:
        cache = make()
        for n in range(TIMES):
            cache.share([account_slice(1_000_000 + n, data_version=2_000_000 + n)], [])
            seen += held(server).values()
        (found,) = cache.slices(account_slice(0).place.genesis, [0])
    assert found.place.seq == 1_000_000 + TIMES - 1
    assert len(set(seen)) == TIMES
    assert fixed_in(seen) == {}


def test_the_comparison_finds_bytes_that_stay() -> None:
    """A record that is not sealed shows most of its bytes at every position."""
    assert len(fixed_places([encode(DATASET, replace(MANY, acts=n)) for n in range(TIMES)])) > 64
