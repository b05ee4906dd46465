"""Connections with one deadline for a whole reply, not for each part of it.

A socket's own time-out is one of silence: a server that sends a byte now and then would hold up its reader for ever.
Connections over TLS keep the time-out of silence.
"""

import socket
import time
from typing import Any, Final
from urllib.parse import urlsplit

import redis


class DeadlineSocket(socket.socket):
    """Everything that is received must come within `timeout_s` of what was sent last."""

    timeout_s = 0.0
    _due = 0.0

    def sendall(self, *sent: Any) -> None:  # noqa: ANN401 - whatever a socket takes
        """Send, and let the time begin."""
        super().sendall(*sent)
        self._due = time.monotonic() + self.timeout_s

    def recv_into(self, *into: Any) -> int:  # noqa: ANN401 - the same
        """Receive what has come, waiting for it no longer than is left. Raises TimeoutError.

        A caller that looks late finds what came in time.
        """
        usual = self.gettimeout()
        if usual == 0:
            return super().recv_into(*into)
        self.settimeout(max(self._due - time.monotonic(), 0))
        try:
            return super().recv_into(*into)
        except BlockingIOError:
            raise TimeoutError from None
        finally:
            self.settimeout(usual)


class _Tcp(redis.Connection):
    def _connect(self) -> DeadlineSocket:
        return _until_deadline(super()._connect(), self.socket_timeout)  # type: ignore[no-untyped-call]


class _Unix(redis.UnixDomainSocketConnection):
    def _connect(self) -> DeadlineSocket:
        return _until_deadline(super()._connect(), self.socket_timeout)  # type: ignore[no-untyped-call]


_KINDS: Final[dict[str, type[redis.Connection | redis.UnixDomainSocketConnection]]] = {"redis": _Tcp, "unix": _Unix}


def deadline_connections(url: str) -> dict[str, Any]:
    """The options with which a client of this URL makes such connections."""
    kind = _KINDS.get(urlsplit(url).scheme)
    return {} if kind is None else {"connection_class": kind}


def _until_deadline(plain: socket.socket, timeout_s: float | None) -> DeadlineSocket:
    usual = plain.gettimeout()
    made = DeadlineSocket(fileno=plain.detach())
    made.settimeout(usual)
    made.timeout_s = timeout_s or 0.0
    return made
