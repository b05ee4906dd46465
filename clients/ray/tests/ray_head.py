"""A Ray cluster of one machine for tests: on loopback alone, with a token, without dashboard and usage statistics."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import until

_START = [
    *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--port=0", "--num-cpus=8"),
    *("--node-ip-address=127.0.0.1", "--include-dashboard=false", "--include-log-monitor=false"),
    *("--object-store-memory=200000000", "--disable-usage-stats"),
]


@dataclass(frozen=True, kw_only=True)
class RayHead:
    """A running cluster."""

    address: str
    environment: dict[str, str] = field(repr=False)  # what a process needs to join it
    pid: int

    def processes(self) -> list[int]:
        """The processes that belong to the cluster, without the drivers of tests."""
        session = os.getsid(self.pid)
        return [pid for pid in _pids() if _session_of(pid) == session]

    def shards(self) -> list[int]:
        """The processes of those actors that hold a shard."""
        return [pid for pid in self.processes() if _command(pid).startswith(b"ray::ShardActor")]


@contextmanager
def ray_head(**more: str) -> Iterator[RayHead]:
    """A cluster on this machine, which is ended with all of its processes."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: a path of a socket has 107 bytes
    joining = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), **more}
    starting = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    environment = {**os.environ, **starting, **joining, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [*_START, f"--temp-dir={folder}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    head = None
    try:
        head = RayHead(address=_address(process, folder), environment=joining, pid=process.pid)
        yield head
    finally:
        for pid in {process.pid, *(head.processes() if head is not None else [])}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def listening(pids: list[int]) -> set[str]:
    """The addresses on which these processes listen for TCP, as the kernel writes them, without ports."""
    sockets = {str(each.readlink()) for pid in pids for each in _descriptors(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def _address(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    """The address of a head, which it writes to a file once it is up."""
    written = folder / "ray_current_cluster"

    def is_up() -> bool:
        if process.poll() is not None:
            raise RuntimeError("Ray does not start")
        return written.exists() and written.read_text(encoding="ascii") != ""

    until(is_up)
    return written.read_text(encoding="ascii")


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _descriptors(pid: int) -> list[Path]:
    return [each for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
