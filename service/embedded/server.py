"""The life of an embedded server: lock, predecessor, directory of sockets, log, launch, readiness, stop."""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import ClassVar, Self

from service.embedded.home import PRIVATE_ROOT, Home, find_home, make_runtime, open_home, open_log, remove_runtime
from service.embedded.lock import HomeLock, read_note
from service.embedded.process import EmbeddedServerError, processes_where, require_main_thread, start_child, stop_child

POLL_S = 0.005
LOG_BYTES_SHOWN = 2000


class EmbeddedServer(ABC):
    """The embedded server of a home; a context manager that starts and stops it.

    A subclass says how its program is found, prepared and asked.
    """

    title: ClassVar[str]  # in messages
    server: ClassVar[str]  # names the lock and the log
    start_timeout_s: ClassVar[float]
    stop_steps: ClassVar[Sequence[tuple[Signals, float]]]  # signal, seconds to wait for its effect
    death_signal: ClassVar[Signals]  # from the kernel, when we die

    def __init__(self, home: Path, *, private_root: Path = PRIVATE_ROOT) -> None:
        """Take the home, and where root keeps what its servers' account cannot reach there."""
        self._path = home
        self._private_root = private_root
        self._runtime = Path()
        self._supervision: Supervision | None = None

    def start(self) -> str:
        """Start the server and return its URL: `launch`, then `ready`, and what they raise."""
        self.launch()
        return self.ready()

    def launch(self) -> None:
        """Have the server begin to start; files that a first start needs are made.

        Raises HomeInUseError when another process runs it and EmbeddedServerError when it cannot be started; call it
        in the main thread.
        """
        require_main_thread()
        if self._supervision is not None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has been started already")
        home = open_home(self._path, private_root=self._private_root)
        supervision = Supervision(home, self.server)
        try:
            self._choose_program(home)
            self._end_predecessor(supervision.predecessor_runtime)
            self._runtime = supervision.open_runtime()
            supervision.launch(self._prepare(home, self._runtime), death_signal=self.death_signal)
        except BaseException:
            supervision.close(self.stop_steps)
            raise
        self._supervision = supervision

    def ready(self) -> str:
        """Wait until the launched server answers, and return its URL, which holds the password.

        Raises EmbeddedServerError when it does not come up, or is not the one that was launched; it is stopped then.
        """
        supervision = self._supervision
        if supervision is None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has not been launched")
        with ExitStack() as failing:
            failing.callback(self.stop)
            supervision.await_ready(self._answers, timeout_s=self.start_timeout_s)
            self._prove()
            failing.pop_all()
        return self._url()

    def stop(self) -> None:
        """Stop the server in order and wait for its end; does nothing when it is not running."""
        supervision, self._supervision = self._supervision, None
        if supervision is not None:
            supervision.close(self.stop_steps)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _choose_program(self, home: Home) -> None:
        """Find the program, and the directory that the server will have; raises EmbeddedServerError."""

    @abstractmethod
    def _end_predecessor(self, runtime: Path | None) -> None:
        """Wait for the end of a server whose owner died; `runtime` is the owner's directory of sockets, if known."""

    @abstractmethod
    def _prepare(self, home: Home, runtime: Path) -> Sequence[str | Path]:
        """Make the files that the server needs, and return its command line."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the launched server takes connections."""

    @abstractmethod
    def _prove(self) -> None:
        """Raise EmbeddedServerError unless the server that answers is the one that was launched."""

    @abstractmethod
    def _url(self) -> str:
        """The URL of the running server, for its client library."""


def find_running(path: Path, server: str) -> tuple[Home, Path] | None:
    """The places of a home and the directory of sockets that a running server's owner has noted; None for none.

    A note is no proof: its writer may have died.
    """
    home = find_home(path)
    note = None if home is None else read_note(home.state / f"{server}.lock")
    if home is None or note is None or note.runtime is None:
        return None
    return home, note.runtime


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

    def launch(self, command: Sequence[str | Path], *, death_signal: Signals) -> None:
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

    def close(self, steps: Sequence[tuple[Signals, float]] = ((SIGKILL, 5.0),)) -> None:
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
    number: Signals,
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
