"""An identity provider in memory that can be made to lie, one check at a time; carried by httpx without sockets."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from service.store.openid_connect import ClientRegistration

ISSUER: Final = "https://id.example"
CLIENT: Final = "sparing"
SECRET: Final = "a secret"
REDIRECT: Final = "http://sparing/sign-in/callback"
KEY: Final = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
OTHER_KEY: Final = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
REGISTRATION: Final = ClientRegistration(
    issuer=ISSUER, client_id=CLIENT, client_secret=SECRET, redirect_uri=REDIRECT, scope="openid profile"
)
Change = Callable[[dict[str, Any]], None]


class FakeProvider(httpx.AsyncBaseTransport):
    """Issues each code once, for one client, address and PKCE challenge; `change` alters the claims of its tokens."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.clock = clock
        self.key, self.published = KEY, [KEY]
        self.algorithm: str = "RS256"
        self.change: Change = lambda _: None
        self.is_down = False
        self.document: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
        }
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def sign_in(self, address: str) -> tuple[str, str]:
        """(state, code) as a person is sent back who has signed in at an authorization address."""
        parts = urlsplit(address)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{ISSUER}/authorize"
        assert (asked["response_type"], asked["client_id"], asked["redirect_uri"]) == ("code", CLIENT, REDIRECT)
        assert (asked["code_challenge_method"], "openid" in asked["scope"].split()) == ("S256", True)
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return asked["state"], code

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer as the provider would."""
        path = request.url.path
        self.asked.append(path)
        if self.is_down:
            raise httpx.ConnectError("refused", request=request)
        if path == "/.well-known/openid-configuration":
            return httpx.Response(200, json=self.document)
        if path == "/keys":
            return httpx.Response(200, json=KeySet(list(self.published)).as_dict(private=False))
        return self._token(request)

    def _token(self, request: httpx.Request) -> httpx.Response:
        form = {name: values[0] for name, values in parse_qs(request.read().decode()).items()}
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        given = request.headers.get("authorization") == f"Basic {basic}" or form.get("client_secret") == SECRET
        asked = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or not given or (asked["code_challenge"], REDIRECT) != (challenge, form["redirect_uri"]):
            return httpx.Response(400, json={"error": "invalid_grant"})
        now = int(self.clock().timestamp())
        claims: dict[str, Any] = {"iss": ISSUER, "aud": CLIENT, "sub": "s-1", "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], "preferred_username": "Ann Ångström", "roles": ["staff"]}
        self.change(claims)
        return httpx.Response(200, json={"token_type": "Bearer", "access_token": "x", "id_token": self._signed(claims)})

    def _signed(self, claims: Mapping[str, Any]) -> str:
        if self.algorithm == "none":
            parts = ({"alg": "none", "typ": "JWT"}, claims)
            return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in parts) + "."
        header = {"alg": self.algorithm, "kid": self.key.kid}
        return jwt.encode(header, dict(claims), self.key, algorithms=[self.algorithm])
