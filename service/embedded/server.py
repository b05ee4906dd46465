"""The life of an embedded server: lock, predecessor, directory of sockets, log, launch, readiness, stop."""

import os
import shutil
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import ClassVar, Self

from service.embedded.home import PRIVATE_ROOT, Home, find_home, make_runtime, open_home, open_log, remove_runtime
from service.embedded.lock import HomeInUseError, HomeLock, Note, read_note
from service.embedded.process import (
    EmbeddedServerError,
    processes_where,
    require_lasting_thread,
    start_child,
    stop_child,
)

POLL_S = 0.005
OPEN_POLL_S = 0.05
ABSENT_S = 0.5  # how long a server that has answered before may be silent before a command gives up
LOG_BYTES_SHOWN = 2000
FREE_BYTES_MIN = 2**20  # with less a disk counts as full


class EmbeddedServer(ABC):
    """The embedded server of a home; a context manager that starts and stops it.

    The server is ours once this object has launched it. Otherwise it is another process's, and we attach to it. A
    subclass says how its program is found, prepared and asked.
    """

    title: ClassVar[str]  # in messages
    server: ClassVar[str]  # names the lock and the log
    start_timeout_s: ClassVar[float]
    stop_steps: ClassVar[Sequence[tuple[Signals, float]]]  # signal, seconds to wait for its effect
    death_signal: ClassVar[Signals]  # from the kernel, when we die

    def __init__(self, home: Path, *, private_root: Path = PRIVATE_ROOT) -> None:
        """Take the home, and root's directory for files that the servers' account cannot reach in the home."""
        self._path = home
        self._private_root = private_root
        self._runtime = Path()
        self._supervision: Supervision | None = None
        self._is_attached = False
        self._lock = threading.Lock()  # around what begins or ends the child

    @property
    def is_ours(self) -> bool:
        """Tell whether this object launched the server and has not stopped it."""
        return self._supervision is not None

    def start(self) -> str:
        """Start the server and return its URL: `launch`, then `ready`. Raises what these two raise."""
        self.launch()
        return self.ready()

    def open(self, *, start_timeout_s: float) -> None:
        """Attach to the server that another process runs, or launch it where none does; then call `ready`.

        A server that another process is starting has `start_timeout_s` to answer, and a server that has answered before
        has half a second. Raises EmbeddedServerError when the server does not answer in that time, and what `launch`
        raises.
        """
        since, allowed_s = time.monotonic(), start_timeout_s
        while self.attach() is None:
            try:
                self.launch()
            except HomeInUseError as error:
                note = find_note(self._path, self.server)
                if note is not None and note.has_answered and allowed_s != ABSENT_S:
                    since, allowed_s = time.monotonic(), ABSENT_S  # it may have answered since we looked
                if time.monotonic() - since > allowed_s:
                    raise EmbeddedServerError(self._absence(error.holder_pid)) from error
            else:
                return
            time.sleep(OPEN_POLL_S)

    def attach(self) -> str | None:
        """The URL of the server that another process runs for this home; None unless it answers and proves itself.

        The proof is that the server knows our password, and serves this home's directory.
        """
        running = find_running(self._path, self.server)
        if running is None or not self._is_served(*running):
            return None
        self._runtime = running[1]
        self._is_attached = True
        return self._url()

    def launch(self) -> None:
        """Begin to start the server, and make the files that a first start needs.

        Raises HomeInUseError when another process runs the server, and EmbeddedServerError when it cannot be started.
        Call this in the main thread, or in a thread that ends later than the server.
        """
        require_lasting_thread()
        if self._supervision is not None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has been started already")
        try:
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
        except OSError as error:
            raise EmbeddedServerError(self._refusal(error)) from error
        self._supervision = supervision
        self._is_attached = False

    def ready(self) -> str:
        """Wait until the launched server answers, and return its URL, which holds the password.

        Raises EmbeddedServerError when no server answers, or not the one that was launched. The launched server is then
        stopped.
        """
        if self._is_attached:
            return self._url()
        supervision = self._supervision
        if supervision is None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has not been launched")
        with ExitStack() as failing:
            failing.callback(self.stop)
            self._await_ready(supervision)
            failing.pop_all()
        return self._url()

    def wait(self) -> str:
        """Wait for the end of the server that is ours, and return how it ended."""
        supervision = self._supervision
        return "was stopped" if supervision is None else f"ended with {supervision.wait()}"

    def restart(self) -> None:
        """Start the server that is ours again after its end, at the same URL, and wait until it answers.

        Does nothing after `stop`. Raises EmbeddedServerError.
        """
        try:
            with self._lock:
                supervision = self._supervision
                if supervision is None:
                    return
                supervision.end_child(self.stop_steps)
                self._end_predecessor(self._runtime)
                supervision.reopen_runtime()
                command = self._prepare(supervision.home, self._runtime)
                supervision.launch(command, death_signal=self.death_signal)
        except OSError as error:
            raise EmbeddedServerError(self._refusal(error)) from error
        self._await_ready(supervision)

    def stop(self) -> None:
        """Stop the server in order and wait for its end. Does nothing when the server is not running, or not ours."""
        with self._lock:
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

    def _await_ready(self, supervision: "Supervision") -> None:
        supervision.await_ready(self._answers, timeout_s=self.start_timeout_s)
        self._prove()
        supervision.tell_ready()

    def _absence(self, holder_pid: int | None) -> str:
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        log = self._path.absolute() / f"{self.server}.log"
        return f"the embedded {self.title} of {self._path} does not answer; {holder} is to run it, and its log is {log}"

    def _refusal(self, error: OSError) -> str:
        where = f": {error.filename}" if error.filename else ""
        return f"cannot start the embedded {self.title} of {self._path}: {error.strerror or error}{where}"

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
        """Tell whether the launched server takes connections."""

    @abstractmethod
    def _prove(self) -> None:
        """Raise EmbeddedServerError unless the server that answers is the one that was launched."""

    @abstractmethod
    def _is_served(self, home: Home, runtime: Path) -> bool:
        """Tell whether a server with its sockets in `runtime` takes our password and serves this home."""

    @abstractmethod
    def _url(self) -> str:
        """The URL of the running server, for its client library."""


