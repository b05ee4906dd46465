"""Cursors are opaque, and safe within an address."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.pagination import opaque, place_of
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Page
from tests.api.route_table import REGISTRATION, ROUTES, Route
from tests.api.world import COUNT, World

ASCII = st.text(alphabet=st.characters(max_codepoint=127), max_size=60)


@given(place=ASCII)
async def test_a_cursor_leads_back_to_its_place(place: str) -> None:
    """For every cursor of a workflow, without escaping."""
    cursor = opaque(Page(items=(1,), next=place)).next
    assert cursor is not None
    assert cursor == "".join(letter for letter in cursor if letter.isascii() and (letter.isalnum() or letter in "-_"))
    assert await place_of(cursor) == place


async def test_no_cursor_is_the_beginning_and_the_end() -> None:
    """A cursor of None begins a listing, and ends it."""
    last: Page[int] = Page(items=(), next=None)
    assert opaque(last) is last
    assert await place_of(None) is None


@pytest.mark.parametrize("cursor", ["x", "x=y", "a b", "é", "_w", "\0", "++++"])
async def test_anything_else_is_refused(cursor: str) -> None:
    """By the field's name."""
    with pytest.raises(InvalidRequest) as refused:
        await place_of(cursor)
    assert [error.field for error in refused.value.errors] == ["cursor"]


LISTINGS = [
    *("/v1/datasets", "/v1/queries", "/v1/principals", "/v1/me/receipts", "/v1/datasets/{dataset}/budgets"),
    *("/v1/datasets/{dataset}/ledger", "/v1/datasets/{dataset}/acts", "/v1/datasets/{dataset}/receipts"),
    "/v1/datasets/{dataset}/erasure-requests",
]
LISTED = [each for each in ROUTES if each.method == "GET" and each.template in LISTINGS]
CASES = [(each, role) for each in LISTED for role in sorted(each.roles)]


async def listed(world: World, route: Route, role: str, **params: Any) -> Any:
    """A page of a listing; one of an individual's names it."""
    reply = await route.call(world, role, params={**route.options.get("params", {}), **params})
    return reply.json()


@pytest.fixture
async def filled(world: World) -> World:
    """The world with three items or more in every listing."""
    for number, name in enumerate(("a-b", "a_b", "ab")):
        await world.call("curator", "POST", "/v1/datasets", json=REGISTRATION | {"name": name})
        await world.ask(name, COUNT.replace(b"20.0", b"%d" % (30 + number)))
    made = await world.call("curator", "POST", "/v1/datasets/care/individuals/keys", json=["bo", "cy"])
    world.keys |= {each["individual"]: each["api_key"] for each in made.json()}
    for individual in ("individual", "bo", "cy"):
        await world.call(individual, "POST", "/v1/me/budgets/care/lower", json={"pause": True})
        await world.call(individual, "POST", "/v1/me/erasure/care")
    return world


def test_every_listing_is_among_them(world: World) -> None:
    """A route that takes a cursor has its pages checked below."""
    paths = world.app.openapi()["paths"].items()
    taking = [
        path
        for path, methods in paths
        for each in methods.get("get", {}).get("parameters", ())
        if each["name"] == "cursor"
    ]
    assert sorted(taking) == sorted(LISTINGS)


async def test_the_pages_of_a_listing_follow_each_other(filled: World) -> None:
    """A cursor leads on to every item once and in order, and the last page has none."""
    for route, role in CASES:
        whole = await listed(filled, route, role, limit=1000)
        assert (len(whole["items"]) >= 3, whole["next"]) == (True, None), route
        page = await listed(filled, route, role, limit=2)
        found = page["items"]
        while page["next"] is not None:
            assert len(page["items"]) <= 2
            page = await listed(filled, route, role, limit=2, cursor=page["next"])
            found += page["items"]
        assert found == whole["items"], route


async def test_what_no_listing_has_is_refused_by_name(world: World) -> None:
    """A limit from 1 to 1,000, and a cursor that the listing may have given."""
    wrong = [("limit", value) for value in ("0", "1001", "-1", "many", "1.5")]
    wrong += [
        ("cursor", value) for value in ("x", "-1", "x" * 600, "%00", "AA", "ICA", "QQ", "Y2FyZQo", "!", "YQ" * 100)
    ]
    for (route, role), (name, value) in product(CASES, wrong):
        problem = await listed(world, route, role, **{name: value})
        assert (value, problem.get("status"), problem.get("errors", [{}])[0].get("field")) == (value, 422, name), route
