"""The layer in which a request waits for its turn (`service.api.turns`), before anything of it is worked on."""

from collections.abc import Hashable
from functools import partial
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.auth import credential_of, current_replica
from service.api.middleware.release_slots import PROBES
from service.api.places import current_places
from service.api.problems import Refusal
from service.api.turns import STRANGERS

WITHOUT_CREDENTIAL: Final = "without a credential"
PROBING: Final = "probes"


class InTurn:
    """Lets a request begin when it is its principal's turn."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, then pass the request on."""
        if scope["type"] == "http":
            request = Request(scope)
            await current_places(request).turns.wait(partial(owner_of, request))
        await self.app(scope, receive, send)


def owner_of(request: Request) -> Hashable:
    """Give the principal whose turns a request shares, as far as this process knows the principal."""
    try:
        credential = credential_of(request, current_replica(request))
    except Refusal:
        return STRANGERS
    if credential is None:
        return PROBING if request.scope["path"] in PROBES else WITHOUT_CREDENTIAL
    principal = credential.recogniser.remembered(credential.text)
    if principal is not None:
        return principal.id
    return credential.text if credential.recogniser.is_familiar(credential.text) else STRANGERS
