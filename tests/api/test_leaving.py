"""When a response leaves: on its slot whatever it is, and before the deadline whatever is still at work."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.layers import Incidents
from service.api.leaving import Deadline, ReleaseSlots, announce
from service.api.slots import COORDINATE_NS, PublicWork, Slots
from service.workflows.telemetry import Silent
from tests.api.clocks import FakeTime
from tests.api.receiving import received

MS = 1_000_000
EVERY = [re.compile("/.*")]


class Counted(Silent):
    """Counts overruns."""

    def __init__(self) -> None:
        self.overruns = 0

    def slot_overrun(self) -> None:
        self.overruns += 1


class Held:
    """An application behind slots of 10 ms, on a time that passes when somebody waits."""

    def __init__(self, app: ASGIApp, paths: list[re.Pattern[str]] = EVERY) -> None:
        self.time, self.telemetry = FakeTime(passing=True), Counted()
        slots = Slots(length_ns=10 * MS)
        clock = self.time.clock()
        self.app = received(ReleaseSlots(app, slots=slots, clock=clock, paths=paths, telemetry=self.telemetry))

    async def left_after_ms(self, path: str = "/", **options: Any) -> float:
        """One request: how long after its arrival the response left."""
        arrived = self.time.ns
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://sparing") as client:
            await client.request("POST", path, **options)
        return (self.time.ns - arrived) / MS


def working(held: Callable[[], Held], *steps_ms: float, work: PublicWork | None = None, status: int = 200) -> ASGIApp:
    """An application that takes so long, in public and in secret."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if work is not None:
            announce(scope, work)
        for step in steps_ms:
            held().time.ns += int(step * MS)
        await PlainTextResponse("done", status)(scope, receive, send)

    return app


def held_working(*steps_ms: float, work: PublicWork | None = None, status: int = 200) -> Held:
    """The application above, held."""
    cell: list[Held] = []
    cell.append(Held(working(lambda: cell[0], *steps_ms, work=work, status=status)))
    return cell[0]


