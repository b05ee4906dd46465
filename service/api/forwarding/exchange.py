"""Forwards a request to another process and streams its response back, unchanged.

The process at an address must first prove that it is the replica that is meant: requests bear API keys, and the
address may be another process' by now, or mean another machine there.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote, urlsplit
from uuid import UUID

from starlette.types import Message, Receive, Scope, Send

from service.api.forwarding.connection import ConnectionLost, PeerConnection, RawHeaders
from service.api.middleware.request_context import DELIVERED_BYTES_PER_S, DELIVERY_S, NOT_STARTED, DeliveryFailed
from service.api.problems import request_id_of
from service.incidents import report_incident
from service.workflows.model.errors import Unavailable
from service.workflows.model.rows import ReplicaAddress
from service.workflows.replication.ownership import Ownership

GREETING_PATH: Final = "/forwarding"
CHALLENGE_HEADER: Final = b"x-sparing-challenge"
HOP_HEADER: Final = b"x-sparing-hop"
CONNECT_S: Final = 2.0
IDLE_S: Final = 3.0
"""Uvicorn ends a connection on which nothing has come for five seconds; an older one is not used again."""
KEPT_BYTES_MAX: Final = 64 * 1024
_NOT_STARTED: Final = NOT_STARTED.lower().encode()
_CHALLENGE_BYTES: Final = 16
_FOR_ONE_HOP: Final = frozenset(
    b"connection expect keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade x-request-id".split()
)


class UnexpectedReplica(Exception):
    """The process at a replica's address is not that replica."""


class Body:
    """A request's body on its way, of which the beginning is kept: a replica that has not begun it may be replaced."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: list[Message] = []
        self._kept_bytes = 0
        self.is_whole = self.is_abandoned = False

    @property
    def is_replayable(self) -> bool:
        """Whether all that was taken is kept."""
        return self._kept_bytes <= KEPT_BYTES_MAX

    async def take(self) -> bytes | None:
        """The next part; None when the client has left."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_abandoned = True
            return None
        data: bytes = message.get("body", b"")
        self.is_whole = not message.get("more_body", False)
        self._kept_bytes += len(data)
        if self.is_replayable:
            self._kept.append(message)
        else:
            self._kept.clear()
        return data

    def rewound(self) -> "Body":
        """The body from its beginning."""
        kept, receive = iter(self._kept), self._receive

        async def again() -> Message:
            return next(kept, None) or await receive()

        return Body(again)

    async def receive(self) -> Message:
        """The next message, for an application; what is taken so is not kept."""
        return await self._receive()


