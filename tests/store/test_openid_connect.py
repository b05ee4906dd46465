"""The OpenID Connect provider: each check of an ID token, endpoints and keys that are kept, a provider that fails."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from joserfc import jwt
from joserfc.jwk import OctKey

from service.ledger.ports.identity import IdentityRefused, ProviderUnavailable
from service.store import openid_connect
from service.store.openid_connect import AGAIN_AFTER, AT_ONCE_MAX, CLOCK_SKEW_S, KEPT_FOR, OpenIdProvider
from tests.factories import CLOCK
from tests.providers import CLIENT, ISSUER, KEY, OTHER_KEY, REGISTRATION, SECRET, FakeProvider
from tests.waiting import PATIENCE_S

VERIFIER = "v" * 43


class World:
    """An adapter, its provider, and a clock of each that can be moved."""

    def __init__(self) -> None:
        self.now = self.theirs = CLOCK
        self.fake = FakeProvider(lambda: self.theirs)
        self.provider = OpenIdProvider(REGISTRATION, clock=lambda: self.now, transport=self.fake)

    def code(self, *, nonce: str = "n") -> str:
        """A code for a person who has signed in."""
        address = self.provider.authorization_url(state="s", nonce=nonce, verifier=VERIFIER)
        state, code = self.fake.sign_in(address)
        assert state == "s"
        assert VERIFIER not in address
        return code

    def claims(self, *, nonce: str = "n", verifier: str = VERIFIER) -> dict[str, object]:
        """The claims of a whole sign-in."""
        return dict(self.provider.claims(self.code(), nonce=nonce, verifier=verifier))


@pytest.fixture
def world() -> World:
    """An adapter that has read nothing yet."""
    return World()


def test_a_sign_in_gives_the_claims(world: World) -> None:
    """The subject, the name, the roles; endpoints and keys are read once."""
    found = world.claims()
    assert (found["sub"], found["preferred_username"], found["roles"]) == ("s-1", "Ann Ångström", ["staff"])
    world.claims()
    assert world.fake.asked == ["/.well-known/openid-configuration", "/keys", "/token", "/token"]
    assert world.provider.issuer == ISSUER
    assert SECRET not in repr(REGISTRATION)


def changed(**claims: Any) -> Callable[[dict[str, Any]], None]:
    """A change of the claims; None takes one away."""

    def change(token: dict[str, Any]) -> None:
        token.update(claims)
        for name in [name for name, value in claims.items() if value is None]:
            del token[name]

    return change


SECONDS = int(CLOCK.timestamp())
LIES = {
    "another issuer": (changed(iss="https://other.example"), "iss"),
    "no issuer": (changed(iss=None), "iss"),
    "another audience": (changed(aud="another"), "aud"),
    "another among audiences": (changed(aud=["another", "third"]), "aud"),
    "no audience": (changed(aud=None), "aud"),
    "several audiences without a party": (changed(aud=[CLIENT, "another"]), "azp"),
    "another party": (changed(azp="another"), "azp"),
    "another nonce": (changed(nonce="other"), "nonce"),
    "no nonce": (changed(nonce=None), "nonce"),
    "expired": (changed(exp=SECONDS - CLOCK_SKEW_S - 1), "ExpiredTokenError"),
    "no expiry": (changed(exp=None), "exp"),
    "not yet": (changed(nbf=SECONDS + CLOCK_SKEW_S + 1), "nbf"),
    "issued in the future": (changed(iat=SECONDS + CLOCK_SKEW_S + 1), "iat"),
    "no subject": (changed(sub=None), "sub"),
    "an empty subject": (changed(sub=""), "sub"),
    "a subject that is no text": (changed(sub=7), "sub"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_with_a_wrong_claim_is_refused(world: World, lie: str) -> None:
    """By the claim's name, and with nothing of the token in the error."""
    world.fake.change, check = LIES[lie]
    with pytest.raises(IdentityRefused) as refusal:
        world.claims()
    if check == "ExpiredTokenError":
        assert str(refusal.value) in {"exp", check}
    else:
        assert str(refusal.value) == check


