"""Cookies, keys and roles: which requests they open; a route without roles refuses every caller."""

import io
from itertools import product
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import APIRouter, Depends

from service.api.auth import COOKIE, LOOPBACK_COOKIE, REQUEST_HEADER, GuardedRoute, RouteGuard, guarded_router
from service.query.suggestions import no_dataset
from tests.api.route_table import PAGES, PUBLIC, ROUTES, Route, served
from tests.api.world import ROLES, World, client_of

UNKNOWN_PATHS = ["/v1/nothing", "/v1/datasets/care/nothing", "/nothing", "/v1"]
NEAREST = {f"/v1/datasets/{{dataset}}{path}" for path in ("/queries", "/queries/batch", "/queries/preview")}
TOGETHER = [[each for each in ROUTES if each.method == "GET"], *([each] for each in ROUTES if each.method != "GET")]
"""The routes that one world is asked for: all that only read, and each that changes something."""


class TestEveryRoute:
    """The whole table of routes, one by one."""

    async def test_the_table_is_the_application(self, world: World) -> None:
        """No route escapes the tests below, and none of the contract is missing."""
        assert served(world.app) == PUBLIC | PAGES | {(route.method, route.template) for route in ROUTES}

    async def test_an_anonymous_request_gets_401(self, world: World) -> None:
        """Walked over the application's own routes, with a body that must not be read."""
        for method, path in sorted(served(world.app) - PUBLIC - PAGES):
            response = await world.client.request(method, path, content=b"{ not json")
            assert (path, response.status_code) == (path, 401)
            assert response.headers["www-authenticate"] == "Bearer"

    @pytest.mark.parametrize("routes", TOGETHER, ids=lambda routes: str(routes[0]))
    async def test_each_role_gets_its_own_part(self, world: World, routes: list[Route]) -> None:
        """Its own routes answer; another's says which role it needs, and nothing about the path's dataset or record."""
        for route, role in product(routes, ROLES):
            response = await route.call(world, role)
            if role in route.roles:
                assert (role, response.status_code) == (role, route.status), response.text
            else:
                _assert_role_required(response, route)
                other: dict[str, Any] = {"params": {"individual": "nobody"}} if route.names_individual() else {}
                named = await route.call(world, role, **other)
                assert (named.content, named.headers) == (response.content, response.headers)

    async def test_another_role_is_refused_before_its_request_is_read(self, world: World) -> None:
        """Malformed JSON, a missing key or a bad limit is never reported to another role."""
        for_every_role = []
        for route in ROUTES:
            stranger = next((role for role in ROLES if role not in route.roles), None)
            if stranger is None:
                for_every_role.append(route.template)
                continue
            response = await world.call(stranger, route.method, f"{route.path(world)}?limit=x", content=b"{ not json")
            _assert_role_required(response, route)
        assert {*for_every_role} == {"/v1/session"}

    async def test_an_unknown_dataset_and_one_out_of_bounds_are_the_same(self, world: World) -> None:
        """A principal that is bound to one dataset sees another as if it were not there."""
        await world.call("curator", "POST", "/v1/datasets", json=_another())
        world.replica.curators.append_rows("other", "people", "text/csv", io.BytesIO(b"id\nada\n"))
        for role in ROLES:
            world.enrol(
                f"bound {role}", role, dataset="other", **({"individual": "ada"} if role == "individual" else {})
            )
        for route in ROUTES:
            if "{dataset}" in route.template:
                bound = f"bound {min(route.roles)}"
                unknown = await route.call(world, bound, path=route.path(world).replace("care", "none"))
                outside = await route.call(world, bound)
                assert (str(route), unknown.status_code) == (str(route), 404)
                assert outside.headers == unknown.headers
                assert outside.content.replace(b"'care'", b"'none'") == unknown.content

    async def test_a_key_is_told_of_no_dataset_but_its_own(self, world: World) -> None:
        """A probe for names near to those of others gets what follows from the probe and the key's own dataset."""
        await world.call("curator", "POST", "/v1/datasets", json=_another())
        world.enrol("bound", "analyst", dataset="other")
        for probe in ("care", "cara", "others", "othr", "carer", "x"):
            for path in ("", "/queries/preview", "/queries"):
                reply = await world.call("bound", "POST" if path else "GET", f"/v1/datasets/{probe}{path}")
                assert (reply.status_code, reply.json()["detail"]) == (404, no_dataset(probe, ["other"]))

    async def test_a_key_for_all_datasets_is_told_the_nearest(self, world: World) -> None:
        """It may list them."""
        said = "There is no dataset 'crae' for this key; did you mean 'care'?"
        for route in ROUTES:
            if route.template in NEAREST:
                reply = await route.call(world, "analyst", path=route.path(world).replace("care", "crae"))
                assert (reply.status_code, reply.json()["detail"]) == (404, said)


