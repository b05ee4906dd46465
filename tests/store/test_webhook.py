"""The webhook against a real server: signed, tried until it is taken, and never sent anywhere else."""

import hashlib
import hmac
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from service.ledger.ports.alarms import AlarmNotice, NotDelivered
from service.maintenance.alarm_delivery import AlarmDelivery
from service.store.webhook import SIGNATURE, Webhook, body_of
from service.workflows.clock import LATEST, PlausibleClock
from tests.factories import CLOCK
from tests.waiting import until

SECRET = "a secret of thirty-two characters"
NOTICE = AlarmNotice(id=UUID(int=7), dataset="survey", sequence=9, share=0.25, rang_at=CLOCK)


@dataclass(kw_only=True)
class Received:
    """The requests that came to a server: method, path, headers and body of each."""

    url: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def server(*statuses: int, tls: ssl.SSLContext | None = None) -> Iterator[Received]:
    """A server on this machine that replies with these statuses, one after the other; over TLS where it has that."""
    left, received = list(statuses), Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append((self.command, self.path, dict(self.headers), body))
            self.send_response(left.pop(0))
            self.send_header("Location", f"{received.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the class has it
            """Nothing on standard error."""

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        received.url = f"{'https' if tls else 'http'}://127.0.0.1:{listening.server_port}"
        if tls is not None:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield received
        listening.shutdown()
        thread.join()


def webhook(url: str, timeout_s: float = 10.0) -> Webhook:
    """A webhook at a fixed time."""
    return Webhook(url, SECRET, clock=lambda: CLOCK, timeout_s=timeout_s)


def test_the_receiver_of_the_page_believes_a_signature_for_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of docs/watching.md, run: it takes what is sent, and no other secret, body or time."""
    page = (Path(__file__).parents[2] / "docs/watching.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "watching.md", "exec"), names)  # noqa: S102 - our own page
    with server(204) as received:
        webhook(received.url).deliver(NOTICE)
    ((_, _, headers, body),) = received.requests
    monkeypatch.setattr("time.time", lambda: CLOCK.timestamp() + 299)
    assert names["is_genuine"](headers[SIGNATURE], body, SECRET)
    assert not names["is_genuine"](headers[SIGNATURE], body + b" ", SECRET)
    assert not names["is_genuine"](headers[SIGNATURE], body, SECRET[::-1])
    monkeypatch.setattr("time.time", lambda: CLOCK.timestamp() + 301)
    assert not names["is_genuine"](headers[SIGNATURE], body, SECRET)


def test_a_server_that_fails_twice_gets_the_alarm_the_third_time() -> None:
    """Each request has the same body, and a signature that the receiver computes from what came."""
    with server(500, 503, 204) as received:
        delivery = AlarmDelivery(webhook(f"{received.url}/alarms?team=1"), first_pause_s=0.01)
        delivery.open()
        delivery.put(NOTICE)
        until(lambda: len(received.requests) == 3)
        delivery.close()
    for method, path, headers, body in received.requests:
        assert (method, path, headers["Content-Type"]) == ("POST", "/alarms?team=1", "application/json")
        at = str(int(CLOCK.timestamp()))
        digest = hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert headers[SIGNATURE] == f"t={at},v1={digest}"
        assert json.loads(body) == {
            "type": "budget-alarm",
            "id": str(UUID(int=7)),
            "dataset": "survey",
            "sequence": 9,
            "share": 0.25,
            "rang_at": "2026-11-21T09:30:15.123456Z",
        }
        assert body == body_of(NOTICE)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500])
def test_every_other_status_is_a_failure_and_no_redirect_is_followed(status: int) -> None:
    """One request, to the address of the settings."""
    with server(status) as received:
        with pytest.raises(NotDelivered, match=f"^the receiver answered with status {status}$"):
            webhook(received.url).deliver(NOTICE)
        assert [path for _, path, _, _ in received.requests] == ["/"]


def test_a_certificate_that_no_authority_has_signed_is_refused(tmp_path: Path) -> None:
    """Nothing is sent to a receiver that cannot prove its name."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]),
    )
    since, until_then = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, since, until_then)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "receiver.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(private + made.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with server(204, tls=context) as received, pytest.raises(NotDelivered, match="certificate or its TLS was refused"):
        webhook(received.url).deliver(NOTICE)
    assert received.requests == []


def test_a_receiver_that_is_away_or_silent_is_a_failure_without_its_address() -> None:
    """Refused, closed without a reply, silent, or not one that speaks TLS."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(NotDelivered, match="did not answer in time") as late:
            webhook(f"http://127.0.0.1:{port}", timeout_s=0.1).deliver(NOTICE)
        with pytest.raises(NotDelivered, match="did not answer in time"):
            webhook(f"https://127.0.0.1:{port}", timeout_s=0.1).deliver(NOTICE)
    with pytest.raises(NotDelivered, match="the connection to the receiver failed") as gone:
        webhook(f"http://127.0.0.1:{port}").deliver(NOTICE)
    with server(200) as received, pytest.raises(NotDelivered, match="TLS was refused"):
        webhook(received.url.replace("http:", "https:")).deliver(NOTICE)
    assert str(port) not in str(late.value) + str(gone.value)


def test_nothing_is_signed_under_a_clock_that_is_wrong_by_years() -> None:
    """The notice waits for its next try."""
    with server(200) as received:
        webhook = Webhook(received.url, SECRET, clock=PlausibleClock(lambda: LATEST))
        with pytest.raises(NotDelivered, match="the clock of this machine is wrong"):
            webhook.deliver(NOTICE)
    assert received.requests == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_drips_is_given_up_at_the_deadline(scheme: str) -> None:
    """A byte now and then never ends a time-out of silence; here it goes on until the connection is cut off."""
    dripped = threading.Event()

    def drip() -> None:
        taken, _ = listening.accept()
        with taken, suppress(OSError):
            while True:
                taken.sendall(b"\x16" if scheme == "https" else b"H")
                dripped.wait(0.005)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(NotDelivered):
            webhook(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.2).deliver(NOTICE)
        thread.join(30)
        assert not thread.is_alive()


def test_a_name_that_is_looked_up_for_ever_is_given_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's library waits for its servers as long as it is told elsewhere."""
    answers = threading.Event()

    def look_up(*_: object, **__: object) -> list[Any]:
        answers.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        with pytest.raises(NotDelivered, match="the receiver did not answer in time"):
            webhook("http://slow.example", timeout_s=0.05).deliver(NOTICE)
    finally:
        answers.set()


def test_a_name_that_is_not_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the look-up comes to the caller."""

    def look_up(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NotDelivered, match="the receiver's name was not found"):
        webhook("http://nobody.example").deliver(NOTICE)
