"""Fast routes are answered before the framework's routing, with the same bytes."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from fastapi import Depends, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from service.api.auth import RouteGuard
from service.api.query_requests import FastPath, FastRoute, whole_body
from service.workflows.model.errors import NotFound, Unavailable
from service.workflows.model.views import Principal
from tests.api.route_table import REGISTRATION
from tests.api.world import COUNT, World, build_world

PATH = "/v1/datasets/care/queries"
FRESH = COUNT.replace(b"20.0", b"21.0")
KEYED = {"Idempotency-Key": "k1"}


@pytest.fixture
def framework(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The same replica, served by the framework alone."""
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
        await FastPath(_nowhere, routes=[_route(asked)])(_scope(), _nothing, _sends([]))


async def test_what_is_raised_while_an_answer_is_sent_is_no_refusal() -> None:
    """Half an answer and then a refusal would be neither."""

    async def asked(request: Request, caller: Principal) -> Response:
        return Response(b"answer")

    async def refusing(message: Message) -> None:
        raise HTTPException(408)

    with pytest.raises(HTTPException):
        await FastPath(_nowhere, routes=[_route(asked)])(_scope(), _nothing, refusing)


async def test_a_refusal_that_many_share_gathers_no_frames() -> None:
    """Each query of a batch fails with the same object; frames hung on it would outlive their requests."""
    shared = Unavailable()

    async def asked(request: Request, caller: Principal) -> Response:
        raise shared

    sent: list[Message] = []
    await FastPath(_nowhere, routes=[_route(asked)])(_scope(), _nothing, _sends(sent))
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
    await FastPath(_nowhere, routes=[_route(asked, Closed("analyst"))])(_scope(), _nothing, _sends(sent))
    assert sent[0]["status"] == 404


def test_a_hot_route_has_one_guard() -> None:
    """As every guarded one."""

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
    return {"type": "http", "method": "POST", "path": "/hot", "headers": [], "state": {"request_id": "r"}}


def _sends(sent: list[Message]) -> Send:
    async def send(message: Message) -> None:
        sent.append(message)

    return send


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError
