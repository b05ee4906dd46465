"""Requests are counted by the template of their path, whatever became of them."""

import asyncio
from collections import Counter

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.api.app import Edge
from service.api.counts import UNMATCHED, RequestCounts
from service.workflows.telemetry import Silent
from tests.api.routes import ROUTES, served
from tests.api.world import build_world


class Tally(Silent):
    """Counts requests."""

    def __init__(self) -> None:
        self.in_flight, self.ended = 0, Counter[tuple[str, int]]()

    def request_began(self) -> None:
        self.in_flight += 1

    def request_ended(self, route: str, status: int) -> None:
        self.in_flight -= 1
        self.ended[route, status] += 1


async def test_every_route_is_counted_by_its_template() -> None:
    """No key of an individual, no name of a dataset: what could be counted is known before anybody asks."""
    tally = Tally()
    world = build_world(edge=Edge(telemetry=tally))
    known = {f"{method} {path}" for method, path in served(world.app)} | {UNMATCHED}
    for route in ROUTES:
        for role in (None, *sorted(route.roles)):
            await route.call(world, role)
    for method, path in (("GET", "/nothing"), ("BREW", "/v1/queries"), ("DELETE", "/livez")):
        await world.client.request(method, path)
    await world.client.aclose()
    world.house.close()
    assert {route.replace(":path}", "}") for route, _ in tally.ended} <= known
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 200] == 1
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 401] == 1
    assert tally.ended[UNMATCHED, 404] == 1
    assert tally.ended[UNMATCHED, 405] == 2
    assert tally.in_flight == 0


async def test_a_request_is_counted_out_when_it_is_answered() -> None:
    """Once, though the work behind it goes on: it is late, and the deadline has answered in its place."""
    tally, gate = Tally(), asyncio.Event()

    async def lingers(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        assert tally.in_flight == 1
        await send({"type": "http.response.body", "body": b"whole"})
        await gate.wait()

    layer = RequestCounts(lingers, telemetry=tally)
    request = asyncio.create_task(layer({"type": "http", "method": "GET"}, _nothing, _nowhere))
    await asyncio.sleep(0)
    assert (tally.in_flight, tally.ended) == (0, {(UNMATCHED, 503): 1})
    gate.set()
    await request
    assert tally.ended == {(UNMATCHED, 503): 1}


async def test_a_request_without_a_response_is_counted_out() -> None:
    """Status 0: the client went away, or the connection was cut."""

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    tally = Tally()
    with pytest.raises(RuntimeError):
        await RequestCounts(fails, telemetry=tally)({"type": "http", "method": "GET"}, _nothing, _nowhere)
    assert tally.ended == {(UNMATCHED, 0): 1}
    assert tally.in_flight == 0


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(message: Message) -> None:
    return None
