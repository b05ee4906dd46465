"""Homes at rest, made once for all tests of a worker: each test begins with a copy instead of a first start.

A first start makes a database, migrates it and measures the machine, which takes longer than most tests.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.e2e.http_calls import analyst_of, register
from tests.e2e.processes import new_key, served


@dataclass(frozen=True, kw_only=True)
class SurveyHome:
    """A home with a dataset of three people, and the keys of its clients."""

    path: Path
    curator_key: str
    analyst_key: str


class Homes:
    """Makes homes in a folder; each copy is a deployment of its own, but all have one pepper."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: Iterator[int] = count(1)
        self._begun: Path | None = None
        self._surveyed: SurveyHome | None = None

    def missing(self) -> Path:
        """A place for a home that nobody has begun."""
        return self._folder / f"home-{next(self._numbers)}"

    def begun(self) -> Path:
        """A home that was served once: its database has its schema, and no dataset."""
        if self._begun is None:
            self._begun = self.missing()
            with served(self._begun):
                pass
        return self._copy(self._begun)

    def surveyed(self) -> SurveyHome:
        """A home with three people whom no query has asked about."""
        if self._surveyed is None:
            path = self.begun()
            with served(path) as running:
                curator_key = new_key(path, "curator")
                register(running.url, curator_key)
                analyst_key = analyst_of(running.url, curator_key)
            self._surveyed = SurveyHome(path=path, curator_key=curator_key, analyst_key=analyst_key)
        made = self._surveyed
        return SurveyHome(path=self._copy(made.path), curator_key=made.curator_key, analyst_key=made.analyst_key)

    def _copy(self, source: Path) -> Path:
        """With owners and modes: the servers run under another account."""
        target = self.missing()
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)
        return target
