"""The door of a process that serves: the address it listens on, and the signals that end it."""

import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT leave through every `with` of the way in."""
    for number in ENDING:
        signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End once."""
    ignore_signals()
    raise SystemExit(0)


def ignore_signals() -> None:
    """Let no signal disturb the rest of the way out."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening address, taken before anything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        yield listener


def parted(url: str) -> tuple[str, int]:
    """(host, port) of a URL; port 0 where it names none. `{hostname}` in it is the name of this machine."""
    parts = urlsplit(url.replace("{hostname}", socket.gethostname()))
    return parts.hostname or "", parts.port or 0


@contextmanager
def forward_door(url: str) -> Iterator[tuple[socket.socket, str]]:
    """A listening address at which other processes reach this one, and its URL under the name that was given.

    An IP address, and localhost, is listened on alone. Any other name may mean several addresses of this machine, and
    to the machine itself often means another one than to the others: under a name every address is listened on.
    """
    host, port = parted(url)
    with bound(_address_of(host), port) as listener:
        name = f"[{host}]" if ":" in host else host
        yield listener, f"http://{name}:{listener.getsockname()[1]}"


def _address_of(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1" if host == "localhost" else ""


def url_of(listener: socket.socket) -> str:
    """Where it listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
