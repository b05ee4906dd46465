"""The recorded seconds of the test modules: the gate begins with the longest, and `make unit` leaves them out.

`make test ARGS=--record-durations` records anew those that it runs. They judge no test.
"""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

FILE = Path(__file__).with_suffix(".json")
RECORDED_FROM_S = 1.0
"""Shorter modules fill the gaps at the end in any order."""


def recorded() -> dict[str, int]:
    """The seconds of each module of at least RECORDED_FROM_S, by its path from the root."""
    seconds: dict[str, int] = json.loads(FILE.read_text())
    return seconds


def takes_long(path: Path) -> bool:
    """True for a module of which seconds are recorded."""
    root = FILE.parents[1]
    return path.is_relative_to(root) and path.relative_to(root).as_posix() in _kept()


@cache
def _kept() -> dict[str, int]:
    return recorded()


def module_of(nodeid: str) -> str:
    """The path of a test's module."""
    return nodeid.partition("::")[0]


class Recorder:
    """Adds up the seconds of each module and writes them at the end."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a setup, a call or a teardown."""
        self._seconds[module_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the modules that ran and keep the others that are still there."""
        kept = {path: seconds for path, seconds in recorded().items() if (FILE.parents[1] / path).exists()}
        ran = {path: round(seconds) for path, seconds in self._seconds.items()}
        known = {path: seconds for path, seconds in (kept | ran).items() if seconds >= RECORDED_FROM_S}
        lines = dict(sorted(known.items(), key=lambda each: (-each[1], each[0])))
        FILE.write_text(json.dumps(lines, indent=1) + "\n")
