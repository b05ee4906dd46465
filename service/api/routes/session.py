"""Sign-in of a browser: an API key is exchanged once for a cookie that no script can read."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Response

from service.api.auth import COOKIE, Caller, CurrentReplica, cookie_of, guarded_router, set_session_cookie, token_of
from service.api.problems import unauthorized
from service.ledger.model.views import KeyDataset, KeyIndividual, KeyName, KeyRole, Principal
from service.query.schema import doc
from service.workflows.sign_ins import IDLE

router = guarded_router("curator", "analyst", "individual", "auditor")


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
    """Exchange the API key of this request for a cookie. A sign-in lasts half an hour after its last use.

    The sign-in of a cookie that comes with the request ends. A cookie alone begins no other, which would last longer.
    """
    if "authorization" not in request.headers:
        raise unauthorized()
    before = token_of(request)
    token = replica.sign_ins.begin(caller)
    if before is not None:
        replica.sign_ins.end(before)
    set_session_cookie(request, response, token)
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
    name = cookie_of(request)
    response.delete_cookie(name, path="/", secure=name == COOKIE, httponly=True, samesite="strict")


def _view(principal: Principal) -> SessionView:
    return SessionView(
        role=principal.role,
        name=principal.name,
        dataset=principal.dataset,
        individual=principal.individual,
        idle_s=int(IDLE.total_seconds()),
    )
