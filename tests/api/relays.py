"""An owner that does what a test says, a relay that carries everything to it, and a client that writes bytes."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.forwarding.exchange import GREETING_PATH, Body, ForwardingClient
from service.api.forwarding.hop import echo as echoed_id
from service.api.forwarding.hop import repeating, sealed_id
from service.api.middleware.request_context import DeliveryFailed
from service.api.problems import response_of
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import ReplicaAddress
from service.writer.replication.ownership import Ownership
from tests.api.neighbours import Clock, bound, served, url_of
from tests.api.receiving import received
from tests.memory.cache import MemoryLeases

PEPPER = Pepper(b"p" * 32)


@dataclass
class Owner:
    """A process that gives its proof, and otherwise does as the test says."""

    ownership: Ownership
    app: ASGIApp
    scopes: list[Scope] = field(default_factory=list)
    greetings: int = 0
    repeats_ids: bool = True
    server: uvicorn.Server | None = None

    def die(self) -> None:
        """Every connection is reset, as by kill -9."""
        for connection in () if self.server is None else self.server.server_state.connections:
            connection.transport.abort()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == GREETING_PATH:
            self.greetings += 1
            (challenge,) = echoed_id(scope).values()  # an impostor proves what it can
            await answered(send, self.ownership.proof(challenge.encode()))
            return
        self.scopes.append(scope)
        hop_id = sealed_id(scope, self.ownership)
        assert hop_id is not None
        await self.app(scope, receive, repeating(hop_id, send) if self.repeats_ids else send)


@dataclass
class Relay:
    """A process that carries everything to the owner, and says what became of it."""

    client: ForwardingClient
    replica: ReplicaAddress
    outcomes: list[object] = field(default_factory=list)
    url: str = ""
    principal: UUID = field(default_factory=uuid4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = Body(receive)
        try:
            is_carried = await self.client.carry(self.replica, self.principal, scope, body, send)
        except DeliveryFailed as gone:
            self.outcomes.append(gone)
            return
        except Unavailable as refusal:
            self.outcomes.append(refusal)
            await response_of(refusal, "id")(scope, body.receive, send)
            return
        self.outcomes.append(is_carried)
        if not is_carried:
            await answered(send, b"here:" + await whole(body.rewound()))


@asynccontextmanager
async def carried(
    app: ASGIApp, clock: Clock | None = None, pepper: Pepper = PEPPER
) -> AsyncIterator[tuple[Relay, Owner]]:
    """A relay in front of an owner that works as `app`."""
    async with AsyncExitStack() as stack:
        doors = [stack.enter_context(bound()) for _ in range(2)]
        replica = ReplicaAddress(id=uuid4(), url=url_of(doors[0]))
        theirs = Ownership(leases=MemoryLeases(), replica=replica, pepper=pepper)
        ours = Ownership(leases=MemoryLeases(), replica=ReplicaAddress(id=uuid4(), url=""), pepper=PEPPER)
        owner, relay = (
            Owner(theirs, app),
            Relay(ForwardingClient(ours, clock or Clock()), replica, url=url_of(doors[1])),
        )
        owner.server = await stack.enter_async_context(served(received(owner), doors[0]))
        await stack.enter_async_context(served(received(relay), doors[1]))
        yield relay, owner


async def answered(
    send: Send, data: bytes, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """A whole response."""
    length = (b"content-length", b"%d" % len(data))
    await send({"type": "http.response.start", "status": status, "headers": [*(headers or []), length]})
    await send({"type": "http.response.body", "body": data})


async def whole(body: Body) -> bytes:
    """All of a body."""
    data = b""
    while not body.is_whole:
        data += await body.take() or b""
    return data


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The body's length and hash, and how it was framed."""
    digest, size, is_last = hashlib.sha256(), 0, False
    while not is_last:
        message = await receive()
        digest.update(message["body"])
        size, is_last = size + len(message["body"]), not message["more_body"]
    names = {name for name, _ in scope["headers"]}
    await answered(send, b"%d %b %d" % (size, digest.hexdigest().encode(), b"transfer-encoding" in names))


class Client:
    """A client that writes and reads bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Now."""
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """One request, and its response by its Content-Length."""
        await self.send(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        return await self.answer()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers."""
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = raw.strip().split("\r\n")
        return int(status.split()[1]), dict(line.split(": ", 1) for line in lines)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """A response."""
        status, headers = await self.head()
        return status, headers, await self.reader.readexactly(int(headers["content-length"]))


@asynccontextmanager
async def connected(relay: Relay) -> AsyncIterator[Client]:
    """One connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.url.rpartition(":")[2]))
    try:
        async with asyncio.timeout(30):
            yield Client(reader, writer)
    finally:
        writer.close()