class TestKeys:
    """The forms of an API key."""

    async def test_every_bad_key_gets_the_same_bytes(self, world: World) -> None:
        """A missing, malformed, unknown or revoked key, and a good one in another spelling, get the same bytes."""
        revoked = world.keys["auditor"]
        await world.call("curator", "DELETE", f"/v1/principals/{world.ids['auditor']}")
        almost = world.keys["curator"][:-1] + ("A" if world.keys["curator"][-1] != "A" else "B")
        prefix, holder, secret = world.keys["curator"].split("_", 2)
        spelled = (holder.upper(), str(UUID(holder)), f"{{{holder}}}", f"urn:uuid:{UUID(holder)}", f" {holder}")
        headers = [
            {},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer "},
            {"Authorization": "Bearer nonsense"},
            {"Authorization": f"Bearer {almost}"},
            {"Authorization": f"Bearer {revoked}"},
            {"Authorization": f"Basic {world.keys['curator']}"},
            {"Authorization": world.keys["curator"]},
            {"Authorization": "Bearer " + "x" * 5000},
            {"Authorization": b"Bearer \xe9"},
            *({"Authorization": f"Bearer {prefix}_{other}_{secret}"} for other in spelled),
        ]
        replies = [
            await world.client.get("/v1/datasets", headers={"X-Request-Id": "r", **each})  # type: ignore[dict-item]
            for each in headers
        ]
        assert {reply.status_code for reply in replies} == {401}
        assert len({reply.content for reply in replies}) == 1
        assert len({str(sorted(reply.headers.items())) for reply in replies}) == 1

    async def test_two_keys_are_no_key(self, world: World) -> None:
        """A request has one Authorization header."""
        good = ("Authorization", f"Bearer {world.keys['curator']}")
        response = await world.client.get("/v1/datasets", headers=[good, good])
        assert response.status_code == 401

    async def test_the_schemes_name_has_no_case(self, world: World) -> None:
        """HTTP compares the names of schemes without regard to case."""
        response = await world.client.get("/v1/datasets", headers={"Authorization": f"bEARER {world.keys['curator']}"})
        assert response.status_code == 200

    async def test_no_key_means_nothing_to_an_unknown_path(self, world: World) -> None:
        """A path that does not exist is the same for every caller."""
        for path in UNKNOWN_PATHS:
            stranger = await world.client.get(path, headers={"X-Request-Id": "r"})
            curator = await world.call("curator", "GET", path, headers={"X-Request-Id": "r"})
            assert (stranger.status_code, stranger.content) == (404, curator.content)


class TestBounds:
    """Principals of one dataset."""

    async def test_a_curator_of_one_dataset_hands_out_no_keys(self, world: World) -> None:
        """Nor does it register datasets or list principals: those concern the whole replica."""
        world.enrol("bound", "curator", dataset="care")
        for route in ROUTES:
            if route.roles == {"curator"} and "{dataset}" not in route.template:
                refused = await route.call(world, "bound")
                assert refused.status_code == 403
                assert refused.json()["detail"] == "This request needs a key with the role curator, for all datasets."
        assert (await world.call("bound", "GET", "/v1/datasets/care/budgets")).status_code == 200

    async def test_a_name_that_nothing_can_have_is_not_found(self, world: World) -> None:
        """A zero byte in an address is answered like any other unknown name."""
        for path in ("/v1/datasets/ca%00re", "/v1/principals/%00"):
            method = "GET" if path.endswith("re") else "DELETE"
            assert (await world.call("curator", method, path)).status_code == 404


