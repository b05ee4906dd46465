"""A few lines of ASGI behind the outermost layer, and one request to them."""

import httpx
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.middleware.request_context import DrainState, RequestContext
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry


def received(
    app: ASGIApp, *, drain_state: DrainState | None = None, telemetry: Telemetry = NULL_TELEMETRY
) -> RequestContext:
    """The outermost middleware around an application, without telemetry and not draining."""
    return RequestContext(app, drain_state=drain_state or DrainState(), telemetry=telemetry)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """Say hello."""
    await PlainTextResponse("hello")(scope, receive, send)


async def request(app: ASGIApp, method: str = "GET", path: str = "/", **options: object) -> httpx.Response:
    """One request through an application."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sparing") as client:
        return await client.request(method, path, **options)  # type: ignore[arg-type]


async def nothing() -> Message:
    """A client that has gone."""
    return {"type": "http.disconnect"}


async def nowhere(message: Message) -> None:
    """A connection that takes whatever is sent."""


async def unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that is never asked."""
    raise AssertionError
