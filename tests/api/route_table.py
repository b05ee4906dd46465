"""Every route of the wire contract: its roles, and one call that works in the world of the tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from tests.api.world import COUNT, CSV, TABLES, World
from tests.engine.ingest.uploads import ARROW, arrow

PUBLIC = {("GET", "/livez"), ("GET", "/readyz"), ("GET", "/openapi.json"), ("HEAD", "/openapi.json")}
AUDIENCES = ("analyst", "auditor", "curator", "individual")
PAGES = {("GET", f"/{name}{place}") for name in AUDIENCES for place in ("", "/{place}")}
PAGES |= {("GET", path) for path in ("/", "/sign-in", "/docs", "/assets/{name}", "/guide", "/guide/{place}")}
PAGES |= {("GET", f"/sign-in/{name}") for name in ("options", "provider", "callback")}
"""The pages: the same public bytes for everyone, and in no document of the interface."""

CURATOR, ANALYST, INDIVIDUAL, AUDITOR = "curator", "analyst", "individual", "auditor"


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route of the contract, with a call that succeeds with `status` for each of `roles`."""

    method: str
    template: str
    roles: frozenset[str]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.template}"

    def path(self, world: World) -> str:
        """The address of what is there."""
        names = {"dataset": "care", "table": "people", "query_id": world.query_id}
        return self.template.format(**names, principal=world.ids["spare"])

    async def call(self, world: World, role: str | None, *, path: str | None = None, **instead: Any) -> httpx.Response:
        """The call that works, here or at another address or with other options, under one request id."""
        headers = {"X-Request-Id": "one-request", **self.headers}
        options = {**self.options, **instead}
        return await world.call(role, self.method, path or self.path(world), headers=headers, **options)

    def names_individual(self) -> bool:
        """Whether its address has the key of an individual."""
        return "individual" in self.options.get("params", {})


def route(roles: set[str], method: str, template: str, **call: Any) -> Route:
    """A line of the table below."""
    return Route(method=method, template=f"/v1{template}", roles=frozenset(roles), **call)


QUERY = {"content": COUNT}
KEYED = {"Idempotency-Key": "k1"}
REGISTRATION = {"name": "new", "guarantee": {"epsilon": "1", "delta": "1e-6"}, "capacity": 10, "tables": TABLES}
BATCH = {"content": b'{"queries":[{"idempotency_key":"b1","query":' + COUNT + b"}]}"}
FILE = {"content": arrow({"person_id": ["fa"], "age": [40]})}
ED = {"params": {"individual": "ed"}}
ROWS = {"content": b"person_id,country,age\nfa,NO,40\n"}

