"""A witness in Redis or Valkey: one sealed record a dataset, moved only forward, readable by the service alone.

Redis forgets and is not trusted, so this witness can only help another one. A record that Redis does not hold, or that
was not sealed with the pepper, is unknown. Redis cannot tell which of two records is farther. So the script replaces a
record only if it is the one that the writer has opened. It compares the first bytes, which no two sealed records have
in common.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.connection import ConnectionInterface
from redis.exceptions import NoScriptError
from redis.retry import Retry

from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.redis.client import deadline_connections
from service.store.redis.sealed import STAMP_BYTES, Seal
from service.store.witness.combined import decode, encode

_TIMEOUT_S: Final = 0.25
# 1 when the record that begins with ARGV[2] was replaced by ARGV[1], 0 when there was none, otherwise what is there.
_SWAP: Final = f"""
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, {STAMP_BYTES}) ~= ARGV[2] then return {{held}} end
redis.call('SET', KEYS[1], ARGV[1])
return held and 1 or 0
"""
# What carries the script by name spares the client's and the pool's ways, which take as long as all else that is done.
_DIGEST: Final = hashlib.sha1(_SWAP.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The value in Redis at the last look: its first bytes, and the record in it if the value could be opened."""

    stamp: bytes = b""
    farthest: WitnessRecord | None = None


_UNSEEN: Final = _Seen()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Swap:
    """One call of the script: it puts `record` in the place of the value `seen`."""

    name: str
    record: WitnessRecord
    sealed: bytes
    seen: _Seen


class RedisWitness:
    """The port's Witness, as far as Redis can be a witness. Thread-safe."""

    def __init__(self, url: str, key: bytes) -> None:
        """Take the `key` that the pepper gives. Redis is asked nothing yet."""
        self._client = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            **deadline_connections(url),
        )
        self._seal = Seal(key)
        self._idle: list[ConnectionInterface] = []
        self._names: dict[str, str] = {}
        self._seen: dict[str, _Seen] = {}  # a guess that spares a look: the script says whether it still holds

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        while self._idle:
            self._idle.pop().disconnect()  # type: ignore[no-untyped-call]

    def history(self, dataset: str) -> list[WitnessRecord]:
        try:
            held = self._client.get(self._name(dataset))
        except RedisError as fault:
            raise WitnessUnavailable(type(fault).__name__) from fault
        record = self._record(dataset, held)
        return [] if record is None else [record]

    def names(self) -> list[str]:
        return []  # what is kept under does not tell the dataset

    def check(self) -> None:
        pass  # nothing waits for it, and what it has lost is told anew

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        return self.begin(dataset, record)()

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        seen = self._seen.get(dataset, _UNSEEN)
        if seen.farthest is not None and seen.farthest.position >= record.position:
            seen = _UNSEEN  # nothing may be replaced before it is looked at
        swap = self._swap(dataset, record, seen)
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._client.connection_pool.make_connection()
        try:
            _send(connection, "EVALSHA", _DIGEST, swap)
        except RedisError as fault:
            self._give_up(connection)
            raise WitnessUnavailable(type(fault).__name__) from fault
        return partial(self._finish, connection, dataset, swap)

    def _finish(self, connection: ConnectionInterface, dataset: str, swap: _Swap) -> WitnessRecord | None:
        try:
            before = self._moved_forward(connection, dataset, swap)
        except (RedisError, TimeoutError) as fault:
            self._give_up(connection)
            raise WitnessUnavailable(type(fault).__name__) from fault
        self._idle.append(connection)
        return before

    def _moved_forward(self, connection: ConnectionInterface, dataset: str, swap: _Swap) -> WitnessRecord | None:
        """The record that was there before. Tries again until this record, or a farther one, is there and sealed.

        A try fails if another writer has put a record there meanwhile, or if Redis lies. So the tries end after a time.
        Raises TimeoutError.
        """
        end, record = time.monotonic() + _TIMEOUT_S, swap.record
        reply = _reply(connection, swap)
        before = None if reply == 0 else swap.seen.farthest
        while isinstance(reply, list):
            if time.monotonic() > end:
                raise TimeoutError
            held = reply[0] if reply else None  # what the script has found instead; it may be anything
            seen = _Seen(stamp=Seal.stamp(held), farthest=self._record(dataset, held))
            before = seen.farthest
            farther = record if before is None or before.position < record.position else before
            swap = self._swap(dataset, farther, seen)
            if farther is before:
                self._seen[dataset] = seen
                return before
            _send(connection, "EVALSHA", _DIGEST, swap)
            reply = _reply(connection, swap)
        self._seen[dataset] = _Seen(stamp=swap.sealed[:STAMP_BYTES], farthest=swap.record)
        return before

    def _record(self, dataset: str, held: object) -> WitnessRecord | None:
        """The record in a value; None if this service has not sealed it."""
        data = self._seal.open(dataset.encode(), held)
        return None if data is None else decode(dataset, data)

    def _swap(self, dataset: str, record: WitnessRecord, seen: _Seen) -> _Swap:
        sealed = self._seal.close(dataset.encode(), encode(dataset, record))
        name = self._names.get(dataset) or self._names.setdefault(dataset, self._name(dataset))
        return _Swap(name=name, record=record, sealed=sealed, seen=seen)

    def _name(self, dataset: str) -> str:
        """The name under which the record is stored, from which the dataset cannot be found."""
        return f"sparing:witness:{self._seal.name(dataset.encode())}"

    def _give_up(self, connection: ConnectionInterface) -> None:
        """Close the connection after a fault: a late reply would be taken for the reply to another command."""
        connection.disconnect()  # type: ignore[no-untyped-call]
        self._idle.append(connection)


def _send(connection: ConnectionInterface, command: str, script: str, swap: _Swap) -> None:
    """Send a call of the script. A connection that has ended, or that holds an unexpected reply, is renewed first."""
    try:
        is_spent = connection.is_connected and connection.can_read()
    except RedisError:
        is_spent = True
    if is_spent:
        connection.disconnect()  # type: ignore[no-untyped-call]
    connection.send_command(command, script, 1, swap.name, swap.sealed, swap.seen.stamp)  # type: ignore[no-untyped-call]


def _reply(connection: ConnectionInterface, swap: _Swap) -> object:
    try:
        return connection.read_response()
    except NoScriptError:
        _send(connection, "EVAL", _SWAP, swap)
        return connection.read_response()
