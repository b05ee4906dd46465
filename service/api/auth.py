"""Authentication: guards, the routes that cannot be built without one, and the credentials of requests.

FastAPI parses a body before it asks a dependency. Malformed JSON would be answered with 422, which tells a stranger
that the route exists. So `GuardedRoute` asks its guard first. A principal of another role is told which role the route
needs, as the interface's public document tells everybody. Another principal's dataset is answered like a path that does
not exist.

A browser sends a cookie with every request to the origin, even if a page of another site has caused the request. Three
things keep another site from using the cookie. It is SameSite=Strict. A request that changes something must carry
REQUEST_HEADER, which no form can set and no script of another origin may set. A request is refused if the browser says
that it comes from another site.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Message

from service.api.bodies import with_sent
from service.api.lookups import Credential
from service.api.parameters import parameters_of, refuse_other_parameters
from service.api.places import KINDS, Running, current_places, in_its_place, run_endpoint_by
from service.api.problems import Refusal, unauthorized
from service.api.read_slots import free_turn_of, turn_of
from service.api.turns import STRANGERS
from service.failpoints import reach
from service.ledger.model.errors import NotFound, RoleRequired, UnknownDataset
from service.ledger.model.views import Principal, Role
from service.workflows.replica import Replica
from service.workflows.sign_ins import TOKEN_LENGTH_MAX

API_KEY_LENGTH_MAX: Final = 256
COOKIE: Final = "__Host-sparing_session"
"""The cookie's name over TLS: browsers take a name like this only from the host itself, for all of its paths."""
LOOPBACK_COOKIE: Final = "sparing_session"
"""The cookie's name on loopback, where there may be no TLS."""
REQUEST_HEADER: Final = "x-sparing-request"
RECOGNISED: Final = "recognised"
"""The place in a request's state of the principal to which its credential belongs, once that was looked up."""
OWN_ROLES: Final = ("individual", "auditor")
"""The roles whose reads begin in free slots, outside any analyst's schedule.

Their acts wait for a free slot themselves.
"""

_SAFE: Final = {"GET", "HEAD"}
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}
OWN_SITE: Final = {"same-origin", "none"}
"""The values of `Sec-Fetch-Site` for a page of this origin, and for an address that was typed or bookmarked."""

_declared = HTTPBearer(auto_error=False, scheme_name="api_key", description="The API key, shown once when it was made.")


def current_replica(request: Request) -> Replica:
    """The replica that this application serves."""
    replica: Replica = request.app.state.replica
    return replica


class RouteGuard:
    """Lets principals of the named roles through; one that is bound to a dataset gets through to that dataset alone.

    With `for_all_datasets` the route concerns all datasets, and a principal that is bound to one is refused.
    """

    def __init__(self, *roles: Role, for_all_datasets: bool = False) -> None:
        self.roles, self.for_all_datasets = frozenset(roles), for_all_datasets

    async def __call__(self, _: Annotated[HTTPAuthorizationCredentials | None, Security(_declared)] = None) -> None:
        """Do nothing: FastAPI, which asks after the route has, reads off this what the route requires."""

    async def admit(self, request: Request) -> Principal:
        """The principal of a request. The body is to be read by `rest_of` from then on.

        Raises a 401 refusal without a valid key, UnknownDataset for another's dataset, RoleRequired, RateLimited.
        """
        reach("accepted")
        replica, path = current_replica(request), request.scope["path"]
        principal = await authenticated(request, replica)
        if principal is None:
            raise unauthorized()
        if replica.limiter is not None:
            await current_places(request).rates.run(principal.id, partial(replica.limiter.admit, principal))
        if "\0" in path:
            raise NotFound  # the database can hold no name with a zero byte
        own = principal.dataset
        if own is not None and (asked := request.path_params.get("dataset", own)) != own:
            raise UnknownDataset(asked, [own])
        if principal.role not in self.roles or (self.for_all_datasets and own is not None):
            raise RoleRequired(*self.roles, for_all_datasets=self.for_all_datasets)
        reach("authenticated")
        return principal


