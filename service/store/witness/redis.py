"""A witness in Redis or Valkey: one sealed record a dataset, moved only forward by a script that Redis runs whole.

Redis forgets and may be in anybody's hands, so this can only help another witness: what it does not hold, or what was
not sealed with the pepper, is unknown.
"""

from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.store.cache.punctual import punctual_connections
from service.store.witness.records import RECORD_BYTES, decode, encode
from service.workflows.ports import WitnessRecord, WitnessUnavailable

_TIMEOUT_S: Final = 0.25
_POSITION: Final = "{:020d}{:020d}{:020d}"
_POSITION_BYTES: Final = 60
_FORWARD: Final = f"""
local held = redis.call('GET', KEYS[1])
if not held or #held ~= #ARGV[1] or string.sub(held, 1, {_POSITION_BYTES}) < string.sub(ARGV[1], 1, {_POSITION_BYTES})
then redis.call('SET', KEYS[1], ARGV[1]) end
return held
"""


class RedisWitness:
    """The port's Witness, as far as Redis can be one."""

    def __init__(self, url: str, seal: Callable[[bytes], bytes]) -> None:
        """`seal` is a keyed hash. Nothing is asked of Redis before it is needed."""
        self._client = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            **punctual_connections(url),
        )
        self._seal = seal
        self._forward = self._client.register_script(_FORWARD)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def history(self, dataset: str) -> list[WitnessRecord]:
        try:
            held = self._client.get(_key(dataset))
        except RedisError as fault:
            raise WitnessUnavailable(type(fault).__name__) from fault
        record = self._opened(dataset, held)
        return [] if record is None else [record]

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        body = _POSITION.format(*record.position).encode() + encode(dataset, record)
        try:
            held = self._forward(keys=[_key(dataset)], args=[body + self._seal(body)])
        except RedisError as fault:
            raise WitnessUnavailable(type(fault).__name__) from fault
        return self._opened(dataset, held)

    def _opened(self, dataset: str, held: object) -> WitnessRecord | None:
        """The record in a value that may be anything."""
        if not isinstance(held, bytes):
            return None
        end = _POSITION_BYTES + RECORD_BYTES
        if not compare_digest(held[end:], self._seal(held[:end])):
            return None
        return decode(dataset, held[_POSITION_BYTES:end])


def _key(dataset: str) -> str:
    return f"sparing:witness:{dataset}"