def test_clocks_may_differ_by_the_skew(world: World) -> None:
    """Both ways; no more."""
    world.theirs = CLOCK + timedelta(seconds=CLOCK_SKEW_S)
    assert world.claims()["sub"] == "s-1"
    world.theirs = CLOCK - timedelta(seconds=300 + CLOCK_SKEW_S - 1)
    assert world.claims()["sub"] == "s-1"
    world.theirs = CLOCK - timedelta(seconds=300 + CLOCK_SKEW_S + 1)
    with pytest.raises(IdentityRefused):
        world.claims()


def test_a_token_without_a_signature_of_the_provider_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """`none`, another key under the same name, and a MAC under what anybody or the client knows."""
    world.fake.algorithm = "none"
    with pytest.raises(IdentityRefused):
        world.claims()
    world.fake.algorithm, world.fake.key = "RS256", OTHER_KEY
    with pytest.raises(IdentityRefused):
        world.claims()
    for secret in (SECRET.encode() * 5, KEY.as_pem(private=False)):
        mac = jwt.encode({"alg": "HS256", "kid": "first"}, {"sub": "s-1"}, OctKey.import_key(secret.hex()))
        monkeypatch.setattr(world.fake, "_signed", lambda _, mac=mac: mac)
        with pytest.raises(IdentityRefused):
            world.claims()


def test_a_code_is_good_once_and_for_its_browser_alone(world: World) -> None:
    """A second use, another verifier, an unknown code."""
    code = world.code()
    world.provider.claims(code, nonce="n", verifier=VERIFIER)
    for wrong in (code, "unknown"):
        with pytest.raises(IdentityRefused, match="code"):
            world.provider.claims(wrong, nonce="n", verifier=VERIFIER)
    with pytest.raises(IdentityRefused, match="code"):
        world.claims(verifier="w" * 43)


def test_new_keys_are_read_when_a_token_needs_them_but_not_for_each(world: World) -> None:
    """A provider changes its keys; a flood of tokens under unknown ones does not become a flood of requests."""
    world.claims()
    world.fake.key = world.fake.published[0] = type(KEY).generate_key(2048, {"kid": "second", "use": "sig"})
    for _ in range(3):
        with pytest.raises(IdentityRefused):
            world.claims()
    assert world.fake.asked.count("/keys") == 1
    world.now = world.theirs = CLOCK + AGAIN_AFTER
    assert world.claims()["sub"] == "s-1"
    assert world.fake.asked.count("/keys") == 2
    world.now = world.theirs = world.now + KEPT_FOR
    world.claims()
    assert world.fake.asked.count("/keys") == 3


def test_a_secret_is_sent_in_the_body_to_a_provider_that_takes_it_there_alone(world: World) -> None:
    """The provider says so in its discovery document."""
    world.fake.document["token_endpoint_auth_methods_supported"] = ["client_secret_post", "private_key_jwt"]
    assert world.claims()["sub"] == "s-1"


def test_a_provider_that_is_down_is_unavailable_and_then_not(world: World) -> None:
    """At the way there and at the way back."""
    world.fake.is_down = True
    with pytest.raises(ProviderUnavailable):
        world.code()
    world.fake.is_down = False
    code = world.code()
    world.fake.is_down = True
    with pytest.raises(ProviderUnavailable, match="ConnectError"):
        world.provider.claims(code, nonce="n", verifier=VERIFIER)
    world.fake.is_down = False
    assert world.claims()["sub"] == "s-1"


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://id.example/token"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_discovery_document_that_is_unsafe_is_not_used(world: World, document: dict[str, object]) -> None:
    """Another issuer's, or with an endpoint that is not https."""
    world.fake.document |= document
    with pytest.raises(ProviderUnavailable):
        world.code()


