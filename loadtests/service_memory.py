"""The resources of a service's processes: memory, unnamed files of uploads, and the disk of its database."""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.processes import children_of

_EVERY_S: Final = 0.2
_SERVERS: Final = ("postgres", "valkey-server", "redis-server")


@dataclass(kw_only=True)
class Taken:
    """The largest figures seen at any look, in bytes: memory of the service's own processes, and uploads on disk."""

    memory: int = 0
    spooled: int = 0

    async def watch(self, pid: int, spool: Path) -> None:
        """Look repeatedly, until cancelled."""
        while True:
            self.look(pid, spool)
            await asyncio.sleep(_EVERY_S)

    def look(self, pid: int, spool: Path) -> None:
        """Look once, and keep the largest figures."""
        own = [each for each in (pid, *(child for child, _ in children_of(pid))) if not _is_server(each)]
        self.memory = max(self.memory, sum(map(_memory_bytes, own)))
        self.spooled = max(self.spooled, sum(_unnamed_bytes(each, spool) for each in own))


def disk_bytes(folder: Path) -> int:
    """The disk that the files below a folder take."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(root) / name).lstat().st_blocks * 512
    return total


def _is_server(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() in _SERVERS
    return True


def _memory_bytes(pid: int) -> int:
    """A process's share of resident pages: pages that processes share after a fork are counted once."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _unnamed_bytes(pid: int, spool: Path) -> int:
    total = 0
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(each.readlink()).startswith(str(spool)):
                    total += each.stat().st_blocks * 512
    return total
