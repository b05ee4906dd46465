"""The outermost layer alone: ids, headers, counts, and the end of the service's life."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from service.api.middleware.request_context import HEADERS, UNMATCHED, DrainState, dressed
from tests.api.receiving import hello, received, request
from tests.api.tally import Tally

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
        refused = await request(received(_unreachable, drain_state=drain_state, telemetry=tally))
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
        working = asyncio.create_task(received(lingers, telemetry=tally)(scope, _nothing, _nowhere))
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
            await received(fails, telemetry=tally)(scope, _nothing, _nowhere)
        assert tally.ended == {(UNMATCHED, 0): 1}
        assert tally.in_flight == 0


async def test_the_lifespan_passes_through() -> None:
    """Only requests are received."""
    seen: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    await received(inner)({"type": "lifespan"}, _nothing, _nowhere)
    assert seen == ["lifespan"]


async def _unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(message: Message) -> None:
    return None
