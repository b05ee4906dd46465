"""A Postgres of its own with a replica on it, which fall together: killed, or without power.

Power is lost by copying the image behind a loop device while every process stands still. The image holds what the file
system has sent to its disk and nothing of what waits in memory, so that the copy is what a machine finds when its power
comes back. Two rules keep the copy one instant: the journal is not written by itself while it is made, and no process
runs.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from service.embedded import EmbeddedPostgres
from service.embedded.postgres import DATABASE
from service.store.postgres.registrations import migrate
from service.store.witness.file import FileWitness
from tests.e2e.processes import children_of, living
from tests.faults.replicas import Nursery, Replica, state_of
from tests.waiting import until

SETTINGS = {"max_connections": "40", "shared_buffers": "32MB", "min_wal_size": "32MB", "max_wal_size": "64MB"}
IMAGE_BYTES = 400 * 2**20
_CAP_SYS_ADMIN = 21


def can_mount() -> bool:
    """Tell whether this process may mount images, without trying."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    tools = all(map(shutil.which, ("mkfs.ext4", "mount", "umount")))
    return tools and bool(int(status["CapEff"], 16) >> _CAP_SYS_ADMIN & 1) and Path("/dev/loop-control").exists()


class Disk:
    """An ext4 file system in a file."""

    def __init__(self, folder: Path, image: Path | None = None) -> None:
        """Mount a copy of an image, or a new file system."""
        folder.mkdir()
        folder.chmod(0o711)
        self._folder, self.mount, self._copies = folder, folder / "mount", 0
        self.mount.mkdir()
        self.image = folder / "disk.0"
        if image is None:
            with self.image.open("wb") as file:
                file.truncate(IMAGE_BYTES)
            _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self.image))
        else:
            self._copy(image)
        self._mount()

    def cut(self, kill: Callable[[], None]) -> None:
        """Keep what has reached the disk; `kill` ends the stopped processes on it. Goes on with what was kept."""
        self._copies += 1
        before, self.image = self.image, self._folder / f"disk.{self._copies}"
        self._copy(before)
        kill()
        self.unmount()
        before.unlink()
        self._mount()

    def unmount(self) -> None:
        """Take it away, waiting for processes that are about to end."""
        command = ["umount", str(self.mount)]
        until(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0)

    def _copy(self, image: Path) -> None:
        _run("cp", "--sparse=always", str(image), str(self.image))

    def _mount(self) -> None:
        _run("mount", "-o", "loop,commit=300", str(self.image), str(self.mount))
        self.mount.chmod(0o711)


class Machine:
    """A Postgres in `folder`, and at most one replica."""

    def __init__(self, nursery: Nursery, redis_url: str, folder: Path, settings: Mapping[str, str]) -> None:
        self._nursery, self._redis_url, self._folder = nursery, redis_url, folder
        self._settings = {**SETTINGS, **settings}
        self._server: EmbeddedPostgres | None = None
        self._replica: Replica | None = None
        self._postmaster = 0

    @property
    def witness(self) -> FileWitness:
        """The replica's."""
        return FileWitness(self._folder / "witness")

    def start_database(self) -> str:
        """Start Postgres, and prove that it is the one that will be killed. Returns its URL."""
        private = self._folder / "private"
        self._server = EmbeddedPostgres(self._folder / "home", settings=self._settings, private_root=private)
        url = self._server.start()
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        assert row is not None
        assert self._folder in Path(row[0]).parents
        self._postmaster = int((Path(row[0]) / "postmaster.pid").read_text().split()[0])
        assert self._postmaster in {pid for pid, _ in children_of(os.getpid())}
        return self._server.url_of(DATABASE)

    def start_replica(self, database_url: str) -> str:
        """Start a replica that does not mind how the database is set. Returns its URL."""
        more = {"SPARING_WITNESS": str(self._folder / "witness"), "TRUST_ANY_DATABASE": "1"}
        self._replica = self._nursery.start(database_url, self._redis_url, **more)
        return self._replica.url

    def freeze(self) -> None:
        """Let every process stand still, the replica first: what it has sent, it has sent."""
        if self._replica is not None:
            self._replica.send(signal.SIGSTOP)
            self._replica.await_stop()
        os.kill(self._postmaster, signal.SIGSTOP)
        _await_stop(self._postmaster)
        for pid, _ in children_of(self._postmaster):
            os.kill(pid, signal.SIGSTOP)
            _await_stop(pid)

    def kill(self) -> None:
        """Kill -9 the whole of Postgres at once, and the replica."""
        if self._replica is not None:
            self._replica.end()
            os.close(self._replica.pidfd)
            self._replica = None
        self.kill_database()

    def kill_database(self) -> None:
        """Kill -9 the whole of Postgres at once."""
        if self._server is None:
            return
        family = children_of(self._postmaster)
        for pid in (self._postmaster, *(pid for pid, _ in family)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not living(family))
        self._server.stop()
        self._server = None


@contextmanager
def machine(
    nursery: Nursery, redis_url: str, folder: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Machine]:
    """A machine for the length of the block; killed at its end."""
    made = Machine(nursery, redis_url, folder, settings or {})
    try:
        yield made
    finally:
        made.kill()


@contextmanager
def mounted(folder: Path, image: Path | None = None) -> Iterator[Disk]:
    """A disk for the length of the block."""
    disk = Disk(folder, image)
    try:
        yield disk
    finally:
        disk.unmount()
        shutil.rmtree(folder)


def prepare(folder: Path, image: Path) -> None:
    """Write the image of a disk with a migrated database on it, all of it on the disk."""
    with mounted(folder) as disk:
        with EmbeddedPostgres(disk.mount / "home", settings=SETTINGS, private_root=disk.mount / "private") as server:
            migrate(server.url_of(DATABASE))
        _run("sync", "-f", str(disk.mount))
        _run("cp", "--sparse=always", str(disk.image), str(image))


def _await_stop(pid: int) -> None:
    with suppress(FileNotFoundError):  # it has ended
        until(lambda: state_of(pid) in "TZ")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