class GuardedRoute(APIRoute):
    """A route that asks its guard before it reads the body. Building one without exactly one guard is a TypeError."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:  # noqa: ANN401 - FastAPI's
        super().__init__(path, in_its_place(endpoint), **more)

    def guard(self) -> RouteGuard:
        """The route's guard. Raises TypeError unless there is exactly one."""
        guards = [each.dependency for each in self.dependencies if isinstance(each.dependency, RouteGuard)]
        if len(guards) != 1:
            raise TypeError(f"{self.path} must have exactly one guard, not {len(guards)}")
        return guards[0]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the guard."""
        guard, handle = self.guard(), super().get_route_handler()
        parameters, model = parameters_of(self.dependant), self.body_model()

        async def guarded(request: Request) -> Response:
            request.state.principal = caller = await guard.admit(request)
            request = rest_of(request, caller)
            run_endpoint_by(self._place_of(request, caller))
            if request.scope["query_string"]:
                refuse_other_parameters(request, parameters)
            if model is not None:
                request = await with_sent(request, caller, model)
            if caller.role == "analyst":
                await turn_of(request, caller, current_replica(request).admission)
            elif request.method == "GET" and caller.role in OWN_ROLES:
                await free_turn_of(request, caller, current_replica(request).admission)
            try:
                return await handle(request)
            except UnknownDataset as missing:
                raise await with_nearest(missing, caller, request) from None

        return guarded

    def _place_of(self, request: Request, caller: Principal) -> Running:
        """Give the place in which this request waits for a thread."""
        kind = KINDS.get(self.name, "reads" if request.method == "GET" else "changes")
        dataset = request.path_params.get("dataset") or caller.dataset or ""
        return current_places(request).of(kind, owner=caller.id, role=caller.role, dataset=dataset)

    def body_model(self) -> type[BaseModel] | None:
        """The model of the body, which is read here and not by FastAPI; None without a body.

        TypeError if it is no model. FastAPI would validate any other type again, in the event loop.
        """
        if self.body_field is None:
            return None
        model = self.body_field.field_info.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)) or len(self.dependant.body_params) > 1:
            raise TypeError(f"the body of {self.path} must be one model")
        return model


async def with_nearest(missing: UnknownDataset, caller: Principal, request: Request) -> UnknownDataset:
    """The refusal with the nearest dataset that the caller may use; for a bound caller that is its own dataset.

    So a dataset that the caller may not see is answered as one that does not exist, with the same work.
    """
    if caller.dataset is not None:
        return UnknownDataset(missing.name, [caller.dataset])
    names = current_replica(request).registry.names
    return UnknownDataset(missing.name, await current_places(request).owners.run(caller.id, names))


def guarded_router(
    *roles: Role, for_all_datasets: bool = False, route_class: type[GuardedRoute] = GuardedRoute
) -> APIRouter:
    """A router under /v1 behind a `RouteGuard` for these roles."""
    guard = Depends(RouteGuard(*roles, for_all_datasets=for_all_datasets))
    return APIRouter(prefix="/v1", route_class=route_class, dependencies=[guard], tags=[*sorted(roles)])


async def _replica(request: Request) -> Replica:
    return current_replica(request)


async def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


CurrentReplica = Annotated[Replica, Depends(_replica)]
Caller = Annotated[Principal, Depends(_caller)]


def credential_of(request: Request, replica: Replica) -> Credential | None:
    """The request's credential. A key goes before a cookie, and a malformed key counts as no credential.

    Raises a 403 refusal for a cookie on a request that another site may have caused.
    """
    given = request.headers.getlist("authorization")
    if given:
        scheme, _, api_key = given[0].partition(" ")
        is_key = len(given) == 1 and scheme.lower() == "bearer" and api_key.isascii()
        return Credential(api_key, replica.principals) if is_key and 0 < len(api_key) <= API_KEY_LENGTH_MAX else None
    token = token_of(request)
    if token is None:
        return None
    if request.headers.get("sec-fetch-site", "same-origin") not in OWN_SITE:
        raise Refusal("cross-site-request")
    if request.method not in _SAFE and REQUEST_HEADER not in request.headers:
        title = "A request that is signed in by cookie must carry the header X-Sparing-Request."
        raise Refusal("cross-site-request", title)
    return Credential(token, replica.sign_ins)


def is_loopback(request: Request) -> bool:
    """Tell whether the request names a host on which cookies may come without TLS."""
    return request.url.hostname in _LOOPBACK


def cookie_of(request: Request) -> str:
    """The name of the cookie at the host that the request names."""
    return LOOPBACK_COOKIE if is_loopback(request) else COOKIE


def set_session_cookie(request: Request, response: Response, token: str) -> None:
    """Give the browser the token of its sign-in."""
    name = cookie_of(request)
    response.set_cookie(name, token, path="/", secure=name == COOKIE, httponly=True, samesite="strict")


def token_of(request: Request) -> str | None:
    """The token in the request's cookie; None without one."""
    return cookie_in(request, cookie_of(request), TOKEN_LENGTH_MAX)


