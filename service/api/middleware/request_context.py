"""The outermost layer: it names and counts each request, or refuses it during a drain, and completes its response.

A caller can recognise the reply to a request by a word in a header of our own, which the response repeats. Proxies
overwrite the id of a request, and leave that word as it is.

This is one layer and not four, so that the headers are looked at once and a message passes one `send`. Requests are
counted by the template of their path, because a path may hold the key of an individual. While a process drains, it
answers accepted requests, and every response then closes its connection.

Large bodies leave in pieces, each when the client has taken the one before, and within a bounded time. Otherwise the
server would keep a whole body in its own buffer for as long as the client does not read it, and the memory counted for
the request would not include it. Piece by piece the body stays with the request, whose memory is counted until the last
piece has left (`service.writer.admission.admission`).
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.forwarding.hop import drawn, echo
from service.api.forwarding.request_head import REPLY_TO
from service.api.middleware.release_slots import PROBES, tickets_of
from service.api.problems import Refusal, response_of
from service.incidents import REQUEST_ID
from service.ledger.ports.telemetry import Telemetry

PIECE_BYTES: Final = 2**16
DELIVERY_S: Final = 30.0
DELIVERED_BYTES_PER_S: Final = 2**20
"""A client has `DELIVERY_S` to take a response, and a second more for each DELIVERED_BYTES_PER_S of its body."""

NOT_STARTED: Final = "X-Not-Started"
"""The header of a refusal that says that no work has begun, so that the request may be sent elsewhere as it is."""

UNMATCHED: Final = "unmatched"
FORWARDED: Final = "forwarded"
GREETING: Final = "greeting"
UNSEALED: Final = "unsealed"
COUNTED_AS: Final = "counted_as"
"""The place in a request's state of the name under which it is counted if no route answers it."""

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_CLOSE = (b"connection", b"close")
_WORD = re.compile(rb"[A-Za-z0-9_.-]{1,64}")


class DrainState:
    """Says whether new requests are refused. A signal handler sets it, and every request reads it."""

    def __init__(self, leaving: Callable[[], None] = lambda: None) -> None:
        """`leaving` is called when the drain begins, from a signal handler."""
        self.draining = False
        self._leaving = leaving

    def drain(self) -> None:
        """Refuse all new requests from now on; this is not undone."""
        self.draining = True
        self._leaving()


class RequestContext:
    """Gives each request its id, counts it, and completes its response; the layers within do everything else."""

    def __init__(self, app: ASGIApp, *, drain_state: DrainState, telemetry: Telemetry) -> None:
        self.app = app
        self.drain_state, self.telemetry = drain_state, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request, by the caller's id if that is a short plain word.

        Pass it on, or refuse it during a drain.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        named = dict(scope["headers"])
        given, word = named.get(b"x-request-id", b""), named.get(REPLY_TO, b"")
        request_id = given.decode() if _WORD.fullmatch(given) else drawn(16).hex()
        repeated = ((REPLY_TO, word),) if _WORD.fullmatch(word) else ()
        scope.setdefault("state", {})["request_id"] = request_id
        REQUEST_ID.set(request_id)
        status, is_open = 0, True
        self.telemetry.request_began()

        async def see_off(message: Message) -> None:
            nonlocal status, is_open
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = dressed(
                    [*message["headers"], *repeated], request_id, is_last=self.drain_state.draining
                )
                await send(message)
                return
            if len(message.get("body", b"")) > PIECE_BYTES:
                await deliver(message, send)
            else:
                await send(message)
            if is_open and not message.get("more_body", False):
                is_open = False  # late work may go on after that
                self.telemetry.request_ended(_route_of(scope), status)

        try:
            if self.drain_state.draining and scope["path"] not in PROBES:
                refusal = Refusal("draining", headers={"Retry-After": "1", NOT_STARTED: "1", **echo(scope)})
                await response_of(refusal, request_id)(scope, receive, see_off)
            else:
                await self.app(scope, receive, see_off)
        finally:
            if is_open:
                self.telemetry.request_ended(_route_of(scope), status)
            for ticket in tickets_of(scope):
                ticket.release()


def dressed(headers: Iterable[tuple[bytes, bytes]], request_id: str, *, is_last: bool) -> list[tuple[bytes, bytes]]:
    """A response's own headers, then `HEADERS` but for those that it brought itself, then the request's id.

    With `is_last` a header says that the connection closes.
    """
    own = list(headers)
    names = {name for name, _ in own}
    return [
        *own,
        *((_CLOSE,) if is_last else ()),
        *(header for header in _HEADERS if header[0] not in names),
        (b"x-request-id", request_id.encode()),
    ]


def _route_of(scope: Scope) -> str:
    """The name that a layer gave, else `METHOD /template` of one of our routes.

    Every other request has one common name.
    """
    named = scope["state"].get(COUNTED_AS)
    if named is not None:
        return str(named)
    route = scope.get("route")
    template, methods = getattr(route, "path", None), getattr(route, "methods", None) or ()
    return f"{scope['method']} {template}" if template and scope["method"] in methods else UNMATCHED


class DeliveryFailed(ClientDisconnect):
    """The client has not taken its response in time. The server disconnects, because the response is not complete."""


async def deliver(message: Message, send: Send, *, within_s: float = DELIVERY_S) -> None:
    """Send a large body in pieces, without a copy of it. Raises DeliveryFailed when it is not taken in time."""
    body = memoryview(message["body"])
    try:
        async with asyncio.timeout(within_s + len(body) / DELIVERED_BYTES_PER_S):
            for start in range(0, len(body), PIECE_BYTES):
                await send({**message, "body": body[start : start + PIECE_BYTES], "more_body": True})
            await send({**message, "body": b""})  # waits for the last piece
    except TimeoutError:
        raise DeliveryFailed from None
