"""Sends a request to another process, with a new head, and streams the response back.

The process at an address must first prove that it is the replica that is meant. Requests bear API keys, and the address
may belong to another process by now, or mean another machine here.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from starlette.types import Message, Receive, Scope, Send

from service.api.forwarding.connection import ConnectionLost, PeerConnection
from service.api.forwarding.hop import is_reply, new_hop_id, sealed
from service.api.forwarding.idle import ConnectionKey, IdleConnections
from service.api.forwarding.request_head import HOP_HEADER, RequestHead, head_of
from service.api.middleware.request_context import DELIVERED_BYTES_PER_S, DELIVERY_S, NOT_STARTED, DeliveryFailed
from service.incidents import report_incident
from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.writer.replication.ownership import Ownership

GREETING_PATH: Final = "/forwarding"
CONNECT_S: Final = 2.0
KEPT_BYTES_MAX: Final = 64 * 1024
_NOT_STARTED: Final = NOT_STARTED.lower().encode()
_FOR_ONE_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"trailer", b"transfer-encoding", b"upgrade", b"x-request-id", HOP_HEADER}
)
"""The headers of a response that each process writes by itself, and that of the hop's id."""


class UnexpectedReplica(Exception):
    """The process at a replica's address is not that replica."""


class UnexpectedReply(Exception):
    """A reply does not repeat the id of its request."""


class Body:
    """A request's body on its way.

    Its beginning is kept, so that another replica can take over before one has begun.
    """

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self._kept: list[Message] = []
        self._kept_bytes = 0
        self.is_whole = self.is_sent = self.is_abandoned = False

    @property
    def is_replayable(self) -> bool:
        """Tell whether everything that was taken is kept."""
        return self._kept_bytes <= KEPT_BYTES_MAX

    async def take(self) -> bytes | None:
        """The next part; None when the client has left."""
        message = await self.receive()
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
        kept, receive = iter(self._kept), self.receive

        async def again() -> Message:
            return next(kept, None) or await receive()

        return Body(again)


class ForwardingClient:
    """Sends requests to other replicas over kept connections. Belongs to one event loop."""

    def __init__(
        self,
        ownership: Ownership,
        clock: Callable[[], float] = time.monotonic,
        *,
        telemetry: Telemetry = NULL_TELEMETRY,
    ) -> None:
        """`ownership` proves and checks proofs; `clock` counts seconds."""
        self._ownership, self._telemetry = ownership, telemetry
        self._idle = IdleConnections(clock)

    async def carry(self, replica: ReplicaAddress, principal: UUID, scope: Scope, body: Body, send: Send) -> bool:
        """Have `replica` answer. False when it has not started with the request, so that `body` can be rewound.

        Raises Unavailable when `replica` may have started but did not answer, or when the reply belongs to another
        request. Raises what `head_of` raises. A response that breaks off stays without an end.
        """
        head, key = head_of(scope), (replica.id, principal)
        wire = await self._wire(replica, key)
        if wire is None:
            return False
        self._telemetry.headers_dropped(head.dropped)
        hop_id, has_begun = new_hop_id(), False
        wire.write(sealed(head, hop_id, replica, self._ownership))
        with _sending(wire, body, body_bytes=head.body_bytes):
            try:
                status, headers = await wire.head()
                if not is_reply(headers, hop_id):
                    wire.close()
                    report_incident(UnexpectedReply(), "forwarding: a reply that was not to the request before it")
                    raise Unavailable
                if body.is_replayable and any(name == _NOT_STARTED for name, _ in headers):
                    wire.close()
                    return False
                has_begun = True
                headers_on = [(name, value) for name, value in headers if name not in _FOR_ONE_HOP]
                await send({"type": "http.response.start", "status": status, "headers": headers_on})
                await _relay(wire, send)
            except ConnectionLost:
                if not (has_begun or body.is_abandoned):
                    raise Unavailable from None
                # Either the client has left, or the server cuts the connection of a response that has no end.
            finally:
                if body.is_sent and wire.is_reusable:
                    self._idle.put(key, wire)
                else:
                    wire.close()
        return True

    async def _wire(self, replica: ReplicaAddress, key: ConnectionKey) -> PeerConnection | None:
        """A connection to a replica for one principal's requests; None when it cannot be reached."""
        wire = self._idle.take(key)
        if wire is not None:
            wire.begin()
            return wire
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
        """Have the other end prove that it is `replica`. Raises UnexpectedReplica, ConnectionLost."""
        challenge = new_hop_id()
        head = RequestHead(
            method=b"GET",
            target=GREETING_PATH.encode(),
            headers=((b"host", b"sparing"), (b"x-request-id", challenge)),
            body_bytes=0,
            dropped=0,
        )
        wire.write(sealed(head, challenge, replica, self._ownership))
        status, _ = await wire.head()
        proof, is_last = b"", False
        while not is_last:
            data, is_last = await wire.take()
            proof += data
        if status == 503:
            raise ConnectionLost  # it is leaving
        if not self._ownership.is_proof(replica, challenge, proof):
            raise UnexpectedReplica
        wire.begin()


async def _relay(wire: PeerConnection, send: Send) -> None:
    """Pass the response's body on.

    Raises ConnectionLost, and DeliveryFailed when the client does not take it in time.
    """
    is_last = False
    while not is_last:
        data, is_last = await wire.take()
        try:
            async with asyncio.timeout(DELIVERY_S + len(data) / DELIVERED_BYTES_PER_S):
                await send({"type": "http.response.body", "body": data, "more_body": not is_last})
        except TimeoutError:
            raise DeliveryFailed from None


@contextmanager
def _sending(wire: PeerConnection, body: Body, *, body_bytes: int | None) -> Iterator[None]:
    """Send the body while the block runs, and end the connection if the client leaves."""
    sending = asyncio.ensure_future(_send(wire, body, body_bytes=body_bytes))
    try:
        yield
    finally:
        sending.cancel()


async def _send(wire: PeerConnection, body: Body, *, body_bytes: int | None) -> None:
    """Send a body of `body_bytes`; a body of any other length ends the connection. None means any length, in chunks."""
    sent_bytes = 0
    while (data := await body.take()) is not None:
        sent_bytes += len(data)
        if body_bytes is not None and (sent_bytes > body_bytes or (body.is_whole and sent_bytes < body_bytes)):
            break
        if data:
            wire.write(data if body_bytes is not None else b"%x\r\n%b\r\n" % (len(data), data))
        if body.is_whole and body_bytes is None:
            wire.write(b"0\r\n\r\n")
        await wire.drained()
        body.is_sent = body.is_whole
    wire.close()