class TestReleaseSlots:
    """The hold."""

    @pytest.mark.parametrize("status", [200, 403, 422, 500, 503])
    @pytest.mark.parametrize("taken_ms", [0, 0.1, 5, 9.999, 10])
    async def test_whatever_is_ready_in_time_leaves_at_the_same_instant(self, taken_ms: float, status: int) -> None:
        """How long it took and what it is make no difference."""
        held = held_working(taken_ms, status=status)
        assert await held.left_after_ms() == 10
        assert held.telemetry.overruns == 0

    @pytest.mark.parametrize(("taken_ms", "left_ms"), [(10.001, 20), (19.9, 20), (20, 30), (20.1, 30), (99, 100)])
    async def test_whatever_is_late_leaves_at_a_multiple_and_is_counted(self, taken_ms: float, left_ms: float) -> None:
        """Never at how late it was."""
        held = held_working(taken_ms)
        assert await held.left_after_ms() == left_ms
        assert held.telemetry.overruns == 1

    async def test_what_was_announced_in_public_moves_the_instant(self) -> None:
        """A large answer is due later, and is not late then."""
        held = held_working(15, work=PublicWork(coordinates=25 * MS // COORDINATE_NS))
        assert await held.left_after_ms() == 30
        assert held.telemetry.overruns == 0

    async def test_a_body_that_is_slow_to_come_moves_the_instant(self) -> None:
        """By the whole slots it took, which is the caller's own doing and no overrun."""
        cell: list[Held] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            body = await Request(scope, receive).body()
            cell[0].time.ns += 4 * MS
            await PlainTextResponse(str(len(body)))(scope, receive, send)

        async def slowly() -> Any:
            yield b"a"
            cell[0].time.ns += 27 * MS
            yield b"b"

        cell.append(Held(app))
        assert await cell[0].left_after_ms(content=slowly()) == 40  # due at 30 and, at 31, not ready
        assert cell[0].telemetry.overruns == 1

    async def test_other_paths_are_not_held(self) -> None:
        """Only what analysts ask for."""
        cell: list[Held] = []
        cell.append(Held(working(lambda: cell[0], 3), [re.compile("/queries")]))
        assert await cell[0].left_after_ms("/livez") == 3
        assert await cell[0].left_after_ms("/queries") == 10

    async def test_nothing_is_sent_before_the_instant(self) -> None:
        """Not even the status line; once it is out, the body follows at once."""
        time, sent = FakeTime(), list[tuple[str, int]]()
        layer = ReleaseSlots(
            working(lambda: pytest.fail("no step")),
            slots=Slots(length_ns=10 * MS),
            clock=time.clock(),
            paths=EVERY,
            telemetry=Silent(),
        )

        async def send(message: Message) -> None:
            sent.append((message["type"], time.ns))

        scope: Scope = {"type": "http", "path": "/", "method": "GET", "headers": [], "state": {}}
        start = time.ns
        task = asyncio.create_task(layer(scope, _nothing, send))
        for _ in range(5):
            await asyncio.sleep(0)
        time.pass_to(start + 10 * MS - 1)
        await asyncio.sleep(0)
        assert sent == []
        time.pass_to(start + 10 * MS)
        await task
        assert sent == [("http.response.start", start + 10 * MS), ("http.response.body", start + 10 * MS)]

    async def test_the_lifespan_passes_through(self) -> None:
        """Only requests are held."""
        seen: list[str] = []

        async def inner(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope["type"])

        held = ReleaseSlots(inner, slots=Slots(length_ns=1), clock=FakeTime().clock(), paths=EVERY, telemetry=Silent())
        for layer in (held, Deadline(inner, deadline_s=1, exempt=[])):
            await layer({"type": "lifespan"}, _nothing, _nowhere)
        assert seen == ["lifespan"] * 2


class Slow:
    """An application that works until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.gate, self.ended = asyncio.Event(), asyncio.Event()
        self.received: list[str] = []
        self.outcome = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, then answer."""
        try:
            await self.gate.wait()
            self.received.append((await receive())["type"])
            if scope["path"] == "/fails":
                raise RuntimeError("Kari Nordmann, 42")
            await PlainTextResponse("done")(scope, receive, send)
            self.outcome = "answered"
        except asyncio.CancelledError:
            self.outcome = "cancelled"
            raise
        finally:
            self.ended.set()


async def late(slow: Slow, path: str = "/", *, deadline_s: float = 0.02) -> httpx.Response:
    """One request to a slow application under a deadline."""
    app = received(Incidents(Deadline(slow, deadline_s=deadline_s, exempt=[re.compile("/rows")])))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(Served(app)), base_url="http://sparing") as client:
        return await client.get(path)


class Served:
    """What a server does with an application: it works in a task, and the client has its response when that is sent.

    A client that is cancelled cancels the task.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

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


class TestDeadline:
    """The end of patience."""

    async def test_what_is_in_time_is_untouched(self) -> None:
        """The answer itself."""
        slow = Slow()
        slow.gate.set()
        assert (await late(slow, deadline_s=30)).text == "done"

    @pytest.mark.parametrize("path", ["/", "/fails"])
    async def test_what_is_late_is_refused_and_works_on(self, path: str, caplog: pytest.LogCaptureFixture) -> None:
        """503 with Retry-After; the work is not cancelled, what it sends is dropped, what it fails with is not told."""
        slow = Slow()
        response = await late(slow, path)
        assert response.status_code == 503
        assert response.json()["type"] == "urn:sparing:problem:unavailable"
        assert response.headers["retry-after"] == "1"
        assert not slow.ended.is_set()
        slow.gate.set()
        await asyncio.wait_for(slow.ended.wait(), 30)
        await asyncio.sleep(0)
        assert slow.received == ["http.disconnect"]
        assert slow.outcome == ("answered" if path == "/" else "")
        assert "Kari" not in caplog.text

    async def test_a_refusal_on_its_slot_outwaits_the_work(self) -> None:
        """A server takes a request that returns unanswered for a broken one, and sends a 500 of its own."""
        slow, time, sent = Slow(), FakeTime(), list[Message]()
        deadline = Deadline(slow, deadline_s=0.001, exempt=[])
        slots = Slots(length_ns=10 * MS)
        held = ReleaseSlots(deadline, slots=slots, clock=time.clock(), paths=EVERY, telemetry=Silent())

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {"type": "http", "path": "/", "method": "GET", "headers": [], "state": {"request_id": "r"}}
        request = asyncio.create_task(held(scope, _nothing, send))
        await asyncio.sleep(0.02)
        slow.gate.set()
        await slow.ended.wait()
        await asyncio.sleep(0.01)
        assert sent == []
        assert not request.done()
        time.pass_to(time.ns + 10 * MS)
        await request
        assert [message.get("status") for message in sent] == [503, None]

    async def test_only_what_is_late_is_refused(self) -> None:
        """Requests that came after it have their own time, and those before it are gone."""
        early, late_one, young = Slow(), Slow(), Slow()
        inside = {"/early": early, "/late": late_one, "/young": young}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await inside[scope["path"]](scope, receive, send)

        served = Served(received(Deadline(app, deadline_s=0.2, exempt=[])))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://sparing") as client:
            requests = [asyncio.create_task(client.get(path)) for path in ("/early", "/late")]
            early.gate.set()
            await asyncio.sleep(0.15)
            requests.append(asyncio.create_task(client.get("/young")))
            responses = [await requests[0], await requests[1]]
            young.gate.set()
            responses.append(await requests[2])
        late_one.gate.set()
        assert [response.status_code for response in responses] == [200, 503, 200]

    async def test_uploads_have_the_time_they_need(self) -> None:
        """An exempt path is only passed on."""
        slow = Slow()
        asyncio.get_running_loop().call_later(0.05, slow.gate.set)
        assert (await late(slow, "/rows", deadline_s=0.001)).text == "done"

    async def test_what_has_begun_to_answer_is_let_finish(self) -> None:
        """Half an answer and then a refusal would be neither."""
        gate = asyncio.Event()

        async def halting(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await gate.wait()
            await send({"type": "http.response.body", "body": b"whole"})

        asyncio.get_running_loop().call_later(0.05, gate.set)
        transport = httpx.ASGITransport(received(Deadline(halting, deadline_s=0.01, exempt=[])))
        async with httpx.AsyncClient(transport=transport, base_url="http://sparing") as client:
            assert (await client.get("/")).text == "whole"

    async def test_a_server_that_cancels_reaches_the_work(self) -> None:
        """At the very end of a drain the server cancels what is left, and no task may outlive it."""
        slow = Slow()
        request = asyncio.create_task(late(slow, deadline_s=30))
        await asyncio.sleep(0.01)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await asyncio.wait_for(slow.ended.wait(), 30)
        assert slow.outcome == "cancelled"


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(message: Message) -> None:
    return None
