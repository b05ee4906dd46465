"""Roles of routes: a route without roles refuses every caller."""

import asyncio
import io
import threading
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Depends

from service.api.auth import ApiKey, Authentication, GuardedRoute, RouteGuard, guarded_router
from service.workflows.model.errors import Unavailable
from service.workflows.model.views import Principal
from tests.api.route_table import PAGES, PUBLIC, ROUTES, Route, served
from tests.api.world import ROLES, World

UNKNOWN_PATHS = ["/v1/nothing", "/v1/datasets/care/nothing", "/nothing", "/v1"]


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

    @pytest.mark.parametrize("route", ROUTES, ids=str)
    async def test_each_role_gets_its_own_part(self, world: World, route: Route) -> None:
        """Its own routes answer; another's says which role it needs, and nothing about the path's dataset or record."""
        for role in ROLES:
            response = await route.call(world, role)
            if role in route.roles:
                assert (role, response.status_code) == (role, route.status), response.text
            else:
                _assert_role_required(response, route)
                named = await route.call(
                    world, role, path=route.path(world).replace("/individuals/ed", "/individuals/nobody")
                )
                assert (named.content, named.headers) == (response.content, response.headers)

    @pytest.mark.parametrize("route", ROUTES, ids=str)
    async def test_another_role_is_refused_before_its_request_is_read(self, world: World, route: Route) -> None:
        """Malformed JSON, a missing key or a bad limit is never reported to another role."""
        stranger = next((role for role in ROLES if role not in route.roles), None)
        if stranger is None:
            assert route.template == "/v1/session", "the one route that is for every role"
            return
        response = await world.call(stranger, route.method, f"{route.path(world)}?limit=x", content=b"{ not json")
        _assert_role_required(response, route)

    @pytest.mark.parametrize("route", [each for each in ROUTES if "{dataset}" in each.template], ids=str)
    async def test_an_unknown_dataset_and_one_out_of_bounds_are_the_same(self, world: World, route: Route) -> None:
        """A principal that is bound to one dataset sees another as if it were not there."""
        role = min(route.roles)
        unknown = await route.call(world, role, path=route.path(world).replace("care", "nowhere"))
        bounds = {"dataset": "other", **({"individual": "ada"} if role == "individual" else {})}
        await world.call("curator", "POST", "/v1/datasets", json=_another())
        if role == "individual":
            world.replica.curators.append_rows("other", "people", "text/csv", io.BytesIO(b"id\nada\n"))
        world.enrol("bound", role, **bounds)  # type: ignore[arg-type]
        outside = await route.call(world, "bound")
        assert unknown.status_code == 404
        assert (outside.content, outside.headers) == (unknown.content, unknown.headers)


class TestKeys:
    """The forms of an API key."""

    async def test_every_bad_key_gets_the_same_bytes(self, world: World) -> None:
        """None, malformed, unknown and revoked cannot be told apart."""
        revoked = world.keys["auditor"]
        await world.call("curator", "DELETE", f"/v1/principals/{world.ids['auditor']}")
        almost = world.keys["curator"][:-1] + ("A" if world.keys["curator"][-1] != "A" else "B")
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
        """As HTTP says."""
        response = await world.client.get("/v1/datasets", headers={"Authorization": f"bEARER {world.keys['curator']}"})
        assert response.status_code == 200

    async def test_no_key_means_nothing_to_an_unknown_path(self, world: World) -> None:
        """A path that does not exist is the same for every caller."""
        for path in UNKNOWN_PATHS:
            stranger = await world.client.get(path, headers={"X-Request-Id": "r"})
            curator = await world.call("curator", "GET", path, headers={"X-Request-Id": "r"})
            assert (stranger.status_code, stranger.content) == (404, curator.content)


class _Keys:
    """A replica that looks keys up when it is let, and remembers them until it forgets."""

    def __init__(self) -> None:
        self.gate, self.looked_up = threading.Event(), list[str]()
        self.memory: dict[str, Principal] = {}
        self.fails, self.remembers = False, True
        self.principals = self

    def remembered(self, api_key: str) -> Principal | None:
        return self.memory.get(api_key)

    def authenticate(self, api_key: str) -> Principal | None:
        self.looked_up.append(api_key)
        self.gate.wait(30)
        if self.fails:
            raise Unavailable
        if api_key == "known" and self.remembers:
            self.memory[api_key] = Principal.__new__(Principal)
        return self.memory.get(api_key)


class TestRecognition:
    """One look-up for all concurrent requests with the same key."""

    async def asked(self, replica: _Keys, *keys: str) -> list[Any]:
        """All at once, answered when all have asked."""
        recognition = Authentication()
        asking = [asyncio.ensure_future(recognition.of(ApiKey(key), replica)) for key in keys]  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        replica.gate.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    async def test_a_known_key_is_looked_up_once(self) -> None:
        """Every request gets the same principal."""
        replica = _Keys()
        assert await self.asked(replica, *["known"] * 20) == [replica.memory["known"]] * 20
        assert replica.looked_up == ["known"]

    async def test_an_unknown_key_is_looked_up_for_each(self) -> None:
        """An unknown key is not remembered; and no key waits for another."""
        replica = _Keys()
        assert await self.asked(replica, *["unknown"] * 5, "other") == [None] * 6
        assert sorted(replica.looked_up) == ["other", *["unknown"] * 5]

    async def test_a_failed_look_up_is_no_answer_for_others(self) -> None:
        """Each hears of its own."""
        replica = _Keys()
        replica.fails = True
        assert [type(each) for each in await self.asked(replica, "known", "known")] == [Unavailable] * 2
        assert replica.looked_up == ["known"] * 2

    async def test_a_key_revoked_meanwhile_is_not_taken_from_another(self) -> None:
        """The replica does not remember it, and each finds out for itself."""
        replica = _Keys()
        replica.remembers = False
        await self.asked(replica, "known", "known")
        assert replica.looked_up == ["known"] * 2

    async def test_who_goes_away_takes_nothing_with_it(self) -> None:
        """A caller that is cancelled leaves the others to look for themselves."""
        replica = _Keys()
        recognition = Authentication()
        first, second = [
            asyncio.ensure_future(recognition.of(ApiKey("known"), replica))  # type: ignore[arg-type]
            for _ in range(2)
        ]
        await asyncio.sleep(0.01)
        first.cancel()
        replica.gate.set()
        assert await second is replica.memory["known"]


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
        for path in ("/v1/datasets/ca%00re", "/v1/datasets/care/individuals/a%00", "/v1/principals/%00"):
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
