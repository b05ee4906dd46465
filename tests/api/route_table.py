"""Every route of the wire contract: its roles, and one call that works in the world of the tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    title: str = ""
    dataset: str = "care"

    def __str__(self) -> str:
        return f"{self.method} {self.template}"

    def path(self, world: World) -> str:
        """The address of what is there."""
        return self.template.format(**self.names(world))

    def names(self, world: World) -> dict[str, str]:
        """The names that addresses have, of what is there."""
        names = {"dataset": self.dataset, "table": "people", "query_id": world.query_id}
        return names | {"principal": world.ids["spare"]}

    async def call(self, world: World, role: str | None, *, path: str | None = None, **instead: Any) -> httpx.Response:
        """The call that works, here or at another address or with other options, under one request id."""
        headers = {"X-Request-Id": "one-request", **self.headers}
        options = {**self.options, **instead}
        return await world.call(role, self.method, path or self.path(world), headers=headers, **options)

    def names_individual(self) -> bool:
        """Tell whether its address has the key of an individual."""
        return "individual" in self.options.get("params", {})


def route(roles: set[str], method: str, template: str, **call: Any) -> Route:
    """A line of the table below."""
    return Route(method=method, template=f"/v1{template}", roles=frozenset(roles), **call)


COUNT_ITEM: dict[str, Any] = {"count": {}}
QUESTIONS: dict[str, dict[str, Any]] = {
    "Counts by country and age": {"select": [COUNT_ITEM], "group_by": ["country", "age"]},
    "A count beside a histogram": {
        "select": [COUNT_ITEM, {"histogram": {"column": "age"}}],
        "group_by": ["country"],
        "noise": {"half_width": 500, "confidence": 0.95},
    },
    "A histogram": {"select": [{"histogram": {"column": "country"}}], "noise": {"rho": 0.0005}},
    "A sum of a calculated value": {
        "select": [{"sum": {"of": {"abs": {"sub": [{"col": "age"}, 40]}}}}],
        "where": {"or": [{"is_null": {"col": "country"}}, {"between": [{"col": "age"}, 18, 64]}]},
        "per_individual": {"l2_clip": 30},
    },
    "Groups by bins with edges": {
        "select": [COUNT_ITEM],
        "group_by": [{"bin": {"column": "age", "edges": [0, 18.5, 65]}}],
    },
    "Groups by bins of one width": {"select": [COUNT_ITEM], "group_by": [{"bin": {"column": "age", "width": 10}}]},
    "A sum of weights": {"select": [{"linear": {"column": "country", "weights": {"indices": ["NO"], "values": [2]}}}]},
    "Individuals with an event": {
        "from": "visits",
        "select": [{"count_individuals": {}}],
        "where": {"not": {"eq": [{"col": "people.country"}, "NO"]}},
        "per_individual": {"rows": 2},
    },
    "Events by what the individual's record says": {
        "from": "visits",
        "select": [COUNT_ITEM],
        "group_by": ["people.country"],
        "per_individual": {"rows": 2},
    },
    "Means, variances and quantiles": {
        "select": [
            COUNT_ITEM,
            *({kind: {"column": "age"}} for kind in ("mean", "variance", "stddev")),
            {"quantile": {"column": "age", "probability": 0.5, "bins": 2}},
            {"ratio": {"of": {"sum": {"column": "age"}}, "to": COUNT_ITEM}},
            {"difference": {"of": {"mean": {"column": "age"}}, "by": "country", "from": "NO", "to": "SE"}},
        ],
        "group_by": ["country"],
        "noise": {"share": 0.1},
    },
    "People with a tenth of the budget left": {"select": [{"active": {"share": 0.1}}], "noise": {"share": 0.005}},
}
QUESTIONS = {title: {"version": 1, "noise": {"sigma": 500}, **asked} for title, asked in QUESTIONS.items()}
"""Queries of every kind, by what they ask; each is answered."""

QUERY = {"content": COUNT}
TITLE = "The number of people"
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
    route({ANALYST}, "POST", "/datasets/{dataset}/queries", title=TITLE, headers=KEYED, options=QUERY),
    route({ANALYST}, "DELETE", "/datasets/{dataset}/queries", headers=KEYED, status=409),  # it waits no more
    route({CURATOR, ANALYST}, "POST", "/datasets/{dataset}/queries/preview", title=TITLE, options=QUERY),
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

_QUERIES = [each for each in ROUTES if each.title]
_ROWS, _MONITOR = (next(each for each in ROUTES if each.template.endswith(end)) for end in ("/rows", "/monitor"))
NDJSON = {"Content-Type": "application/x-ndjson"}
SHOWN = [
    *(Route(method="GET", template=path, roles=frozenset()) for path in ("/livez", "/readyz")),
    *ROUTES,
    *(replace(each, title=title, options={"json": asked}) for each in _QUERIES for title, asked in QUESTIONS.items()),
    replace(_ROWS, headers=NDJSON, options={"content": b'{"person_id":"fa","country":"NO","age":40}\n'}),
    replace(_MONITOR, dataset="watched", status=200),
]
"""The requests that the OpenAPI document shows: those above, and further ones of the same routes."""


def served(app: FastAPI) -> set[tuple[str, str]]:
    """(method, path) of everything the application answers, those of the framework's own included."""
    contexts = [context for context in iter_route_contexts(app.routes) if context.path is not None]
    paths = ((context.methods or set(), str(context.path).replace(":path}", "}")) for context in contexts)
    return {(method, path) for methods, path in paths for method in methods}
