"""Authentication: a route without a guard cannot be built, and the guard speaks before anything of the request is read.

FastAPI parses a body before it asks a dependency: malformed JSON would be answered with 422, which tells a stranger
that the route is there. `GuardedRoute` asks the guard first. A principal of another role is told which role the route
needs, which the interface's public document says too; another's dataset is answered as a path that does not exist.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from starlette.concurrency import run_in_threadpool

from service.api.credentials import Credential, credential_of
from service.api.problems import unauthorized
from service.api.read_slots import free_turn_of, turn_of
from service.failpoints import reach
from service.workflows.model.errors import NotFound, RoleRequired
from service.workflows.model.views import Principal, Role
from service.workflows.replica import Replica

OWN_ROLES: Final = ("individual", "auditor")
"""The roles whose reads are in no analyst's schedule and begin in free slots; their acts wait for one by themselves."""

_declared = HTTPBearer(auto_error=False, scheme_name="api_key", description="The API key, shown once when it was made.")


def current_replica(request: Request) -> Replica:
    """The replica that this application serves."""
    replica: Replica = request.app.state.replica
    return replica


class RouteGuard:
    """Lets principals of the named roles through, each to its own dataset if it is bound to one.

    With `for_all_datasets`, a principal that is bound to one dataset is refused: the route concerns all datasets.
    """

    def __init__(self, *roles: Role, for_all_datasets: bool = False) -> None:
        self.roles, self.for_all_datasets = frozenset(roles), for_all_datasets
        self._recognition = Authentication()

    async def __call__(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_declared)] = None
    ) -> Principal:
        """The principal.

        Raises a 401 refusal for no valid key, NotFound for another's dataset, RoleRequired, RateLimited.
        """
        principal: Principal | None = getattr(request.state, "principal", None)
        if principal is None:
            principal = await self.admit(request)
            request.state.principal = principal
        return principal

    async def admit(self, request: Request) -> Principal:
        """The same for a request that no guard has seen before."""
        replica = current_replica(request)
        principal = await authenticated(request, self._recognition)
        if principal is None:
            raise unauthorized()
        if replica.limiter is not None:
            await run_in_threadpool(replica.limiter.admit, principal)
        if not _sees(principal, request):
            raise NotFound
        if principal.role not in self.roles or (self.for_all_datasets and principal.dataset is not None):
            raise RoleRequired(*self.roles, for_all_datasets=self.for_all_datasets)
        return principal


def _sees(principal: Principal, request: Request) -> bool:
    """Whether the address may name something of the principal's: of its one dataset, if it is bound to one."""
    if "\0" in request.scope["path"]:
        return False  # nothing can have such a name: the database cannot hold it
    return principal.dataset is None or request.path_params.get("dataset", principal.dataset) == principal.dataset


class Authentication:
    """Looks a credential up once for all requests that come with it at the same time.

    A busy analyst's key is forgotten every second, and then all of its requests under way would ask the database.
    """

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Event] = {}

    async def of(self, credential: Credential, replica: Replica) -> Principal | None:
        """The principal; None for a credential that is not known. Raises as the replica does.

        A request that waited for another's look-up asks the replica's memory, and so hears of a key revoked meanwhile;
        a credential that is not in it is looked up for each.
        """
        other = self._under_way.get(credential.text)
        if other is not None:
            await other.wait()
            principal = credential.remembered(replica)
            if principal is not None:
                return principal
        mine = self._under_way[credential.text] = asyncio.Event()
        try:
            return await run_in_threadpool(credential.look_up, replica)
        finally:
            mine.set()
            if self._under_way.get(credential.text) is mine:
                del self._under_way[credential.text]


async def authenticated(request: Request, recognition: Authentication) -> Principal | None:
    """The principal of the request's credential; None for none, or for one not known. Looked up once a request.

    Raises a 403 refusal for a request that another site may have caused (`credential_of`).
    """
    state: dict[str, Any] = request.scope.setdefault("state", {})
    if "recognised" not in state:
        credential, replica = credential_of(request), current_replica(request)
        principal = None if credential is None else credential.remembered(replica)
        if principal is None and credential is not None:
            principal = await recognition.of(credential, replica)
        state["recognised"] = principal
    known: Principal | None = state["recognised"]
    return known


class GuardedRoute(APIRoute):
    """A route that asks its guard before it reads the body. Building one without exactly one guard is a TypeError."""

    def guard(self) -> RouteGuard:
        """The one guard."""
        guards = [each.dependency for each in self.dependencies if isinstance(each.dependency, RouteGuard)]
        if len(guards) != 1:
            raise TypeError(f"{self.path} must have exactly one guard, not {len(guards)}")
        return guards[0]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, behind the guard."""
        guard, handle = self.guard(), super().get_route_handler()
        is_read = self.is_read()

        async def guarded(request: Request) -> Response:
            request.state.principal = caller = await authenticate(request, guard)
            if is_read and caller.role == "analyst":
                await turn_of(request, caller, current_replica(request).admission)
            elif request.method == "GET" and caller.role in OWN_ROLES:
                await free_turn_of(request, caller, current_replica(request).admission)
            return await handle(request)

        return guarded

    def is_read(self) -> bool:
        """Whether an analyst's request has its turn in the schedule before the route is called.

        A route that submits queries has theirs instead.
        """
        return True


async def authenticate(request: Request, guard: RouteGuard) -> Principal:
    """The principal that the guard lets through. Raises as the guard does."""
    reach("accepted")
    caller = await guard.admit(request)
    reach("authenticated")
    return caller


def guarded_router(*roles: Role, for_all_datasets: bool = False) -> APIRouter:
    """A router under /v1 behind a `RouteGuard` for these roles."""
    guard = Depends(RouteGuard(*roles, for_all_datasets=for_all_datasets))
    return APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[guard], tags=[*sorted(roles)])


async def _replica(request: Request) -> Replica:
    return current_replica(request)


async def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


CurrentReplica = Annotated[Replica, Depends(_replica)]
Caller = Annotated[Principal, Depends(_caller)]
