"""Connections of an attacker: requests are prepared bytes, and every answer has its instants.

They use a blocking socket and `select`. The delays of an event loop or an HTTP library are larger than some leaks.
"""

import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

RECEIVED_MAX = 1 << 20
PATIENCE_S = 120.0
IDLE_S = 2.0
"""A connection without a request for so many seconds is made anew, because the server closes it after five seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: the instant of its request, and the milliseconds from then to the answer's first and last byte."""

    status: int
    sent_ns: int
    first_ms: float
    last_ms: float
    body: bytes


class PeerConnection:
    """One keep-alive connection with a key."""

    def __init__(self, url: str, api_key: str, *, buffer_bytes: int = 0) -> None:
        """Connect. The system buffers at most `buffer_bytes`, if that is given."""
        parts = urlsplit(url)
        self._buffer_bytes = buffer_bytes
        self._address = parts.hostname or "", parts.port or 80
        self._socket = self._connected()
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {api_key}\r\n"
        self._started_ns = self._first_ns = 0
        self._received = b""

    def fileno(self) -> int:
        """The descriptor, for a selector."""
        return self._socket.fileno()

    def refresh(self) -> None:
        """Reconnect if the connection has been idle for long; never while a request is under way."""
        if time.monotonic_ns() - self._used_ns > IDLE_S * 1e9:
            self.reconnect()

    def reconnect(self) -> None:
        """Disconnect, whatever is under way, and connect again."""
        self._socket.close()
        self._socket = self._connected()

    def close(self) -> None:
        """Disconnect, whatever is under way."""
        self._socket.close()

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """The bytes of a request."""
        named = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return f"{method} {path} HTTP/1.1\r\n{self._head}{lines}\r\n".encode() + body

    def begin(self, request: bytes) -> None:
        """Send a request."""
        self._received, self._first_ns = b"", 0
        self._started_ns = time.monotonic_ns()
        self._socket.sendall(request)

    def advance(self) -> Reply | None:
        """Receive data, waiting for it. Returns the answer when it is complete. Raises ConnectionError."""
        received = self._socket.recv(RECEIVED_MAX)
        now_ns = self._used_ns = time.monotonic_ns()
        if not received:
            raise ConnectionError("the server closed the connection")
        self._first_ns = self._first_ns or now_ns
        self._received += received
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator or len(body) < _content_length(head):
            return None
        return Reply(
            status=int(head[9:12]),
            sent_ns=self._started_ns,
            first_ms=(self._first_ns - self._started_ns) / 1e6,
            last_ms=(now_ns - self._started_ns) / 1e6,
            body=body,
        )

    def _connected(self) -> socket.socket:
        connection = socket.socket()
        if self._buffer_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer_bytes)
        connection.settimeout(PATIENCE_S)
        connection.connect(self._address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used_ns = time.monotonic_ns()
        return connection

    def exchange(self, request: bytes) -> Reply:
        """Send a request and wait for its answer."""
        self.begin(request)
        while (reply := self.advance()) is None:
            pass
        return reply


def together(wires: Sequence[PeerConnection], requests: Sequence[bytes], *, pause_s: float = 0.0) -> list[Reply]:
    """Send one request on each connection, one after the other with a pause in between, and return all answers."""
    replies: dict[PeerConnection, Reply] = {}
    waiting = list(zip(wires, requests, strict=True))
    due = time.monotonic()
    with selectors.DefaultSelector() as selector:
        while waiting or selector.get_map():
            while waiting and due <= time.monotonic():
                wire, request = waiting.pop(0)
                wire.begin(request)
                selector.register(wire, selectors.EVENT_READ, wire)
                due += pause_s
            ready = selector.select(max(due - time.monotonic(), 0) if waiting else PATIENCE_S)
            if not ready and not waiting:
                raise TimeoutError(f"{len(wires) - len(replies)} of {len(wires)} answers do not come")
            for key, _ in ready:
                reply = key.data.advance()
                if reply is not None:
                    replies[key.data] = reply
                    selector.unregister(key.data)
    return [replies[wire] for wire in wires]


def _content_length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.partition(b"\r\n")[0] or 0)
