"""The examples of the OpenAPI document, sent one after the other to a service in memory that begins empty."""

import io
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from service.api.app import create_app
from service.api.openapi import Example, examples
from service.maintenance.summary_points import SummaryPoints
from tests.api.world import Settings, World, client_of, empty_replica
from tests.engine.ingest.uploads import ARROW, arrow
from tests.memory.store import MemoryStore
from tests.waiting import until_async

JSON: Final = "application/json"
CSV: Final = "text/csv"
FILES: Final[dict[str, tuple[str, bytes]]] = {
    "preview_file": (
        ARROW,
        arrow({"person_id": ["ada", "bo"], "age": [40, 41], "spend": [120.5, 80.0], "tags": [[], []]}),
    )
}
"""The bodies that are no text, which the document cannot show, with their types."""
ROLES: Final = ("auditor", "individual", "analyst", "curator")
"""Of several roles that an operation is for, the first one here sends its example: it is shown the least."""
WITHOUT_EFFECT: Final = {"cancel": 409}
"""Without a schedule no query waits, so that none can be cancelled (`tests/api/test_cancelling.py` does)."""
REQUEST_ID: Final = "5f0c9a4e6d1b47f2a3c8e09b7d21f604"
NOW: Final = datetime(2026, 3, 31, 10, 36, 5, tzinfo=UTC)
PEOPLE: Final = 4995
"""So many join the five of the examples, so that numbers look like those of a town."""
_VOLATILE: Final = [
    re.compile(pattern)
    for pattern in (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",  # an id
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",  # a time
        r"[0-9a-f]{64}",  # a hash of an id
        r"sparing_[0-9a-f]{32}_\S{43}",  # a key
        r"[A-Za-z0-9_-]{40,}",  # a cursor that has an id in it
    )
]


def empty_world() -> World:
    """A service without datasets at a fixed time, and a curator's key and an auditor's."""
    store = MemoryStore()
    replica = empty_replica(store=store, clock=lambda: NOW)
    app = create_app(replica, Settings())
    world = World(replica=replica, store=store, app=app, client=client_of(app))
    world.enrol("curator", "curator")
    world.enrol("auditor", "auditor")
    return world


class Story:
    """The examples in their order; what one response gives, the later requests use."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in world.app.openapi()["paths"].items()
            for method, operation in methods.items()
        }
        self.given: dict[str, str] = {}

    async def told(self) -> AsyncIterator[tuple[str, Example, httpx.Response]]:
        """Each operation, its example and the response that the service gives."""
        for name, example in examples().items():
            await self._prepare(name)
            (media_type, body), *further = [*example.get("request", {}).items()] or [FILES.get(name, ("", None))]
            response = await self._send(name, example, media_type, body)
            yield name, example, response
            self._remember(name, response)
            others = [(JSON, each) for each in example.get("others", {}).values() if each != body]
            for number, (kind, other) in enumerate([*further, *others]):
                reply = await self._send(name, example, kind, other, suffix=f"-{number}")
                assert reply.status_code == response.status_code, (name, other, reply.text)

    async def _send(
        self, name: str, example: Example, media_type: str, body: object, *, suffix: str = ""
    ) -> httpx.Response:
        method, path, operation = self.places[name]
        stated = example.get("parameters", {})
        query: dict[str, str] = {}
        headers = {"X-Request-Id": REQUEST_ID, **({"Content-Type": media_type} if media_type else {})}
        for parameter in operation.get("parameters", ()):
            key = parameter["name"]
            value = str(self.given.get(key, stated.get(key)))
            if parameter["in"] == "path":
                path = path.replace(f"{{{key}}}", value)
            elif key in stated:
                place = query if parameter["in"] == "query" else headers
                place[key] = value + suffix if key == "Idempotency-Key" else value
        content = body if isinstance(body, str | bytes) else json.dumps(body) if body is not None else None
        return await self.world.call(role_of(operation), method, path, params=query, headers=headers, content=content)

    async def _prepare(self, name: str) -> None:
        """Do as the service's surroundings would before the operation."""
        replica = self.world.replica
        match name:
            case "create_principal":
                people = "".join(map(_person, range(PEOPLE)))
                header = "person_id,country,age,spend,member,joined\n"
                replica.curators.append_rows("town", "people", CSV, io.BytesIO((header + people).encode()))
            case "read_budget_history":
                points, record = SummaryPoints(self.world.store, clock=lambda: NOW), replica.registry.record("town")
                writer = replica.registry.writer(record)
                points.writer_opened(record, writer.guard, writer)
                points.step()
            case "read_verification":
                await until_async(lambda: replica.overview.verification("town").state != "running")
            case "delete_dataset":
                body = examples()["register_dataset"]["request"][JSON] | {"name": "trial"}
                assert (await self.world.call("curator", "POST", "/v1/datasets", json=body)).status_code == 201

    def _remember(self, name: str, response: httpx.Response) -> None:
        match name:
            case "create_principal" | "replace_key":
                self.given["principal"], self.world.keys["analyst"] = response.json()["id"], response.json()["key"]
            case "create_individuals_keys":
                self.world.keys["individual"] = response.json()[0]["api_key"]
            case "ask":
                self.given["query_id"] = response.json()["id"]


def role_of(operation: dict[str, Any]) -> str | None:
    """The role whose key an example is sent with; of an operation for everyone the curator's."""
    if "security" not in operation:
        return None
    tags = operation["tags"] if len(operation["tags"]) < len(ROLES) else ["curator"]
    return next(role for role in ROLES if role in tags)


def media_type_of(response: httpx.Response) -> str:
    """The media type of a response, without its parameters; empty where there is no body."""
    return str(response.headers.get("content-type", "")).partition(";")[0] if response.content else ""


def body_of(response: httpx.Response) -> Any:
    """The body as an example states it: a JSON document as such, the first lines of a table, other text as text."""
    if media_type_of(response) == JSON:
        return response.json()
    return "".join(response.text.splitlines(keepends=True)[:3])


def agree(shown: Any, true: Any) -> bool:
    """Whether two documents are the same but for ids, times, keys, hashes of ids, and noisy values."""
    if isinstance(shown, dict) and isinstance(true, dict):
        names = shown.keys() - {"values"} if _is_answer(shown) else shown.keys()
        return shown.keys() == true.keys() and all(agree(shown[name], true[name]) for name in names)
    if isinstance(shown, list) and isinstance(true, list):
        return len(shown) == len(true) and all(map(agree, _ordered(shown), _ordered(true)))
    if isinstance(shown, str) and isinstance(true, str):
        return shown == true or any(each.fullmatch(shown) and each.fullmatch(true) for each in _VOLATILE)
    return type(shown) is type(true) and bool(shown == true)


def _ordered(rows: list[Any]) -> list[Any]:
    """Principals are listed by their ids, which are random: here by their names."""
    is_of_principals = all(isinstance(row, dict) and {"name", "created_at"} <= row.keys() for row in rows)
    return sorted(rows, key=lambda row: row["name"]) if is_of_principals else rows


def _is_answer(document: dict[str, Any]) -> bool:
    return "coverage_certified" in document and len(document.get("values", ())) == document["dimension"]


def _person(number: int) -> str:
    country = ("NO", "SE")[number % 2]
    member, joined = ("true", "false")[number % 3 == 0], f"{2020 + number % 6}-{1 + number % 12:02}-15"
    return f"p{number:04},{country},{number * 7 % 90},{number % 480},{member},{joined}\n"
