"""The application as a whole: what every response has in common, and what is not there."""

import io
import json
import re
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import NO_TELEMETRY, create_app
from service.api.middleware.request_context import HEADERS
from tests.api.route_table import ROUTES, Route, served
from tests.api.world import COUNT, CSV, ROLES, World, build_world

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
    other = create_app(world.replica, _Settings())
    assert isinstance(other, FastAPI)
    assert other is not world.app
    assert served(other) == served(world.app)


class _Settings:
    upload_bytes_max = 1


async def test_uploads_have_a_limit_of_their_own() -> None:
    """As the settings say; everything else stays at 256 KiB."""
    world = build_world(upload_bytes_max=2**19)
    rows = b"person_id,country,age\n" + b"x,NO,1\n" * 50_000
    path = "/v1/datasets/care/tables/people/rows"
    accepted = await world.call("curator", "POST", path, headers=CSV, content=rows)
    refused = await world.call("curator", "POST", path, headers=CSV, content=rows * 2)
    elsewhere = await world.call("curator", "POST", "/v1/principals", content=rows)
    world.replica.close()
    assert (accepted.status_code, refused.status_code, elsewhere.status_code) == (422, 413, 413)


@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_every_response_has_the_same_constant_headers(world: World, route: Route) -> None:
    """Answers and refusals, to every caller; the request's own id comes back."""
    for role in (None, *sorted(route.roles)):
        response = await route.call(world, role)
        assert {name: response.headers[name] for name in HEADERS} == dict(HEADERS)
        assert response.headers["x-request-id"] == "one-request"


async def test_headers_do_not_depend_on_data() -> None:
    """Two replicas that differ in their people alone answer with the same status, headers, names and lengths of errors.

    The length of an answer is that of its noisy digits, which are paid for; everything else is equal.
    """
    bare, full = build_world(), build_world()
    more = b"person_id,country,age\n" + b"".join(b"p%d,NO,50\n" % number for number in range(500))
    full.replica.curators.append_rows("care", "people", "text/csv", io.BytesIO(more))
    seen = [[await _seen(world, route) for route in ROUTES if "analyst" in route.roles] for world in (bare, full)]
    for world in (bare, full):
        await world.client.aclose()
        world.replica.close()
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
