"""The credential of a request: an API key in its header, or the cookie of a browser's sign-in.

A browser sends a cookie with every request to the origin, also with one that a page of another site has caused. Three
things keep another site from using it: the cookie is SameSite=Strict; a request that changes something must carry
REQUEST_HEADER, which no form can set and which a script of another origin may not; and a request that the browser
itself says comes from elsewhere is refused.
"""

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final, Protocol

from fastapi import Request

from service.api.problems import Refusal
from service.workflows.model.views import Principal
from service.workflows.replica import Replica
from service.workflows.sign_ins import TOKEN_LENGTH_MAX

API_KEY_LENGTH_MAX: Final = 256
COOKIE: Final = "sparing_session"
REQUEST_HEADER: Final = "x-sparing-request"
_SAFE: Final = {"GET", "HEAD"}
_OWN_SITE: Final = {"same-origin", "none"}
"""Of `Sec-Fetch-Site`: a page of this origin, and an address that was typed or bookmarked."""


class Credential(Protocol):
    """The proof in a request of its principal."""

    @property
    def text(self) -> str:
        """The credential itself."""

    def remembered(self, replica: Replica) -> Principal | None:
        """The principal, if the replica has recognised it a moment ago; reads no database."""

    def look_up(self, replica: Replica) -> Principal | None:
        """The principal; None for a credential that is not known."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key."""

    text: str

    def remembered(self, replica: Replica) -> Principal | None:
        """As the protocol says."""
        return replica.principals.remembered(self.text)

    def look_up(self, replica: Replica) -> Principal | None:
        """As the protocol says."""
        return replica.principals.authenticate(self.text)


@dataclass(frozen=True, slots=True)
class Cookie:
    """The token of a sign-in."""

    text: str

    def remembered(self, replica: Replica) -> Principal | None:
        """As the protocol says."""
        return replica.sign_ins.remembered(self.text)

    def look_up(self, replica: Replica) -> Principal | None:
        """As the protocol says."""
        return replica.sign_ins.principal_of(self.text)


def credential_of(request: Request) -> Credential | None:
    """The request's credential; a key goes before a cookie, and a malformed key is no credential at all.

    Raises a 403 refusal for a cookie on a request that another site may have caused.
    """
    given = request.headers.getlist("authorization")
    if given:
        return _api_key(given)
    token = token_of(request)
    if token is None:
        return None
    if request.headers.get("sec-fetch-site", "same-origin") not in _OWN_SITE:
        raise Refusal("cross-site-request")
    if request.method not in _SAFE and REQUEST_HEADER not in request.headers:
        title = "A request that is signed in by cookie must carry the header X-Sparing-Request."
        raise Refusal("cross-site-request", title)
    return Cookie(token)


def token_of(request: Request) -> str | None:
    """The token in the request's cookie; None without one."""
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel is not None and 0 < len(morsel.value) <= TOKEN_LENGTH_MAX else None


def _api_key(given: list[str]) -> ApiKey | None:
    if len(given) != 1:
        return None
    scheme, _, api_key = given[0].partition(" ")
    if scheme.lower() != "bearer" or not api_key or len(api_key) > API_KEY_LENGTH_MAX or not api_key.isascii():
        return None
    return ApiKey(api_key)
