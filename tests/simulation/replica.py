"""One replica as the world steps it: its writer, its checkpoints and its exchange are tasks instead of threads."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from service.core.noise import Entropy
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import BudgetRow, Page
from service.ledger.ports.row_reader import ReaderHere
from service.ledger.ports.transaction import Transaction
from service.ledger.ports.witness import Witness
from service.store.redis.sealed import SealedCache
from service.workflows.curator import Curators
from service.workflows.datasets import VECTOR_BYTES_MAX
from service.workflows.replica import Replica
from service.writer.committer import Operation, PreparedOperation
from service.writer.queue import Look, WriterQueue
from service.writer.replication.exchange import ReplicaExchange
from service.writer.rollback.guard import RollbackGuard
from service.writer.shards.divided import DividedShards
from service.writer.state import DatasetState
from tests.memory.shards import MemoryShardChannel, opened_channels
from tests.simulation.disk import ReplicaStore
from tests.simulation.laws import Laws
from tests.simulation.scheduler import Scheduler
from tests.simulation.values import FaultyKeyValueStore, Liar
from tests.simulation.witnesses import SteppedLock

Result = TypeVar("Result")


class SteppedWriter(WriterQueue):
    """The writer queue of `WriterThread`, stepped by the world instead of a thread."""

    checkpoint_every = 4

    def __init__(
        self,
        *,
        record: DatasetRecord,
        guard: RollbackGuard,
        entropy: Entropy,
        scheduler: Scheduler,
        exchange: ReplicaExchange,
        shards: DividedShards | None,
    ) -> None:
        super().__init__(record=record, guard=guard, entropy=entropy, exchange=exchange, shards_opened=shards)
        self._scheduler = scheduler
        self.is_idle = True

    def act(self, act: Operation[Result], *, principal: Hashable = None) -> Result:
        """Submit the act of the current task's client, and note its request on the transaction for the laws."""
        task = self._scheduler.current
        request = task.note if task is not None else None

        def noted(transaction: Transaction, state: DatasetState) -> Result:
            transaction.act = request  # type: ignore[attr-defined]
            return act(transaction, state)

        wanted: Operation[Result] = replace(act, act=noted) if isinstance(act, PreparedOperation) else noted
        return self.wait(self.submit_act(wanted, principal=principal))

    def catch_up(self) -> None:
        """Catch up, and wait for it."""
        self.wait(self.submit_catch_up())

    def peek(self, look: Look[Result]) -> Result | None:
        """Look without waiting; None if that is not possible now."""
        return self.glimpse(look)

    def look_soon(self, look: Look[Result]) -> Result | None:
        """A look like that of a thread to which no pause comes in time."""
        return self.glimpse(look)

    def look(self, look: Look[Result]) -> Result:
        """Look, and wait if necessary."""
        seen = self.glimpse(look)
        return self.wait(self.submit_look(look)) if seen is None else seen

    def wait(self, future: "Future[Result]") -> Result:
        """Let other tasks run until the future is settled."""
        self._scheduler.pause(future.done)
        return future.result(timeout=0)

    def run(self) -> None:
        """Step whenever the queue is not empty."""
        running = True
        while running:
            self._scheduler.pause(lambda: not self._queue.empty())
            self.is_idle = False
            running = self.step()
            self.is_idle = True

    def write_pages(self) -> None:
        """Write checkpoints outside the writer, whenever one waits."""
        running = True
        while running:
            self._scheduler.pause(lambda: not self.checkpoints._queue.empty())
            running = self.checkpoints.step()


class SteppedCurators(Curators):
    """The curators of one replica; their long acts run in the client's own task."""

    def __init__(self, replica: Replica, laws: Laws) -> None:
        super().__init__(
            store=replica.registry._store,
            registry=replica.registry,
            exchange=replica._exchange,
            pepper=Pepper(bytes(32)),
            principals=replica.principals,
            amend=replica._amend,
            reader=ReaderHere(),
            vector_bytes_max=VECTOR_BYTES_MAX,
        )
        self._laws = laws

    def _run_in_background(self, record: DatasetRecord, task: Callable[[], Result]) -> Result:
        return task()

    def budgets(self, dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        """Check that a page was true at some instant since the call."""
        since = self._laws.seq
        page = super().budgets(dataset, cursor=cursor, limit=limit)
        self._laws.shown(page.items, since=since)
        return page


class SteppedReplica(Replica):
    """A replica whose writer is a task of the world."""

    def __init__(
        self,
        *,
        name: str,
        store: ReplicaStore,
        witness: Witness,
        scheduler: Scheduler,
        clock: Callable[[], datetime],
        laws: Laws,
    ) -> None:
        super().__init__(store=store, witness=witness, pepper=Pepper(bytes(32)), entropy=store.entropy, clock=clock)
        self.name, self._scheduler, self._laws = name, scheduler, laws
        self.curators = SteppedCurators(self, laws)
        self.writer: SteppedWriter | None = None
        self.shards, self.channels = 1, list[MemoryShardChannel]()
        self._seconds = 0.0

    def _ticks(self) -> float:
        """A clock that is a minute later each time: a lost shard is started at once."""
        self._seconds += 60
        return self._seconds

    def share_cache(self, liar: Liar, clock: Callable[[], float]) -> None:
        """Exchange with the other replicas from now on, through a faulty cache."""
        values = FaultyKeyValueStore(liar)
        cache = SealedCache(values, bytes(32))
        exchange = self._exchange = ReplicaExchange(cache, clock=clock)
        self.curators._exchange = self.individuals._exchange = exchange
        exchange.hear(within_s=0)

        def publish() -> None:
            while True:
                self._scheduler.pause(lambda: not exchange._outbox.empty())
                exchange.publish()

        def listen() -> None:
            while True:
                self._scheduler.pause(lambda: values.has_messages)
                exchange.hear(within_s=0)

        self._scheduler.spawn(f"{self.name} shares", self.name, publish)
        self._scheduler.spawn(f"{self.name} listens", self.name, listen)

    def _open_writer(self, record: DatasetRecord, guard: RollbackGuard) -> SteppedWriter:  # type: ignore[override]
        self.channels = opened_channels(record, self.shards) if self.shards > 1 else []
        self.writer = SteppedWriter(
            record=record,
            guard=guard,
            entropy=self._entropy,
            scheduler=self._scheduler,
            exchange=self._exchange,
            shards=DividedShards([*self.channels], clock=self._ticks) if self.channels else None,
        )
        guard._lock = SteppedLock(self._scheduler)  # type: ignore[assignment]
        self._exchange.follow(record.genesis, self.writer)
        self._scheduler.spawn(f"{self.name} writer", self.name, self.writer.run)
        self._scheduler.spawn(f"{self.name} pages", self.name, self.writer.write_pages)
        return self.writer

    def wait(self, future: "Future[Result]") -> Result:
        """Wait as the API waits for an answer."""
        self._scheduler.pause(future.done)
        return future.result(timeout=0)
