"""Sign-in of a browser by the organisation's identity provider: the way there, and the way back.

Both are addresses for the browser itself, not of /v1. If a sign-in fails, the sign-in page says so, where an API key
still signs in. No address of a redirect is taken from a request.

The provider's answer is a request from another site, so that no cookie that is SameSite=Strict comes with it. The
attempt's cookie is therefore Lax; it opens nothing by itself. The way back ends at the sign-in page, and not at the
principal's own page: the browser sends the new cookie with requests of the sign-in page, but would not send it after a
redirect from another site.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from service.api.auth import OWN_SITE, CurrentReplica, cookie_in, is_loopback, set_session_cookie, token_of
from service.api.places import current_places
from service.ledger.model.errors import ClockImplausible, NotFound
from service.ledger.model.views import Principal
from service.ledger.ports.identity import IdentityRefused, ProviderUnavailable
from service.ledger.ports.store import StoreUnavailable
from service.workflows.provider_sign_ins import (
    ATTEMPT_FOR,
    ATTEMPT_LENGTH_MAX,
    CALLBACK,
    AttemptExpired,
    NoRole,
    ProviderSignIns,
)
from service.workflows.replica import Replica

COOKIE: Final = "__Host-sparing_attempt"
LOOPBACK_ATTEMPT: Final = "sparing_attempt"
PAGE: Final = "/sign-in"
_BEGINNING: Final = ""
"""The owner of the turns in which all sign-ins begin; no attempt is empty."""
_TEXT_MAX: Final = 4096

log = logging.getLogger("sparing.sign_in")
router = APIRouter(include_in_schema=False)

T = TypeVar("T")

Sent = Annotated[str, Query(max_length=_TEXT_MAX)]


@router.get(f"{PAGE}/options")
async def read_options(replica: CurrentReplica) -> dict[str, str | None]:
    """The provider's name, for the page; null where keys alone sign in."""
    provider = replica.provider_sign_ins
    return {"provider": None if provider is None else provider.title}


@router.get(f"{PAGE}/provider")
async def begin(request: Request, replica: CurrentReplica) -> Response:
    """To the provider, from the sign-in page alone: another site may not begin a sign-in here.

    The browser's present sign-in ends here: its cookie does not come back with the provider's answer.
    """
    provider = _provider_of(replica)
    if request.headers.get("sec-fetch-site", "same-origin") not in OWN_SITE:
        return _to_page()
    try:
        address, attempt = await _in_a_thread(request, _BEGINNING, provider.begin)
    except (ProviderUnavailable, ClockImplausible) as error:
        return _refused("unavailable", str(error))
    before = token_of(request)
    if before is not None:
        await _in_a_thread(request, _BEGINNING, partial(replica.sign_ins.end, before))
    response = RedirectResponse(address, status_code=303)
    response.set_cookie(
        _cookie(request),
        attempt,
        max_age=int(ATTEMPT_FOR.total_seconds()),
        secure=not is_loopback(request),
        httponly=True,
    )
    return response


@router.get(CALLBACK)
async def complete(
    request: Request, replica: CurrentReplica, code: Sent = "", state: Sent = "", error: Sent = "", iss: Sent = ""
) -> Response:
    """From the provider, with a code or an error: the browser is signed in, or the page says why not."""
    provider = _provider_of(replica)
    attempt = cookie_in(request, _cookie(request), ATTEMPT_LENGTH_MAX) or ""
    try:
        if not provider.redeem(attempt, state):
            response = _refused("expired", "the answer belongs to no attempt of the browser")
        elif error or not code or not provider.is_issuer(iss):
            response = _refused(
                "denied" if error else "refused", "the provider has sent an error, or no code of its own"
            )
        else:
            response = await _signed_in(request, replica, provider, (attempt, state, code))
    except ClockImplausible as fault:
        response = _refused("unavailable", str(fault))
    response.delete_cookie(_cookie(request), path="/", secure=not is_loopback(request), httponly=True)
    return response


async def _signed_in(
    request: Request, replica: Replica, provider: ProviderSignIns, answer: tuple[str, str, str]
) -> Response:
    try:
        principal: Principal = await _in_a_thread(request, answer[0], partial(provider.complete, *answer))
        token = await _in_a_thread(request, answer[0], partial(replica.sign_ins.begin, principal))
    except (AttemptExpired, NotFound):
        return _refused("expired", "the attempt or the principal is gone")
    except IdentityRefused as refusal:
        return _refused("refused", f"the check of {refusal} failed")
    except NoRole as refusal:
        return _refused("no-role", str(refusal))
    except ProviderUnavailable as refusal:
        return _refused("unavailable", str(refusal))
    except StoreUnavailable:
        return _refused("unavailable", "the database is away")
    response = _to_page("?done=1")
    set_session_cookie(request, response, token)
    return response


async def _in_a_thread(request: Request, turn: str, work: Callable[[], T]) -> T:
    """Work in a thread of the place `providers`.

    Each attempt has its own turns; all sign-ins that begin share others.
    """
    return await current_places(request).providers.run(turn, work)


def _provider_of(replica: Replica) -> ProviderSignIns:
    if replica.provider_sign_ins is None:
        raise NotFound
    return replica.provider_sign_ins


def _cookie(request: Request) -> str:
    return LOOPBACK_ATTEMPT if is_loopback(request) else COOKIE


def _refused(kind: str, reason: str) -> Response:
    """A redirect to the sign-in page, which has words for each `kind`. The `reason` is logged for the operator."""
    log.warning("sign-in by the identity provider refused: %s", reason)
    return _to_page(f"?refused={kind}")


def _to_page(query: str = "") -> Response:
    return RedirectResponse(f"{PAGE}{query}", status_code=303)