ROUTES = [
    route({CURATOR}, "POST", "/datasets", status=201, options={"json": REGISTRATION}),
    route({CURATOR}, "POST", "/files/preview", headers={"Content-Type": ARROW}, options=FILE),
    route({CURATOR, ANALYST}, "GET", "/datasets"),
    route({CURATOR, ANALYST}, "GET", "/datasets/{dataset}"),
    route({CURATOR, ANALYST}, "GET", "/datasets/{dataset}/monitor", status=404),  # it has none
    route({CURATOR}, "PATCH", "/datasets/{dataset}", options={"json": {"capacity": 1001}}),
    route({CURATOR}, "POST", "/datasets/{dataset}/tables/{table}/rows", headers=CSV, options=ROWS),
    route({CURATOR}, "GET", "/datasets/{dataset}/individual", options=ED),
    route({CURATOR}, "GET", "/datasets/{dataset}/record", options=ED),
    route({CURATOR}, "PATCH", "/datasets/{dataset}/individual", options={**ED, "json": {"age": 45}}),
    route({CURATOR}, "DELETE", "/datasets/{dataset}/individual", status=204, options=ED),
    route({CURATOR}, "POST", "/datasets/{dataset}/epochs", status=201),
    route({CURATOR}, "GET", "/datasets/{dataset}/budgets"),
    route({CURATOR}, "GET", "/datasets/{dataset}/budgets/summary"),
    route({CURATOR}, "GET", "/datasets/{dataset}/budgets/history"),
    route({CURATOR}, "GET", "/datasets/{dataset}/budgets/export"),
    route({CURATOR}, "POST", "/datasets/{dataset}/forecast", options=QUERY),
    route({CURATOR}, "GET", "/datasets/{dataset}/alarm"),
    route({CURATOR}, "PUT", "/datasets/{dataset}/alarm", options={"json": {"share": 0.1}}),
    route({CURATOR}, "POST", "/datasets/{dataset}/verification", status=202),
    route({CURATOR}, "GET", "/datasets/{dataset}/verification"),
    route({CURATOR}, "GET", "/datasets/{dataset}/backup"),
    route({CURATOR}, "GET", "/datasets/{dataset}/events", options={"params": {"seconds": 0}}),
    route({CURATOR}, "GET", "/datasets/{dataset}/receipts", options={"params": {"individual": "ada"}}),
    route({CURATOR}, "GET", "/datasets/{dataset}/divergence", options={"params": {"individual": "ada"}}),
    route({CURATOR}, "GET", "/datasets/{dataset}/erasure-requests"),
    route({CURATOR}, "GET", "/datasets/{dataset}/acts"),
    route({CURATOR, AUDITOR}, "GET", "/datasets/{dataset}/ledger"),
    route({CURATOR}, "POST", "/principals", status=201, options={"json": {"role": "analyst", "name": "new"}}),
    route({CURATOR}, "GET", "/principals"),
    route({CURATOR}, "PATCH", "/principals/{principal}", options={"json": {"name": "Ann"}}),
    route({CURATOR}, "POST", "/principals/{principal}/key", status=201),
    route({CURATOR}, "DELETE", "/principals/{principal}", status=204),
    route({CURATOR}, "GET", "/datasets/{dataset}/analysts"),
    route({CURATOR}, "POST", "/datasets/{dataset}/individuals/keys", status=201, options={"json": ["bo", "cy"]}),
    route({ANALYST}, "POST", "/datasets/{dataset}/queries", headers=KEYED, options=QUERY),
    route({ANALYST}, "DELETE", "/datasets/{dataset}/queries", headers=KEYED, status=409),  # it waits no more
    route({CURATOR, ANALYST}, "POST", "/datasets/{dataset}/queries/preview", options=QUERY),
    route({ANALYST}, "POST", "/datasets/{dataset}/queries/batch", options=BATCH),
    route({ANALYST}, "GET", "/queries/{query_id}"),
    route({ANALYST}, "GET", "/queries"),
    route({ANALYST}, "GET", "/allowances"),
    route({INDIVIDUAL}, "GET", "/me/budgets"),
    route({INDIVIDUAL}, "GET", "/me/receipts"),
    route({INDIVIDUAL}, "POST", "/me/budgets/{dataset}/lower", options={"json": {"limit_rho": "0.9"}}),
    route({INDIVIDUAL}, "POST", "/me/budgets/{dataset}/resume"),
    route({INDIVIDUAL}, "GET", "/me/record/{dataset}"),
    route({INDIVIDUAL}, "GET", "/me/erasure/{dataset}"),
    route({INDIVIDUAL}, "POST", "/me/erasure/{dataset}", status=202),
    route({CURATOR, ANALYST, INDIVIDUAL, AUDITOR}, "POST", "/session", status=201),
    route({CURATOR, ANALYST, INDIVIDUAL, AUDITOR}, "GET", "/session"),
    route({CURATOR, ANALYST, INDIVIDUAL, AUDITOR}, "DELETE", "/session", status=204),
    route({CURATOR}, "DELETE", "/datasets/{dataset}", status=409),  # it has answered
    route({CURATOR}, "POST", "/datasets/{dataset}/archive", options={"json": {"rows": "keep"}}),
]


def served(app: FastAPI) -> set[tuple[str, str]]:
    """(method, path) of everything the application answers, those of the framework's own included."""
    contexts = [context for context in iter_route_contexts(app.routes) if context.path is not None]
    paths = ((context.methods or set(), str(context.path).replace(":path}", "}")) for context in contexts)
    return {(method, path) for methods, path in paths for method in methods}
