"""The application as a whole: what every response has in common, and what is not there."""

import io
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import NO_TELEMETRY, create_app
from service.api.auth import COOKIE, REQUEST_HEADER
from service.api.middleware.request_context import HEADERS
from service.api.routes.pages import page_files
from tests.api.route_table import ROUTES, Route, served
from tests.api.world import COUNT, CSV, ROLES, World, build_world
from tests.engine.ingest.uploads import ARROW

DYNAMIC = {"x-request-id", "content-length", "set-cookie"}


async def test_no_page_loads_anything_from_elsewhere(world: World) -> None:
    """The documents of the framework, whose scripts come from another server, are not served."""
    for path in ("/redoc", "/docs/oauth2-redirect"):
        assert (await world.client.get(path)).status_code == 404
    for path in ("/docs", "/sign-in", *(f"/{role}" for role in ROLES)):
        page = await world.client.get(path)
        assert page.status_code == 200
        assert "http" not in page.text
    assert "http" not in re.sub(r"urn:|\bhttp\b", "", (await world.client.get("/openapi.json")).text.lower())


async def test_a_slash_too_many_is_not_redirected(world: World) -> None:
    """A redirect would tell which paths there are, and lose the body on the way."""
    assert (await world.call("curator", "GET", "/v1/datasets/")).status_code == 404


def test_nothing_is_recorded_by_the_framework(world: World) -> None:
    """Its telemetry would export the text of exceptions wherever an environment variable says so."""
    assert not any(NO_TELEMETRY.values())
    assert world.app._telemetry["logs"] is False


def test_every_replica_gets_an_application_of_its_own(world: World) -> None:
    """Nothing is kept in the module."""
    other = create_app(world.replica, upload_bytes_max=1)
    assert isinstance(other, FastAPI)
    assert other is not world.app
    assert served(other) == served(world.app)


async def test_uploads_have_a_limit_of_their_own() -> None:
    """The limit is that of the settings; everything else stays at 256 KiB."""
    world = build_world(upload_bytes_max=2**19)
    rows = b"person_id,country,age\n" + (b"x" * 693 + b",NO,1\n") * 500
    path = "/v1/datasets/care/tables/people/rows"
    accepted = await world.call("curator", "POST", path, headers=CSV, content=rows)
    refused = await world.call("curator", "POST", path, headers=CSV, content=rows * 2)
    looked = [
        await world.call("curator", "POST", "/v1/files/preview", headers={"Content-Type": ARROW}, content=body)
        for body in (rows, rows * 2)
    ]
    elsewhere = await world.call("curator", "POST", "/v1/principals", content=rows)
    world.replica.close()
    assert (accepted.status_code, refused.status_code, elsewhere.status_code) == (422, 413, 413)
    assert [each.status_code for each in looked] == [422, 413]


async def test_every_response_has_the_same_constant_headers(world: World) -> None:
    """Answers and refusals, to every caller, that no browser or proxy keeps; the request's own id comes back."""
    for route in ROUTES:
        for role in (None, *sorted(route.roles)):
            response = await route.call(world, role)
            assert {name: response.headers[name] for name in HEADERS} == dict(HEADERS), route
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["x-request-id"] == "one-request"


