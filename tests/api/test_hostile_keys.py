"""Every key that can be uploaded names its individual and nothing else, on each route that takes one."""

import json

import pytest

from sparing import Client
from tests.api.documented import Reader
from tests.api.route_table import ROUTES, Route
from tests.api.world import World, build_world
from tests.hostile_keys import HOSTILE, addresses_of

NDJSON = "application/x-ndjson"
ROWS = "/v1/datasets/care/tables/people/rows"
PEOPLE = b"".join(json.dumps({"person_id": key, "country": "NO", "age": 40}).encode() + b"\n" for key in HOSTILE)
OF_ONE = [route for route in ROUTES if route.names_individual()]


@pytest.fixture
async def crowded(world: World) -> World:
    """The world with a person of each hostile key."""
    added = await world.call("curator", "POST", ROWS, headers={"Content-Type": NDJSON}, content=PEOPLE)
    assert added.status_code == 200, added.text
    return world


async def test_twins_among_hostile_keys_are_told(world: World) -> None:
    """By their rows: an accented letter in one character and in two, and what differs by a blank alone."""
    added = await world.call("curator", "POST", ROWS, headers={"Content-Type": NDJSON}, content=PEOPLE)
    rows = [1 + HOSTILE.index(key) for key in ("a\nb", "a\tb", "a b", "\u00e9", "e\u0301")]
    (words,) = added.json()["warnings"]
    assert f"(rows {', '.join(map(str, rows))})" in words


async def keys_of(world: World) -> set[str]:
    """The keys of all accounts."""
    listed = await world.call("curator", "GET", "/v1/datasets/care/budgets?limit=1000")
    return {row["key"] for row in listed.json()["items"]}


async def test_an_account_is_that_of_the_key_however_the_address_is_written(crowded: World) -> None:
    """With every byte escaped, with the least of escapes, and as forms write blanks."""
    for key in HOSTILE:
        for address in addresses_of(key, "care"):
            told = await crowded.call("curator", "GET", address)
            assert (address, told.status_code, told.json().get("key")) == (address, 200, key)


@pytest.mark.parametrize("route", OF_ONE, ids=str)
async def test_a_hostile_key_reaches_its_individual_alone(crowded: World, route: Route) -> None:
    """Each route succeeds for each key; an erasure takes that individual, and all others and the dataset stay."""
    left = await keys_of(crowded)
    for key in HOSTILE:
        reply = await route.call(crowded, "curator", params={"individual": key})
        assert (key, reply.status_code) == (key, route.status), reply.text
        left -= {key} if route.method == "DELETE" else set()
        assert await keys_of(crowded) == left


async def test_a_key_that_nobody_can_have_is_refused_by_name(world: World) -> None:
    """Also none at all: no route means everybody."""
    for route in OF_ONE:
        for params in ({}, *({"individual": key} for key in ("", "\0", "a\0", "x" * 1001))):
            refused = await route.call(world, "curator", params=params)
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "individual"), route


def test_the_client_names_the_individual_of_a_hostile_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads, corrects, gives a key to and erases that individual alone."""
    world = build_world()
    Reader(world=world, monkeypatch=monkeypatch)
    with Client(api_key=world.keys["curator"]) as curator:
        curator.datasets.upload(dataset="care", table="people", data=PEOPLE, content_type=NDJSON)
        for left, key in enumerate(HOSTILE):
            assert curator.datasets.account(dataset="care", individual=key).key == key
            assert curator.datasets.correct(dataset="care", individual=key, values={"age": 41}).rows == 1
            assert list(curator.datasets.receipts(dataset="care", individual=key))
            made = curator.principals.create(role="individual", name="one", dataset="care", individual=key)
            assert made.individual == key
            curator.datasets.erase(dataset="care", individual=key)
            assert curator.datasets.get(dataset="care").individuals == 5 + len(HOSTILE) - left - 1
    world.replica.close()
