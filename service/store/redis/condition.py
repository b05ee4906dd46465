"""The condition of a Redis or Valkey, for the operator: nothing in it is changed."""

import time
from dataclasses import dataclass
from statistics import median
from typing import Final

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.store.fault_words import words_of

_TIMEOUT_S: Final = 2.0
_ROUNDS: Final = 5


class RedisUnusable(Exception):
    """The server cannot be reached, or refuses us. The text has no part of the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisCondition:
    """The condition of a server at one look.

    `clock_ahead_s` is the server's clock less this machine's. `policy` says what the server drops when it is full.
    """

    version: str
    round_trip_ms: float
    clock_ahead_s: float
    memory_bytes_max: int
    policy: str


def redis_condition(url: str) -> RedisCondition:
    """Look at the server once. Raises RedisUnusable."""
    try:
        with Redis.from_url(
            url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, retry=Retry(NoBackoff(), 0)
        ) as client:
            return _look(client)
    except (ValueError, RedisError) as fault:
        raise RedisUnusable(words_of(fault, url)) from None


def _look(client: "Redis") -> RedisCondition:
    trips, ahead = [], []
    for _ in range(_ROUNDS):
        began, before = time.perf_counter(), time.time()
        seconds, microseconds = client.time()
        trip_s = time.perf_counter() - began
        trips.append(trip_s)
        ahead.append(seconds + microseconds / 1e6 - before - trip_s / 2)
    info = client.info()
    name = "Valkey" if "valkey_version" in info else "Redis"
    return RedisCondition(
        version=f"{name} {info.get('valkey_version', info.get('redis_version', 'of no version'))}",
        round_trip_ms=median(trips) * 1000,
        clock_ahead_s=median(ahead),
        memory_bytes_max=int(info.get("maxmemory", 0)),
        policy=str(info.get("maxmemory_policy", "")),
    )
