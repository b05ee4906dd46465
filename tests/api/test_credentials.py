"""Cookies and keys: which requests they open, and which another site could have caused."""

import httpx
import pytest

from service.api.auth import COOKIE, REQUEST_HEADER
from tests.api.route_table import ROUTES, Route
from tests.api.world import ROLES, World, client_of

SAFE = [each for each in ROUTES if each.method == "GET" and each.template != "/v1/session"]


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


@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_each_role_gets_its_own_part_by_cookie(world: World, route: Route) -> None:
    """Status and bytes are those of the same request with a key."""
    for role in ROLES:
        if role in route.roles and route.template == "/v1/session":
            continue
        token = await _token(world, role)
        headers = _with_cookie(token, **{REQUEST_HEADER: "1", "X-Request-Id": "one", **route.headers})
        by_cookie = await world.client.request(route.method, route.path(world), headers=headers, **route.options)
        expected = route.status if role in route.roles else 403
        assert (role, by_cookie.status_code) == (role, expected), by_cookie.text


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("header", [None, "1", ""])
@pytest.mark.parametrize("site", [None, "same-origin", "none", "same-site", "cross-site"])
async def test_a_request_that_another_site_may_have_caused_is_refused(
    world: World, method: str, header: str | None, site: str | None
) -> None:
    """Without the header, or from elsewhere by the browser's own word; before the route is looked at."""
    headers = _with_cookie(await _token(world, "curator"))
    headers |= {} if header is None else {REQUEST_HEADER: header}
    headers |= {} if site is None else {"Sec-Fetch-Site": site}
    path = {"POST": "/v1/datasets/care/epochs", "PUT": "/v1/datasets/care/alarm"}.get(
        method, f"/v1/principals/{world.ids['spare']}"
    )
    response = await world.client.request(method, path, headers=headers, json={"share": 0.5} if method == "PUT" else {})
    is_own = header is not None and site in {None, "same-origin", "none"}
    refused = (response.status_code, response.json()["type"] if response.status_code == 403 else "")
    assert (refused == (403, "urn:sparing:problem:cross-site-request")) == (not is_own)


@pytest.mark.parametrize("route", SAFE, ids=str)
async def test_a_read_needs_no_header_but_its_own_site(world: World, route: Route) -> None:
    """A page that was opened from another site shows nothing."""
    token = await _token(world, min(route.roles))
    own = await world.client.get(route.path(world), headers=_with_cookie(token), **route.options)
    other = await world.client.get(
        route.path(world), headers=_with_cookie(token, **{"Sec-Fetch-Site": "cross-site"}), **route.options
    )
    assert (own.status_code, other.status_code) == (route.status, 403)


async def test_a_key_goes_before_a_cookie(world: World) -> None:
    """A request with both is the key's; a malformed key is no credential, whatever cookie comes with it."""
    token = await _token(world, "curator")
    as_auditor = {"Authorization": f"Bearer {world.keys['auditor']}"}
    session = await world.client.get("/v1/session", headers=_with_cookie(token, **as_auditor))
    assert session.json()["role"] == "auditor"
    malformed = await world.client.get("/v1/session", headers=_with_cookie(token, Authorization="Bearer "))
    assert malformed.status_code == 401


async def test_every_bad_cookie_is_like_none(world: World) -> None:
    """The same bytes as without a credential."""
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
    assert "max-age=0" in response.headers["set-cookie"].lower()
    assert (await world.client.get("/v1/session", headers=_with_cookie(first))).status_code == 401
    assert (await world.client.get("/v1/session", headers=_with_cookie(second))).status_code == 200


async def test_the_start_leads_to_ones_own_page(world: World) -> None:
    """Or to the sign-in."""
    assert (await world.client.get("/")).headers["location"] == "/sign-in"
    for role in ROLES:
        token = await _token(world, role)
        assert (await world.client.get("/", headers=_with_cookie(token))).headers["location"] == f"/{role}"
