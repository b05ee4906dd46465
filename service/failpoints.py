"""Points on a query's way, and beside it, at which a drill can kill, break or stall the process.

Outside a drill they do nothing. A drill is requested in the environment of `sparing serve`, on a loopback address only:

    CHAOS=1 CHAOS_AT=before-commit:kill:3    kill -9 this process at its third arrival at `before-commit`

Several drills are separated by commas. The number of the arrival is 1 when it is left out. Every worker counts its own
arrivals, and a worker that replaces another begins again. No import arms a drill. A point that is not armed costs one
look-up in a dictionary, and no call.
"""

import ipaddress
import os
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

HANG_S: Final = 30.0

# In the order of the way. Between COMMIT and its reply no line of ours runs: there, the tests put a proxy.
POINTS: Final = (
    "accepted",
    "authenticated",
    "validated",
    "queueing",
    "lock-held",
    "budgets-read",
    "key-looked-up",
    "noise-drawn",
    "charges",
    "active-set",
    "summed",
    "rows-inserted",
    "before-commit",
    "acknowledged",
    "witnessed",
    "awaiting-release",
    "headers-sent",
    "half-sent",
    "sent",
    "done",
)
# Beside the way: what erasures have left to do in the ledger, and a pruning.
POINTS_BESIDE: Final = ("amending", "amended", "totals-kept", "prune-committed", "dropping", "dropped")


class ChaosRefused(ValueError):
    """The drill is refused: it is misspelt, or the process would serve other machines than this one."""


class PlantedFault(Exception):
    """The exception that the action `raise` raises."""


class HasSocket(Protocol):
    """A connection that can be cut from outside."""

    def fileno(self) -> int:
        """The connection's descriptor. Raises an error when the connection is closed."""


@dataclass(slots=True)
class _Drill:
    """One action, due at one arrival."""

    action: Callable[[], None]
    due: int
    arrivals: int = 0
    door: threading.Lock = field(default_factory=threading.Lock)

    def arrive(self) -> None:
        with self.door:
            self.arrivals += 1
            is_due = self.arrivals == self.due
        if is_due:
            self.action()


class _QuietPoints(dict[str, None]):
    """The points at which no drill waits. Looking up another one means arriving there. KeyError for an unknown name."""

    def __missing__(self, point: str) -> None:
        _drills[point].arrive()


_drills: Final[dict[str, _Drill]] = {}
_quiet_points: Final = _QuietPoints(dict.fromkeys((*POINTS, *POINTS_BESIDE)))
_connections: Final["weakref.WeakSet[HasSocket]"] = weakref.WeakSet()

reach: Final[Callable[[str], None]] = _quiet_points.__getitem__
"""Say that the process is at a point. This does nothing unless a drill waits there."""


def watch(connection: HasSocket) -> None:
    """Remember a connection to the database, so that a drill can cut it."""
    if _drills:
        _connections.add(connection)


def armed() -> bool:
    """Tell whether any drill waits."""
    return bool(_drills)


def arm(environ: Mapping[str, str], *, host: str) -> None:
    """Arm the drills of the environment, once, at the start. Raises ChaosRefused, also where others could connect."""
    if environ.get("CHAOS") != "1":
        return
    if not _is_loopback(host):
        raise ChaosRefused(f"CHAOS=1 is for drills on a loopback address, not on {host}")
    for text in filter(None, environ.get("CHAOS_AT", "").split(",")):
        point, action, due = _parsed(text)
        _drills[point] = _Drill(_ACTIONS[action], due)
        _quiet_points.pop(point, None)


def disarm() -> None:
    """Forget every drill."""
    _quiet_points.update(dict.fromkeys(_drills))
    _drills.clear()
    _connections.clear()


def _parsed(text: str) -> tuple[str, str, int]:
    point, action, number = (*text.strip().split(":"), "1", "1")[:3]
    if point not in (*POINTS, *POINTS_BESIDE) or action not in _ACTIONS or not number.isdecimal() or int(number) == 0:
        raise ChaosRefused(f"CHAOS_AT: cannot read {text!r} as point:action:number")
    return point, action, int(number)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    # To this very thread: a signal to the process stops it only once some other thread comes to look.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _hang() -> None:
    time.sleep(HANG_S)


def _raise() -> None:
    raise PlantedFault


def _drop() -> None:
    """Cut every connection to the database, as if its other end had gone."""
    for connection in list(_connections):
        try:
            descriptor = os.dup(connection.fileno())
        except Exception:  # noqa: BLE001, S112 - it is closed, each library says so in its own way
            continue
        with socket.socket(fileno=descriptor) as cut:
            cut.shutdown(socket.SHUT_RDWR)


_ACTIONS: Final[Mapping[str, Callable[[], None]]] = {
    "kill": _kill,
    "stop": _stop,
    "hang": _hang,
    "raise": _raise,
    "drop": _drop,
}
