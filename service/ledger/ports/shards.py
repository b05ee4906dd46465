"""The channel to one shard of several, which is an object of this process, a process beside it, or on another machine.

A call is sent to all shards before the first reply is waited for, so that they work at the same time. Each lane of a
channel has one call under way at most and its own thread at the shard: `queries` for what the writer does, `records`
for what acts and forecasts do beside it, `accounts` for looks.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import DatasetRecord

Lane = Literal["queries", "records", "accounts"]
LANES: Final[tuple[Lane, ...]] = ("queries", "records", "accounts")


class ShardLost(Unavailable):
    """A shard has died or does not reply: what it holds is unknown, and it is loaded again before the next use."""


class ShardsUnusable(Exception):
    """The machines that are to hold shards cannot: none is there, others could use them, or a version differs."""


class ShardChannel(Protocol):
    """The way to one shard."""

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """Have the shard call one of its methods; what is returned waits for the result and raises the method's errors.

        Both raise ShardLost; the call may then have been done or not.
        """

    def restart(self) -> None:
        """End the shard, if it has not ended, and start an empty one. Raises ShardLost."""

    def close(self) -> None:
        """End the shard."""


class ShardBackend:
    """Opens the shards of datasets; this one opens none, so that every dataset is undivided."""

    backend = "none"
    """The name of the kind of shards, for operators."""

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:  # noqa: ARG002 - of those that open some
        """The channels to so many new and empty shards, in the order of their numbers."""
        return []


NO_SHARDS: Final = ShardBackend()
