"""A query off the wire, waiting for its answer; fast routes give the same bytes as the framework's routing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from fastapi import Depends, Request, Response
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Scope, Send

from service.api.auth import RouteGuard
from service.api.problems import Refusal
from service.api.query_requests import FastPath, FastRoute, checked_key, wait_for_answer, whole_body
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import AllowanceExceeded, NotFound, Unavailable
from service.ledger.model.views import Principal
from service.writer.submission import PendingAnswer
from tests.api.receiving import nothing, unreachable
from tests.api.route_table import REGISTRATION
from tests.api.slotted import MS, Client, Slotted
from tests.api.world import COUNT, World, build_world
from tests.waiting import settled

ANSWER = StoredAnswer(query_id=UUID(int=1), sequence=1, body=b"{}", values=lambda: np.zeros(1))


@given(key=st.text(max_size=200) | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=130))
def test_printable_ascii_that_is_not_blank_is_a_key_and_nothing_else(key: str) -> None:
    """The refusal is a 400, and says which of the two it is."""
    if key.strip() and key.isascii() and key.isprintable() and len(key) <= 128:
        assert checked_key(key) == key
        return
    with pytest.raises(Refusal) as refused:
        checked_key(key)
    assert refused.value.status == 400
    assert refused.value.slug == ("idempotency-key-invalid" if key.strip() else "idempotency-key-missing")


async def test_the_answer_arrives_from_another_thread() -> None:
    """A future of the writer's, awaited."""
    future = PendingAnswer()
    waiting = asyncio.create_task(wait_for_answer(future))
    await settled()
    await asyncio.to_thread(future.set_result, ANSWER)
    assert await waiting is ANSWER


async def test_all_the_answers_of_a_commit_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come one after the other from another thread, each to its own waiting request."""
    loop, wakings = asyncio.get_running_loop(), 0
    call_soon_threadsafe = loop.call_soon_threadsafe

    def counted(*call: Any) -> Any:
        nonlocal wakings
        wakings += 1
        return call_soon_threadsafe(*call)

    futures = [PendingAnswer() for _ in range(50)]
    waiting = [asyncio.ensure_future(wait_for_answer(future)) for future in futures]
    await asyncio.sleep(0)
    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for number, future in enumerate(futures):
        future.set_result(replace(ANSWER, sequence=number))
    assert [answer.sequence for answer in await asyncio.gather(*waiting)] == list(range(50))
    assert wakings == 1


def test_an_answer_for_a_loop_that_has_ended_does_no_harm() -> None:
    """The writer that settles it must not be told of a loop's end."""
    future = PendingAnswer()

    async def give_up() -> None:
        waiting = asyncio.ensure_future(wait_for_answer(future))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(give_up())
    future.set_result(ANSWER)
    assert future.result() is ANSWER


async def test_a_caller_that_goes_away_takes_nothing_with_it() -> None:
    """The wait is cancelled, the query is not: it is charged and stored, to be fetched under its key."""
    future = PendingAnswer()
    waiting = asyncio.create_task(wait_for_answer(future))
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not future.cancelled()
    future.set_result(ANSWER)
    await settled()


