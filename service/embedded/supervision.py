"""The life of one child server: lock, socket directory, log, process, and their orderly end."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from service.embedded.errors import EmbeddedServerError
from service.embedded.home import Home, make_runtime, open_log, remove_runtime
from service.embedded.lock import HomeLock
from service.embedded.process import processes_where, start_child, stop_child

POLL_S = 0.005
LOG_BYTES_SHOWN = 2000


class Supervision:
    """One server of one home, held from construction until `close`."""

    def __init__(self, home: Home, server: str) -> None:
        """Take the lock of `server` in this home; raises HomeInUseError when another process has it."""
        self.home = home
        self.server = server
        self._owner_pid = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._runtime: Path | None = None
        self._log_path = home.path / f"{server}.log"
        self._log_start = 0
        self._lock = HomeLock(home.state, server)

    @property
    def predecessor_runtime(self) -> Path | None:
        """The directory of the sockets of an earlier supervisor that died before it could remove them."""
        return None if self._lock.predecessor is None else self._lock.predecessor.runtime

    def open_runtime(self) -> Path:
        """Make the directory of this server's sockets and tell others where it is; removes a dead predecessor's."""
        if self.predecessor_runtime is not None:
            remove_runtime(self.predecessor_runtime)
        self._runtime = make_runtime(self.home.account)
        self._lock.write(self._runtime)
        return self._runtime

    def launch(self, command: Sequence[str | Path], *, death_signal: signal.Signals) -> None:
        """Start the server as our child, its output going to its log."""
        log = open_log(self._log_path)
        try:
            self._log_start = os.fstat(log).st_size
            self._child = start_child(command, account=self.home.account, death_signal=death_signal, output=log)
        finally:
            os.close(log)

    def await_ready(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Ask `ready` until it says yes; raises EmbeddedServerError, with the log, when the child ends or time does."""
        child = self._child
        if child is None:
            raise EmbeddedServerError(f"the embedded {self.server} has not been launched")
        deadline = time.monotonic() + timeout_s
        while not ready():
            if child.poll() is not None:
                raise EmbeddedServerError(f"the embedded {self.server} ended while starting:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"the embedded {self.server} is not ready after {timeout_s:g} s:\n{self._log_tail()}"
                )
            time.sleep(POLL_S)

    def close(self, steps: Sequence[tuple[signal.Signals, float]] = ((signal.SIGKILL, 5.0),)) -> None:
        """Stop the child by `steps` (signal, seconds to wait), remove its sockets and release the lock.

        Does nothing in a process forked from the owner, which must not stop the owner's servers.
        """
        if os.getpid() != self._owner_pid:
            return
        if self._child is not None:
            stop_child(self._child, steps)
        if self._runtime is not None:
            remove_runtime(self._runtime)
        self._lock.release()

    def _log_tail(self) -> str:
        """Return the end of what this run of the server wrote."""
        with self._log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read()[-LOG_BYTES_SHOWN:].decode(errors="replace").strip() or "(its log is empty)"


def end_orphans(
    belongs: Callable[[list[str]], bool],
    leads: Callable[[list[str]], bool],
    number: signal.Signals,
    *,
    what: str,
    timeout_s: float,
) -> None:
    """Wait until no process `belongs` to a server whose owner has died; those that lead get the signal, once.

    The kernel has normally sent that signal already and the server is on its way out.
    """
    deadline = time.monotonic() + timeout_s
    signalled: set[int] = set()
    while remaining := processes_where(belongs):
        for pid in set(processes_where(leads)) - signalled:
            signalled.add(pid)
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise EmbeddedServerError(f"{what}: process {pid} of another account runs it") from error
        if time.monotonic() > deadline:
            raise EmbeddedServerError(f"{what}: an earlier server (processes {remaining}) does not end")
        time.sleep(POLL_S)
