"""The outermost middleware: request id, count in flight, and refusal while draining.

Several concerns, one layer: it looks at the headers once, and a message passes one `send` instead of four.

request id      names the request, in its response and in the log
counts          for the operator (`service.api.middleware.request_metrics`)
draining        refuses what is new once the service is leaving (`service.api.middleware.drain`)
headers         the same constant ones on every response
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.middleware.chunked_body import deliver
from service.api.middleware.drain import DrainState, draining
from service.api.middleware.release_slots import tickets_of
from service.api.middleware.request_metrics import RequestCount
from service.api.problems import response_of
from service.workflows.ports.telemetry import Telemetry

RawHeaders = Iterable[tuple[bytes, bytes]]

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_CLOSE = (b"connection", b"close")
_drawn: Callable[[int], bytes] = getattr(os, "getrandom", os.urandom)  # the latter gives up the GIL
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")


class RequestContext:
    """Receives what comes and sees off what leaves; in between the layers within have the word."""

    def __init__(self, app: ASGIApp, *, drain_state: DrainState, telemetry: Telemetry) -> None:
        self.app = app
        self.drain_state, self.telemetry = drain_state, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request and count it in; pass it on, unless it comes too late."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = request_id_for(scope["headers"])
        scope.setdefault("state", {})["request_id"] = request_id
        count = RequestCount(scope, self.telemetry)

        async def see_off(message: Message) -> None:
            if message["type"] == "http.response.start":
                count.status = message["status"]
                message["headers"] = dressed(message["headers"], request_id, is_last=self.drain_state.draining)
                await send(message)
                return
            await deliver(message, send)
            if not message.get("more_body", False):
                count.end()  # late work may go on after that

        try:
            if self.drain_state.refuses(scope["path"]):
                await response_of(draining(), request_id)(scope, receive, see_off)
            else:
                await self.app(scope, receive, see_off)
        finally:
            count.end()
            for ticket in tickets_of(scope):
                ticket.release()


def request_id_for(headers: RawHeaders) -> str:
    """The caller's own id for its request if it is a plain short word, else a new one."""
    for name, given in headers:
        if name == b"x-request-id":
            return given.decode() if _REQUEST_ID.fullmatch(given) else new_request_id()
    return new_request_id()


def new_request_id() -> str:
    """A random id of no meaning, and no other request's."""
    return _drawn(16).hex()


def dressed(headers: RawHeaders, request_id: str, *, is_last: bool) -> list[tuple[bytes, bytes]]:
    """A response's own headers, then `HEADERS` but for those that it brought itself, then the request's id.

    The last response of a connection says so.
    """
    own = list(headers)
    names = {name for name, _ in own}
    return [
        *own,
        *((_CLOSE,) if is_last else ()),
        *(header for header in _HEADERS if header[0] not in names),
        (b"x-request-id", request_id.encode()),
    ]
