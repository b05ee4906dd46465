"""The outermost layer: ids, headers, counts by template, bodies in pieces, and the end of the service's life."""

import asyncio
import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.app import HttpOptions
from service.api.middleware.release_slots import ReleaseSlots, Slots
from service.api.middleware.request_context import (
    HEADERS,
    PIECE_BYTES,
    UNMATCHED,
    DeliveryFailed,
    DrainState,
    deliver,
    dressed,
)
from service.api.middleware.request_limits import Fallback, RequestLimits
from service.ledger.ports.telemetry import NULL_TELEMETRY
from tests.api.clocks import FakeTime
from tests.api.receiving import hello, nothing, nowhere, received, request, unreachable
from tests.api.route_table import ROUTES, served
from tests.api.tally import Tally
from tests.api.world import COUNT, build_world

NAMES = [name.lower().encode() for name in HEADERS]


class TestRequestIds:
    """Every request has an id."""

    async def test_a_plain_short_id_of_the_callers_is_kept(self) -> None:
        """So that a caller can find its request in our log."""
        response = await request(received(hello), headers={"X-Request-Id": "job-7.a_B"})
        assert response.headers["x-request-id"] == "job-7.a_B"

    @pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\tb", "é"])
    async def test_anything_else_is_replaced(self, given: str) -> None:
        """Nothing that could forge a line of the log gets into it."""
        response = await request(received(hello), headers={"X-Request-Id": given.encode()})
        assert re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])

    async def test_two_requests_have_two_ids(self) -> None:
        """Made afresh for each."""
        ids = {(await request(received(hello))).headers["x-request-id"] for _ in range(3)}
        assert len(ids) == 3


class TestWords:
    """A client's word for its request comes back, by which it knows the reply."""

    @pytest.mark.parametrize("is_drained", [False, True])
    async def test_a_plain_short_word_is_repeated(self, *, is_drained: bool) -> None:
        """Also by a refusal, and a proxy that names the request changes nothing."""
        drain_state = DrainState()
        if is_drained:
            drain_state.drain()
        headers = {"Sparing-Reply-To": "a-1", "X-Request-Id": "proxy"}
        response = await request(received(hello, drain_state=drain_state), headers=headers)
        assert (response.headers["sparing-reply-to"], response.headers["x-request-id"]) == ("a-1", "proxy")

    @pytest.mark.parametrize("given", ["", "a b", "x" * 65, "é"])
    async def test_anything_else_is_passed_over(self, given: str) -> None:
        """No other text of a caller gets into a head."""
        response = await request(received(hello), headers={"Sparing-Reply-To": given.encode()})
        assert "sparing-reply-to" not in response.headers


class TestResponseHeaders:
    """Constant headers on every response."""

    async def test_every_response_carries_them(self) -> None:
        """No store, no sniffing, no framing."""
        response = await request(received(hello))
        assert {name: response.headers[name] for name in HEADERS} == dict(HEADERS)

    async def test_a_responses_own_header_stands(self) -> None:
        """A page that needs another policy may say so."""

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            await Response(headers={"Content-Security-Policy": "default-src 'self'"})(scope, receive, send)

        response = await request(received(page))
        assert response.headers["content-security-policy"] == "default-src 'self'"

    async def test_the_order_is_the_responses_own_first(self) -> None:
        """Then the constant ones, and the request's id at the end."""
        names = [name for name, _ in (await request(received(hello))).headers.raw]
        assert names == [b"content-length", b"content-type", *NAMES, b"x-request-id"]

    @given(own=st.lists(st.sampled_from([*NAMES, b"vary", b"etag"]), unique=True), is_last=st.booleans())
    def test_nothing_is_lost_and_nothing_said_twice(self, own: list[bytes], is_last: bool) -> None:
        """All headers of the response, in their order."""
        brought = [(name, b"own") for name in own]
        sent = dressed(brought, "r", is_last=is_last)
        assert sent[: len(own)] == brought
        expected = {*own, *NAMES, b"x-request-id"} | ({b"connection"} if is_last else set())
        assert sorted(name for name, _ in sent) == sorted(expected)


class TestLeaving:
    """The end of the service's life."""

    async def test_what_comes_too_late_is_not_passed_on(self) -> None:
        """The layers within never see it; its response is counted and has its headers like any other."""
        drain_state, tally = DrainState(), Tally()
        drain_state.drain()
        refused = await request(received(unreachable, drain_state=drain_state, telemetry=tally))
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert refused.headers["cache-control"] == "no-store"
        assert tally.ended == {(UNMATCHED, 503): 1}

    async def test_what_came_in_time_ends_its_connection(self) -> None:
        """Its response is the last one there."""
        drain_state = DrainState()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            drain_state.drain()
            await hello(scope, receive, send)

        response = await request(received(slow, drain_state=drain_state))
        assert (response.text, response.headers["connection"]) == ("hello", "close")


