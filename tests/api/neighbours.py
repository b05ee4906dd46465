"""Two processes' worth of service in one event loop: an owner behind a real server, and a neighbour that forwards."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import httpx
import uvicorn
from starlette.types import ASGIApp

from service.api.app import HttpOptions
from service.api.forwarding.hop import new_hop_id, sealed
from service.api.forwarding.request_head import HOP_HEADER, head_of
from service.api.middleware.request_context import DrainState
from service.ledger.model.rows import Lease, ReplicaAddress
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.telemetry import Telemetry
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.replication.ownership import Ownership
from tests.api.world import PEPPER, World, build_world, client_of, created_app, wall_clock
from tests.factories import SeededEntropy
from tests.memory.cache import MemoryLeases, MemoryWitness
from tests.memory.store import MemoryStore
from tests.waiting import settled, until_async

NOWHERE = "http://127.0.0.1:1"


class Counted(Telemetry):
    """Counts requests by route and status."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}

    def request_ended(self, route: str, status: int) -> None:
        self.counts[route, status] = self.counts.get((route, status), 0) + 1

    def of(self, route: str) -> int:
        """All of one route."""
        return sum(count for (each, _), count in self.counts.items() if each == route)


class Clock:
    """Seconds that pass when the test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class MortalLeases(MemoryLeases):
    """Leases that a dead replica can neither renew nor release; a release takes until it may."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.dead: set[UUID] = set()
        self.may_release = threading.Event()
        self.may_release.set()

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        self._refuse(replica)
        return super().renew(replica, lease_s=lease_s)

    def release(self, replica: ReplicaAddress) -> None:
        self._refuse(replica)
        self.may_release.wait()
        super().release(replica)

    def _refuse(self, replica: ReplicaAddress) -> None:
        if replica.id in self.dead:
            raise StoreUnavailable


@dataclass(kw_only=True)
class Neighbours:
    """The owner of `care` and another process, each as the world that a client of it sees."""

    owner: World
    other: World
    owning: Ownership
    others: Ownership
    leases: MortalLeases
    clock: Clock
    owner_counts: Counted = field(default_factory=Counted)
    other_counts: Counted = field(default_factory=Counted)
    server: uvicorn.Server

    async def die(self) -> None:
        """The owner answers no request any more, and its leases run out."""
        self.leases.dead.add(self.owning.replica.id)
        self.server.should_exit = True
        await until_async(lambda: not (self.server.servers[0].is_serving() or self.server.server_state.connections))
        await settled()  # the other end hears of it

    def loaded(self) -> int:
        """How many datasets the other process has opened."""
        return len(self.other.replica.registry.opened())


async def ask_sealed(
    asked: World,
    body: bytes = b"",
    *,
    by: Ownership,
    to: Ownership,
    path: str = "/v1/datasets/care/queries",
    changed: bytes = b"",
) -> httpx.Response:
    """A query of the analyst as one process sends it to another, or its greeting; `changed` is one more header."""
    headers = [
        (b"host", b"sparing"),
        (b"authorization", f"Bearer {asked.keys['analyst']}".encode()),
        (b"content-type", b"application/json"),
        (b"idempotency-key", b"sealed"),
        (b"x-request-id", b"sealed"),
        (b"content-length", b"%d" % len(body)),
    ]
    method = "POST" if body else "GET"
    received = {"path": path, "raw_path": path.encode(), "query_string": b"", "state": {"request_id": "sealed"}}
    head = head_of({"type": "http", "method": method, "headers": headers, **received})
    seal = sealed(head, new_hop_id(), to.replica, by).split(HOP_HEADER + b": ")[1].strip()
    more = [(b"accept", changed)] if changed else []
    return await asked.client.send(
        httpx.Request(method, f"http://sparing{path}", headers=[*headers, *more, (HOP_HEADER, seal)], content=body)
    )


def bound() -> socket.socket:
    """A free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """The address at which a socket listens."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def served(app: ASGIApp, listener: socket.socket) -> AsyncIterator[uvicorn.Server]:
    """An application behind uvicorn in this event loop."""
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", server_header=False, date_header=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server._serve([listener]))
    try:
        await until_async(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def neighbours(*, store: MemoryStore | None = None, edge: HttpOptions | None = None) -> AsyncIterator[Neighbours]:
    """Both, on one store and at one instant; leases age when the test says so, and the owner can be stopped."""
    clock, now = Clock(), wall_clock()
    store, leases, witness = store or MemoryStore(), MortalLeases(clock), MemoryWitness()
    counts, edge = (Counted(), Counted()), edge or HttpOptions()
    with bound() as listener:
        owning, others = (
            Ownership(leases=leases, replica=ReplicaAddress(id=uuid4(), url=url), pepper=PEPPER, clock=clock)
            for url in (url_of(listener), NOWHERE)
        )
        owner = build_world(
            edge=replace(edge, drain_state=DrainState(owning.leave), telemetry=counts[0]),
            store=store,
            witness=witness,
            options=ReplicaOptions(ownership=owning),
            clock=lambda: now,
        )
        replica = Replica(
            store=store,
            witness=witness,
            pepper=PEPPER,
            entropy=SeededEntropy(),
            clock=wall_clock,
            options=ReplicaOptions(ownership=others),
        )
        app = created_app(replica, replace(edge, drain_state=DrainState(others.leave), telemetry=counts[1]))
        other = replace(owner, replica=replica, app=app, client=client_of(app))
        async with served(owner.app, listener) as server, owner.client, other.client:
            owning.open()
            others.open()
            yield Neighbours(
                owner=owner,
                other=other,
                owning=owning,
                others=others,
                leases=leases,
                clock=clock,
                owner_counts=counts[0],
                other_counts=counts[1],
                server=server,
            )
        for ownership in (owning, others):
            ownership.close()
        for each in (replica, owner.replica):
            each.close()


def visible(response: httpx.Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Everything that a client sees of a response."""
    return response.status_code, response.headers.raw, response.content
