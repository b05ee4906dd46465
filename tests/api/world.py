"""A small replica behind HTTP: one dataset, five people, a principal of each role; all real but the database."""

import asyncio
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from service.api.app import HttpOptions, create_app
from service.core.noise import Entropy
from service.ledger.model.api_keys import Pepper
from service.ledger.model.views import Role
from service.ledger.ports.witness import Witness
from service.query.parse import parse_query
from service.workflows.datasets import Registration
from service.workflows.replica import Replica, ReplicaOptions
from tests.digests import known_salt
from tests.factories import SeededEntropy
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S

ROLES: tuple[Role, ...] = ("curator", "analyst", "individual", "auditor")
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "country": {"type": "category", "categories": ["NO", "SE"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
        },
    },
    "visits": {"kind": "events", "key": "person_id", "columns": {"day": {"type": "integer", "lower": 0, "upper": 364}}},
}
PEOPLE = b"person_id,country,age\nada,NO,40\nbo,SE,41\ncy,NO,42\ndi,SE,43\ned,NO,44\n"
COUNT = b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":20.0}}'
PEPPER = Pepper(b"p" * 32)
CSV = {"Content-Type": "text/csv"}
_ROUTES: list[BaseRoute] = []


@dataclass(kw_only=True)
class World:
    """The application, a client of it, and a key of each role."""

    replica: Replica
    store: MemoryStore
    app: FastAPI
    client: httpx.AsyncClient
    keys: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    query_id: str = ""

    async def call(
        self, role: str | None, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        """One request by the principal of a role, or by a stranger."""
        sent = dict(headers or {})
        if role is not None:
            sent["Authorization"] = f"Bearer {self.keys[role]}"
        return await self.client.request(method, path, headers=sent, **options)

    async def ask(self, key: str, body: bytes = COUNT, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """One query by the analyst."""
        sent = {"Idempotency-Key": key, "Content-Type": "application/json", **(headers or {})}
        return await self.call("analyst", "POST", "/v1/datasets/care/queries", headers=sent, content=body)

    async def close(self) -> None:
        """No request comes any more."""
        await self.client.aclose()
        self.replica.close()

    def enrol(self, name: str, role: Role, **bounds: Any) -> None:
        """One more principal, under a name of its own."""
        principal, key = self.replica.principals.create(role=role, name=name, **bounds)
        self.keys[name], self.ids[name] = key, str(principal.id)


def created_app(replica: Replica, options: HttpOptions | None = None, *, upload_bytes_max: int = 2**20) -> FastAPI:
    """An application of its own that has the routes of the first one of this process.

    The framework builds each route of an application when it is first called, up to a quarter of a second in all.
    """
    app = create_app(replica, upload_bytes_max=upload_bytes_max, options=options)
    _ROUTES.extend([] if _ROUTES else app.router.routes)
    app.router.routes[:] = _ROUTES
    return app


def wall_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


def client_of(app: ASGIApp) -> httpx.AsyncClient:
    """A client without sockets."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sparing")


def answer_of(app: ASGIApp, request: httpx.Request) -> httpx.Response:
    """The reply of an application to a client that waits."""

    async def call() -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        async with client_of(app) as client:
            return await client.send(sent)

    reply = asyncio.run(call())
    return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def empty_replica(
    *, entropy: Entropy | None = None, clock: Callable[[], datetime] = wall_clock, store: MemoryStore | None = None
) -> Replica:
    """A replica in memory without a dataset."""
    return Replica(
        store=store or MemoryStore(),
        witness=MemoryWitness(),
        pepper=PEPPER,
        entropy=entropy or SeededEntropy(),
        clock=clock,
    )


def build_world(
    *,
    edge: HttpOptions | None = None,
    store: MemoryStore | None = None,
    witness: Witness | None = None,
    options: ReplicaOptions | None = None,
    app: FastAPI | None = None,
    clock: Callable[[], datetime] = wall_clock,
    entropy: Entropy | None = None,
    **settings: int,
) -> World:
    """A replica with the dataset `care`, five people, and the analyst's first release, which `query_id` names.

    With an ownership among the `options`, the replica owns the dataset. With `app`, made by an earlier call with no
    `edge`, that application serves this replica from now on.
    """
    store = store or MemoryStore()
    replica = Replica(
        store=store,
        witness=witness or MemoryWitness(),
        pepper=PEPPER,
        entropy=entropy or SeededEntropy(),
        clock=clock,
        options=options,
    )
    replica.curators.new_salt = known_salt
    if app is None:
        app = created_app(replica, edge, **settings)
    app.state.replica = replica
    world = World(replica=replica, store=store, app=app, client=client_of(app))
    registration = {"name": "care", "guarantee": {"rho": "1"}, "capacity": 1000, "tables": TABLES}
    replica.curators.register(Registration.model_validate(registration))
    if replica.ownership is not None:
        replica.ownership.claim(1)
    replica.curators.append_rows("care", "people", "text/csv", io.BytesIO(PEOPLE))
    for role in ROLES:
        world.enrol(role, role, **({"dataset": "care", "individual": "ada"} if role == "individual" else {}))
    world.enrol("spare", "auditor")
    if replica.ownership is not None:
        replica.ownership.claim(1)  # on a slow machine the first lease has run out
    analyst = replica.principals.authenticate_all([world.keys["analyst"]])[0]
    if analyst is None:
        raise RuntimeError("a key just made must be known")
    promise = replica.analysts.submit(analyst, "care", "first", parse_query(COUNT))
    world.query_id = str(promise.result(timeout=PATIENCE_S).query_id)
    if promise.unit is not None and promise.unit.ticket is not None:
        promise.unit.ticket.release()
    return world
