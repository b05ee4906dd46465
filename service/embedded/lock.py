"""One supervisor per server and home: a lock that the kernel drops when its holder dies.

`flock` on a file, not a pid written to one: a pid can be reused, a dead holder's flock cannot.  The file's content (the
holder's pid and where its sockets are) is a note for others, never the proof.
"""

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from service.embedded.process import EmbeddedServerError

_held: set[int] = set()


def _forget_in_forked_child() -> None:
    """Close the locks in a forked child: sharing them it would keep them after the holder's death."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_forked_child)


class HomeInUseError(EmbeddedServerError):
    """Another process already runs this server; attach to it, or stop it first."""

    def __init__(self, state: Path, server: str, holder_pid: int | None) -> None:
        """Name the server, the directory that is taken and, when known, the process that holds it."""
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(f"{holder} already runs the embedded {server} of {state}; stop it first or attach to it")
        self.state = state
        self.server = server
        self.holder_pid = holder_pid


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """The facts that the holder of a lock tells others."""

    pid: int
    runtime: Path | None  # the directory of its sockets, once there is one


def read_note(path: Path) -> Note | None:
    """Return the note in a lock file; None when there is none or it is just being written."""
    try:
        content = json.loads(path.read_bytes())
        return Note(pid=content["pid"], runtime=None if content["runtime"] is None else Path(content["runtime"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class HomeLock:
    """The exclusive right to run one server of one home, from construction to `release` or our death."""

    def __init__(self, state: Path, server: str) -> None:
        """Take `state`/`server`.lock; raises HomeInUseError, naming the holder, when another process has it."""
        path = state / f"{server}.lock"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise EmbeddedServerError(f"cannot lock the embedded {server}: {error}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            note = read_note(path)
            raise HomeInUseError(state, server, None if note is None else note.pid) from error
        _held.add(self._descriptor)
        self.predecessor = read_note(path)  # the note of a holder that died without releasing
        self.write(None)

    def write(self, runtime: Path | None) -> None:
        """Leave a note with our pid and the directory of our sockets."""
        text = json.dumps({"pid": os.getpid(), "runtime": None if runtime is None else str(runtime)})
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def release(self) -> None:
        """Let the next one in; the file stays, since removing it would let two processes lock two files."""
        _held.discard(self._descriptor)
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
