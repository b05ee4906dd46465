"""The door of a process that serves: the address it listens on, and the signals that end it."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

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


def url_of(listener: socket.socket) -> str:
    """Where it listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
