"""The twin of a shard's channel: the shard is an object of this process, and what it is told and tells is copied."""

import pickle
from collections.abc import Callable
from typing import Any

from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.shards import Lane, ShardBackend, ShardChannel, ShardLost
from service.query.division import ShardPlace
from service.workflows.replica import ReplicaOptions
from service.writer.shards.divided import DividedShards
from service.writer.shards.shard import Shard
from service.writer.state import DatasetState


class MemoryShardChannel:
    """A channel to a shard of this process; it can be cut, before or after a call is done."""

    def __init__(self, record: DatasetRecord, place: ShardPlace) -> None:
        self.record, self.place = record, place
        self.shard: Shard | None = Shard(record, place)
        self.calls: list[str] = []
        self.dies_at: tuple[str, bool] | None = None  # a call, and whether it is done before

    @property
    def is_to_die(self) -> bool:
        """Tell whether the call at which it dies has not come."""
        return self.dies_at is not None

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """The call is done when it begins; its error comes with the result, as from another process."""
        told = pickle.dumps((arguments, named))
        if self.shard is None:
            raise ShardLost
        self.calls.append(call)
        dies_at, self.dies_at = (
            (self.dies_at, None) if self.dies_at and self.dies_at[0] == call else (None, self.dies_at)
        )
        if dies_at is not None and not dies_at[1]:
            self.shard = None
            return _lost
        try:
            arguments, named = pickle.loads(told)  # noqa: S301 - our own
            result = pickle.dumps(getattr(self.shard, call)(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            return _raising(error)
        if dies_at is not None:
            self.shard = None
            return _lost
        return lambda: pickle.loads(result)  # noqa: S301 - our own

    def restart(self) -> None:
        """An empty shard."""
        self.shard = Shard(self.record, self.place)

    def close(self) -> None:
        """No shard."""
        self.shard = None


def _lost() -> None:
    raise ShardLost


def _raising(error: Exception) -> Callable[[], None]:
    def result() -> None:
        raise error

    return result


def opened_channels(record: DatasetRecord, count: int) -> list[MemoryShardChannel]:
    """Channels to so many empty shards of this process."""
    return [MemoryShardChannel(record, ShardPlace(number, count)) for number in range(count)]


class MemoryShards(ShardBackend):
    """Opens shards of this process."""

    backend = "memory"

    def __init__(self) -> None:
        self.channels: list[MemoryShardChannel] = []

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:
        """Open them, and remember them."""
        self.channels = opened_channels(record, count)
        return [*self.channels]


def dividing(backend: ShardBackend, count: int) -> ReplicaOptions:
    """Every dataset, however small, is divided over so many shards."""
    return ReplicaOptions(shard_backend=backend, shards_for=lambda _: count)


def divided(record: DatasetRecord, count: int) -> DividedShards:
    """A dataset over `count` shards of this process."""
    return DividedShards([*opened_channels(record, count)])


def only_shard(state: DatasetState) -> Shard:
    """The shard of an undivided dataset."""
    assert isinstance(state.shards, Shard)
    return state.shards


def page_seq_max(state: DatasetState) -> int:
    """The largest sequence up to which the totals of a page are right, at any shard."""
    if isinstance(state.shards, Shard):
        return int(state.shards.page_seqs.max(initial=0))
    channels = [each for each in state.shards._channels.values() if isinstance(each, MemoryShardChannel)]
    return max(int(each.shard.page_seqs.max(initial=0)) for each in channels if each.shard is not None)
