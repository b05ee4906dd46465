"""Taking a query off the wire and waiting for its answer.

Hot routes: what analysts ask thousands of times a second is answered before the framework's own routing.

On the way of a query to its writer, FastAPI's middlewares, its routing and its solving of dependencies take longer than
everything else together, and a query needs none of it. FastAPI describes these routes all the same, and could serve
them: the same guard, the same endpoint, the same refusals.
"""

import asyncio
import re
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Self
from weakref import WeakKeyDictionary

from fastapi import Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import GuardedRoute, authenticate
from service.api.middleware.release_slots import declare_public_work
from service.api.problems import REFUSALS, Refusal, refusal_of
from service.api.query_bodies import read_query
from service.api.responses import NPZ
from service.query.language import Query
from service.workflows.model.analyst_views import StoredAnswer
from service.workflows.model.views import Principal
from service.workflows.replica import Replica
from service.workflows.writer.submission import AdmittedUnit, PendingAnswer

_KEY = re.compile(r"[\x20-\x7e]{1,128}")


def checked_key(key: str | None) -> str:
    """The key itself. Raises a 400 refusal for none, or for one that is not 1 to 128 printable ASCII characters."""
    if key is None or not key.strip():
        raise Refusal("idempotency-key-missing")
    if _KEY.fullmatch(key) is None:
        raise Refusal("idempotency-key-invalid")
    return key


def sent_key(request: Request) -> str:
    """The request's key. Raises as `checked_key`."""
    sent = request.headers.getlist("idempotency-key")
    return checked_key("\n".join(sent) if sent else None)  # two keys are no key: a newline is not printable


async def sent_query(request: Request) -> Query:
    """The request's query. Raises QueryProblem."""
    return read_query(request.headers.get("content-type"), await request.body())


SentQuery = Annotated[Query, Depends(sent_query)]

# FastAPI must not read these bodies as JSON itself: the language has a stricter reader of its own.
QUERY_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Query"}},
            NPZ: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
KEYED: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": True,
            "description": "Names this request for good: sent again, it gets the same bytes and is not charged again.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        }
    ]
}
KEYED_QUERY: dict[str, Any] = {**QUERY_BODY, **KEYED}

SMALL_BODY_BYTES = 4096  # compiled in less time than it takes to hand it to another thread and back


async def submit(
    replica: Replica, caller: Principal, dataset: str, key: str, query: Query, *, is_small: bool
) -> PendingAnswer:
    """Put a query in its dataset's writer: at once where that takes neither long nor a database, else from a thread."""
    if is_small and replica.analysts.submits_at_once(dataset):
        return replica.analysts.submit(caller, dataset, key, query)
    return await run_in_threadpool(replica.analysts.submit, caller, dataset, key, query)


async def wait_for_answer(pending: PendingAnswer) -> StoredAnswer:
    """Wait for a submitted query; the caller may be cancelled, the query never is.

    Raises what the workflow refuses with, all of it public, and ClientDisconnect when the client has gone before the
    work began.
    """
    if not pending.done():
        await _arrivals().of(pending)
    if pending.cancelled():
        raise ClientDisconnect
    return pending.result()


UNWATCHED_S = 0.05
"""Without slots, so long a request waits before it is watched for a client that goes."""


class Admitted:
    """The work admitted for these promises, declared as the request's; `tickets` are its places in the schedule.

    Within a `with` block of it: when the client goes, what has not begun of its request is not begun.
    """

    __slots__ = ("_request", "_units", "_watch", "tickets")

    def __init__(self, request: Request, promises: Iterable[PendingAnswer]) -> None:
        self._request = request
        self._units = {promise.unit: None for promise in promises if promise.unit is not None}  # each once, in order
        self.tickets = [unit.ticket for unit in self._units if unit.ticket is not None]
        declare_public_work(request.scope, *self.tickets)
        self._watch: asyncio.Future[None] | asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if any(ticket.is_scheduled for ticket in self.tickets):
            self._begin()
        else:
            self._watch = asyncio.get_running_loop().call_later(UNWATCHED_S, self._begin)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._watch is not None:
            self._watch.cancel()

    def _begin(self) -> None:
        """Watch from now on."""
        self._watch = asyncio.ensure_future(_cancel_when_gone(self._request, list(self._units)))


async def _cancel_when_gone(request: Request, units: Sequence[AdmittedUnit[Any]]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    for unit in units:
        unit.cancel()


class _Arrivals:
    """Wakes the waiting requests of one event loop: once for all the answers of a commit."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[asyncio.Future[None]] = deque()
        self._is_told = False
        self._lock = threading.Lock()

    def of(self, pending: PendingAnswer) -> "asyncio.Future[None]":
        """A future of the loop's that is done when `pending` is."""
        waiter = self._loop.create_future()
        pending.add_done_callback(lambda _: self._come(waiter))
        return waiter

    def _come(self, waiter: "asyncio.Future[None]") -> None:
        """Called in the thread in which the answer was settled."""
        with self._lock:
            self._arrived.append(waiter)
            is_told, self._is_told = self._is_told, True
        if not is_told:
            with suppress(RuntimeError):  # the loop is closed, and nothing waits any more
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._lock:
            ready, self._arrived, self._is_told = self._arrived, deque(), False
        for waiter in ready:
            if not waiter.done():  # the request that waited may have gone
                waiter.set_result(None)


_of_loop: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Arrivals]" = WeakKeyDictionary()


def _arrivals() -> _Arrivals:
    loop = asyncio.get_running_loop()
    found = _of_loop.get(loop)
    if found is None:
        found = _of_loop[loop] = _Arrivals(loop)
    return found


Answering = Callable[[Request], Coroutine[Any, Any, Response]]


class FastRoute(GuardedRoute):
    """A guarded route whose endpoint is `(request, caller, **path parameters)` and answers with a Response.

    It reads what it needs off the request by itself, the body with `whole_body`. The parameters of its path are text.
    """

    def is_read(self) -> bool:
        """Queries have turns of their own."""
        return False

    def get_route_handler(self) -> Answering:
        """The endpoint itself, behind the guard."""
        guard, ask = self.guard(), self.endpoint

        async def guarded(request: Request) -> Response:
            response: Response = await ask(request, await authenticate(request, guard), **request.path_params)
            return response

        return guarded


class FastPath:
    """The innermost layer: answers what is for a hot route, and leaves everything else to the framework."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[FastRoute]) -> None:
        self.app = app
        self.routes = [(route, route.get_route_handler()) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        answering = self._answering(scope)
        if answering is None:
            await self.app(scope, receive, send)
            return
        response = await _answered(answering, Request(scope, receive, send))
        await response(scope, receive, send)

    def _answering(self, scope: Scope) -> Answering | None:
        """The handler of this path and method, if any; the scope then holds what the framework would have put there."""
        for route, answering in self.routes:
            found = route.path_regex.match(scope["path"]) if scope["method"] in (route.methods or ()) else None
            if found is not None:
                scope.update(route=route, endpoint=route.endpoint, path_params=found.groupdict())
                return answering
        return None


async def _answered(answering: Answering, request: Request) -> Response:
    try:
        return await answering(request)
    except REFUSALS as refusal:
        refusal.__traceback__ = None  # one refusal may be many queries', and would gather the frames of them all
        return refusal_of(request, refusal)


async def whole_body(request: Request) -> bytes:
    """The request's body, which nothing else may read. Raises ClientDisconnect.

    Most come in one message, for which `Request.body` sets two generators to work.
    """
    parts: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