async def test_a_refusal_without_a_waiting_client_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The event loop would write its text into the log."""
    future = PendingAnswer()
    waiting = asyncio.create_task(wait_for_answer(future))
    await settled()
    waiting.cancel()
    with caplog.at_level(logging.DEBUG), pytest.raises(asyncio.CancelledError):
        await waiting
    future.set_exception(AllowanceExceeded("secret"))
    await settled()
    assert "secret" not in caplog.text


ASK = "/v1/datasets/care/queries"


def count(sigma: int) -> bytes:
    """A count with a value of its own."""
    return COUNT.replace(b"20.0", b"%d.0" % sigma)


def batch(size: int) -> bytes:
    """A batch of new counts."""
    entries = (b'{"idempotency_key":"b%d","query":%s}' % (n, count(100 + n)) for n in range(size))
    return b'{"queries":[' + b",".join(entries) + b"]}"


@pytest.mark.parametrize(("path", "body"), [(ASK, count(30)), (f"{ASK}/batch", batch(5))], ids=["query", "batch"])
async def test_a_client_that_goes_before_its_slot_has_asked_nothing(slotted: Slotted, path: str, body: bytes) -> None:
    """No entry, no memory, no response; the next query has the slot and the next sequence number."""
    gone, other = Client(slotted.world, "POST", path), Client(slotted.world, "POST", ASK, key="other")
    gone.body(body)
    await slotted.arrived(1)
    other.body(count(40))
    await slotted.arrived(2)
    await slotted.at(9.9)
    gone.go()
    await gone.task
    await slotted.at(10.5)
    await slotted.at(20)
    await other.task
    assert (gone.sent, other.status, other.document["sequence"]) == ([], 200, 2)
    assert slotted.world.store.head(1).seq == 2
    assert slotted.events == ["arrived", "arrived", "cancelled", "begun"]
    assert slotted.admission.memory.requests == 0


@pytest.mark.parametrize("goes_at_ms", [10, 10.3, 12])
@pytest.mark.parametrize(("path", "body", "size"), [(ASK, count(30), 1), (f"{ASK}/batch", batch(5), 5)])
async def test_a_client_that_goes_after_its_slot_has_come_is_answered_all_the_same(
    slotted: Slotted, path: str, body: bytes, size: int, goes_at_ms: float
) -> None:
    """The entries are there, whenever the writer comes to them; the next query has the next sequence number."""
    gone = Client(slotted.world, "POST", path)
    gone.body(body)
    await slotted.arrived(1)
    await slotted.at(9.9)
    slotted.time.pass_to(slotted.zero + int(goes_at_ms * MS))
    gone.go()
    await slotted.settled()
    for now_ms in (12, 20, 30, 40):
        await slotted.at(now_ms)
    await gone.task
    assert slotted.world.store.head(1).seq == 1 + size
    assert slotted.events == ["arrived", "begun"]
    assert slotted.admission.memory.requests == 0


PATH = "/v1/datasets/care/queries"
FRESH = COUNT.replace(b"20.0", b"21.0")
KEYED = {"Idempotency-Key": "k1"}


@pytest.fixture
def framework(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The replica of `world`, served by the framework alone."""
    monkeypatch.setattr("service.api.app.FastPath", lambda app, *, routes: app)
    other = build_world()
    other.app.state.replica = world.replica
    other.keys, other.ids, other.query_id = world.keys, world.ids, world.query_id
    yield other
    other.replica.close()