class ForwardingClient:
    """Keeps connections to other replicas. Belongs to one event loop."""

    def __init__(self, ownership: Ownership, clock: Callable[[], float] = time.monotonic) -> None:
        """`ownership` proves and checks proofs; `clock` counts seconds."""
        self._ownership, self._clock = ownership, clock
        self._idle: dict[UUID, list[tuple[PeerConnection, float]]] = {}

    async def carry(self, replica: ReplicaAddress, scope: Scope, body: Body, send: Send) -> bool:
        """Have `replica` answer. False when it has not started with the request, and `body` can be rewound.

        Raises Unavailable when it may have started and did not answer. A response that breaks off has no end.
        """
        wire = await self._wire(replica)
        if wire is None:
            return False
        is_chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        wire.write(_head_of(scope))
        has_begun = False
        with _sending(wire, body, is_chunked=is_chunked):
            try:
                status, headers = await wire.head()
                if body.is_replayable and any(name == _NOT_STARTED for name, _ in headers):
                    wire.close()
                    return False
                has_begun = True
                await send({"type": "http.response.start", "status": status, "headers": _without_hop(headers)})
                await _relay(wire, send)
            except ConnectionLost:
                if not (has_begun or body.is_abandoned):
                    raise Unavailable from None
                # Either the client has left, or the server cuts the connection of a response that has no end.
            finally:
                self._put_back(replica, wire, is_free=wire.is_whole and body.is_whole)
        return True

    async def _wire(self, replica: ReplicaAddress) -> PeerConnection | None:
        """A connection to a replica; None when it cannot be reached."""
        idle = self._idle.get(replica.id, [])
        while idle:
            wire, since = idle.pop()
            if not wire.is_lost and self._clock() < since + IDLE_S:
                wire.begin()
                return wire
            wire.close()
        try:
            async with asyncio.timeout(CONNECT_S):
                return await self._connected(replica)
        except (OSError, TimeoutError, ConnectionLost):
            return None
        except UnexpectedReplica as strange:
            report_incident(strange, "forwarding: another process answers at a replica's address")
            return None

    async def _connected(self, replica: ReplicaAddress) -> PeerConnection:
        parts = urlsplit(replica.url)
        _, wire = await asyncio.get_running_loop().create_connection(
            PeerConnection, parts.hostname or "", parts.port or 80
        )
        try:
            await self._greet(replica, wire)
        except BaseException:
            wire.close()
            raise
        return wire

    async def _greet(self, replica: ReplicaAddress, wire: PeerConnection) -> None:
        """Raises UnexpectedReplica, ConnectionLost."""
        challenge = secrets.token_bytes(_CHALLENGE_BYTES)
        wire.write(
            b"GET %b HTTP/1.1\r\nhost: sparing\r\n%b: %b\r\n\r\n"
            % (GREETING_PATH.encode(), CHALLENGE_HEADER, challenge.hex().encode())
        )
        status, _ = await wire.head()
        proof, is_last = b"", False
        while not is_last:
            data, is_last = await wire.take()
            proof += data
        if status == 503:
            raise ConnectionLost  # it is leaving
        if not self._ownership.is_proof(replica, challenge.hex().encode(), proof):
            raise UnexpectedReplica
        wire.begin()

    def _put_back(self, replica: ReplicaAddress, wire: PeerConnection, *, is_free: bool) -> None:
        if is_free and wire.is_kept_alive and not wire.is_lost:
            self._idle.setdefault(replica.id, []).append((wire, self._clock()))
        else:
            wire.close()


async def _relay(wire: PeerConnection, send: Send) -> None:
    """Pass the body on. Raises ConnectionLost, and DeliveryFailed when the client does not take it in time."""
    is_last = False
    while not is_last:
        data, is_last = await wire.take()
        try:
            async with asyncio.timeout(DELIVERY_S + len(data) / DELIVERED_BYTES_PER_S):
                await send({"type": "http.response.body", "body": data, "more_body": not is_last})
        except TimeoutError:
            raise DeliveryFailed from None


@contextmanager
def _sending(wire: PeerConnection, body: Body, *, is_chunked: bool) -> Iterator[None]:
    """Beside what happens within: send the body, and end the connection when the client leaves."""
    sending = asyncio.ensure_future(_send(wire, body, is_chunked=is_chunked))
    try:
        yield
    finally:
        sending.cancel()


async def _send(wire: PeerConnection, body: Body, *, is_chunked: bool) -> None:
    while (data := await body.take()) is not None:
        if data:
            wire.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
        if body.is_whole and is_chunked:
            wire.write(b"0\r\n\r\n")
        await wire.drained()
    wire.close()


def _head_of(scope: Scope) -> bytes:
    """The request's first line and headers, as they came but for those of one hop."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    target = path + b"?" + scope["query_string"] if scope["query_string"] else path
    lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target)]
    lines += [b"%b: %b" % header for header in _without_hop(scope["headers"])]
    if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        lines.append(b"transfer-encoding: chunked")
    lines += [b"x-request-id: %b" % request_id_of(scope).encode(), HOP_HEADER + b": 1", b"", b""]
    return b"\r\n".join(lines)


def _without_hop(headers: RawHeaders) -> RawHeaders:
    """Headers less those of one hop, those that `Connection` names, and the request's id, which each side adds."""
    named = {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}
    return [(name, value) for name, value in headers if name not in _FOR_ONE_HOP and name not in named]
