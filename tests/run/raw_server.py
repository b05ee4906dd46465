"""A server of the application over the in-memory store, in a process of its own: `python -m tests.run.raw_server`.

It prints its URL and that of its metrics. Settings come from the environment; `FILES_MAX` lowers the limit of open
files.
"""

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from fastapi import FastAPI

from service.api.routes.pages import PageFile, page_files
from service.logs import configure_logs
from service.metrics import PrometheusTelemetry, metrics_served
from service.run.listening import bound_socket, url_of
from service.run.uvicorn_server import server_of
from service.settings.settings import Settings
from service.workflows.replica import ReplicaOptions
from tests.factories import THREE_PEOPLE, open_replica, register, upload
from tests.waiting import PATIENCE_S

TRICKLE_S = 0.05
"""Between the bytes of a client that trickles."""
LARGE_BYTES = 4 * 2**20
"""The length of `/assets/large.js`, which cannot be packed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawServer:
    """A running server, which raw sockets talk to."""

    url: str
    metrics_url: str
    curator_key: str
    process: "subprocess.Popen[str]"
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def connected(self) -> socket.socket:
        """A new connection."""
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def answer(self, raw: bytes) -> bytes:
        """Everything that comes back until the server closes the connection, or nothing comes for long."""
        with self.connected() as wire:
            wire.sendall(raw)
            return received(wire)

    def stop(self) -> None:
        """End it, so that its log is whole."""
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)

    @property
    def log_text(self) -> str:
        """Its log."""
        return self.log.read_text()

    def memory_bytes(self, name: str) -> int:
        """A line of the process' status, such as VmHWM."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise KeyError(name)


def received(wire: socket.socket) -> bytes:
    """Everything until the other end closes."""
    parts = []
    try:
        while data := wire.recv(1 << 16):
            parts.append(data)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def trickled(wire: socket.socket) -> bytes:
    """The answer to a byte now and then, until the other end closes."""
    wire.settimeout(TRICKLE_S)
    answer, end_s = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        try:
            wire.sendall(b"a")
            data = wire.recv(1 << 16)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return answer
        if not data:
            return answer
        answer += data
    raise TimeoutError


def paced(wire: socket.socket, parts: Iterable[bytes]) -> None:
    """Send parts with a pause after each."""
    for part in parts:
        wire.sendall(part)
        time.sleep(2 * TRICKLE_S)


def answered(wire: socket.socket) -> bytes:
    """One response of a stated length, on a connection that stays open."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += wire.recv(1 << 16)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.findall(rb"content-length: (\d+)", head)[0])
    while len(body) < length:
        body += wire.recv(1 << 16)
    return head + body


def unsent_bytes(port: int) -> list[int]:
    """The bytes that the kernel keeps for each connection to a port, and for none of its clients."""
    with open("/proc/net/tcp") as table:  # noqa: PTH123 - it is no file
        rows = [line.split() for line in table]
    waiting = [int(row[4].partition(":")[0], 16) for row in rows if row[1].endswith(f":{port:04X}")]
    return [each for each in waiting if each > 0]


@contextmanager
def raw_server(**settings: str) -> Iterator[RawServer]:
    """A server with these settings, by variable."""
    command = [sys.executable, "-m", "tests.run.raw_server"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARING_")}
    with (
        tempfile.TemporaryDirectory(prefix="sparing-log-") as folder,
        (Path(folder) / "log").open("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**env, **settings}) as process,
    ):
        try:
            lines = [process.stdout.readline().strip() for _ in range(3)] if process.stdout else []
            url, metrics_url, curator_key = lines
            yield RawServer(
                url=url, metrics_url=metrics_url, curator_key=curator_key, process=process, log=Path(log.name)
            )
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def main() -> None:
    """Serve until SIGTERM."""
    if "FILES_MAX" in os.environ:
        files_max = int(os.environ["FILES_MAX"])
        resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    settings = Settings.of({"SPARING_DRAIN_NOTICE_MS": "0", "SPARING_DRAIN_MS": "1000", **os.environ})
    configure_logs(settings.log)
    telemetry = PrometheusTelemetry()
    with (
        open_replica(options=ReplicaOptions(telemetry=telemetry)) as replica,
        bound_socket("127.0.0.1", 0) as listener,
        metrics_served(telemetry, host="127.0.0.1", port=0) as metrics_url,
    ):
        page_files()["large.js"] = PageFile.made("large.js", os.urandom(LARGE_BYTES))
        register(replica)
        upload(replica, "people", THREE_PEOPLE)
        _, curator_key = replica.principals.create(role="curator", name="curator")

        def ready() -> None:
            sys.stdout.write(f"{url_of(listener)}\n{metrics_url}\n{curator_key}\n")
            sys.stdout.flush()

        server = server_of(replica, settings, ready=ready, telemetry=telemetry)
        cast(FastAPI, server.config.app).add_api_route("/fails/{key}", _fail)
        server.run(sockets=[listener])


async def _fail(key: str) -> None:
    """A route that fails with a text that quotes its caller."""
    raise ValueError(key)


if __name__ == "__main__":
    main()
