"""The layers right around the router: an answer in any case, and bounds on what a request may take.

All layers are plain ASGI. Starlette's `BaseHTTPMiddleware` hides disconnects and cancels the endpoint under it; in the
middle of a commit that would leave an answer charged and unsent. A layer that has nothing to do after the layers within
is no coroutine: it returns theirs.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from http import HTTPStatus
from itertools import takewhile
from typing import Final, Generic, Protocol, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.body_length import length_of
from service.api.middleware.request_context import NOT_STARTED
from service.api.problems import Refusal, internal_error, request_id_of, response_of
from service.incidents import report_incident
from service.ledger.model.errors import Unavailable

log = logging.getLogger("sparing.uploads")

T = TypeVar("T", bound=Hashable)

REFUSED_AS: Final = "refused_as"
"""The place in a request's state of the problem that the server found before it asked the application."""
_REFUSED_HEADERS: Final = {"too-many-connections": {"Retry-After": "1", NOT_STARTED: "1"}}
NPZ: Final = b"application/x-npz"
NPZ_PATHS: Final = ("/queries", "/queries/preview", "/forecast")


class ResponseAborted(Exception):
    """The response had begun when something failed.

    The server cuts the connection, so that no client takes it for whole.
    """


class Fallback:
    """Answers if the work within does not: 503 when it takes too long, a fixed 500 for an unexpected error.

    Late work goes on, and its answer is under its key for a retry. Work that has begun is never cancelled and stays in
    its task. When the deadline passes, this layer answers in its place: what the work still sends is dropped, and what
    it still receives is a disconnect. A query that has not begun by then may never begin, as if its client had gone;
    then its key is free for a retry. Paths of `exempt` have no deadline.

    The status tells nothing private with slots: a request that cannot leave in time by its public cost is refused when
    it comes. A 503 from here then says that the machine is slower than its constants. Without slots it says that the
    work took longer than the deadline, which may depend on data.

    Of an error, the log gets the kind and the places in our code, never its message: a message may quote a record.
    """

    def __init__(self, app: ASGIApp, *, deadline_s: float, exempt: Sequence[re.Pattern[str]]) -> None:
        self.app = app
        self.exempt = exempt
        self._shared_timeout: SharedTimeout[_Exchange] = SharedTimeout(deadline_s, _Exchange.take_away)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer for work that is late or fails.

        Raises ResponseAborted if half an answer has left already.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange, has_failed = _Exchange(scope, receive, send), False
        if not any(path.fullmatch(scope["path"]) for path in self.exempt):
            self._shared_timeout.begin(exchange)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass
        except ResponseAborted:  # from the same layer further in, which has reported it
            if exchange.refusal is None:
                raise
        except Exception as error:  # noqa: BLE001 - the last resort is for everything
            report_incident(error, f"request_id={request_id_of(scope)}")
            has_failed = True
        finally:
            self._shared_timeout.end(exchange)
        if exchange.refusal is not None:
            await exchange.refusal  # a server takes a request that has returned without an answer for a broken one
        elif has_failed and exchange.has_begun:
            raise ResponseAborted
        elif has_failed:
            await response_of(internal_error(), request_id_of(scope))(scope, receive, send)