@pytest.mark.parametrize(
    ("status", "content"), [(500, b"oops"), (200, b"[]"), (200, b"{}"), (200, b"[" * (2**20 + 1)), (200, b"\xff")]
)
def test_an_answer_that_is_none_is_unavailable(world: World, status: int, content: bytes) -> None:
    """A page of a gateway, one without a token, one that is too large."""
    code = world.code()
    there = httpx.MockTransport(lambda _: httpx.Response(status, content=content))
    world.fake.handle_request = there.handle_request  # type: ignore[method-assign]
    with pytest.raises(ProviderUnavailable):
        world.provider.claims(code, nonce="n", verifier=VERIFIER)


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_is_not_followed(world: World, status: int) -> None:
    """One request, to the endpoint of the discovery document."""
    code, asked = world.code(), []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(status, headers={"location": "/elsewhere"})

    world.fake.handle_request = httpx.MockTransport(elsewhere).handle_request  # type: ignore[method-assign]
    with pytest.raises(ProviderUnavailable):
        world.provider.claims(code, nonce="n", verifier=VERIFIER)
    assert asked == ["/token"]


def test_a_certificate_that_no_authority_has_signed_is_refused(tmp_path: Path) -> None:
    """Nothing is sent to a provider that cannot prove its name."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(500)

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self_signed(tmp_path))
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with pytest.raises(ProviderUnavailable):
            provider_at(listening.socket, "https").authorization_url(state="s", nonce="n", verifier=VERIFIER)
        listening.shutdown()
        thread.join()
    assert asked == []


def self_signed(folder: Path) -> Path:
    """A file with a certificate of this machine that nobody else has signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    since, until = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, since, until)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "provider.pem"
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


def test_a_provider_that_hangs_holds_few_threads(world: World) -> None:
    """One conversation more than there is room for is refused at once."""
    code, gate, inside = world.code(), threading.Event(), threading.Semaphore(0)

    def hang(_: httpx.Request) -> httpx.Response:
        inside.release()
        gate.wait(30)
        return httpx.Response(500)

    world.fake.handle_request = httpx.MockTransport(hang).handle_request  # type: ignore[method-assign]

    def ask() -> None:
        with pytest.raises(ProviderUnavailable, match="no ID token"):
            world.provider.claims(code, nonce="n", verifier=VERIFIER)

    threads = [threading.Thread(target=ask) for _ in range(AT_ONCE_MAX)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=PATIENCE_S)
    with pytest.raises(ProviderUnavailable, match="too many"):
        world.provider.claims(code, nonce="n", verifier=VERIFIER)
    gate.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"], ids=["head", "body"])
def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Over a real socket: nothing comes, or one byte after another for ever."""
    monkeypatch.setattr(openid_connect, "EXCHANGE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener, said), daemon=True)
        dripping.start()
        slow = provider_at(listener)
        with pytest.raises(ProviderUnavailable, match="it did not answer in time"):
            slow.authorization_url(state="s", nonce="n", verifier=VERIFIER)
        dripping.join()


def drip(listener: socket.socket, said: bytes) -> None:
    """Answer one connection, with so many bytes at once and then one by one until the other end closes."""
    (connection, _), between = listener.accept(), threading.Event()
    with connection, suppress(OSError):
        connection.sendall(said)
        while True:
            connection.sendall(b"H" if not said else b" ")
            between.wait(0.01)


def provider_at(listener: socket.socket, scheme: str = "http") -> OpenIdProvider:
    """The adapter for a provider at this socket."""
    registration = openid_connect.ClientRegistration(
        issuer=f"{scheme}://127.0.0.1:{listener.getsockname()[1]}",
        client_id=CLIENT,
        client_secret=None,
        redirect_uri="x",
        scope="openid",
    )
    return OpenIdProvider(registration, clock=lambda: CLOCK)


def test_requests_of_one_exchange_share_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that the first has taken is not there for the next."""
    monkeypatch.setattr(openid_connect, "_deadline", lambda: 0.0)
    with pytest.raises(ProviderUnavailable, match="in time"):
        world.provider.claims("code", nonce="n", verifier=VERIFIER)
