"""Fake worker processes, for tests of their supervisor; imports little, because each is a fresh process."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import NoReturn


def stay(reports: Connection, report: str | None) -> NoReturn:
    """Report, and end in good order when told so."""
    signal.signal(signal.SIGTERM, lambda *_: _leave(0))
    reports.send(report)
    while True:
        signal.pause()


def leave_badly(reports: Connection, report: str | None) -> NoReturn:
    """Report, and fail when told to end."""
    signal.signal(signal.SIGTERM, lambda *_: _leave(3))
    reports.send(report)
    while True:
        signal.pause()


def be_hurried(reports: Connection, report: str | None) -> NoReturn:
    """Report; at SIGINT have the parent told to end once more, and end in good order at the SIGTERM that follows."""
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getppid(), signal.SIGTERM))
    stay(reports, report)


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


def _leave(status: int) -> NoReturn:
    """End, and let no further signal come between, as a worker does."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(status)
