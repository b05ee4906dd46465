"""The refusals in the document: those that can be provoked are there, and those that are there can be provoked."""

from collections.abc import AsyncIterator

import httpx
import pytest

from service.api.auth import COOKIE
from service.api.problems import MEDIA_TYPE, PROBLEMS
from tests.api.described import Document, operations, resolved, the_document
from tests.api.route_table import ROUTES, Route
from tests.api.world import ROLES, World

Told = dict[str, set[tuple[str, str]]]
PREFIX = "urn:sparing:problem:"
AT_THE_DOOR = frozenset({"unauthorized", "role-required", "not-found", "cross-site-request"})
"""The problems that need nothing but a request: wherever the document has one, it can be provoked."""
UNNAMED = {"GET /v1/me/budgets", "GET /v1/me/receipts", "POST /v1/session"}
"""Their 404 comes when the caller is erased or revoked while they are under way."""


@pytest.fixture
def document() -> Document:
    """The document as it is made."""
    return the_document()


@pytest.fixture(scope="module")
def told() -> Told:
    """By method and path: (status, slug) of every refusal in the document."""
    document = the_document()
    return {
        f"{each.method} {each.path}": {
            (status, slug)
            for status, response in each.body["responses"].items()
            if status[0] in "45"
            for slug in resolved(document, response)["content"][MEDIA_TYPE]["examples"]
        }
        for each in operations(document)
    }


def _refusal(response: httpx.Response) -> tuple[str, str] | None:
    if response.status_code < 400:
        return None
    return str(response.status_code), response.json()["type"].removeprefix(PREFIX)


async def _as_others(world: World, route: Route) -> AsyncIterator[httpx.Response]:
    """Calls without a key, with the keys of all other roles, and with a cookie from another site."""
    yield await route.call(world, None)
    for role in set(ROLES) - route.roles:
        yield await route.call(world, role)
    headers = {"Cookie": f"{COOKIE}=x", "Sec-Fetch-Site": "cross-site"}
    yield await world.client.request(route.method, route.path(world), headers=headers)


async def _of_nothing(world: World, route: Route) -> AsyncIterator[httpx.Response]:
    """Calls about things that do not exist."""
    true = {"dataset": "care", "table": "people", "query_id": world.query_id}
    true["principal"] = world.ids["spare"]
    for name in true:
        if f"{{{name}}}" in route.template:
            path = route.template.format(**{**true, name: "nothing"})
            for role in route.roles:
                yield await route.call(world, role, path=path)
    if route.names_individual():
        yield await route.call(world, min(route.roles), params={"individual": "nothing"})


async def _crooked(world: World, route: Route) -> AsyncIterator[httpx.Response]:
    """Calls with bodies, parameters and keys that are wrong."""
    role, path, stated = min(route.roles), route.path(world), route.options.get("params", {})
    body = {name: value for name, value in route.options.items() if name != "params"}
    for content in (b"", b"{", b"[]", b'{"odd": 1}', b"\xff"):
        yield await world.call(role, route.method, path, content=content, headers=route.headers, params=stated)
    for wrong in ({"limit": "0"}, {"cursor": "?"}, {"seconds": "x"}, {"delimiter": "x"}, {"expires_at": "x"}):
        yield await world.call(role, route.method, path, params=stated | wrong, headers=route.headers, **body)
    for key in ("", "\x7f", "first"):
        headers = {**route.headers, "Idempotency-Key": key}
        yield await world.call(role, route.method, path, headers=headers, params=stated, **body)
    yield await world.call(role, route.method, path, headers={"X-Long": "x" * 20_000})
    yield await world.call(role, route.method, f"{path}?{'x' * 3000}")
    if body:
        yield await world.call(role, route.method, path, headers={"Content-Length": str(10**9)})


async def test_refusals_are_in_the_document(world: World, told: Told) -> None:
    """Every refusal that can be provoked; and those that come before anything is read, wherever they are said to."""
    unsaid = {}
    for route in ROUTES:
        found = set()
        for calls in (_as_others(world, route), _of_nothing(world, route), _crooked(world, route)):
            found |= {_refusal(response) async for response in calls}
        there = told[str(route)]
        never = {("404", "not-found")} if str(route) in UNNAMED else set()
        unsaid[str(route)] = {
            "not in the document": found - {None} - there,
            "only in the document": {each for each in there - never if each[1] in AT_THE_DOOR} - found,
        }
    assert {name: each for name, each in unsaid.items() if any(each.values())} == {}


@pytest.mark.parametrize("slug", ["dataset-archived", "ledger-damaged"])
async def test_a_closed_dataset_refuses_as_the_document_says(world: World, told: Told, slug: str) -> None:
    """An archived one, and one whose ledger was found damaged, in these operations and no others."""
    if slug == "dataset-archived":
        reply = await world.call("curator", "POST", "/v1/datasets/care/archive", json={"rows": "keep"})
        assert reply.status_code == 200
    else:
        world.replica.registry.guard(world.replica.registry.record("care")).close_for_damage()
    for route in ROUTES:
        found = {_refusal(await route.call(world, role)) for role in sorted(route.roles)}
        assert found - {None} <= told[str(route)], route
        assert ((str(PROBLEMS[slug].status), slug) in found) == (
            (str(PROBLEMS[slug].status), slug) in told[str(route)]
        ), route


def test_every_kind_of_problem_can_occur_somewhere(told: Told) -> None:
    """But for the one that belongs to a path and to no operation of it, and for those of connections."""
    there = {slug for refusals in told.values() for _, slug in refusals}
    of_connections = {"malformed-request", "not-implemented", "too-many-connections", "http-version-unsupported"}
    assert PROBLEMS.keys() - there == {"method-not-allowed"} | of_connections
    assert all(int(status) == PROBLEMS[slug].status for refusals in told.values() for status, slug in refusals)
    drained = {name for name, refusals in told.items() if ("503", "draining") in refusals}
    assert told.keys() - drained == {"GET /livez", "GET /readyz"}
    assert ("503", "not-ready") in told["GET /readyz"]


def test_a_refusal_is_a_problem_document(document: Document) -> None:
    """In the one shape, with the id of the request; those that time cures say when to come back."""
    for operation in operations(document):
        refusal = operation.body["responses"]["default"]["content"][MEDIA_TYPE]["schema"]
        assert refusal == {"$ref": "#/components/schemas/Problem"}
        for status, response in operation.body["responses"].items():
            if status[0] in "45":
                whole = resolved(document, response)
                assert whole["content"].keys() == {MEDIA_TYPE}
                assert "X-Request-Id" in whole["headers"]
                assert ("Retry-After" in whole["headers"]) == (status in {"429", "503", "507"})
    assert "HTTPValidationError" not in document["components"]["schemas"]
