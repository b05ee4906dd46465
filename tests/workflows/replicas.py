"""Two replicas of one service over one store and one key-value store, each with a cache of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.ledger.ports.witness import Witness
from service.store.redis.sealed import SealedCache
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.queue import WriterQueue
from tests.contracts.caches import caches
from tests.contracts.stores import spent_by
from tests.factories import THREE_PEOPLE, SeededEntropy, open_replica, register, upload
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S, until
from tests.workflows.surveys import writer_of


@dataclass(kw_only=True)
class Replicas:
    """Two replicas with their store, caches and analyst."""

    store: Any
    replicas: list[Replica]
    caches: list[SealedCache]
    analyst: Principal
    drawn: list[SeededEntropy] = field(default_factory=list)

    def writer(self, number: int) -> WriterQueue:
        """One replica's writer of the one dataset."""
        replica = self.replicas[number]
        return writer_of(replica)

    def seq(self, number: int) -> int:
        """The sequence of a replica's memory."""
        return self.writer(number)._state.seq

    def spent(self, number: int) -> list[int]:
        """The spent totals in a replica's memory, by slot."""
        spent: list[int] = only_shard(self.writer(number)._state).memory.accounts.spent[: len(THREE_PEOPLE)].tolist()
        return spent

    def unload(self, number: int) -> None:
        """Empty a replica's memory, after it has received all notices, so that it stays empty."""
        writer, head = self.writer(number), self.store.head(1)
        until(lambda: writer.position == (head.fence, head.seq, head.data_version))
        writer.submit_look(lambda state: state.invalidate_all()).result(timeout=PATIENCE_S)


@contextmanager
def replicas(
    store: Store | None = None,
    *,
    redis_url: str | None = None,
    shelves: Any = None,
    witnesses: Callable[[], Witness | None] = lambda: None,
) -> Iterator[Replicas]:
    """Two replicas, both listening, with three individuals in the memory of both."""
    store = store or MemoryStore()
    with ExitStack() as opened:
        make = shelves or opened.enter_context(caches(redis_url))
        made, entropies = [make(), make()], [SeededEntropy(1), SeededEntropy(2)]
        replicas = [
            opened.enter_context(open_replica(store, entropy, witness=witnesses(), options=ReplicaOptions(cache=cache)))
            for cache, entropy in zip(made, entropies, strict=True)
        ]
        register(replicas[0])
        upload(replicas[0], "people", THREE_PEOPLE)
        who, _ = replicas[0].principals.create(role="analyst", name="ana")
        world = Replicas(store=store, replicas=replicas, caches=made, analyst=who, drawn=entropies)
        for replica in replicas:
            writer_of(replica).catch_up()
        until(lambda: made[0].audience() == len(replicas))
        for replica in replicas:
            replica._exchange._look_at = float("-inf")  # when they last looked, each was alone
        yield world


def analyst_like(who: Principal, number: int) -> Principal:
    """Another analyst."""
    return Principal(
        id=UUID(int=number),
        role=who.role,
        name=f"another {number}",
        dataset=None,
        individual=None,
        allowance_units=None,
    )


def truth(store: Store) -> list[int]:
    """The spent totals of the three individuals by the ledger."""
    with store.transaction(1, lock=False) as transaction:
        spent = spent_by(transaction.entries(after=0), transaction.head.slots)
    total: list[int] = spent[: len(THREE_PEOPLE)].tolist()
    return total
