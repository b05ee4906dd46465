"""The layers right around the router, each alone around a few lines of ASGI, and the timer that requests share."""

import asyncio
import heapq
import logging
import re
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.middleware.release_slots import ReleaseSlots, Slots
from service.api.middleware.request_limits import REFUSED_AS, Fallback, RequestLimits, ResponseAborted, SharedTimeout
from service.ledger.ports.telemetry import Telemetry
from tests.api.clocks import FakeTime
from tests.api.receiving import nothing, received, request
from tests.logged import records_of
from tests.waiting import settled

MS = 1_000_000
SECRET = "Kari Nordmann, 42"


async def echo_size(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the whole body and tell its size."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


async def fail(scope: Scope, receive: Receive, send: Send) -> None:
    """Fail with a message that quotes a record."""
    raise RuntimeError(SECRET)


def limited() -> ASGIApp:
    """A reader of bodies behind limits: 100 bytes, 1,000 on /rows."""
    bodies = {re.compile("/rows"): 1000}
    return received(Refusing(RequestLimits(echo_size, body_bytes_max=100, npz_bytes_max=300, bodies=bodies)))


class Refusing:
    """FastAPI passes the exceptions on that the limits raise while a body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except HTTPException as refusal:
            await Response(status_code=refusal.status_code)(scope, receive, send)


class TestFailure:
    """An error that was not foreseen."""

    async def test_the_reply_is_one_fixed_text(self, caplog: pytest.LogCaptureFixture) -> None:
        """Nothing of the exception reaches the caller or the log, but its kind and place do reach the log."""
        with caplog.at_level(logging.ERROR):
            response = await request(received(Fallback(fail, deadline_s=30, exempt=[])), headers={"X-Request-Id": "r1"})
        assert response.status_code == 500
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json() == {
            "type": "urn:sparing:problem:internal-error",
            "title": "Something went wrong here; quote the request_id to the operator.",
            "status": 500,
            "detail": "Something went wrong here; quote the request_id to the operator.",
            "request_id": "r1",
        }
        assert "request_id=r1 error=builtins.RuntimeError at=test_request_limits.fail:" in caplog.text
        assert SECRET not in caplog.text

    async def test_half_a_response_is_cut_off(self) -> None:
        """A response that has begun cannot become a problem; the connection must not end as if it were whole."""

        async def half(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise RuntimeError(SECRET)

        with pytest.raises(ResponseAborted) as caught:
            await request(received(Fallback(half, deadline_s=30, exempt=[])))
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None

    async def test_a_caller_that_went_away_is_no_incident(self, caplog: pytest.LogCaptureFixture) -> None:
        """The client has gone: no response and no incident."""

        async def gone(scope: Scope, receive: Receive, send: Send) -> None:
            raise ClientDisconnect

        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        await Fallback(gone, deadline_s=30, exempt=[])({"type": "http", "state": {"request_id": "r"}}, nothing, send)
        assert sent == []
        assert records_of(caplog, "sparing") == []


LIMIT_S = 30.0


class Time:
    """An event loop that has nothing but a clock, and counts the timers that were set."""

    def __init__(self) -> None:
        self.now_s, self.timers = 0.0, 0
        self._calls: list[tuple[float, int, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when: float, callback: Callable[[], object], /) -> None:
        self.timers += 1
        heapq.heappush(self._calls, (when, self.timers, callback))

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and ring whatever rings meanwhile."""
        until_s = self.now_s + seconds
        while self._calls and self._calls[0][0] <= until_s:
            self.now_s, _, ring = heapq.heappop(self._calls)
            ring()
        self.now_s = until_s


class Slow:
    """An application that works until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.gate, self.begun, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.received: list[str] = []
        self.outcome = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, then answer."""
        self.begun.set()
        try:
            await self.gate.wait()
            self.received.append((await receive())["type"])
            if scope["path"] == "/fails":
                raise RuntimeError(SECRET)
            await PlainTextResponse("done")(scope, receive, send)
            self.outcome = "answered"
        except asyncio.CancelledError:
            self.outcome = "cancelled"
            raise
        finally:
            self.ended.set()


class Served:
    """A server around a slow application under a deadline that passes when the test says so.

    It runs in a task, and the client has its response when that is sent. A client that is cancelled cancels the task.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.time = Time()
        fallback = Fallback(app, deadline_s=LIMIT_S, exempt=[re.compile("/rows")])
        fallback._shared_timeout._running = lambda: self.time
        self.app = received(fallback)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = asyncio.Event()

        async def send_seen(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                answered.set()

        work = asyncio.ensure_future(self.app(scope, receive, send_seen))
        work.add_done_callback(lambda _: answered.set())
        try:
            await answered.wait()
        except asyncio.CancelledError:
            work.cancel()
            raise
        if work.done():
            await work

    def ask(self, path: str = "/") -> "asyncio.Task[httpx.Response]":
        """A request that comes now."""
        return asyncio.create_task(request(self, path=path))


class TestLateness:
    """The deadline passes."""

    async def test_what_is_in_time_is_untouched(self) -> None:
        """The answer itself."""
        slow = Slow()
        slow.gate.set()
        assert (await Served(slow).ask()).text == "done"

    @pytest.mark.parametrize("path", ["/", "/fails"])
    async def test_what_is_late_is_refused_and_works_on(self, path: str, caplog: pytest.LogCaptureFixture) -> None:
        """503 with Retry-After; the work is not cancelled, what it sends is dropped, what it fails with is not told."""
        slow = Slow()
        server = Served(slow)
        asked = server.ask(path)
        await slow.begun.wait()
        server.time.pass_by(LIMIT_S)
        response = await asked
        assert response.status_code == 503
        assert response.json()["type"] == "urn:sparing:problem:unavailable"
        assert response.headers["retry-after"] == "1"
        assert not slow.ended.is_set()
        slow.gate.set()
        await slow.ended.wait()
        await settled()
        assert slow.received == ["http.disconnect"]
        assert slow.outcome == ("answered" if path == "/" else "")
        assert SECRET not in caplog.text

    async def test_a_refusal_on_its_slot_outwaits_the_work(self) -> None:
        """A server takes a request that returns unanswered for a broken one, and sends a 500 of its own."""
        slow, time, sent = Slow(), FakeTime(), list[Message]()
        server = Served(slow)
        slots = Slots(length_ns=10 * MS)
        held = ReleaseSlots(server.app, slots=slots, clock=time.clock(), telemetry=Telemetry())

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {"type": "http", "path": "/", "method": "GET", "headers": [], "state": {"request_id": "r"}}
        request = asyncio.ensure_future(held(scope, nothing, send))
        await slow.begun.wait()
        server.time.pass_by(LIMIT_S)
        slow.gate.set()
        await slow.ended.wait()
        await settled()
        assert sent == []
        assert not request.done()
        time.pass_to(time.ns + 10 * MS)
        await request
        assert [message.get("status") for message in sent] == [503, None]

    async def test_only_late_requests_are_refused(self) -> None:
        """Requests that came after it have their own time, and those before it are gone."""
        inside = {name: Slow() for name in ("/early", "/late", "/young")}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await inside[scope["path"]](scope, receive, send)

        server, asked = Served(app), dict[str, asyncio.Task[httpx.Response]]()
        for path, passes_s in (("/early", 0), ("/late", LIMIT_S - 1), ("/young", 1)):
            asked[path] = server.ask(path)
            await inside[path].begun.wait()
            if path == "/late":
                inside["/early"].gate.set()
                await asked["/early"]
            server.time.pass_by(passes_s)
        await asked["/late"]
        for slow in inside.values():
            slow.gate.set()
        assert [(await each).status_code for each in asked.values()] == [200, 503, 200]

    async def test_uploads_have_the_time_they_need(self) -> None:
        """An exempt path is only passed on."""
        slow = Slow()
        server = Served(slow)
        asked = server.ask("/rows")
        await slow.begun.wait()
        server.time.pass_by(100 * LIMIT_S)
        slow.gate.set()
        assert (await asked).text == "done"

    async def test_what_has_begun_to_answer_is_let_finish(self) -> None:
        """Half an answer and then a refusal would be neither."""
        begun, gate = asyncio.Event(), asyncio.Event()

        async def halting(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            begun.set()
            await gate.wait()
            await send({"type": "http.response.body", "body": b"whole"})

        server = Served(halting)
        asked = server.ask()
        await begun.wait()
        server.time.pass_by(LIMIT_S)
        gate.set()
        assert (await asked).text == "whole"

    async def test_a_server_that_cancels_reaches_the_work(self) -> None:
        """At the very end of a drain the server cancels what is left, and no task may outlive it."""
        slow = Slow()
        asked = Served(slow).ask()
        await slow.begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await slow.ended.wait()
        assert slow.outcome == "cancelled"


class TestRequestLimits:
    """Bounds on what a request may take."""

    async def test_a_body_within_its_limit_passes(self) -> None:
        """The limit itself is allowed."""
        assert (await request(limited(), "POST", content=b"x" * 100)).text == "100"

    async def test_a_declared_length_beyond_the_limit_is_refused_unread(self) -> None:
        """413, as a problem."""
        response = await request(limited(), "POST", content=b"x" * 101)
        assert response.status_code == 413
        assert response.json()["type"] == "urn:sparing:problem:content-too-large"

    async def test_a_length_that_is_no_number_is_refused(self) -> None:
        """A negative length, which would slip under the limit, is refused too."""
        for declared in ("-1", "many", "1e3", "0" * 5000):
            response = await request(limited(), "POST", content=b"x", headers={"Content-Length": declared})
            assert response.status_code == 413

    async def test_an_undeclared_length_is_counted(self) -> None:
        """A stream is cut off where it passes the limit."""

        async def endless() -> object:
            while True:
                yield b"x" * 30

        response = await request(limited(), "POST", content=endless())
        assert response.status_code == 413

    async def test_a_path_may_have_a_limit_of_its_own(self) -> None:
        """Uploads are large."""
        assert (await request(limited(), "POST", "/rows", content=b"x" * 1000)).text == "1000"
        assert (await request(limited(), "POST", "/rows", content=b"x" * 1001)).status_code == 413
        assert (await request(limited(), "POST", "/rows/x", content=b"x" * 1000)).status_code == 413

    @pytest.mark.parametrize(
        "path", ["/v1/datasets/x/queries", "/v1/datasets/x/queries/preview", "/v1/datasets/x/forecast"]
    )
    async def test_a_query_in_npz_has_a_limit_of_its_own(self, path: str) -> None:
        """The limit holds on the routes that take queries, and for that type alone."""
        npz = {"Content-Type": "application/x-npz"}
        assert (await request(limited(), "POST", path, content=b"x" * 300, headers=npz)).text == "300"
        assert (await request(limited(), "POST", path, content=b"x" * 301, headers=npz)).status_code == 413
        assert (await request(limited(), "POST", path, content=b"x" * 101)).status_code == 413
        batch = path.removesuffix("/preview") + "/batch"
        assert (await request(limited(), "POST", batch, content=b"x" * 101, headers=npz)).status_code == 413

    async def test_the_servers_own_problem_is_stated(self) -> None:
        """A request that is not HTTP comes as one that names its problem, and reaches nothing further in."""

        async def marked(scope: Scope, receive: Receive, send: Send) -> None:
            scope["state"] |= {REFUSED_AS: "too-many-connections"}
            await limits(scope, receive, send)

        limits = RequestLimits(fail, body_bytes_max=100, npz_bytes_max=300, bodies={})
        transport = httpx.ASGITransport(received(marked))
        async with httpx.AsyncClient(transport=transport, base_url="http://sparing") as client:
            response = await client.get("/")
        assert response.status_code == 503
        assert response.json()["type"] == "urn:sparing:problem:too-many-connections"
        assert (response.headers["retry-after"], response.headers["x-not-started"]) == ("1", "1")

    async def test_long_addresses_and_headers_are_refused(self) -> None:
        """2 KiB of path and query, 16 KiB of headers."""
        long_path = await request(limited(), path="/" + "x" * 2048)
        long_query = await request(limited(), path="/?" + "x" * 2048)
        headers = await request(limited(), headers={"X": "x" * 2**14})
        assert [long_path.status_code, long_query.status_code, headers.status_code] == [414, 414, 431]


STEPS = st.one_of(
    st.tuples(st.just("pass"), st.integers(0, 40)), st.tuples(st.sampled_from(["begin", "end"]), st.integers(0, 5))
)


@given(steps=st.lists(STEPS, max_size=60))
def test_each_is_lost_when_its_own_time_is_over_and_not_before(steps: list[tuple[str, int]]) -> None:
    """Other operations began and ended around it."""
    time, lost = Time(), list[tuple[int, float]]()
    shared_timeout: SharedTimeout[int] = SharedTimeout(
        LIMIT_S, lambda one: lost.append((one, time.now_s)), lambda: time
    )
    waiting: dict[int, float] = {}
    due: list[tuple[int, float]] = []
    for step, value in steps:
        if step == "pass":
            time.pass_by(value)
            due += [(one, since + LIMIT_S) for one, since in waiting.items() if since + LIMIT_S <= time.now_s]
            waiting = {one: since for one, since in waiting.items() if since + LIMIT_S > time.now_s}
        elif step == "begin" and value not in waiting:
            shared_timeout.begin(value)
            waiting[value] = time.now_s
        elif step == "end":
            shared_timeout.end(value)
            waiting.pop(value, None)
    assert lost == due


def test_many_that_come_and_go_cost_one_timer() -> None:
    """The timer lasts as long as the first operation would have had; it is armed again for those left when it fires."""
    time = Time()
    shared_timeout: SharedTimeout[int] = SharedTimeout(LIMIT_S, lambda _: None, lambda: time)
    for number in range(290):
        shared_timeout.begin(number)
        time.pass_by(0.1)
        shared_timeout.end(number)
    assert time.timers == 1
    shared_timeout.begin(-1)
    time.pass_by(2)
    assert time.timers == 2
    shared_timeout.end(-1)
    time.pass_by(1000)
    assert time.timers == 2


def test_a_loop_that_ended_is_not_waited_for() -> None:
    """Its timer will never ring."""
    loops, lost = [Time(), Time()], list[int]()
    shared_timeout: SharedTimeout[int] = SharedTimeout(LIMIT_S, lost.append, lambda: loops[-1])
    shared_timeout.begin(1)
    shared_timeout.end(1)
    loops.append(Time())
    shared_timeout.begin(2)
    loops[-1].pass_by(LIMIT_S)
    assert lost == [2]