class _Exchange:
    """A request's receiving and sending. Once taken away, its endpoint receives a disconnect, and sends nothing."""

    __slots__ = ("_receive", "_scope", "_send", "has_begun", "refusal")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.has_begun = False  # to answer
        self.refusal: asyncio.Task[None] | None = None  # answers in the work's place, from when it is late

    async def receive(self) -> Message:
        """The next message of the client; a disconnect once the exchange is taken away."""
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Send a message, unless the exchange is taken away."""
        if self.refusal is None:
            self.has_begun = True
            await self._send(message)

    def take_away(self) -> None:
        """Answer 503 in the place of an endpoint that is late, unless that has begun to answer."""
        if not self.has_begun:
            refusal = response_of(Unavailable(), request_id_of(self._scope))
            self.refusal = asyncio.ensure_future(refusal(self._scope, self._receive, self._send))


class RequestLimits:
    """Bounds the size of a request before it is authenticated, and states the problem of one that is not HTTP.

    `bodies` gives a limit in bytes to some paths. Every other path has `body_bytes_max`, or `npz_bytes_max` for a query
    in npz, whose parameters may be many. A declared length is checked, and the server takes no more than it. A body
    without one is counted as it comes. The server bounds the time.
    """

    URI_BYTES_MAX = 2048
    HEADERS_BYTES_MAX = 16 * 1024

    def __init__(
        self, app: ASGIApp, *, body_bytes_max: int, npz_bytes_max: int, bodies: Mapping[re.Pattern[str], int]
    ) -> None:
        self.app = app
        self.body_bytes_max, self.npz_bytes_max = body_bytes_max, npz_bytes_max
        self.bodies = bodies

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Refuse a request that is too large by its head or its declared length, and count a body without a length."""
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        slug = scope.get("state", {}).get(REFUSED_AS)
        if slug is not None:
            return response_of(Refusal(slug, headers=_REFUSED_HEADERS.get(slug)), request_id_of(scope))(
                scope, receive, send
            )
        own = (bytes_max for path, bytes_max in self.bodies.items() if path.fullmatch(scope["path"]))
        body_bytes_max = next(own, self.body_bytes_max)
        taken, declared = 0, None
        for name, value in scope["headers"]:
            taken += len(name) + len(value)
            if name == b"content-length" and declared is None:
                declared = value
            elif name == b"content-type" and value.startswith(NPZ) and scope["path"].endswith(NPZ_PATHS):
                body_bytes_max = max(body_bytes_max, self.npz_bytes_max)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self.URI_BYTES_MAX:
            refusal = HTTPStatus.REQUEST_URI_TOO_LONG
        elif taken > self.HEADERS_BYTES_MAX:
            refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        elif declared is None:
            return self.app(scope, _Body(receive, body_bytes_max).receive, send)
        elif (length := length_of(declared)) is None or length > body_bytes_max:
            refusal = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            _log_too_large(body_bytes_max)
        else:
            return self.app(scope, receive, send)
        return response_of(HTTPException(refusal), request_id_of(scope))(scope, receive, send)


class _Body:
    """A body of undeclared length, counted as it comes."""

    __slots__ = ("_bytes_max", "_receive", "_taken")

    def __init__(self, receive: Receive, bytes_max: int) -> None:
        self._receive, self._bytes_max, self._taken = receive, bytes_max, 0

    async def receive(self) -> Message:
        """The next message. Raises HTTPException when it makes the body too large."""
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > self._bytes_max:
            _log_too_large(self._bytes_max)
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return message


def _log_too_large(bytes_max: int) -> None:
    log.warning("a body of more than %d bytes was refused", bytes_max)


async def disconnected(receive: Receive, *then: Callable[[], object]) -> None:
    """Return when the client of a whole request has gone, after calling each of `then`."""
    while (await receive())["type"] != "http.disconnect":
        pass
    for call in then:
        call()


class Loop(Protocol):
    """The methods of an event loop that are used here."""

    def time(self) -> float:
        """The loop's clock, in seconds."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call back once, when the clock shows `when`."""


class SharedTimeout(Generic[T]):
    """Waits `limit_s` for each of many things, and calls `lose` once with each that has not ended by then.

    All share one timer of the event loop, because a timer for each would cost more than most of the work. The first to
    begin is the first to be late, so the timer is set for the longest wait. Only when it rings are the waits looked at,
    and most have ended by then. Belongs to one event loop at a time.
    """

    def __init__(
        self, limit_s: float, lose: Callable[[T], None], running: Callable[[], Loop] = asyncio.get_running_loop
    ) -> None:
        self._limit_s, self._lose, self._running = limit_s, lose, running
        self._since_s: dict[T, float] = {}  # in the order of their beginning
        self._loop: Loop | None = None  # in which the timer is set, if it is

    def begin(self, one: T) -> None:
        """Begin to wait for `one`."""
        loop = self._running()
        now_s = self._since_s[one] = loop.time()
        if self._loop is not loop:  # the loop before may have ended while the timer was set
            self._set(loop, now_s)

    def end(self, one: T) -> None:
        """Stop waiting for `one`, which has ended, in time or not."""
        self._since_s.pop(one, None)

    def _set(self, loop: Loop, since_s: float) -> None:
        self._loop = loop
        loop.call_at(since_s + self._limit_s, self._look)

    def _look(self) -> None:
        loop, self._loop = self._running(), None
        now_s = loop.time()
        for one, _ in list(takewhile(lambda each: each[1] + self._limit_s <= now_s, self._since_s.items())):
            del self._since_s[one]
            self._lose(one)
        longest_s = next(iter(self._since_s.values()), None)
        if longest_s is not None:
            self._set(loop, longest_s)
