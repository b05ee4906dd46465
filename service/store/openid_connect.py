"""An OpenID Connect provider: the authorization code flow with PKCE, and the checks of its ID tokens.

Authlib implements the protocol and joserfc the signatures. Authlib's own client for httpx is about to change libraries,
so the requests are made here. They use no redirects and no proxies, are of bounded size, and are few at a time, so that
a provider that hangs holds few threads. All requests of one exchange have one deadline, however slowly the provider
sends: each request runs in an event loop of its own, which is left at the deadline. The provider's endpoints are read
from its discovery document.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import orjson
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from service.ledger.ports.identity import IdentityRefused, ProviderUnavailable

EXCHANGE_S: Final = 10.0
"""The most seconds that all requests for one sign-in take together."""
DOCUMENT_BYTES_MAX: Final = 2**20
AT_ONCE_MAX: Final = 16
"""The most requests to the provider at a time, over all sign-ins."""
KEPT_FOR: Final = timedelta(hours=1)
"""How long the provider's endpoints and keys are used before they are read again."""
AGAIN_AFTER: Final = timedelta(minutes=1)
"""A token under an unknown key has the keys read again, but not within this time after they were last read."""
CLOCK_SKEW_S: Final = 60
"""The most seconds by which the provider's clock may differ from ours."""
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that nobody can make with the public key or the client's secret; `none` is no signature."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistration:
    """This service as its provider knows it. The provider sends browsers back to `redirect_uri`."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    redirect_uri: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published:
    """The discovery document and the keys of a provider, and when they were read."""

    document: Mapping[str, Any]
    keys: KeySet
    read_at: datetime


class OpenIdProvider:
    """The port's IdentityProvider. Reads nothing before the first sign-in."""

    def __init__(
        self,
        registration: ClientRegistration,
        *,
        clock: Callable[[], datetime],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Take the registration. `transport` carries the requests; None stands for sockets."""
        self._registration, self._clock = registration, clock
        self._transport = transport
        self._places = threading.BoundedSemaphore(AT_ONCE_MAX)
        self._published: _Published | None = None

    @property
    def issuer(self) -> str:
        return self._registration.issuer

    def authorization_url(self, *, state: str, nonce: str, verifier: str) -> str:
        mine = self._registration
        found: str = prepare_grant_uri(
            self._current(_deadline()).document["authorization_endpoint"],
            mine.client_id,
            "code",
            redirect_uri=mine.redirect_uri,
            scope=mine.scope,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return found

    def claims(self, code: str, *, nonce: str, verifier: str) -> Mapping[str, object]:
        until_s = _deadline()
        token = self._id_token(code, verifier, until_s)
        try:
            read = self._decoded(token, until_s)
            options = {"iss": {"essential": True, "value": self.issuer}}
            options["aud"] = {"essential": True, "value": self._registration.client_id}
            params = {"nonce": nonce, "client_id": self._registration.client_id}
            checked = CodeIDToken(read.claims, read.header, options, params)
            checked.validate(now=int(self._clock().timestamp()), leeway=CLOCK_SKEW_S)
        except (JoseError, ValueError, TypeError) as error:
            raise IdentityRefused(_check_of(error)) from None  # its text may quote the token
        if not isinstance(checked["sub"], str) or not checked["sub"]:
            raise IdentityRefused("sub")
        return dict(checked)

    def _decoded(self, token: str, until_s: float) -> jwt.Token:
        """The token, after a check of its signature with the provider's keys."""
        published = self._current(until_s)
        try:
            return jwt.decode(token, published.keys, algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            if self._clock() < published.read_at + AGAIN_AFTER:
                raise
            return jwt.decode(token, self._read(until_s).keys, algorithms=ALGORITHMS)

    def _id_token(self, code: str, verifier: str, until_s: float) -> str:
        """The ID token for a code. The provider refuses a code that was used, or that belongs to another client."""
        document, mine = self._current(until_s).document, self._registration
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=mine.redirect_uri, code_verifier=verifier
        )
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        auth = ClientAuth(mine.client_id, mine.client_secret, _auth_method(document, mine))
        address, headers, body = auth.prepare("POST", document["token_endpoint"], headers, body)
        status, told = self._asked("POST", address, until_s, headers=headers, content=body.encode())
        if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise IdentityRefused("code")
        token = told.get("id_token")
        if status != HTTPStatus.OK or not isinstance(token, str):
            raise ProviderUnavailable("its token endpoint gave no ID token")
        return token

    def _current(self, until_s: float) -> _Published:
        published = self._published
        if published is None or not published.read_at <= self._clock() < published.read_at + KEPT_FOR:
            published = self._read(until_s)
        return published

    def _read(self, until_s: float) -> _Published:
        """Read the provider's endpoints and keys anew."""
        status, document = self._asked("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration", until_s)
        if status != HTTPStatus.OK or document.get("issuer") != self.issuer:
            raise ProviderUnavailable("its discovery document is not there or names another issuer")
        if not all(_is_safe(document.get(name)) for name in _ENDPOINTS):
            raise ProviderUnavailable("its discovery document lacks an https endpoint")
        status, keys = self._asked("GET", document["jwks_uri"], until_s)
        try:
            published = _Published(
                document=document,
                keys=KeySet.import_key_set(keys),  # type: ignore[arg-type]
                read_at=self._clock(),
            )
        except (JoseError, ValueError, TypeError, KeyError):
            raise ProviderUnavailable(f"its keys cannot be read, status {status}") from None
        self._published = published
        return published

    def _asked(self, method: str, address: str, until_s: float, **sent: Any) -> tuple[int, dict[str, Any]]:  # noqa: ANN401 - of httpx
        """(status, document) of one request. The document is empty if the answer is not a JSON object."""
        if not self._places.acquire(blocking=False):
            raise ProviderUnavailable("too many sign in at once")
        loop = asyncio.new_event_loop()
        try:
            if until_s <= time.monotonic():
                raise TimeoutError  # noqa: TRY301 - as what waits for it
            return loop.run_until_complete(self._exchanged(method, address, until_s - time.monotonic(), sent))
        except TimeoutError:
            raise ProviderUnavailable("it did not answer in time") from None
        except httpx.HTTPError as error:
            raise ProviderUnavailable(f"it did not answer: {type(error).__name__}") from None
        finally:
            loop.close()  # and not `asyncio.run`, which would wait for the look-up of a name
            self._places.release()

    async def _exchanged(
        self, method: str, address: str, within_s: float, sent: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        async with (
            asyncio.timeout(within_s),
            httpx.AsyncClient(transport=self._transport, timeout=EXCHANGE_S, trust_env=False) as client,
            client.stream(method, address, **sent) as response,
        ):
            return response.status_code, await _document(response)


def _deadline() -> float:
    """The instant by which an exchange that begins now must be over (monotonic, s)."""
    return time.monotonic() + EXCHANGE_S


async def _document(response: httpx.Response) -> dict[str, Any]:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > DOCUMENT_BYTES_MAX:
            raise ProviderUnavailable("its answer is too large")
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def _is_safe(address: object) -> bool:
    """Tell whether `address` is an https address, or an http address on this machine."""
    parts = urlsplit(address if isinstance(address, str) else "")
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _auth_method(document: Mapping[str, Any], mine: ClientRegistration) -> str:
    """The way in which the client sends its secret: in the header, unless the provider takes it in the body alone."""
    if mine.client_secret is None:
        return "none"
    taken = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return "client_secret_post" if "client_secret_basic" not in taken else "client_secret_basic"


def _check_of(error: Exception) -> str:
    """The check that failed, in a word: the claim that it is about, or the kind of the error."""
    claim = getattr(error, "claim", None)
    return str(claim) if claim else type(error).__name__