CALLS: list[tuple[str, str, Mapping[str, str], bytes]] = [
    ("POST", PATH, KEYED, COUNT),
    ("POST", PATH, KEYED, COUNT),  # a retry
    ("POST", PATH, KEYED, FRESH),  # the key is taken
    ("POST", PATH, KEYED | {"Accept": "application/x-npy"}, COUNT),
    ("POST", PATH, KEYED | {"Accept": "text/html, */*;q=0.1"}, COUNT),
    ("POST", PATH, KEYED | {"Content-Type": "text/plain"}, COUNT),
    ("POST", PATH, {}, COUNT),
    ("POST", PATH, {"Idempotency-Key": "k" * 129}, COUNT),
    ("POST", PATH, KEYED, b""),
    ("POST", PATH, KEYED, b"{ not json"),
    ("POST", PATH, KEYED, b'{"version":1,"select":[{"sum":{"column":"nothing"}}],"noise":{"sigma":1}}'),
    ("POST", PATH, KEYED, b"x" * (256 * 1024 + 1)),
    ("POST", f"{PATH}?a=b", KEYED, COUNT),
    ("POST", f"{PATH}/", KEYED, COUNT),
    ("POST", f"{PATH}%0A", KEYED, COUNT),
    ("POST", "/v1/datasets/nowhere/queries", KEYED, COUNT),
    ("POST", "/v1/datasets/%00/queries", KEYED, COUNT),
    ("POST", "/v1/datasets/a%2Fb/queries", KEYED, COUNT),
    ("POST", "/v1/datasets//queries", KEYED, COUNT),
    *((method, PATH, KEYED, b"") for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW", "post")),
]


@pytest.mark.parametrize("role", [None, "nobody", "analyst", "curator", "bound"])
async def test_fast_routes_answer_the_same_bytes(world: World, framework: World, role: str | None) -> None:
    """Status, headers in their order, and every byte, for every caller and request."""
    await world.call("curator", "POST", "/v1/datasets", json={**REGISTRATION, "name": "other"})
    world.enrol("bound", "analyst", dataset="other")
    world.keys["nobody"] = "no key of ours"
    await world.ask("k1")  # so that the answers are stored ones, and equal
    for method, path, headers, content in CALLS:
        sent = {"X-Request-Id": "r", **headers}
        ours, theirs = [
            await served.call(role, method, path, headers=sent, content=content) for served in (world, framework)
        ]
        assert (method, path, ours.status_code) == (method, path, theirs.status_code)
        assert ours.headers.raw == theirs.headers.raw
        assert ours.content == theirs.content


async def test_queries_pass_by_the_framework(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above would be empty if they did not."""

    def asked(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(world.app.router, "app", asked)
    assert (await world.ask("k1")).status_code == 200


async def test_an_unforeseen_error_leaves_for_the_layers_around() -> None:
    """It is not the layer's to explain."""

    async def asked(request: Request, caller: Principal) -> Response:
        raise LookupError

    with pytest.raises(LookupError):
        await FastPath(unreachable, routes=[_route(asked)])(_scope(), nothing, _sends([]))


async def test_what_is_raised_while_an_answer_is_sent_is_no_refusal() -> None:
    """Half an answer and then a refusal would be neither."""

    async def asked(request: Request, caller: Principal) -> Response:
        return Response(b"answer")

    async def refusing(message: Message) -> None:
        raise HTTPException(408)

    with pytest.raises(HTTPException):
        await FastPath(unreachable, routes=[_route(asked)])(_scope(), nothing, refusing)


async def test_a_refusal_that_many_share_gathers_no_frames() -> None:
    """Each query of a batch fails with the same object; frames hung on it would outlive their requests."""
    shared = Unavailable()

    async def asked(request: Request, caller: Principal) -> Response:
        raise shared

    sent: list[Message] = []
    await FastPath(unreachable, routes=[_route(asked)])(_scope(), nothing, _sends(sent))
    assert sent[0]["status"] == 503
    assert shared.__traceback__ is None


async def test_the_guard_speaks_before_the_endpoint() -> None:
    """Here as on every guarded route."""

    class Closed(RouteGuard):
        async def admit(self, request: Request) -> Principal:
            raise NotFound

    async def asked(request: Request, caller: Principal) -> Response:
        raise AssertionError

    sent: list[Message] = []
    await FastPath(unreachable, routes=[_route(asked, Closed("analyst"))])(_scope(), nothing, _sends(sent))
    assert sent[0]["status"] == 404


def test_a_hot_route_has_one_guard() -> None:
    """It needs exactly one, like every guarded route."""

    async def asked(request: Request, caller: Principal) -> Response:
        raise AssertionError

    with pytest.raises(TypeError, match="exactly one guard"):
        FastRoute("/", asked, dependencies=[])


@pytest.mark.parametrize("parts", [[b""], [b"whole"], [b"in ", b"", b"parts"]])
async def test_a_body_is_read_to_its_end(parts: list[bytes]) -> None:
    """In as many messages as it comes."""
    assert await whole_body(_request(parts)) == b"".join(parts)


async def test_a_body_that_breaks_off_is_none() -> None:
    """The client has gone."""
    request = _request([b"half"], last={"type": "http.disconnect"})
    with pytest.raises(ClientDisconnect):
        await whole_body(request)


def _request(parts: list[bytes], last: Message | None = None) -> Request:
    async def messages() -> AsyncIterator[Message]:
        for number, part in enumerate(parts, 1):
            yield {"type": "http.request", "body": part, "more_body": last is not None or number < len(parts)}
        if last is not None:
            yield last

    return Request(_scope(), messages().__anext__)


class _Open(RouteGuard):
    async def admit(self, request: Request) -> Principal:
        return Principal.__new__(Principal)


def _route(asked: Any, guard: RouteGuard | None = None) -> FastRoute:
    return FastRoute("/hot", asked, methods=["POST"], response_class=Response, dependencies=[Depends(guard or _Open())])


def _scope() -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "path": "/hot",
        "query_string": b"",
        "headers": [],
        "state": {"request_id": "r"},
    }


def _sends(sent: list[Message]) -> Send:
    async def send(message: Message) -> None:
        sent.append(message)

    return send
