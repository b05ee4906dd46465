"""Lives of worker processes, for tests of who looks after them; imports little, because each is a fresh process."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import NoReturn


def stay(reports: Connection, report: str | None) -> NoReturn:
    """Report, and end in good order when told so."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    reports.send(report)
    while True:
        signal.pause()


def leave_badly(reports: Connection, report: str | None) -> NoReturn:
    """Report, and fail when told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    reports.send(report)
    while True:
        signal.pause()


def refuse(_reports: Connection, _report: str | None) -> NoReturn:
    """End before anything works, with a status."""
    sys.exit(1)


def die(reports: Connection, report: str | None) -> None:
    """Report, and be killed."""
    reports.send(report)
    os.kill(os.getpid(), signal.SIGKILL)


def die_early(_reports: Connection, _report: str | None) -> None:
    """Be killed before anything works."""
    os.kill(os.getpid(), signal.SIGKILL)
