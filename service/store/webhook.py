"""Alarms as HTTP requests to an address of the operator's: JSON with a signature, in one try.

Each try has one deadline, however the receiver answers: a receiver that drips keeps no alarm from the next.
The address comes from the settings of the process alone; no redirect is followed and no proxy is asked, so that no
request goes anywhere else. `http.client` is enough for that, and the service needs no other client of HTTP.
"""

import hashlib
import hmac
import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from http import HTTPStatus
from http.client import HTTP_PORT, HTTPS_PORT, HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

import orjson

from service.ledger.model.errors import ClockImplausible
from service.ledger.ports.alarms import AlarmNotice, NotDelivered
from service.store.deadlines import connected

TIMEOUT_S: Final = 10.0
SIGNATURE: Final = "Sparing-Signature"


class Webhook:
    """Posts each notice to one URL, signed with a secret that the receiver shares."""

    def __init__(self, url: str, secret: str, *, clock: Callable[[], datetime], timeout_s: float = TIMEOUT_S) -> None:
        """`clock` tells the wall clock's time; `timeout_s` bounds each try as a whole."""
        self._parts, self._secret = urlsplit(url), secret.encode()
        self._clock, self._timeout_s = clock, timeout_s
        self._trust = ssl.create_default_context()

    def deliver(self, notice: AlarmNotice) -> None:
        """Post the notice. Raises NotDelivered unless the reply has a status from 200 to 299."""
        body = body_of(notice)
        try:
            at = self._clock()
        except ClockImplausible as fault:
            raise NotDelivered("the clock of this machine is wrong") from fault
        signature = signature_of(body, self._secret, at=int(at.timestamp()))
        headers = {"Content-Type": "application/json", "User-Agent": "sparing", SIGNATURE: signature}
        try:
            status = self._posted(body, headers)
        except (OSError, HTTPException) as error:
            raise NotDelivered(_reason(error)) from error
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotDelivered(f"the receiver answered with status {status}")

    def _posted(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the reply, whose body is not read."""
        parts, is_secure = self._parts, self._parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (HTTPS_PORT if is_secure else HTTP_PORT)
        kind = HTTPSConnection if is_secure else HTTPConnection
        with (
            connected(host, port, deadline_s=self._timeout_s) as plain,
            closing(kind(host, parts.port, timeout=self._timeout_s)) as connection,
        ):
            connection.sock = self._trust.wrap_socket(plain, server_hostname=host) if is_secure else plain
            target = parts.path or "/"
            connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, headers)
            return connection.getresponse().status


def body_of(notice: AlarmNotice) -> bytes:
    """The JSON document of a notice."""
    return orjson.dumps(
        {
            "type": "budget-alarm",
            "id": notice.id,
            "dataset": notice.dataset,
            "sequence": notice.sequence,
            "share": notice.share,
            "rang_at": notice.rang_at,
        },
        option=orjson.OPT_UTC_Z,
    )


def signature_of(body: bytes, secret: bytes, *, at: int) -> str:
    """`t=` the time of the request in seconds since 1970, `v1=` HMAC-SHA256 of that time, a point and the body."""
    digest = hmac.new(secret, b"%d.%b" % (at, body), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def _reason(error: Exception) -> str:
    """Why there was no reply, without the address."""
    if isinstance(error, TimeoutError):
        return "the receiver did not answer in time"
    if isinstance(error, ssl.SSLError):
        return "the receiver's certificate or its TLS was refused"
    if isinstance(error, socket.gaierror):
        return "the receiver's name was not found"
    return "the connection to the receiver failed"
