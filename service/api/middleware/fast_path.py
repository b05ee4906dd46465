"""Hot routes: what analysts ask thousands of times a second is answered before the framework's own routing.

On the way of a query to its writer, FastAPI's middlewares, its routing and its solving of dependencies take longer than
everything else together, and a query needs none of it. FastAPI describes these routes all the same, and could serve
them: the same guard, the same endpoint, the same refusals.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import GuardedRoute, authenticate
from service.api.problems import REFUSALS, refusal_of

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
