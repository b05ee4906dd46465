"""The service as a person starts it, a process of its own with a home of its own, and its commands."""

import atexit
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from unittest.mock import patch

from service.cli.app import main
from tests.faults.forks import Forked, ForkServer
from tests.waiting import PATIENCE_S

SPARING = [sys.executable, "-m", "service"]
"""The patience with a command: the demo asks 294 queries."""


@dataclass
class Served:
    """A running `sparing serve`."""

    process: "subprocess.Popen[str] | Forked"
    url: str
    home: Path

    def kill(self) -> None:
        """Kill -9, and wait for the end."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)


def environment() -> dict[str, str]:
    """The tests' environment without anything that would lead to other servers."""
    ours = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    # No balancer has to be told that a service under test is leaving.
    kept = {name: value for name, value in ours.items() if not name.startswith("SPARING_")}
    return {**kept, "SPARING_DRAIN_NOTICE_MS": "0"}


@contextmanager
def served(home: Path, *more: str, **settings: str) -> Iterator[Served]:
    """`sparing serve --port 0`, up, with settings by variable; ended by SIGTERM unless it is dead already."""
    with _begun(["serve", "--home", str(home), "--port", "0", *more], {**environment(), **settings}) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            word, _, url = line.strip().partition(" ")
            if word != "ready":
                raise RuntimeError(f"serve said {line!r}")
            yield Served(process, url, home)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)


def _begun(arguments: list[str], env: dict[str, str], *, stderr: int = 2) -> "subprocess.Popen[str] | Forked":
    """A process that has imported the service already, forked out of another; one that begins workers is begun anew.

    `test_process.py` and tests of wheels start from the command line, imports and all.
    """
    if "--workers" in arguments or env.get("SPARING_WORKERS", "1") != "1":
        return subprocess.Popen([*SPARING, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, env=env)
    return Forked(_forks(), arguments, env, stderr=stderr)


@cache
def _forks() -> ForkServer:
    """The one of this worker, until its end."""
    forks = ForkServer()
    atexit.register(forks.close)
    return forks


def sparing(*arguments: str, home: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end in this process, as its console script does, with settings by variable.

    A process of its own would import for a second what this one has imported already.
    """
    command, stdout, stderr = ["sparing", *arguments, "--home", str(home)], io.StringIO(), io.StringIO()
    ours = patch.object(sys, "argv", command), patch.dict(os.environ, {**environment(), **settings}, clear=True)
    with ours[0], ours[1], redirect_stdout(stdout), redirect_stderr(stderr), _warnings_shown():
        try:
            main()
        except SystemExit as ended:
            status = 0 if ended.code is None else int(ended.code)
    return subprocess.CompletedProcess(command, status, stdout.getvalue(), stderr.getvalue())


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Log to stderr as a process without a log does: warnings of loggers that have no handler of their own."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: not _has_handler(logging.getLogger(record.name)))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _has_handler(logger: logging.Logger) -> bool:
    """Tell whether a logger below the root has a handler, or one above it has."""
    return logger.parent is not None and (bool(logger.handlers) or _has_handler(logger.parent))


def sparing_apart(*arguments: str, home: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end in a process of its own, as one that serves has to be."""
    command, env = [*arguments, "--home", str(home)], {**environment(), **settings}
    with TemporaryFile("w+") as complaints, _begun(command, env, stderr=complaints.fileno()) as process:
        said = process.stdout.read() if process.stdout else ""
        status = process.wait(timeout=PATIENCE_S)
        complaints.seek(0)
        return subprocess.CompletedProcess(command, status, said, complaints.read())


def unexpected(said: str) -> list[str]:
    """The lines on stderr but those of a busy disk and of a cache that waits for the processor."""
    expected = ("run `sparing calibrate`", "incident the cache; it is left alone")
    return [line for line in said.splitlines() if not any(part in line for part in expected)]


def said(done: "subprocess.CompletedProcess[str]") -> str:
    """The output of a command that succeeded."""
    assert (done.returncode, unexpected(done.stderr)) == (0, []), done.stderr
    return done.stdout


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a command that refused."""
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    return done.stderr


def new_key(home: Path, role: str, *more: str, **settings: str) -> str:
    """`sparing keys create`: the key alone on stdout."""
    done = sparing("keys", "create", "--role", role, "--name", role, *more, home=home, **settings)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()


def children_of(pid: int) -> set[tuple[int, str]]:
    """(pid, start time) of every descendant of a process: a pid alone may be reused."""
    found: set[tuple[int, str]] = set()
    parents = {pid}
    while parents:
        rows = [row for row in _processes() if row[1] in parents and (row[0], row[2]) not in found]
        found |= {(child, started) for child, _, started in rows}
        parents = {child for child, _, _ in rows}
    return found


def peak_bytes(pid: int) -> int:
    """The largest resident memory of a process so far."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def living(processes: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """Those that still run."""
    return processes & {(pid, started) for pid, _, started in _processes()}


def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, start time) of everything that runs and is no zombie."""
    rows = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                rows.append((int(entry.name), int(fields[1]), fields[19]))
    return rows
