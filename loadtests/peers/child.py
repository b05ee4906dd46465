"""Another library, in its own process and environment, which answers one task after the other."""

import json
import select
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

REPLY_S_MAX = 120
ROOT = Path(__file__).resolve().parents[2]
HOMES = ROOT / "build" / "peers"


class Absent(Exception):
    """The library is not installed here, does not start or does not answer; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Milliseconds from asking to the noisy numbers, and the numbers."""

    ms: float
    values: list[float]


@dataclass(frozen=True, slots=True)
class Child:
    """A running process, the file of its errors, and what the process says of itself: `version` and `noise`."""

    process: "subprocess.Popen[str]"
    errors: IO[str]
    about: dict[str, str] = field(default_factory=dict)

    def ask(self, task: str) -> Answered:
        """The answer to one task. The process itself takes the time, so that pipes cost nothing."""
        return Answered(**self.tell(task))

    def tell(self, line: str) -> dict[str, Any]:
        """Send a line and return the reply. Raises Absent as `reply` does."""
        if self.process.stdin is None:
            raise Absent("its input is not open")
        print(line, file=self.process.stdin, flush=True)
        return self.reply()

    def reply(self) -> dict[str, Any]:
        """The next line that the process writes. Raises Absent with its last error, or if none comes in REPLY_S_MAX."""
        if self.process.stdout is None:
            raise Absent("its output is not open")
        if not select.select([self.process.stdout], [], [], REPLY_S_MAX)[0]:
            raise Absent(f"no reply in {REPLY_S_MAX} s")
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Absent(next(reversed(self.errors.read().strip().splitlines()), "it ended without an error"))
        reply: dict[str, Any] = json.loads(line)
        return reply


def command_of(module: str, home: Path, *arguments: str) -> list[str]:
    """The command that starts a module of this folder in the environment under `home`.

    Raises Absent if that is not complete.
    """
    python = home / ".venv" / "bin" / "python"
    if not (home / ".ok").exists():
        failed = home / "failed.txt"
        raise Absent(failed.read_text().strip() if failed.exists() else "not installed; `make bench-peers` does it")
    return [str(python), "-m", f"loadtests.peers.{module}", *arguments]


@contextmanager
def started(command: Sequence[str]) -> Iterator[Child]:
    """The process while the context lasts. Raises Absent with the last line of its errors if it does not start."""
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            child = Child(process, errors)
            child.about.update(child.reply())
            yield child
        finally:
            process.kill()
