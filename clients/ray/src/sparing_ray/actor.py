"""A shard in a worker of Ray: packed calls come and packed replies go, and Ray reads neither.

Ray imports this module on each machine that holds shards. Each needs the service in the same version.
"""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from service.background import lower_priority
from service.query.division import ShardPlace
from service.store.shards.messages import packed, unpacked
from service.store.shards.worker import ShardWorker
from service.writer.shards.shard import Shard

MAX_RESTARTS: Final = 0
"""Ray starts no actor again: it would be empty without the coordinator's knowledge. The coordinator makes a new one."""


def versions() -> dict[str, str]:
    """The versions of everything that must be equal on all machines."""
    return {"sparing": _version("sparing"), "Python": platform.python_version(), "Ray": _version("ray")}


class ShardActor:
    """A shard and the calls that it answers, each on the thread of its lane."""

    def __init__(self, told: bytes) -> None:
        record, place = unpacked(told)
        self._worker = ShardWorker(Shard(record, ShardPlace(*place)))

    def versions(self) -> dict[str, str]:
        """The versions in the actor's process."""
        return versions()

    def do(self, call: bytes) -> bytes:
        """Do a call. Returns, packed, whether it has ended well, and its result or its error."""
        return packed(self._worker.done(*unpacked(call)))

    def do_slowly(self, call: bytes) -> bytes:
        """Do a call at a lower priority than the queries."""
        lower_priority()
        return self.do(call)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
