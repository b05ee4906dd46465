"""A key-value store in Redis or Valkey, on connections with one deadline for a whole reply.

A request to a server that is away times out soon, and then the server is not asked again for a while. No method of the
store raises: a server that is dead, slow, full, of another kind or hostile counts as an empty store.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.incidents import report_incident
from service.store.redis.sealed import STAMP_BYTES, Item, Swap


class DeadlineSocket(socket.socket):
    """A socket on which everything must be received within `timeout_s` of what was sent last.

    A socket's own time-out counts only the time without a byte: a server that sends a byte now and then would hold up
    its reader for ever. Connections over TLS keep that time-out.
    """

    timeout_s = 0.0
    _due = 0.0

    def sendall(self, *sent: Any) -> None:  # noqa: ANN401 - whatever a socket takes
        """Send, and begin the time in which the reply must come."""
        super().sendall(*sent)
        self._due = time.monotonic() + self.timeout_s

    def recv_into(self, *into: Any) -> int:  # noqa: ANN401 - the same
        """Receive bytes that have come, or wait for them until the deadline. Raises TimeoutError.

        After the deadline, a caller still gets bytes that came in time.
        """
        usual = self.gettimeout()
        if usual == 0:
            return super().recv_into(*into)
        self.settimeout(max(self._due - time.monotonic(), 0))
        try:
            return super().recv_into(*into)
        except BlockingIOError:
            raise TimeoutError from None
        finally:
            self.settimeout(usual)


class _Tcp(redis.Connection):
    def _connect(self) -> DeadlineSocket:
        return _until_deadline(super()._connect(), self.socket_timeout)  # type: ignore[no-untyped-call]


class _Unix(redis.UnixDomainSocketConnection):
    def _connect(self) -> DeadlineSocket:
        return _until_deadline(super()._connect(), self.socket_timeout)  # type: ignore[no-untyped-call]


_KINDS: Final[dict[str, type[redis.Connection | redis.UnixDomainSocketConnection]]] = {"redis": _Tcp, "unix": _Unix}


def deadline_connections(url: str) -> dict[str, Any]:
    """The options with which a client of this URL makes connections that keep to deadlines."""
    kind = _KINDS.get(urlsplit(url).scheme)
    return {} if kind is None else {"connection_class": kind}


def _until_deadline(plain: socket.socket, timeout_s: float | None) -> DeadlineSocket:
    usual = plain.gettimeout()
    made = DeadlineSocket(fileno=plain.detach())
    made.settimeout(usual)
    made.timeout_s = timeout_s or 0.0
    return made


REST_S: Final = 1.0
"""The seconds for which a server that failed is left alone."""

LIFETIME_S: Final = 3600
"""The seconds for which a value is kept: after an hour few clients retry, and no replica is so far behind."""

_CHANNEL: Final = "sparing:cache:news"
_SWAP: Final = f"""
local held = redis.pcall('GET', KEYS[1])
if type(held) ~= 'string' or string.sub(held, 1, {STAMP_BYTES}) == ARGV[1]
then redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) end
return 0
"""
# One number a bucket: when it is full again. A token moves it on by an interval, at most to `burst` intervals from now.
_TAKE: Final = """
local time = redis.call('TIME')
local now, interval, burst = time[1] * 1000000 + time[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local held = redis.pcall('GET', KEYS[1])
local full = math.max(type(held) == 'string' and tonumber(held) or 0, now) + interval
local wait = full - now - burst * interval
if wait > 0 then return wait end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000) + 1)
return 0
"""
_MESSAGES_MAX: Final = 1024

Result = TypeVar("Result")


class RedisKeyValueStore:
    """The key-value store of one process. Thread-safe, except for `listen`, which only one thread calls."""

    def __init__(self, url: str, *, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing of the server yet. `clock` counts the seconds for which a server that failed is left alone."""
        options = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, "retry": Retry(NoBackoff(), 0)}
        self._client = redis.Redis.from_url(url, **options, **deadline_connections(url))
        self._listener = redis.Redis.from_url(url, **options)  # notices come when they come
        self._clock, self._resting_until = clock, float("-inf")
        self._swap = self._client.register_script(_SWAP)
        self._take = self._client.register_script(_TAKE)
        self._notice: redis.client.PubSub | None = None
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()
        self._unsubscribe()
        self._listener.close()
        self._client.close()

    def get(self, names: Sequence[str]) -> list[object]:
        return self._ask(lambda: list(self._client.mget(names)), []) if names else []

    def put(self, items: Sequence[Item], swaps: Sequence[Swap], messages: Sequence[bytes]) -> None:
        def send() -> None:
            with self._client.pipeline(transaction=False) as pipeline:
                for name, value in items:
                    pipeline.set(name, value, ex=LIFETIME_S)
                for name, stamp, value in swaps:
                    self._swap(keys=[name], args=[stamp, value, LIFETIME_S], client=pipeline)
                for message in messages:
                    pipeline.publish(_CHANNEL, message)
                pipeline.execute(raise_on_error=True)

        self._ask(send, None)

    def audience(self) -> int:
        def count() -> int:
            return int(self._client.pubsub_numsub(_CHANNEL)[0][1])

        return self._ask(count, 0)

    def listen(self, *, within_s: float) -> list[object]:
        rest_s = self._resting_until - self._clock()
        if rest_s > 0:
            self._closed.wait(min(rest_s, within_s))
            return []
        return self._ask(lambda: self._heard(within_s), [], otherwise=self._unsubscribe)

    def take(self, name: str, *, interval_us: int, burst: int) -> object:
        return self._ask(lambda: self._take(keys=[name], args=[interval_us, burst]), None)

    def _heard(self, within_s: float) -> list[object]:
        if self._notice is None:
            self._notice = self._listener.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
            self._notice.subscribe(_CHANNEL)
        messages: list[object] = []
        message = self._notice.get_message(timeout=within_s)
        while message is not None and len(messages) < _MESSAGES_MAX:
            messages.append(message["data"])
            message = self._notice.get_message()
        return messages

    def _unsubscribe(self) -> None:
        notice, self._notice = self._notice, None
        if notice is not None:
            with suppress(Exception):
                notice.close()

    def _ask(
        self, request: Callable[[], Result], unknown: Result, *, otherwise: Callable[[], None] | None = None
    ) -> Result:
        """The server's answer; `unknown` if it fails or is left alone. If it fails, `otherwise` is called."""
        if self._clock() < self._resting_until:
            return unknown
        try:
            return request()
        except Exception as fault:  # noqa: BLE001 - the server may say anything at all
            self._resting_until = self._clock() + REST_S
            report_incident(fault, "the cache; it is left alone for a while")
            if otherwise is not None:
                otherwise()
            return unknown