class TestBuilding:
    """A route that forgets its guard."""

    def test_a_route_without_a_guard_cannot_be_built(self) -> None:
        """The process does not start."""
        router = APIRouter(route_class=GuardedRoute)
        with pytest.raises(TypeError, match="exactly one guard, not 0"):
            router.get("/open")(lambda: None)

    def test_nor_one_with_two(self) -> None:
        """Which of them would hold?"""
        router = guarded_router("curator")
        with pytest.raises(TypeError, match="exactly one guard, not 2"):
            router.get("/twice", dependencies=[Depends(RouteGuard("analyst"))])(lambda: None)


def _assert_role_required(response: httpx.Response, route: Route) -> None:
    assert response.status_code == 403, response.text
    problem = response.json()
    assert problem["type"] == "urn:sparing:problem:role-required"
    assert f"the role {' or '.join(sorted(route.roles))}" in problem["detail"]


def _another() -> dict[str, object]:
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {}}}
    return {"name": "other", "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}


async def _token(world: World, role: str) -> str:
    response = await world.call(role, "POST", "/v1/session")
    assert response.status_code == 201
    token = response.cookies[COOKIE]
    world.client.cookies.clear()
    return token


def _with_cookie(token: str, **more: str) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={token}", **more}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "sparing.example"])
async def test_the_cookie_is_for_this_origin_and_no_script(world: World, host: str) -> None:
    """Secure wherever the host is not this machine."""
    async with client_of(world.app) as client:
        response = await client.post(
            f"http://{host}:8000/v1/session", headers={"Authorization": f"Bearer {world.keys['curator']}"}
        )
    name = response.headers["set-cookie"].partition("=")[0]
    assert name == (COOKIE if host == "sparing.example" else LOOPBACK_COOKIE)
    flags = {flag.strip().lower() for flag in response.headers["set-cookie"].split(";")[1:]}
    assert flags == {"httponly", "path=/", "samesite=strict"} | ({"secure"} if host == "sparing.example" else set())
    assert response.json() == {
        "role": "curator",
        "name": "curator",
        "dataset": None,
        "individual": None,
        "idle_s": 1800,
    }
    assert "domain" not in response.headers["set-cookie"].lower()


@pytest.mark.parametrize("routes", TOGETHER, ids=lambda routes: str(routes[0]))
async def test_each_role_gets_its_own_part_by_cookie(world: World, routes: list[Route]) -> None:
    """The status is that of the same request with a key."""
    for route, role in product(routes, ROLES):
        if role in route.roles and route.template == "/v1/session":
            continue
        token = await _token(world, role)
        headers = _with_cookie(token, **{REQUEST_HEADER: "1", "X-Request-Id": "one", **route.headers})
        by_cookie = await world.client.request(route.method, route.path(world), headers=headers, **route.options)
        expected = route.status if role in route.roles else 403
        assert (role, by_cookie.status_code) == (role, expected), by_cookie.text


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_request_that_another_site_may_have_caused_is_refused(world: World, method: str) -> None:
    """Without the header, or from elsewhere by the browser's own word; before the route is looked at."""
    cookie = _with_cookie(await _token(world, "curator"))
    path = {"POST": "/v1/datasets/care/epochs", "PUT": "/v1/datasets/care/alarm"}.get(
        method, f"/v1/principals/{world.ids['spare']}"
    )
    for header, site in product([None, "1", ""], [None, "same-origin", "none", "same-site", "cross-site"]):
        headers = cookie | ({} if header is None else {REQUEST_HEADER: header})
        headers |= {} if site is None else {"Sec-Fetch-Site": site}
        response = await world.client.request(
            method, path, headers=headers, json={"share": 0.5} if method == "PUT" else {}
        )
        is_own = header is not None and site in {None, "same-origin", "none"}
        refused = (response.status_code, response.json()["type"] if response.status_code == 403 else "")
        assert (refused == (403, "urn:sparing:problem:cross-site-request")) == (not is_own)


async def test_a_read_needs_no_header_but_its_own_site(world: World) -> None:
    """A page that was opened from another site shows nothing."""
    cookies: dict[str, dict[str, str]] = {role: _with_cookie(await _token(world, role)) for role in ROLES}
    for route in ROUTES:
        if route.method == "GET" and route.template != "/v1/session":
            cookie = cookies[min(route.roles)]
            own = await world.client.get(route.path(world), headers=cookie, **route.options)
            other = await world.client.get(
                route.path(world), headers={**cookie, "Sec-Fetch-Site": "cross-site"}, **route.options
            )
            assert (str(route), own.status_code, other.status_code) == (str(route), route.status, 403)


async def test_the_cookie_has_one_name_at_each_host(world: World) -> None:
    """Off loopback only the one that a browser takes over TLS alone, so that no other host can plant it."""
    token = await _token(world, "curator")
    for host, name in (("sparing.example", COOKIE), ("localhost", LOOPBACK_COOKIE)):
        for sent in (COOKIE, LOOPBACK_COOKIE):
            reply = await world.client.get(f"http://{host}/v1/session", headers={"Cookie": f"{sent}={token}"})
            assert reply.status_code == (200 if sent == name else 401)


async def test_another_sign_in_of_a_browser_ends_the_one_before(world: World) -> None:
    """The token is a new one, also for the same principal."""
    first = await _token(world, "analyst")
    again = await world.call("analyst", "POST", "/v1/session", headers=_with_cookie(first))
    assert again.cookies[COOKIE] != first
    assert (await world.client.get("/v1/session", headers=_with_cookie(first))).status_code == 401


async def test_a_key_goes_before_a_cookie(world: World) -> None:
    """A request with both is the key's; a malformed key is no credential, whatever cookie comes with it."""
    token = await _token(world, "curator")
    as_auditor = {"Authorization": f"Bearer {world.keys['auditor']}"}
    session = await world.client.get("/v1/session", headers=_with_cookie(token, **as_auditor))
    assert session.json()["role"] == "auditor"
    malformed = await world.client.get("/v1/session", headers=_with_cookie(token, Authorization="Bearer "))
    assert malformed.status_code == 401


async def test_every_bad_cookie_is_like_none(world: World) -> None:
    """The bytes are those without a credential."""
    token = await _token(world, "analyst")
    headers = {"X-Request-Id": "one"}
    nothing = await world.client.get("/v1/session", headers=headers)
    for wrong in ("", "x", token[:-1], token + token * 9, '"', "\u00e9", "a=b; c"):
        sent = [(b"x-request-id", b"one"), (b"cookie", f"{COOKIE}={wrong}".encode("latin-1"))]
        response = await world.client.get("/v1/session", headers=httpx.Headers(sent))
        assert (response.status_code, response.content) == (401, nothing.content)


async def test_a_sign_out_ends_the_session_of_its_cookie_alone(world: World) -> None:
    """The cookie is taken back from the browser, and the token opens nothing any more."""
    first, second = await _token(world, "individual"), await _token(world, "individual")
    response = await world.client.delete("/v1/session", headers=_with_cookie(first, **{REQUEST_HEADER: "1"}))
    assert response.status_code == 204
    assert {"max-age=0", "secure"} <= {flag.strip().lower() for flag in response.headers["set-cookie"].split(";")}
    assert (await world.client.get("/v1/session", headers=_with_cookie(first))).status_code == 401
    assert (await world.client.get("/v1/session", headers=_with_cookie(second))).status_code == 200


async def test_the_start_leads_to_ones_own_page(world: World) -> None:
    """Or to the sign-in."""
    assert (await world.client.get("/")).headers["location"] == "/sign-in"
    for role in ROLES:
        token = await _token(world, role)
        assert (await world.client.get("/", headers=_with_cookie(token))).headers["location"] == f"/{role}"
