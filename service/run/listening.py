"""The listening sockets of a serving process, and the signals that end it."""

import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Final, NoReturn
from urllib.parse import urlsplit

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
UNSENT_BYTES_MAX: Final = 2**17
"""How much of a response the kernel keeps for a client that takes nothing; by default it keeps up to 4 MB.

Accepted connections inherit the option from their listening socket.
"""
_LOOK_S: Final = 1.0
_LOGGERS_CUT: Final = ("psycopg", "psycopg.pool")
_LINES_CUT: Final = ("query cancellation interrupted", "discarding closed connection", "error ignored in rollback")
"""Beginnings of log lines about connections that a signal has cut. They are not logged: the process ends anyway."""


class ServerLost(Exception):
    """A server that the service needs could not be kept running; the message says which, and why."""


class AddressUnusable(OSError):
    """An address cannot be listened on; the message names the setting or option that holds it."""


@dataclass(slots=True)
class _Start:
    """The start of this process.

    It is a plain flag: a signal's handler could wait for ever for the lock of an Event.
    """

    is_cut: bool = False
    failure: str = ""


_START: Final = _Start()


def end_on_signals() -> None:
    """End the process at SIGTERM or SIGINT: every open `with` is left, nothing is printed, the exit status is 0.

    The interpreter drops an exception that strikes inside one of its callbacks. A start therefore also calls
    `end_if_asked` between its steps, and once more when other handlers have taken over.
    """
    _START.is_cut, _START.failure = False, ""
    sys.unraisablehook = partial(_tell_dropped, sys.unraisablehook)
    for name in _LOGGERS_CUT:
        logging.getLogger(name).addFilter(_is_worth_a_line)
    for number in ENDING:
        signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    """Ask for the end, and ignore further signals."""
    _START.is_cut = True
    ignore_signals()
    raise SystemExit(0)


def end_if_asked() -> None:
    """Raise SystemExit if a signal has asked for the end, though the start has gone on."""
    if _START.is_cut:
        raise SystemExit(0)


def end_because(failure: str) -> None:
    """End this process as SIGTERM would, but with an error (see `failing_when_told`). May be called in any thread."""
    _START.failure = _START.failure or failure
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def failing_when_told() -> Iterator[None]:
    """Wrap a process's life: raise ServerLost at its end if `end_because` has asked for the end."""
    try:
        yield
    finally:
        if _START.failure:
            raise ServerLost(_START.failure) from None


def stay_until_asked() -> NoReturn:
    """Wait for the signal of `end_on_signals`, even if it has come already and its exception was dropped."""
    while True:
        end_if_asked()
        time.sleep(_LOOK_S)


@contextmanager
def quiet_when_cut() -> Iterator[None]:
    """Wrap a start: once a signal has asked for its end, any error becomes SystemExit with status 0."""
    try:
        yield
    except BaseException:
        if _START.is_cut:
            raise SystemExit(0) from None
        raise


def _tell_dropped(tell: Callable[["sys.UnraisableHookArgs"], object], dropped: "sys.UnraisableHookArgs") -> None:
    """Tell of every dropped exception except our own SystemExit."""
    if not (_START.is_cut and isinstance(dropped.exc_value, SystemExit)):
        tell(dropped)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return not (_START.is_cut and str(record.msg).startswith(_LINES_CUT))


def ignore_signals() -> None:
    """Ignore further signals, so that none disturbs the rest of the end."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def address_named(name: str) -> Iterator[None]:
    """Raise AddressUnusable, which names the setting, for an error of the system while an address is bound."""
    try:
        yield
    except OverflowError:
        raise AddressUnusable(f"{name} leads to a port above 65535: choose a lower one") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise AddressUnusable(f"{name} cannot be listened on: {reason}; choose another address or port") from error


@contextmanager
def bound_socket(host: str, port: int, *, name: str = "--host and --port") -> Iterator[socket.socket]:
    """A listening address, taken before anything else is started. Raises AddressUnusable with `name` in its message."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
        with address_named(f"{name} ({host or 'any address'}, port {port})"):
            listener.bind((host, port))
        yield listener


def host_and_port(url: str) -> tuple[str, int]:
    """(host, port) of a URL; port 0 where it names none. `{hostname}` in it is the name of this machine."""
    parts = urlsplit(url.replace("{hostname}", socket.gethostname()))
    return parts.hostname or "", parts.port or 0


@contextmanager
def open_forward_listener(url: str) -> Iterator[tuple[socket.socket, str]]:
    """A listening address at which other processes reach this one, and its URL under the name that was given.

    For an IP address or localhost, only that address is listened on. Any other name may mean several addresses of this
    machine, and often means another one here than elsewhere. So under a name every address is listened on.
    """
    host, port = host_and_port(url)
    with bound_socket(_address_of(host), port, name="SPARING_FORWARD_URL") as listener:
        name = f"[{host}]" if ":" in host else host
        yield listener, f"http://{name}:{listener.getsockname()[1]}"


def _address_of(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1" if host == "localhost" else ""


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
