"""The layers right around the router, outermost first: incidents, request limits.

All are plain ASGI. Starlette's `BaseHTTPMiddleware` hides disconnects and cancels the endpoint under it, which in the
middle of a commit would leave an answer charged and unsent.

One event-loop timer shared by all operations with the same timeout: one for each costs more than most take.

The first to come is the first to be late. So the timer is set for the one waited for longest, and only when it rings is
any of them looked at; most have come and gone by then.
"""

import asyncio
import re
from collections.abc import Callable, Hashable, Mapping
from http import HTTPStatus
from itertools import takewhile
from typing import Generic, Protocol, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import internal_error, request_id_of, response_of
from service.incidents import report_incident

T = TypeVar("T", bound=Hashable)


class Loop(Protocol):
    """The methods of an event loop that are used here."""

    def time(self) -> float:
        """Its clock, in seconds."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call once, when the clock shows `when`."""


class SharedTimeout(Generic[T]):
    """Waits for each for `limit_s`, and calls `lose` with each that has not ended by then, once.

    Belongs to one event loop at a time.
    """

    def __init__(
        self, limit_s: float, lose: Callable[[T], None], running: Callable[[], Loop] = asyncio.get_running_loop
    ) -> None:
        self._limit_s, self._lose, self._running = limit_s, lose, running
        self._since_s: dict[T, float] = {}  # in the order of their beginning
        self._loop: Loop | None = None  # in which the timer is set, if it is

    def begin(self, one: T) -> None:
        """From now on `one` is waited for."""
        loop = self._running()
        now_s = self._since_s[one] = loop.time()
        if self._loop is not loop:  # the loop before may have ended while the timer was set
            self._set(loop, now_s)

    def end(self, one: T) -> None:
        """It has ended, in time or not."""
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


class ResponseAborted(Exception):
    """The response had begun when something failed; the server cuts the connection, so no client takes it for whole."""


class Incidents:
    """Turns every error that was not foreseen into one fixed 500.

    The log gets the kind of error and the places in our code, never its message: a message may quote a record.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; answer for what falls out. Raises ResponseAborted where half an answer is already out."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, send_watched)
            return
        except ClientDisconnect:
            return
        except ResponseAborted:
            raise  # from the same layer further in, which has reported it
        except Exception as error:  # noqa: BLE001 - the last resort is for everything
            report_incident(error, f"request_id={request_id_of(scope)}")
        if started:
            raise ResponseAborted
        await response_of(internal_error(), request_id_of(scope))(scope, receive, send)


class RequestLimits:
    """Bounds the memory and time of a request before it is authenticated.

    `bodies` gives the limit in bytes of each path that has one of its own; every other path has `body_bytes_max`. The
    length that the caller declares is checked first, what really comes is counted, and a body that stops coming is
    given up after `silence_s_max`.
    """

    URI_BYTES_MAX = 2048
    HEADERS_BYTES_MAX = 16 * 1024

    def __init__(
        self, app: ASGIApp, *, body_bytes_max: int, bodies: Mapping[re.Pattern[str], int], silence_s_max: float = 30.0
    ) -> None:
        self.app = app
        self.body_bytes_max = body_bytes_max
        self.bodies = bodies
        self._shared_timeout: SharedTimeout[_Silence] = SharedTimeout(silence_s_max, _Silence.break_off)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse at once what says it is too large; watch over the rest."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body_bytes_max = self._body_bytes_max(scope)
        refusal = self._refusal(scope, body_bytes_max)
        if refusal is not None:
            response = response_of(HTTPException(refusal), request_id_of(scope))
            await response(scope, receive, send)
            return
        await self.app(scope, self._watched(receive, body_bytes_max), send)

    def _body_bytes_max(self, scope: Scope) -> int:
        for path, own in self.bodies.items():
            if path.fullmatch(scope["path"]):
                return own
        return self.body_bytes_max

    def _refusal(self, scope: Scope, body_bytes_max: int) -> HTTPStatus | None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self.URI_BYTES_MAX:
            return HTTPStatus.REQUEST_URI_TOO_LONG
        taken, declared = 0, None
        for name, value in scope["headers"]:
            taken += len(name) + len(value)
            if name == b"content-length" and declared is None:
                declared = value
        if taken > self.HEADERS_BYTES_MAX:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        if declared is not None and (not declared.isdigit() or int(declared) > body_bytes_max):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None

    def _watched(self, receive: Receive, body_bytes_max: int) -> Receive:
        taken, complete = 0, False

        async def receive_watched() -> Message:
            nonlocal taken, complete
            if complete:  # what comes now is the disconnect, for which one may wait as long as one likes
                return await receive()
            message = await self._in_time(receive)
            taken += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if taken > body_bytes_max:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        return receive_watched

    async def _in_time(self, receive: Receive) -> Message:
        silence = _Silence(asyncio.current_task())
        self._shared_timeout.begin(silence)
        try:
            return await receive()
        except asyncio.CancelledError:
            if silence.is_broken_alone():
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT) from None
            raise
        finally:
            self._shared_timeout.end(silence)


class _Silence:
    """A task's wait for a message, which can be broken off: `asyncio.timeout` without a timer of its own."""

    __slots__ = ("_is_broken", "_task")

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self._task, self._is_broken = task, False

    def break_off(self) -> None:
        """Wake the waiting task with a CancelledError."""
        self._is_broken = True
        if self._task is not None:
            self._task.cancel()

    def is_broken_alone(self) -> bool:
        """Whether such an error is this silence's doing, and nothing else has cancelled the task."""
        return self._is_broken and self._task is not None and self._task.uncancel() == 0
