"""Processes of shards that are killed at the stations of a batch, an upload, a checkpoint and a load.

Nothing is lost, nobody is charged twice, and each key is answered once the shard was started again.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from service.ledger.model.errors import Unavailable
from service.ledger.model.journal import UploadRequest
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import Principal
from service.ledger.ports.shards import Lane, ShardBackend, ShardChannel
from service.query.division import ShardPlace
from service.store.shards.process import ProcessShard
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica
from tests.memory.shards import dividing
from tests.memory.store import MemoryStore
from tests.rotation import some_of
from tests.waiting import until
from tests.writer.shards.spread import KEYS, filled, findings

SHARDS = 2
Death = tuple[str, bool]
"""A call, and whether the process is killed as soon as it was sent, and not before."""


class KillableShard(ProcessShard):
    """A shard in a process that is killed at the calls of `deaths`, one after the other."""

    deaths: tuple[Death, ...] = ()

    def begin(self, lane: Lane, call: str, *arguments: object, **named: object) -> Callable[[], Any]:
        """Kill before the call is sent or after."""
        is_sent = None
        if self.deaths and self.deaths[0][0] == call:
            is_sent, self.deaths = self.deaths[0][1], self.deaths[1:]
        if is_sent is False:
            self.kill()
        result = super().begin(lane, call, *arguments, **named)
        if is_sent:
            self.kill()
        return result

    def kill(self) -> None:
        """Kill -9."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)


class KillableShards(ShardBackend):
    """Opens shards in processes that can be killed at any call."""

    backend = "killable"

    def __init__(self) -> None:
        self.channels: list[KillableShard] = []

    def open(self, record: DatasetRecord, count: int) -> list[ShardChannel]:
        """Open them, and remember them."""
        self.channels = [KillableShard(record, ShardPlace(number, count)) for number in range(count)]
        return [*self.channels]


def asked(replica: Replica, who: Principal, key: str) -> None:
    """A query of everybody."""
    ask(replica, who, key, reuse=False, noise={"sigma": 20.0})


def joined(replica: Replica, who: Principal, key: str) -> None:
    """An upload of an event of a new individual, under a key."""
    request = UploadRequest(table="visits", content_type="text/csv", address=(who.id, key))
    replica.curators.upload("survey", request, BytesIO(f"person_id,item\n{key},7\n".encode()))


def kept(replica: Replica, _who: Principal, _key: str) -> None:
    """A checkpoint."""
    replica.registry.opened()[0].checkpoint()


ACTS: dict[str, tuple[Callable[[Replica, Principal, str], None], tuple[str, ...]]] = {
    "batch": (asked, ("answer_part",)),
    "upload": (joined, ("event_counts", "changed", "put")),
    "checkpoint": (kept, ("pages_since",)),
}
LOAD = ("load", "set_accounts", "add_rows", "index_categories", "reset_spent", "set_page", "replay")
"""The calls of a load, of which a shard is killed in the next try too."""
STATIONS: list[tuple[str, tuple[Death, ...]]] = [
    (act, ((call, is_sent),)) for act, (_, calls) in ACTS.items() for call in calls for is_sent in (False, True)
]
STATIONS += [("batch", (("answer_part", True), (call, True), (call, call == "load"))) for call in LOAD]


@contextmanager
def killable(store: MemoryStore) -> Iterator[tuple[Replica, KillableShards]]:
    """A replica with the dataset over processes that are started again at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.writer.shards.divided.RESTARTS_APART_S", 0.01)
        patch.setattr("service.writer.shards.divided.RESTARTS_APART_MAX_S", 0.01)
        patch.setattr("service.writer.threads.RECOVERY_S", 0.02)
        backend = KillableShards()
        with open_replica(store, options=dividing(backend, SHARDS)) as replica:
            yield replica, backend


def insist(act: Callable[[], None]) -> None:
    """Try until a shard that was lost is back."""

    def is_done() -> bool:
        with suppress(Unavailable):
            act()
            return True
        return False

    until(is_done)


def spent_of(replica: Replica) -> dict[str, int]:
    """The accounts of everybody."""
    rows = replica.curators.budgets("survey", cursor=None, limit=1000).items
    return {row.key: row.spent_units for row in rows}


def test_a_shard_that_is_killed_at_any_station_costs_nobody_anything() -> None:
    """The stations are of a batch, an upload, a checkpoint and the load that follows, which is cut short twice."""
    store = MemoryStore()
    stations = some_of(STATIONS, 3)
    with killable(store) as (replica, backend):
        filled(replica, store)
        who = analyst(replica)
        asked(replica, who, "before")
        kept(replica, who, "")
        asked(replica, who, "after the checkpoint")
        for number, (act, deaths) in enumerate(stations):
            shard, key = backend.channels[number % SHARDS], f"{act} {number}"
            shard.deaths = deaths
            with suppress(Unavailable):
                ACTS[act][0](replica, who, key)
            insist(partial(ACTS[act][0], replica, who, key))
            insist(partial(asked, replica, who, f"after {key}"))
            assert not shard.deaths
        spent = spent_of(replica)
        told = replica.auditors.ledger("survey", cursor=None, limit=1000).items
    acts = [act for act, _ in stations]
    assert len(told) == 2 + len(stations) + acts.count("batch")
    assert spent.keys() == {*KEYS.values(), *(f"upload {n}" for n, act in enumerate(acts) if act == "upload")}
    with store.transaction(1, lock=False) as transaction:
        rows = transaction.records("visits")[0].size
    assert rows == -(-len(KEYS) // 4) + acts.count("upload")
    assert findings(store) == []
    with open_replica(store) as again:
        assert spent_of(again) == spent
