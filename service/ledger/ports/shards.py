"""The channel to one of several shards.

A shard is an object of this process, a process beside it, or on another machine.

A call is sent to all shards before the first reply is waited for, so that they work at the same time. A channel has
three lanes, each with at most one call under way and a thread of its own at the shard: `queries` for the work of the
writer, `records` for acts and forecasts beside that work, and `accounts` for reading accounts.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import DatasetRecord

Lane = Literal["queries", "records", "accounts"]
LANES: Final[tuple[Lane, ...]] = ("queries", "records", "accounts")


class ShardLost(Unavailable):
    """A shard has died or does not reply. Its content is unknown, and the shard is loaded again before the next use."""


class ShardsUnusable(Exception):
    """The machines for shards cannot be used: there is none, others could reach them, or versions differ."""


class ShardChannel(Protocol):
    """The way to one shard."""

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """Have the shard call one of its methods.

        The returned function waits for the result and raises the method's errors.

        `begin` and the returned function raise ShardLost. The shard may then have made the call or not.
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