class TestCounts:
    """When a request is counted."""

    async def test_out_when_it_is_answered(self) -> None:
        """Once, though the work behind it goes on: it is late, and the deadline has answered in its place."""
        tally, gate = Tally(), asyncio.Event()

        async def lingers(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            assert tally.in_flight == 1
            await send({"type": "http.response.body", "body": b"whole"})
            await gate.wait()

        scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        working = asyncio.create_task(received(lingers, telemetry=tally)(scope, nothing, nowhere))
        await asyncio.sleep(0)
        assert (tally.in_flight, tally.ended) == (0, {(UNMATCHED, 503): 1})
        gate.set()
        await working
        assert tally.ended == {(UNMATCHED, 503): 1}

    async def test_out_without_a_response(self) -> None:
        """Status 0: the client went away, or the connection was cut."""

        async def fails(scope: Scope, receive: Receive, send: Send) -> None:
            raise RuntimeError

        tally = Tally()
        scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        with pytest.raises(RuntimeError):
            await received(fails, telemetry=tally)(scope, nothing, nowhere)
        assert tally.ended == {(UNMATCHED, 0): 1}
        assert tally.in_flight == 0


LAYERS: list[Callable[[ASGIApp], ASGIApp]] = [
    received,
    partial(Fallback, deadline_s=1, exempt=[]),
    partial(RequestLimits, body_bytes_max=1, npz_bytes_max=1, bodies={}),
    partial(ReleaseSlots, slots=Slots(length_ns=1), clock=FakeTime().clock(), telemetry=NULL_TELEMETRY),
]


@pytest.mark.parametrize("layer", LAYERS)
async def test_the_lifespan_passes_through(layer: Callable[[ASGIApp], ASGIApp]) -> None:
    """Only requests are received, watched, bounded and held."""
    seen: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    await layer(inner)({"type": "lifespan"}, nothing, nowhere)
    assert seen == ["lifespan"]


async def test_new_requests_are_refused_and_probes_answered() -> None:
    """503 `draining` with Retry-After and the end of the connection; /readyz says why, /livez stays."""
    drain_state = DrainState()
    world = build_world(edge=HttpOptions(drain_state=drain_state))
    assert (await world.ask("before", COUNT.replace(b"20.0", b"21.0"))).status_code == 200
    drain_state.drain()
    refused = await world.ask("after")
    assert refused.status_code == 503
    assert refused.json()["type"] == "urn:sparing:problem:draining"
    assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
    assert refused.headers["x-not-started"] == "1"
    ready = await world.client.get("/readyz")
    assert (ready.status_code, ready.json()["detail"]) == (503, "Not ready: draining.")
    assert (await world.client.get("/livez")).status_code == 200
    assert len(world.replica.auditors.ledger("care", cursor=None, limit=10).items) == 2
    await world.close()


def test_watchers_are_told_when_a_drain_begins() -> None:
    """With every signal, and not before the first."""
    told: list[bool] = []
    drain_state = DrainState(lambda: told.append(drain_state.draining))
    assert told == []
    drain_state.drain()
    drain_state.drain()
    assert told == [True, True]


LARGE = bytes(range(256)) * (5 * PIECE_BYTES // 256) + b"the end"


async def sent(message: Message) -> list[Message]:
    """The messages that reach the server."""
    seen: list[Message] = []

    async def send(piece: Message) -> None:
        seen.append(piece)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(message)

    await received(app)({"type": "http", "method": "GET", "path": "/", "headers": []}, nothing, send)
    return seen


async def test_a_small_message_passes_unchanged() -> None:
    """A body of one piece, of none, and one that is left out."""
    for message in ({"body": LARGE[:PIECE_BYTES], "more_body": True}, {"body": b""}, {}):
        assert await sent({"type": "http.response.body", **message}) == [{"type": "http.response.body", **message}]


@pytest.mark.parametrize("more_body", [True, False])
async def test_a_large_body_is_the_same_in_pieces(more_body: bool) -> None:
    """The pieces together are the body; only after the last is there no more, if there is none."""
    pieces = await sent({"type": "http.response.body", "body": LARGE, "more_body": more_body})
    assert b"".join(piece["body"] for piece in pieces) == LARGE
    assert max(len(piece["body"]) for piece in pieces) == PIECE_BYTES
    assert [piece["more_body"] for piece in pieces] == [True] * 6 + [more_body]


async def test_a_client_that_takes_nothing_is_given_up() -> None:
    """After the time that it has for as many bytes, in the middle of a body."""
    seen: list[Message] = []

    async def send(piece: Message) -> None:
        seen.append(piece)
        if len(seen) == 3:
            await asyncio.Event().wait()

    with pytest.raises(DeliveryFailed):
        await deliver({"type": "http.response.body", "body": LARGE}, send, within_s=1.0)
    assert len(seen) == 3


async def test_every_route_is_counted_by_its_template() -> None:
    """No key of an individual, no name of a dataset: the labels are known before any request."""
    tally = Tally()
    world = build_world(edge=HttpOptions(telemetry=tally))
    known = {f"{method} {path}" for method, path in served(world.app)} | {UNMATCHED}
    for route in ROUTES:
        for role in (None, *sorted(route.roles)):
            await route.call(world, role)
    for method, path in (("GET", "/nothing"), ("BREW", "/v1/queries"), ("DELETE", "/livez")):
        await world.client.request(method, path)
    await world.close()
    assert {route.replace(":path}", "}") for route, _ in tally.ended} <= known
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 200] == 1
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 401] == 1
    assert tally.ended[UNMATCHED, 404] == 1
    assert tally.ended[UNMATCHED, 405] == 2
    assert tally.in_flight == 0
