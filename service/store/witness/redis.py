"""A witness in Redis or Valkey: one sealed record a dataset, moved only forward by a script that Redis runs whole.

Redis forgets and may be in anybody's hands, so this can only help another witness: what it does not hold, or what was
not sealed with the pepper, is unknown.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from hmac import compare_digest
from typing import Final

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.connection import ConnectionInterface
from redis.exceptions import NoScriptError
from redis.retry import Retry

from service.store.cache.punctual import punctual_connections
from service.store.witness.records import RECORD_BYTES, decode, encode
from service.workflows.ports import WitnessUnavailable
from service.workflows.records import WitnessRecord

_TIMEOUT_S: Final = 0.25
_POSITION: Final = "{:020d}{:020d}{:020d}"
_POSITION_BYTES: Final = 60
_FORWARD: Final = f"""
local held = redis.call('GET', KEYS[1])
if not held or #held ~= #ARGV[1] or string.sub(held, 1, {_POSITION_BYTES}) < string.sub(ARGV[1], 1, {_POSITION_BYTES})
then redis.call('SET', KEYS[1], ARGV[1]) end
return held
"""


# What carries the script by name spares the client's and the pool's ways, which take as long as all else that is done.
_DIGEST: Final = hashlib.sha1(_FORWARD.encode(), usedforsecurity=False).hexdigest()


class RedisWitness:
    """The port's Witness, as far as Redis can be one. Thread-safe."""

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
        self._idle: list[ConnectionInterface] = []

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        while self._idle:
            self._idle.pop().disconnect()  # type: ignore[no-untyped-call]

    def history(self, dataset: str) -> list[WitnessRecord]:
        try:
            held = self._client.get(_key(dataset))
        except RedisError as fault:
            raise WitnessUnavailable(type(fault).__name__) from fault
        record = self._opened(dataset, held)
        return [] if record is None else [record]

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        return self.begin(dataset, record)()

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        body = _POSITION.format(*record.position).encode() + encode(dataset, record)
        sealed = body + self._seal(body)
        connection = self._connection()
        try:
            _send(connection, "EVALSHA", _DIGEST, dataset, sealed)
        except RedisError as fault:
            self._put_back(connection, is_sound=False)
            raise WitnessUnavailable(type(fault).__name__) from fault
        return partial(self._finish, connection, dataset, sealed)

    def _finish(self, connection: ConnectionInterface, dataset: str, sealed: bytes) -> WitnessRecord | None:
        try:
            held = _reply(connection, dataset, sealed)
        except RedisError as fault:
            self._put_back(connection, is_sound=False)
            raise WitnessUnavailable(type(fault).__name__) from fault
        self._put_back(connection, is_sound=True)
        return self._opened(dataset, held)

    def _connection(self) -> ConnectionInterface:
        try:
            return self._idle.pop()
        except IndexError:
            return self._client.connection_pool.make_connection()

    def _put_back(self, connection: ConnectionInterface, *, is_sound: bool) -> None:
        """Whatever may still come after a fault would be taken for the reply to another command."""
        if not is_sound:
            connection.disconnect()  # type: ignore[no-untyped-call]
        self._idle.append(connection)

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


def _send(connection: ConnectionInterface, command: str, script: str, dataset: str, sealed: bytes) -> None:
    """Send a call of the script, on a new connection where it would be in vain."""
    if connection.is_connected and _has_something_to_say(connection):
        connection.disconnect()  # type: ignore[no-untyped-call]
    connection.send_command(command, script, 1, _key(dataset), sealed)  # type: ignore[no-untyped-call]


def _has_something_to_say(connection: ConnectionInterface) -> bool:
    """Whether something has come that nobody asked for, or the end."""
    try:
        return bool(connection.can_read())
    except RedisError:
        return True


def _reply(connection: ConnectionInterface, dataset: str, sealed: bytes) -> object:
    try:
        return connection.read_response()
    except NoScriptError:
        _send(connection, "EVAL", _FORWARD, dataset, sealed)
        return connection.read_response()
