"""The way of a query through HTTP, past the framework: from the request to the answer that it waits for.

FastAPI's middlewares, its routing and its solving of dependencies take longer than everything else together, and a
query needs none of them. Analysts ask thousands of times a second. FastAPI describes these routes all the same, and
could serve them with the same guard, endpoint and refusals.
"""

import asyncio
import re
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, Final
from weakref import WeakKeyDictionary

from fastapi import Depends, Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import GuardedRoute, current_replica, rest_of, with_nearest
from service.api.bodies import read_body
from service.api.body_length import declared_length
from service.api.middleware.release_slots import declare_public_work
from service.api.middleware.request_limits import disconnected
from service.api.parameters import refuse_other_parameters
from service.api.places import current_places
from service.api.problems import REFUSALS, Refusal, refusal_of
from service.api.query_bodies import NPZ_BYTES_MAX, query_of_npz
from service.api.responses import NPZ
from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import UnknownDataset
from service.ledger.model.views import Principal
from service.query.language import Query
from service.query.parse import kept_query, parse_query
from service.writer.admission.admission import Ticket
from service.writer.submission import PendingAnswer

NPZ_COPIES: Final = 4
"""How many copies of an npz are held: the body, a member of it, its numbers, and these in steps."""
UNWATCHED_S: Final = 0.05
"""How long without slots a request waits before it is watched for a client that leaves."""

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

_KEY: Final = re.compile(r"[\x20-\x7e]{1,128}")

Answering = Callable[[Request], Coroutine[Any, Any, Response]]


class FastRoute(GuardedRoute):
    """A guarded route whose endpoint is `(request, caller, **path parameters)` and answers with a Response.

    The endpoint reads everything else from the request by itself, the body with `whole_body`. Path parameters are text.
    The route waits for no turn, because a query has its own turn in the schedule.
    """

    def get_route_handler(self) -> Answering:
        """The endpoint itself, behind the guard."""
        guard, ask = self.guard(), self.endpoint

        async def guarded(request: Request) -> Response:
            caller = await guard.admit(request)
            if request.scope["query_string"]:
                refuse_other_parameters(request, ())
            request = rest_of(request, caller)
            try:
                response: Response = await ask(request, caller, **request.path_params)
            except UnknownDataset as missing:
                raise await with_nearest(missing, caller, request) from None
            return response

        return guarded


class FastPath:
    """The innermost layer: answers requests for a hot route, and leaves every other request to the framework."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[FastRoute]) -> None:
        self.app = app
        self.routes = [(route, route.get_route_handler()) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        answering = self._answering(scope)
        if answering is None:
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await answering(request)
        except REFUSALS as refusal:
            refusal.__traceback__ = None  # one refusal may be many queries', and would gather the frames of them all
            response = refusal_of(request, refusal)
        await response(scope, receive, send)

    def _answering(self, scope: Scope) -> Answering | None:
        """The handler of this path and method, if any.

        The scope then holds what the framework would have put into it.
        """
        for route, answering in self.routes:
            found = route.path_regex.match(scope["path"]) if scope["method"] in (route.methods or ()) else None
            if found is not None:
                scope.update(route=route, endpoint=route.endpoint, path_params=found.groupdict())
                return answering
        return None


async def whole_body(request: Request) -> bytes:
    """The request's body, which nothing else may read. Raises ClientDisconnect.

    Most bodies come in one message. `Request.body` would run two generators for it.
    """
    parts: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def checked_key(key: str | None) -> str:
    """The key itself. Raises a 400 refusal without one, or for one that is not 1 to 128 printable ASCII characters."""
    if key is None or not key.strip():
        raise Refusal("idempotency-key-missing")
    if _KEY.fullmatch(key) is None:
        raise Refusal("idempotency-key-invalid")
    return key


def sent_key(request: Request) -> str:
    """The request's idempotency key. Raises what `checked_key` raises."""
    sent = request.headers.getlist("idempotency-key")
    return checked_key("\n".join(sent) if sent else None)  # two keys are no key: a newline is not printable


def read_query(content_type: str | None, body: bytes, *, asker: Hashable | None = None) -> Query:
    """The query in a body: an npz if `content_type` says so, else JSON. Raises QueryProblem.

    A short text in JSON is read once for the same `asker`.
    """
    if content_type is not None and content_type[: len(NPZ)].lower() == NPZ and is_npz(content_type):
        return query_of_npz(body)
    return parse_query(body) if asker is None else kept_query(body, asker)


@contextmanager
def room_for_npz(request: Request, caller: Principal) -> Iterator[None]:
    """Hold memory for a query in npz while it comes and is read, until it has a cost of its own. Raises Busy."""
    declared = declared_length(request.scope["headers"])
    body_bytes = NPZ_BYTES_MAX if declared is None else declared
    with current_replica(request).admission.holding(caller.id, NPZ_COPIES * min(body_bytes, NPZ_BYTES_MAX)):
        yield


async def sent_query(request: Request) -> Query:
    """The request's query. Raises QueryProblem, Busy."""
    content_type = request.headers.get("content-type")
    if is_npz(content_type):
        with room_for_npz(request, request.state.principal):
            read = partial(query_of_npz, await request.body())
            caller: Principal = request.state.principal
            return await current_places(request).bodies.run(caller.role, caller.id, read)
    return await read_body(request, request.state.principal, parse_query)


def is_npz(content_type: str | None) -> bool:
    """Tell whether a body is an npz."""
    return (content_type or "").partition(";")[0].strip().lower() == NPZ


SentQuery = Annotated[Query, Depends(sent_query)]


@contextmanager
def admitted(request: Request, *promises: PendingAnswer) -> Iterator[list[Ticket]]:
    """Declare the work admitted for these promises as the request's, and yield its places in the schedule.

    If the client leaves within the block, work of its request that has not begun never begins.
    """
    units = list(dict.fromkeys(promise.unit for promise in promises if promise.unit is not None))
    tickets = [unit.ticket for unit in units if unit.ticket is not None]
    declare_public_work(request.scope, *tickets)
    loop = asyncio.get_running_loop()
    watching: asyncio.Future[None] | asyncio.TimerHandle

    def watch() -> None:
        nonlocal watching
        watching = loop.create_task(disconnected(request.receive, *(unit.cancel for unit in units)))

    if any(ticket.is_scheduled for ticket in tickets):
        watch()
    else:
        watching = loop.call_later(UNWATCHED_S, watch)
    try:
        yield tickets
    finally:
        watching.cancel()


async def wait_for_answer(pending: PendingAnswer) -> StoredAnswer:
    """Wait for the answer to a submitted query. The caller may be cancelled, the query never is.

    Raises the workflow's refusals, which are all public, and ClientDisconnect when the client has left before the work
    began.
    """
    if not pending.done():
        loop = asyncio.get_running_loop()
        arrivals, waiter = _of_loop.get(loop) or _of_loop.setdefault(loop, _Arrivals(loop)), loop.create_future()
        pending.add_done_callback(lambda _: arrivals.come(waiter))
        await waiter
    if pending.cancelled():
        raise ClientDisconnect
    return pending.result()


class _Arrivals:
    """Wakes the waiting requests of one event loop, once for all the answers of a commit."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[asyncio.Future[None]] = deque()
        self._is_told = False
        self._lock = threading.Lock()

    def come(self, waiter: "asyncio.Future[None]") -> None:
        """Note that the answer for a `waiter` of the loop has come.

        Called in the thread that has settled the answer.
        """
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
