"""The owner's side of `tests.faults.fork_server`, and a command that it has forked."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

import service
from tests.waiting import PATIENCE_S

ROOT = Path(service.__file__).parent.parent


class ForkServer:
    """A process that forks `sparing` commands."""

    def __init__(self, log: IO[bytes] | None = None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket, self._lock = ours, threading.Lock()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=log,
                cwd=ROOT,
                env=environment,
            )
        if not ours.recv(64):
            raise RuntimeError(f"the fork server ended with {self._process.wait()}")

    def fork(self, arguments: Sequence[str], environment: Mapping[str, str], *descriptors: int) -> int:
        """Begin a command with these as its stdout and stderr. Returns its pid."""
        request = {"arguments": arguments, "environment": environment}
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return int(json.loads(self._socket.recv(2**16))["pid"])

    def status_of(self, pid: int) -> int:
        """The exit status of a child that has ended."""
        with self._lock:
            self._socket.send(json.dumps({"wait": pid}).encode())
            return int(json.loads(self._socket.recv(2**16))["status"])

    def close(self) -> None:
        """End it and every child."""
        self._socket.close()
        self._process.wait(timeout=PATIENCE_S)


class Forked:
    """A forked command, as far as a `subprocess.Popen` is used here."""

    def __init__(
        self, server: ForkServer, arguments: Sequence[str], environment: Mapping[str, str], *, stderr: int
    ) -> None:
        reading, writing = os.pipe()
        self._server = server
        self.returncode: int | None = None
        self.pid = server.fork(arguments, environment, writing, stderr)
        os.close(writing)
        self._pidfd, self.stdout = os.pidfd_open(self.pid), os.fdopen(reading)

    def poll(self) -> int | None:
        """The exit status, once it has ended."""
        return self.wait() if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises TimeoutExpired while it runs on."""
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired("sparing", timeout or 0)
            self.returncode = self._server.status_of(self.pid)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it; by its descriptor, which is never reused."""
        if self.returncode is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """Kill -9."""
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        return self.returncode is not None or bool(select.select([self._pidfd], [], [], timeout)[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self.stdout.close()
        os.close(self._pidfd)
