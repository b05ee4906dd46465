"""One supervisor per server and home: a lock that the kernel drops when its holder dies.

The lock is `flock` on a file, not a pid written to a file: a pid can be reused, a dead holder's flock cannot. The
file's content (the holder's pid, where its sockets are, whether its server has answered) is a note for others, never
the proof. The file stays after its holder, so that the next holder makes its sockets at the same place.
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
    """Close the locks in a forked child, which would otherwise keep them after the holder's death."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_forked_child)


class HomeInUseError(EmbeddedServerError):
    """Another process already runs this server; attach to it, or stop it first."""

    def __init__(self, state: Path, server: str, holder_pid: int | None) -> None:
        """Name the server, the directory that is taken and, when known, the process that holds the lock."""
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(f"{holder} already runs the embedded {server} of {state}; stop it first or attach to it")
        self.holder_pid = holder_pid


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """The facts that the holder of a lock tells others."""

    pid: int | None  # None: it has released the lock in order
    runtime: Path | None  # the directory of its sockets, once there is one
    has_answered: bool = False  # its server was ready once; it may have died since


def read_note(path: Path) -> Note | None:
    """Return the note in a lock file; None when there is none, or the file is a copy of another lock file."""
    try:
        content = json.loads(path.read_bytes())
        if content["inode"] != path.stat().st_ino:
            return None
        runtime = None if content["runtime"] is None else Path(content["runtime"])
        return Note(pid=content["pid"], runtime=runtime, has_answered=content["has_answered"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class HomeLock:
    """The exclusive right to run one server of one home, from construction to `release` or our death."""

    def __init__(self, state: Path, server: str) -> None:
        """Take `state`/`server`.lock. Raises HomeInUseError, naming the holder, when another process has the lock."""
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
        self.predecessor = read_note(path)  # of the last holder; with a pid, it died without releasing
        try:
            self.write(None if self.predecessor is None else self.predecessor.runtime)
        except OSError as error:
            self._let_go()
            raise EmbeddedServerError(f"cannot write {path}: {error.strerror}") from error

    def write(self, runtime: Path | None, *, has_answered: bool = False) -> None:
        """Leave a note with our pid and the directory of our sockets."""
        self._write(Note(pid=os.getpid(), runtime=runtime, has_answered=has_answered))
        self._runtime = runtime

    def release(self) -> None:
        """Let the next holder in. The file stays: if it were removed, two processes could lock two files."""
        with contextlib.suppress(OSError):  # a disk may be full; the next one then ends a predecessor that is not there
            self._write(Note(pid=None, runtime=self._runtime))
        self._let_go()

    def _write(self, note: Note) -> None:
        runtime = None if note.runtime is None else str(note.runtime)
        facts = {"pid": note.pid, "runtime": runtime, "has_answered": note.has_answered}
        text = json.dumps({**facts, "inode": os.fstat(self._descriptor).st_ino})
        os.pwrite(self._descriptor, text.encode(), 0)
        os.ftruncate(self._descriptor, len(text))

    def _let_go(self) -> None:
        _held.discard(self._descriptor)
        os.close(self._descriptor)