def cookie_in(request: Request, name: str, length_max: int) -> str | None:
    """The value of a cookie of the request; None without one, and for one that is too long."""
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return morsel.value if morsel is not None and 0 < len(morsel.value) <= length_max else None


async def authenticated(request: Request, replica: Replica) -> Principal | None:
    """The principal of the request's credential; None without a known one. It is looked up once for each request.

    Raises a 403 refusal for a request that another site may have caused (`credential_of`).
    """
    state: dict[str, Any] = request.scope.setdefault("state", {})
    if RECOGNISED not in state:
        credential = credential_of(request, replica)
        principal = None if credential is None else credential.recogniser.remembered(credential.text)
        if principal is None and credential is not None:
            principal = await current_places(request).lookups.of(credential)
            if principal is None:  # many were looked up together, and go on a few at a time
                await current_places(request).turns.wait(lambda: STRANGERS)
        state[RECOGNISED] = principal
    known: Principal | None = state[RECOGNISED]
    return known


async def is_still_admitted(request: Request, replica: Replica, caller: Principal) -> bool:
    """Tell whether the request's credential is still good, with the same role and bounds, while a response goes on.

    The database is asked each time, so that a key revoked or a sign-in ended in another process counts at once.
    """
    credential = credential_of(request, replica)
    now = None if credential is None else await current_places(request).lookups.of(credential, is_use=False)
    return _is_same(now, caller)


async def may_go_on(request: Request, replica: Replica, caller: Principal) -> bool:
    """Tell what `is_still_admitted` tells, but ask the database only once a moment.

    A credential that ends in this process counts at once. One that ends in another process counts as late as for a new
    request.
    """
    credential = credential_of(request, replica)
    remembered = None if credential is None else credential.recogniser.remembered(credential.text)
    return _is_same(remembered, caller) or await is_still_admitted(request, replica, caller)


def _is_same(now: Principal | None, caller: Principal) -> bool:
    return now is not None and (now.id, now.binding) == (caller.id, caller.binding)


def rest_of(request: Request, caller: Principal) -> Request:
    """Give the request a body that checks the credential once more at the body's end (`AdmittedBody`)."""
    return request if request.method in _SAFE else Request(request.scope, AdmittedBody(request, caller).receive)


class AdmittedBody:
    """Receives a body, and checks the credential once more at the body's end if any part of the body was waited for.

    Otherwise a key that ends while a body comes would be good for as long as its holder sends slowly. A body that came
    with its head is never waited for, and costs no second check.
    """

    __slots__ = ("_caller", "_is_whole", "_request", "_waits")

    def __init__(self, request: Request, caller: Principal) -> None:
        self._request, self._caller, self._is_whole = request, caller, False
        self._waits: list[None] = []

    async def receive(self) -> Message:
        """The next message. Raises a 401 of HTTP at the end of a body whose credential has ended."""
        if self._is_whole:
            return await self._request.receive()
        # Called by the event loop only where the message is not there yet.
        turn = asyncio.get_running_loop().call_soon(self._waits.append, None)
        message = await self._request.receive()
        turn.cancel()
        self._is_whole = not message.get("more_body", False)
        if self._is_whole and self._waits and message["type"] == "http.request":
            await refuse_ended(self._request, self._caller)
        return message


async def refuse_ended(request: Request, caller: Principal) -> None:
    """Raise a 401 of HTTP if the request's credential has ended: the only refusal that FastAPI lets out of a body."""
    if not await may_go_on(request, current_replica(request), caller):
        raise HTTPException(HTTPStatus.UNAUTHORIZED, headers=unauthorized().headers)