async def test_every_body_says_what_it_is(world: World) -> None:
    """A type, and with text its charset; a browser is told to believe it, and to run nothing of what the API sends."""
    replies = [await route.call(world, role) for route in ROUTES for role in (None, min(route.roles))]
    replies += [await world.client.get(path) for path in ("/", "/sign-in", "/docs", "/guide/", "/nothing", "/livez")]
    replies += [await world.client.get(f"/assets/{name}") for name in page_files() if not name.endswith(".html")]
    for reply in replies:
        kind, _, rest = reply.headers.get("content-type", "").partition(";")
        assert bool(kind) or not reply.content, reply.request.url
        assert "charset=utf-8" in rest.lower() or (not kind.startswith("text/") and not kind.endswith("xml")), kind
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert {" base-uri 'none'", " frame-ancestors 'none'"} <= set(policy.split(";"))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://sparing.evil.example"])
async def test_no_other_origin_is_let_in(world: World, origin: str) -> None:
    """No answer allows a script of another origin to read it, and a preflight is refused."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": REQUEST_HEADER,
    }
    for path in ("/", "/sign-in", "/v1/session", "/v1/datasets", "/openapi.json"):
        for method in ("GET", "OPTIONS", "POST"):
            reply = await world.call("curator", method, path, headers=asked)
            assert [name for name in reply.headers if name.startswith("access-control-")] == []
            assert method != "OPTIONS" or reply.status_code == 405
            assert reply.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "TRACK"])
async def test_no_request_is_sent_back(world: World, method: str) -> None:
    """A method that would show a script its own headers is not there."""
    for path in ("/", "/v1/session", "/v1/datasets"):
        reply = await world.call("curator", method, path, headers={"X-Secret": "mirrored"})
        assert reply.status_code == 405
        assert "mirrored" not in reply.text + str(reply.headers)


async def test_headers_of_proxies_change_nothing(world: World) -> None:
    """Neither the address nor the scheme, host or path that a caller claims to come by is believed."""
    claims = {
        "Forwarded": "for=10.0.0.1;host=evil.example;proto=https",
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Host": "localhost",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/other",
        "X-Original-URL": "/v1/principals",
        "X-HTTP-Method-Override": "DELETE",
        "X-Real-IP": "127.0.0.1",
        "X-User-ID": world.ids["curator"],
    }
    for role, method, path in (
        ("curator", "GET", "/v1/datasets"),
        ("analyst", "POST", "/v1/session"),
        (None, "GET", "/"),
    ):
        plain = await world.call(role, method, path, headers={"X-Request-Id": "one"})
        claimed = await world.call(role, method, path, headers={"X-Request-Id": "one", **claims})
        for reply in (plain, claimed):
            cookie = reply.headers.pop("set-cookie", "")
            assert not cookie or cookie.startswith(f"{COOKIE}=")
        assert (claimed.status_code, claimed.content, claimed.headers) == (
            plain.status_code,
            plain.content,
            plain.headers,
        )


async def test_an_address_is_decoded_once(world: World) -> None:
    """A key that looks encoded is itself and no other."""
    once = await world.call("curator", "GET", "/v1/datasets/care/individual?individual=%65d")
    twice = await world.call("curator", "GET", "/v1/datasets/care/individual?individual=%2565d")
    assert (once.status_code, once.json()["key"], twice.status_code) == (200, "ed", 404)


async def test_a_read_changes_nothing(world: World) -> None:
    """GET and HEAD leave ledger, acts, principals and sign-ins as they are, in every role."""
    before = _kept(world)
    for route in ROUTES:
        if route.method == "GET":
            for role in sorted(route.roles):
                await route.call(world, role)
                await world.call(role, "HEAD", route.path(world))
    assert _kept(world) == before
    await world.ask("new", COUNT[:-1] + b',"reuse":false}')
    assert _kept(world) != before


def _kept(world: World) -> tuple[Any, ...]:
    store = world.store
    return store.head(1), dict(store.principal_records), dict(store.sign_ins.kept)


async def test_headers_do_not_depend_on_data() -> None:
    """Two replicas that differ in their people alone answer with the same status, headers, names and lengths of errors.

    The length of an answer is that of its noisy digits, which are paid for; everything else is equal.
    """
    bare, full = (build_world(clock=lambda: datetime(2026, 3, 31, tzinfo=UTC)) for _ in range(2))
    more = b"person_id,country,age\n" + b"".join(b"p%d,NO,50\n" % number for number in range(500))
    full.replica.curators.append_rows("care", "people", "text/csv", io.BytesIO(more))
    seen = [[await _seen(world, route) for route in ROUTES if "analyst" in route.roles] for world in (bare, full)]
    for world in (bare, full):
        await world.close()
    assert seen[0] == seen[1]


async def _seen(world: World, route: Route) -> tuple[int, dict[str, str], Any]:
    response = await route.call(world, "analyst")
    headers = {name: value for name, value in response.headers.items() if name not in DYNAMIC | {"x-query-id"}}
    return response.status_code, headers, _names(json.loads(response.content or b"{}"))


def _names(document: Any) -> Any:
    """A document without its values: the names in it, in order."""
    if isinstance(document, dict):
        return [(name, _names(value)) for name, value in document.items()]
    return [_names(each) for each in document] if isinstance(document, list) else None


async def test_analysts_see_no_count_anywhere(world: World) -> None:
    """Not one of the names under which counts and charges go."""
    await world.ask("k", COUNT)
    for route in ROUTES:
        if "analyst" in route.roles:
            names = str(_names(json.loads((await route.call(world, "analyst")).content or b"{}")))
            assert not re.search(r"'(individuals|rows|charged|left_out|sequence_head|spent_units|active)'", names), (
                route
            )
