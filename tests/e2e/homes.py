"""Homes at rest, made once for all tests of a worker: each test begins with a copy instead of a first start.

A first start makes a database and migrates it, which takes longer than many tests. It would measure the machine too,
for ten seconds: these homes know a speed instead, the same everywhere, and tests/run/test_speed.py shows the measuring.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from service.embedded import EmbeddedPostgres
from service.query.cost import Speed
from service.settings.settings import Settings
from tests.e2e.http_calls import analyst_of, ask, register
from tests.e2e.processes import new_key, served

ANSWERS = 3
CHARGE_UNITS = 1_374_389_535
"""The charge of a count at sigma 20, for each individual: 2^40 / (2 * 20^2), rounded up."""


def made_known(home: Path) -> Path:
    """A folder for a home that is not begun yet, on a machine whose speed is known, also where shards share it."""
    home.mkdir(mode=0o711, exist_ok=True)
    speed = Speed(cores=os.cpu_count() or 1)  # a start with shards would measure again where it is another number
    (home / "speed.json").write_text(json.dumps(asdict(speed)))
    return home


@dataclass(frozen=True, kw_only=True)
class SurveyHome:
    """A home with a dataset of three people, the keys of its clients, and the answers to the keys k1, k2, ..."""

    path: Path
    curator_key: str
    analyst_key: str
    answers: tuple[bytes, ...] = ()

    @contextmanager
    def owned(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """The database with an owner's rights and without triggers, while nothing else runs."""
        with (
            EmbeddedPostgres(Settings.of({}, home=self.path).home) as server,
            psycopg.connect(server.url_of("sparing")) as connection,
        ):
            connection.execute("SET session_replication_role = replica")
            yield connection


class Homes:
    """Makes homes in a folder; each copy is a deployment of its own, but all have one pepper."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: Iterator[int] = count(1)
        self._begun: Path | None = None
        self._surveyed: SurveyHome | None = None
        self._answered: SurveyHome | None = None

    def missing(self) -> Path:
        """A place for a home that is not begun yet."""
        return self._folder / f"home-{next(self._numbers)}"

    def known(self) -> Path:
        """A home that is not begun yet, on a machine whose speed is known."""
        return made_known(self.missing())

    def begun(self) -> Path:
        """A home that was served once: its database has its schema, and no dataset."""
        if self._begun is None:
            self._begun = self.known()
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
        return replace(self._surveyed, path=self._copy(self._surveyed.path))

    def answered(self) -> SurveyHome:
        """A home with three people and three answers, after an end in order, which has left checkpoints."""
        if self._answered is None:
            made = self.surveyed()
            with served(made.path) as running:
                asked = [ask(running.url, made.analyst_key, f"k{number}") for number in range(1, ANSWERS + 1)]
            self._answered = replace(made, answers=tuple(each.raise_for_status().content for each in asked))
        return replace(self._answered, path=self._copy(self._answered.path))

    def _copy(self, source: Path) -> Path:
        """With owners and modes: the servers run under another account."""
        target = self.missing()
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)
        return target
