"""A connection that ends at a deadline, whatever its peer does meanwhile.

The time-out of a socket is one of silence: a peer that sends a byte now and then would be waited for without an end.
"""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def connected(host: str, port: int, *, deadline_s: float) -> Iterator[socket.socket]:
    """A connection over TCP that is cut off after so many seconds, those of connecting included. Raises OSError.

    What is made of it, such as a session of TLS, is cut off with it; what fails by that is raised as a TimeoutError.
    """
    until_s = time.monotonic() + deadline_s
    with _opened(host, port, until_s) as opened, opened.dup() as same:
        is_over = threading.Event()
        timer = threading.Timer(max(until_s - time.monotonic(), 0), _cut, [same, is_over])
        timer.daemon = True
        timer.start()
        try:
            yield opened
        except Exception as error:
            if is_over.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()
            timer.join()  # it may be cutting off now, and the descriptor must not be another's by then


def _opened(host: str, port: int, until_s: float) -> socket.socket:
    """The first address of the host that takes a connection before the deadline."""
    refused: OSError | None = None
    for family, kind, protocol, _, address in _addresses(host, port, until_s):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError from refused
        trying = socket.socket(family, kind, protocol)
        trying.settimeout(left_s)
        try:
            trying.connect(address)
        except OSError as error:
            trying.close()
            refused = error
        else:
            return trying
    raise refused or OSError("the name has no address")


def _addresses(host: str, port: int, until_s: float) -> list[Any]:
    """The addresses of a name, as the system's library looks it up: that has no bound, and is left behind at the end.

    Raises TimeoutError, and OSError for a name that is not found.
    """
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.set_exception(error if isinstance(error, OSError) else OSError("the name is none of a host"))

    threading.Thread(target=look_up, name="names", daemon=True).start()
    return found.result(max(until_s - time.monotonic(), 0))


def _cut(connection: socket.socket, is_over: threading.Event) -> None:
    is_over.set()
    with suppress(OSError):  # it has ended by itself
        connection.shutdown(socket.SHUT_RDWR)
