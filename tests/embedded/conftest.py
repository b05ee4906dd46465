"""Places and processes for the tests of the embedded servers."""

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import service
from service.embedded.home import ACCOUNTS, find_home
from service.embedded.postgres import EmbeddedPostgres, _mark
from service.embedded.process import OsAccount, processes_where
from tests.waiting import until

REPOSITORY = Path(service.__file__).parent.parent


class Owner:
    """Another process that owns servers: it says lines of JSON and lives until it is told to end."""

    def __init__(self, script: str, *arguments: object) -> None:
        path = os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
        )

    def hear(self) -> Any:
        """Return the next thing it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the owner ended with {self.process.wait()}"
        return json.loads(line)

    def end(self) -> None:
        """Let it read a line, after which it stops its servers."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.hear() == "stopped"

    def kill(self) -> None:
        """Kill it with SIGKILL, if it still runs."""
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


class Bench:
    """A home for a Postgres, with queries to ask about it."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.private_root = place / "private"

    def server(self, **options: Any) -> EmbeddedPostgres:
        """Return a server of this home that has not been started."""
        return EmbeddedPostgres(self.home, private_root=self.private_root, throw_away=True, **options)

    @property
    def data(self) -> Path:
        """The home's only data directory."""
        found = find_home(self.home)
        assert found is not None
        (data,) = found.state.glob("pgdata-*")
        return data

    def processes(self) -> list[int]:
        """Return the processes that serve the data directory."""
        mark = _mark(self.data)
        return processes_where(lambda arguments: any(mark in argument for argument in arguments))

    def await_end(self) -> None:
        """Wait until no process serves the data directory."""
        until(lambda: not self.processes())

    def await_answer(self, url: str) -> None:
        """Wait until a Postgres answers at this URL."""

        def answers() -> bool:
            try:
                return bool(self.ask(url, "SELECT 1") == 1)
            except psycopg.OperationalError:
                return False

        until(answers)

    @staticmethod
    def ask(url: str, statement: str) -> Any:
        """Return the first value of the answer's first row."""
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
def bench(place: Path) -> Bench:
    """A home that has not been used."""
    return Bench(place)


@pytest.fixture(scope="session")
def used() -> Iterator[Bench]:
    """A home that has been used, for tests that leave it as they find it: making a data directory takes a while."""
    directory = Path(tempfile.mkdtemp(prefix="sparing-tests-"))
    directory.chmod(0o711)
    bench = Bench(directory)
    with bench.server():
        pass
    yield bench
    shutil.rmtree(directory)


@pytest.fixture
def start_owner() -> Iterator[Callable[..., Owner]]:
    """Start owners that do not outlive the test, from a script and its arguments."""
    owners: list[Owner] = []

    def start(script: str, *arguments: object) -> Owner:
        owners.append(Owner(script, *arguments))
        return owners[-1]

    yield start
    for owner in owners:
        owner.kill()


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short path that an unprivileged account may pass through; pytest's own are closed to it."""
    directory = Path(tempfile.mkdtemp(prefix="sparing-tests-"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def home(place: Path) -> Path:
    """A home that does not exist yet."""
    return place / "home"


@pytest.fixture
def private_root(place: Path) -> Path:
    """The folder in which root keeps what the servers' account could not reach otherwise."""
    return place / "private"


@pytest.fixture
def account() -> OsAccount | None:
    """The account of servers that these tests start."""
    if os.geteuid() != 0:
        return None
    entries = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next(entries[name] for name in ACCOUNTS if name in entries)
    return OsAccount(uid=entry.pw_uid, gid=entry.pw_gid)
