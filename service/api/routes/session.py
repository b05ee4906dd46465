"""Sign-in of a browser: an API key is exchanged once for a cookie that no script can read."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Request, Response

from service.api.auth import COOKIE, Caller, CurrentReplica, guarded_router, token_of
from service.query.schema import doc
from service.workflows.model.views import KeyDataset, KeyIndividual, KeyName, KeyRole, Principal
from service.workflows.sign_ins import IDLE

router = guarded_router("curator", "analyst", "individual", "auditor")
_LOOPBACK: Final = {"localhost", "127.0.0.1", "[::1]", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """The principal that is signed in, and after how many seconds without a request it no longer is."""

    role: KeyRole
    name: KeyName
    dataset: KeyDataset
    individual: KeyIndividual
    idle_s: Annotated[int, doc("After how many seconds without a request a sign-in by cookie ends.")]


@router.post("/session", status_code=201, summary="Sign in")
def sign_in(request: Request, response: Response, replica: CurrentReplica, caller: Caller) -> SessionView:
    """Exchange the API key of this request for a cookie. A sign-in lasts half an hour after its last use."""
    token = replica.sign_ins.begin(caller)
    is_secure = (request.url.hostname or "") not in _LOOPBACK
    response.set_cookie(COOKIE, token, path="/", secure=is_secure, httponly=True, samesite="strict")
    return _view(caller)


@router.get("/session", summary="Read whose key this is")
def read_session(caller: Caller) -> SessionView:
    """The principal of this request."""
    return _view(caller)


@router.delete("/session", status_code=204, summary="Sign out", response_class=Response)
def sign_out(request: Request, response: Response, replica: CurrentReplica) -> None:
    """End the sign-in of this request's cookie; another browser's goes on."""
    token = token_of(request)
    if token is not None:
        replica.sign_ins.end(token)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def _view(principal: Principal) -> SessionView:
    return SessionView(
        role=principal.role,
        name=principal.name,
        dataset=principal.dataset,
        individual=principal.individual,
        idle_s=int(IDLE.total_seconds()),
    )
