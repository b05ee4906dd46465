"""Child processes that cannot outlive us, and a look at the processes that are already there.

Linux only. `prctl(PR_SET_PDEATHSIG)` makes the kernel signal a child when the *thread* that created it ends. So servers
start in the main thread or in a thread that ends after them. /proc tells which process is which.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launch.py")
# A server needs no more than this from our environment; the rest may hold secrets or redirect it (PGPORT, PGDATA).
VARIABLES_KEPT = ("LD_LIBRARY_PATH", "PATH")


class EmbeddedServerError(RuntimeError):
    """An embedded server cannot be found, started, reached or stopped; the message says what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OsAccount:
    """An unprivileged account that a server runs as when we are root."""

    uid: int
    gid: int


class LastingThread(threading.Thread):
    """A thread that ends after the servers that it starts."""


def require_lasting_thread() -> None:
    """Raise EmbeddedServerError unless the current thread ends after the servers that it starts."""
    thread = threading.current_thread()
    if thread is not threading.main_thread() and not isinstance(thread, LastingThread):
        raise EmbeddedServerError(
            "embedded servers must be started in the main thread: they end together with the thread that started them"
        )


def start_child(
    command: Sequence[str | Path], *, account: OsAccount | None, death_signal: signal.Signals, output: int
) -> subprocess.Popen[bytes]:
    """Start `command` as `account`, in a session of its own, with its output going to the descriptor `output`.

    The kernel sends the child `death_signal` when we end, however we end. In a session of its own the child does not
    get a terminal's Ctrl-C, so that the servers are still there while we finish. Raises EmbeddedServerError.
    """
    require_lasting_thread()
    uid, gid = (-1, -1) if account is None else (account.uid, account.gid)
    facts = map(str, (os.getpid(), int(death_signal), uid, gid))
    launcher: list[str | Path] = [sys.executable, "-I", "-S", LAUNCHER, *facts]
    environment = {name: os.environ[name] for name in VARIABLES_KEPT if name in os.environ}
    try:
        return subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**environment, "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
        )
    except OSError as error:
        raise EmbeddedServerError(f"cannot start a child with {sys.executable!r}: {error}") from error


def run_program(command: Sequence[str | Path], *, account: OsAccount | None, timeout_s: float) -> str:
    """Run a short program to its end and return its output. Raises EmbeddedServerError unless its exit status is 0."""
    child = start_child(command, account=account, death_signal=signal.SIGTERM, output=subprocess.PIPE)
    with child:
        try:
            output, _ = child.communicate(timeout=timeout_s)
        except BaseException as error:
            child.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                raise EmbeddedServerError(f"{command[0]} did not finish within {timeout_s:g} s") from error
            raise
    text = output.decode(errors="replace").strip()
    if child.returncode != 0:
        raise EmbeddedServerError(f"{command[0]} failed with status {child.returncode}: {text[-2000:]}")
    return text


def stop_child(child: subprocess.Popen[bytes], steps: Sequence[tuple[signal.Signals, float]]) -> None:
    """Send one signal after another, waiting after each for its number of seconds, until the child has ended."""
    for number, patience_s in steps:
        child.send_signal(number)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        return
    raise EmbeddedServerError(f"process {child.pid} does not end")


def arguments_of(pid: int) -> list[str]:
    """Return the command line of a process as /proc shows it; empty for a process that has ended, also a zombie."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return raw.rstrip(b"\0 ").decode(errors="replace").split("\0") if raw else []


def processes_where(belongs: Callable[[list[str]], bool]) -> list[int]:
    """Return the pids of all processes but ours whose command line `belongs` accepts."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and belongs(arguments_of(pid))]
