"""A key that ends ends the requests that are open with it: bodies under way, and exports."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import UUID

import orjson
import pytest

from service.api.auth import COOKIE, REQUEST_HEADER
from service.api.middleware.request_limits import ResponseAborted
from service.api.responses import NPZ
from service.ledger.model.views import BudgetRow, Page
from tests.api.route_table import KEYED, QUERY, ROUTES, Route, route
from tests.api.world import COUNT, World

NPZ_QUERY = route({"analyst"}, "POST", "/datasets/{dataset}/queries", headers={**KEYED, "Content-Type": NPZ})
WITH_BODIES = [*(each for each in ROUTES if each.options.keys() & {"content", "json"}), NPZ_QUERY]
QUERIES = next(each for each in ROUTES if each.template.endswith("/queries") and each.options == QUERY)


def _body(asked: Route) -> bytes:
    options = asked.options or {"content": b"PK"}
    content: bytes = options["content"] if "content" in options else orjson.dumps(options["json"])
    return content


async def _late(body: bytes, *, meanwhile: Callable[[], object]) -> AsyncIterator[bytes]:
    """A body of two parts, the second of which is waited for."""
    yield body[:1]
    await asyncio.sleep(0)
    meanwhile()
    yield body[1:]


async def _sent(
    world: World, asked: Route, meanwhile: Callable[[], object], *, headers: dict[str, str] | None = None
) -> int:
    role = None if headers else min(asked.roles)
    sent = {"Content-Type": "application/json", **asked.headers, **(headers or {})}
    body = _late(_body(asked), meanwhile=meanwhile)
    params = asked.options.get("params")
    return (
        await world.call(role, asked.method, asked.path(world), headers=sent, content=body, params=params)
    ).status_code


def _facts(world: World) -> tuple[object, ...]:
    """The head of the dataset, the datasets and the active principals: any request that counts changes one."""
    with world.store.transaction(1, lock=False) as transaction:
        head = transaction.head
    listed = world.replica.principals.listed(cursor=None, limit=1000)
    return head, world.replica.registry.names(), [row for row in listed.items if row.revoked_at is None]


@pytest.mark.parametrize("asked", WITH_BODIES, ids=str)
async def test_a_key_revoked_while_a_body_comes_changes_nothing(world: World, asked: Route) -> None:
    """On every route that takes a body: 401, nothing stored, nothing charged."""
    role = min(asked.roles)
    after: list[tuple[object, ...]] = []

    def revoke() -> None:
        world.replica.principals.revoke(UUID(world.ids[role]))
        after.append(_facts(world))

    assert await _sent(world, asked, revoke) == 401
    assert _facts(world) == after[0]


@pytest.mark.parametrize("asked", WITH_BODIES[:-1], ids=str)
async def test_a_body_that_comes_late_is_taken_while_its_key_is_good(world: World, asked: Route) -> None:
    """It gets what it would have got in one piece."""
    assert await _sent(world, asked, lambda: None) == asked.status


async def test_a_sign_in_that_ended_while_a_body_came_asks_nothing(world: World) -> None:
    """A cookie counts as a key does."""
    token = (await world.call("analyst", "POST", "/v1/session")).cookies[COOKIE]
    world.client.cookies.clear()
    before, headers = _facts(world), {"Cookie": f"{COOKIE}={token}", REQUEST_HEADER: "1"}
    assert await _sent(world, QUERIES, lambda: world.replica.sign_ins.end(token), headers=headers) == 401
    assert _facts(world) == before


async def test_a_body_that_came_with_its_head_costs_no_second_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a body that was waited for, the database is asked only if the key is not remembered any more."""
    looks: list[str] = []
    standing = world.replica.principals.standing_all

    def counted(texts: Sequence[str]) -> Any:
        looks.extend(texts)
        return standing(texts)

    monkeypatch.setattr(world.replica.principals, "standing_all", counted)
    assert (await world.ask("whole", COUNT)).status_code == 200
    assert await _sent(world, QUERIES, lambda: None) == 200
    assert looks == []
    assert await _sent(world, QUERIES, world.replica.principals._remembered.clear) == 200
    assert looks == [world.keys["analyst"]]


async def test_an_export_stops_when_its_key_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is cut off, so that no client takes it for whole."""
    monkeypatch.setattr("service.workflows.curator.PAGE_ROWS", 2)
    read: list[str | None] = []
    budgets = world.replica.curators.budgets

    def noted(dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        read.append(cursor)
        world.replica.principals.revoke(UUID(world.ids["curator"]))
        return budgets(dataset, cursor=cursor, limit=limit)

    monkeypatch.setattr(world.replica.curators, "budgets", noted)
    with pytest.raises(ResponseAborted):
        await world.call("curator", "GET", "/v1/datasets/care/budgets/export")
    assert read == [None]
