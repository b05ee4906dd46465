"""Processes of the service for the drills: started through the nursery, killed for real, asked over raw sockets.

They run with SPARING_RELEASE_SLOT_MS=0, so that two of them work on one dataset at the same time.
"""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from psycopg.conninfo import conninfo_to_dict

from tests.faults.forks import ForkServer
from tests.waiting import until

PEPPER = "ab" * 32
DEATH_S = 60.0
ANSWER_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One attempt as its client saw it: raw bytes, at which instant the first came, and whether it was all."""

    started: float
    seen_at: float | None
    status: int | None
    body: bytes
    complete: bool


@dataclass(slots=True)
class Replica:
    """A running `sparing serve`."""

    pid: int
    url: str
    nursery: "Nursery" = field(repr=False)
    pidfd: int
    status: int | None = None

    def send(self, number: signal.Signals) -> None:
        """Signal it; by its descriptor, which is never reused."""
        signal.pidfd_send_signal(self.pidfd, number)

    def is_dead(self, patience_s: float = 0.0) -> bool:
        """Tell whether it has ended, or ends within so long."""
        return bool(select.select([self.pidfd], [], [], patience_s)[0])

    def await_end(self) -> int:
        """Its exit status once it has ended: minus the signal's number when one killed it."""
        if not self.is_dead(DEATH_S):
            raise TimeoutError(f"process {self.pid} does not end")
        if self.status is None:
            self.status = self.nursery.status_of(self.pid)
        return self.status

    def await_stop(self) -> None:
        """Wait until it stands still under SIGSTOP."""
        until(lambda: state_of(self.pid) == "T")

    def end(self) -> None:
        """Kill it and wait."""
        self.send(signal.SIGKILL)
        self.await_end()


class Nursery:
    """Forks replicas that share a home and a log."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.home = directory, directory / "home"
        directory.mkdir(exist_ok=True)
        with (directory / "replicas.log").open("ab") as log:
            self._forks = ForkServer(log)
        self.status_of = self._forks.status_of

    def start(self, database_url: str, redis_url: str, **more: str) -> Replica:
        """Start `sparing serve`, and wait until it takes connections, itself and no other process.

        Nothing is held unless `more` says so: replicas are then symmetrical, and each answers for itself. With release
        slots one of them would own the dataset, and the others would forward to it instead of racing with it.
        """
        replica, output = self._fork(["serve", "--port", "0"], database_url, redis_url, more)
        with output:
            word, _, replica.url = output.readline().strip().partition(" ")
        if word != "ready":
            log = (self._directory / "replicas.log").read_text()[-2000:]
            raise RuntimeError(f"serve said {word!r}\n{log}")
        if not _listens(replica.pid, replica.url):
            raise RuntimeError(f"process {replica.pid} does not listen at {replica.url}")
        return replica

    def run(self, *arguments: str, database_url: str, redis_url: str, **more: str) -> int:
        """Run a command to its end. Returns its exit status: minus the signal's number when one killed it."""
        command, output = self._fork(arguments, database_url, redis_url, more)
        try:
            with output:
                return command.await_end()
        finally:
            if not command.is_dead():
                command.end()
            os.close(command.pidfd)

    def witness_folder(self, database_url: str) -> Path:
        """The folder of the witness of a database; a witness of one database lets nobody begin another."""
        folder = self.home / "witnesses" / str(conninfo_to_dict(database_url)["dbname"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _fork(
        self, arguments: Sequence[str], database_url: str, redis_url: str, more: Mapping[str, str]
    ) -> tuple[Replica, TextIO]:
        """(a `sparing` command that was begun, its stdout)."""
        environment = {
            "SPARING_RELEASE_SLOT_MS": "0",
            "PATH": os.environ.get("PATH", ""),
            "SPARING_PEPPER": PEPPER,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "SPARING_WITNESS": str(self.witness_folder(database_url)),
            **more,
        }
        reading, writing = os.pipe()
        pid = self._forks.fork([*arguments, "--home", str(self.home)], environment, writing)
        os.close(writing)
        return Replica(pid=pid, url="", nursery=self, pidfd=os.pidfd_open(pid)), os.fdopen(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._forks.close()


@contextmanager
def running(nursery: Nursery, database_url: str, redis_url: str, **more: str) -> Iterator[Replica]:
    """A replica for the length of the block; killed at its end unless it is dead already."""
    replica = nursery.start(database_url, redis_url, **more)
    try:
        yield replica
    finally:
        if not replica.is_dead():
            replica.end()
        os.close(replica.pidfd)


def state_of(pid: int) -> str:
    """The letter of a process's state. Raises FileNotFoundError where there is none."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _listens(pid: int, url: str) -> bool:
    """Tell whether the socket that takes connections at a URL is one of the process."""
    port = int(url.rpartition(":")[2])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if str(descriptor.readlink()) in listening:
                return True
    return False


def ask(url: str, api_key: str, path: str, key: str, query: Mapping[str, Any]) -> Answer:
    """Put one query under a key."""
    more = f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\n"
    return exchange(url, "POST", path, api_key, json.dumps(query).encode(), more)


def exchange(url: str, method: str, path: str, api_key: str, body: bytes = b"", more: str = "") -> Answer:
    """One request, by hand, so that every byte that came is known even when the answer breaks off."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api_key}\r\n"
        f"{more}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    started = time.monotonic()
    seen_at: float | None = None
    raw = b""
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_S) as wire:
            wire.sendall(head.encode() + body)
            while chunk := wire.recv(2**16):
                seen_at = seen_at or time.monotonic()
                raw += chunk
    except ConnectionError:
        pass
    status, answer, complete = _read(raw)
    return Answer(started=started, seen_at=seen_at, status=status, body=answer, complete=complete)


def _read(raw: bytes) -> tuple[int | None, bytes, bool]:
    """(status, body, whether all of it came) of an HTTP/1.1 response that may have broken off anywhere."""
    head, end, body = raw.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) == 3 and words[1].isdigit() else None
    lengths = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return status, body, bool(end) and bool(lengths) and len(body) == int(lengths[0])