def find_note(path: Path, server: str) -> Note | None:
    """The note of the process that runs, or ran, a home's server. The note is no proof: its writer may have died."""
    home = find_home(path)
    return None if home is None else read_note(home.state / f"{server}.lock")


def find_running(path: Path, server: str) -> tuple[Home, Path] | None:
    """The places of a home, and the directory of sockets that a running server's owner has noted; or None."""
    home, note = find_home(path), find_note(path, server)
    if home is None or note is None or note.pid is None or note.runtime is None:
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
        """The directory of sockets that the last supervisor noted, even if that directory has been removed."""
        return None if self._lock.predecessor is None else self._lock.predecessor.runtime

    def open_runtime(self) -> Path:
        """Make the directory of this server's sockets and tell others where it is.

        The directory of a predecessor that died is removed. The new directory has the same path, so that processes that
        used the old server find this one.
        """
        predecessor = self._lock.predecessor
        if predecessor is not None and predecessor.runtime is not None and predecessor.pid is not None:
            remove_runtime(predecessor.runtime)
        self._runtime = make_runtime(self.home.account, before=self.predecessor_runtime)
        self._lock.write(self._runtime)
        return self._runtime

    def reopen_runtime(self) -> None:
        """Make the directory of sockets again if it has been removed. Raises EmbeddedServerError."""
        if self._runtime is None or self._runtime.is_dir():
            return
        if make_runtime(self.home.account, before=self._runtime) != self._runtime:
            raise EmbeddedServerError(f"cannot make {self._runtime} once more")

    def tell_ready(self) -> None:
        """Tell others that the server answers."""
        self._lock.write(self._runtime, has_answered=True)

    def wait(self) -> int | None:
        """Wait for the end of the child, and return its exit status; None where none was launched."""
        return None if self._child is None else self._child.wait()

    def end_child(self, steps: Sequence[tuple[Signals, float]]) -> None:
        """Stop the child by `steps` (signal, seconds to wait) unless it has ended, and take its exit status.

        An ended child whose status nobody takes keeps its pid, and so the locks that name it.
        """
        if self._child is not None:
            stop_child(self._child, steps)

    def launch(self, command: Sequence[str | Path], *, death_signal: Signals) -> None:
        """Start the server as our child, its output going to its log."""
        log = open_log(self._log_path)
        try:
            self._log_start = os.fstat(log).st_size
            self._child = start_child(command, account=self.home.account, death_signal=death_signal, output=log)
        finally:
            os.close(log)

    def await_ready(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Call `ready` until it returns True.

        Raises EmbeddedServerError, with the log, when the child ends or the time is over.
        """
        child = self._child
        if child is None:
            raise EmbeddedServerError(f"the embedded {self.server} has not been launched")
        deadline = time.monotonic() + timeout_s
        while not ready():
            if child.poll() is not None:
                if shutil.disk_usage(self.home.state).free < FREE_BYTES_MIN:
                    raise EmbeddedServerError(f"the embedded {self.server} ended: no space left at {self.home.state}")
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
        self.end_child(steps)
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
    leaderless: Signals = SIGKILL,
) -> None:
    """Wait until no process `belongs` to a server whose owner has died; send `number` once to each that `leads`.

    The kernel has normally sent that signal already, and the server is ending. Where no leading process is left, the
    other processes get `leaderless`.
    """
    deadline = time.monotonic() + timeout_s
    signalled: set[int] = set()
    while remaining := processes_where(belongs):
        leaders = processes_where(leads)
        for pid in set(leaders or remaining) - signalled:
            signalled.add(pid)
            try:
                os.kill(pid, number if leaders else leaderless)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise EmbeddedServerError(f"{what}: process {pid} of another account runs it") from error
        if time.monotonic() > deadline:
            raise EmbeddedServerError(f"{what}: an earlier server (processes {remaining}) does not end")
        time.sleep(POLL_S)
