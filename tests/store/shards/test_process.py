"""Shards in processes: they do what an object of this process does, and are lost and started again as one piece."""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.ledger.ports.shards import LANES, Lane, ShardChannel, ShardLost
from service.query.division import ShardPlace
from service.store.shards import process
from service.store.shards.process import ProcessShard, ProcessShards
from service.writer.shards.divided import DividedShards
from tests.contracts.shard_channels import PLACE, ShardChannelContract, check_batches
from tests.contracts.stores import dataset
from tests.memory.shards import MemoryShardChannel
from tests.rotation import times
from tests.waiting import until


class TestMemory(ShardChannelContract):
    """The twin of tests."""

    def opened(self) -> ShardChannel:
        return MemoryShardChannel(dataset(), PLACE)


class TestProcess(ShardChannelContract):
    """A process."""

    def opened(self) -> ShardChannel:
        return ProcessShard(dataset(), PLACE)


def pid_of(shard: ProcessShard) -> int:
    """The running process."""
    assert shard.pid is not None
    return shard.pid


@pytest.fixture
def shard() -> Iterator[ProcessShard]:
    """A shard in a process that has started."""
    started = ProcessShard(dataset(), PLACE)
    started.begin("queries", "load", dataset(), slots=100, number=1)()
    yield started
    started.close()


def test_a_shard_that_is_killed_is_lost(shard: ProcessShard) -> None:
    """Before a call and during one."""
    os.kill(pid_of(shard), signal.SIGKILL)
    with pytest.raises(ShardLost):
        shard.begin("queries", "pages_since", 0)()
    shard.restart()
    shard.begin("queries", "load", dataset(), slots=100, number=1)()
    os.kill(pid_of(shard), signal.SIGSTOP)
    wait = shard.begin("queries", "pages_since", 0)
    os.kill(pid_of(shard), signal.SIGKILL)
    with pytest.raises(ShardLost):
        wait()


def test_a_shard_that_does_not_reply_is_killed(shard: ProcessShard, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might do the call later, when nobody knows of it any more."""
    monkeypatch.setattr(process, "CALL_S", 0.2)
    os.kill(pid_of(shard), signal.SIGSTOP)
    with pytest.raises(ShardLost):
        shard.begin("queries", "pages_since", 0)()
    until(lambda: _is_gone(pid_of(shard)))


def test_shards_that_hang_are_lost_after_the_time_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is waited for after another, and for as much as is left of the time since all of them began."""
    channels = [ProcessShard(dataset(), ShardPlace(number, 2)) for number in range(2)]
    shards = DividedShards(channels)
    shards.load(dataset(), slots=100, number=1)
    monkeypatch.setattr(process, "CALL_S", 0.2)
    begun, first_is_lost = [0.0, 0.0, 0.0], [0.2]
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=iter(begun + first_is_lost).__next__))
    for each in channels:
        os.kill(pid_of(each), signal.SIGSTOP)
    with pytest.raises(ShardLost):
        shards.pages_since(0)
    waited_s = [each._ends["queries"].connection.gettimeout() for each in channels]
    assert waited_s == [0.2, process._TIME_MIN_S]
    assert shards.lost == {0, 1}
    shards.close()


@pytest.mark.parametrize("lane", LANES)
def test_a_message_that_cannot_be_read_loses_the_shard_at_once(
    shard: ProcessShard, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On any lane: a call without a reply would be waited for until its time is over."""
    monkeypatch.setattr(process, "CALL_S", 3600.0)
    with pytest.raises(ShardLost):
        shard.begin(lane, "rows_held", socket.socket)()


def test_a_message_that_cannot_be_sent_leaves_no_lane_taken() -> None:
    """The calls of the others are under way; their replies are waited for, and the next call is done by all."""
    channels = [ProcessShard(dataset(), ShardPlace(number, 2)) for number in range(2)]
    shards = DividedShards(channels)
    shards.load(dataset(), slots=100, number=1)
    with pytest.raises(TypeError, match="pickle"):
        shards._some(range(2), "queries", "pages_since", lambda place: ((threading.Lock() if place.number else 0,), {}))
    assert shards.pages_since(0) == {}
    assert shards.lost == set()
    shards.close()


def test_a_shard_has_no_secret_and_no_file_and_ends_with_its_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its environment, its descriptors and its arguments; when the sockets are closed."""
    monkeypatch.setenv("SPARING_PEPPER", "secret")
    shard = ProcessShard(dataset(), PLACE)
    shard.begin("queries", "load", dataset(), slots=100, number=1)()
    folder = Path(f"/proc/{shard.pid}")
    assert b"secret" not in (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
    targets = sorted(str(each.readlink()).split(":")[0] for each in (folder / "fd").iterdir())
    assert targets == ["/dev/null"] * 3 + ["/memfd"] * 6 + ["socket"] * 3
    for end in shard._ends.values():
        end.connection.shutdown(socket.SHUT_RDWR)
    until(lambda: _is_gone(pid_of(shard)))
    shard.close()


def test_batches_in_processes_are_those_of_one_shard() -> None:
    """Also after one of them was killed and loaded again."""

    def kill(channels: Sequence[ShardChannel]) -> None:
        first = pid_of(channels[0])  # type: ignore[arg-type]
        os.kill(first, signal.SIGKILL)
        until(lambda: _is_gone(first))

    check_batches(lambda record: ProcessShards().open(record, 2), count=times(8, 24), kill=kill)


def _is_gone(pid: int) -> bool:
    """Tell whether a process has ended; a child that has is not waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
