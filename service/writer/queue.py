"""The queue of one dataset's writer: each step takes everything that waits and hands it to the committer.

Queries wait here. Those that wait at the same moment share a commit (`writer.committer`).
"""

import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final

from service.core.noise import Entropy
from service.ledger.model.errors import Busy, Unavailable, WorkflowError
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.shards import ShardLost
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.writer.admission.schedule import FairQueue, Reservation, ScheduleFull
from service.writer.admission.scheduler import ServersOwn
from service.writer.checkpoints import Checkpointer
from service.writer.committer import Committer, Operation, Result
from service.writer.replication.exchange import NO_EXCHANGE, ReplicaExchange, Tail
from service.writer.rollback.guard import RollbackGuard
from service.writer.shards.divided import Shards
from service.writer.state import DatasetState
from service.writer.submission import Submission

QUEUE_MAX: Final = 1024
BATCH_MAX: Final = 256
BATCH_KEPT_BYTES_MAX: Final = 2**27
"""The most bytes of answers and charges that submissions sharing a commit keep, where there are no slots."""
CHECKPOINT_EVERY: Final = 1024

Look = Callable[[DatasetState], Result]
"""A function that copies what it needs of the state, and changes nothing."""


_Job = Callable[[], None]
"""An operation, a look, a catch-up, or an answer to submissions whose slots have come, run in the same queue."""
_Item = Submission | _Job | None
WhenFree = Callable[[Callable[[int], None], Hashable], None]
"""A function that calls its argument, for a principal, with the beginning of a slot in which no query is worked on."""


@dataclass(kw_only=True, eq=False)
class WriterQueue:
    """The owner of one dataset's state: everything that touches the state waits here in order of arrival, until a step.

    The queue is passive, so that a simulation can decide what happens when; one caller of `step` at a time. The dataset
    is loaded when it is first needed. With `when_free`, acts begin only in slots that it finds free.
    """

    record: InitVar[DatasetRecord]
    guard: RollbackGuard
    entropy: InitVar[Entropy]
    telemetry: InitVar[Telemetry] = NULL_TELEMETRY
    exchange: InitVar[ReplicaExchange] = NO_EXCHANGE
    when_free: WhenFree | None = None
    shards_opened: InitVar[Shards | None] = None
    checkpoint_every: ClassVar[int] = CHECKPOINT_EVERY

    def __post_init__(
        self,
        record: DatasetRecord,
        entropy: Entropy,
        telemetry: Telemetry,
        exchange: ReplicaExchange,
        shards_opened: Shards | None,
    ) -> None:
        self._own = ServersOwn(record.id)
        self._turns: FairQueue[Submission] = FairQueue()  # the stepping thread's own
        self._waiting: dict[int, int] = {}  # submissions, by analyst
        self.tail = Tail()
        self._is_copy_waiting = False
        self._steps_half = 0  # begun and ended steps: odd while one works on the state
        self._catching_up: Future[None] | None = None
        self._state = DatasetState(record, self.tail, shards_opened)
        self.shards = self._state.shards
        self.committer = Committer(
            record=record, state=self._state, guard=self.guard, entropy=entropy, telemetry=telemetry, exchange=exchange
        )
        self.checkpoints = Checkpointer(record=record, guard=self.guard, telemetry=telemetry)
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self.is_open, self._lock = True, threading.Lock()

    @property
    def length(self) -> int:
        """The number of waiting items."""
        return self._queue.qsize() + len(self._turns)

    @property
    def position(self) -> tuple[int, int, int] | None:
        """Fence, sequence and version of the memory; None while the memory cannot be relied on."""
        return self._state.position

    def wake(self) -> None:
        """Catch up in the background, unless something waits already."""
        is_under_way = self._catching_up is not None and not self._catching_up.done()
        if not is_under_way and self.length == 0:
            with suppress(WorkflowError):
                self._catching_up = self.submit_catch_up()

    def submit(self, submission: Submission) -> None:
        """Let a submission wait for its turn. Its promises fail with Busy when too many wait.

        They fail with Unavailable when the queue is closed.
        """
        try:
            self._enqueue(submission)
        except WorkflowError as refusal:
            submission.fail(refusal)

    def begin(self, jobs: Sequence[Submission], reservation: Reservation) -> None:  # noqa: ARG002 - the schedule's port
        """Let submissions whose slots have come be answered together in one transaction."""
        with self._lock:
            if self.is_open:
                self._queue.put(partial(self._answer, jobs))
                return
        for submission in jobs:
            submission.fail(Unavailable())

    def submit_act(self, act: Operation[Result], *, principal: Hashable = None) -> Future[Result]:
        """Queue an act, which gets a locked transaction of its own and a commit. Raises Busy.

        The act waits for a turn of `principal`, who may have as many acts waiting as it leaves room for others. Without
        a principal, the act waits for a turn of the server's own acts on the dataset.
        """
        return self._job(lambda: self.committer.act(act), self._own if principal is None else principal)

    def submit_catch_up(self) -> Future[None]:
        """Queue a catch-up of memory with the database. Raises Busy."""
        return self._job(self.committer.catch_up, self._own)

    def glimpse(self, look: Look[Result]) -> Result | None:
        """The result of a look at the state in the caller's thread; None if a step was at work on the state meanwhile.

        A glimpse waits for nothing, and nothing waits for it. A look copies in far less than a millisecond, and reads
        no database.
        """
        before = self._steps_half
        try:
            seen = look(self._state)
        except Exception:
            if before % 2 == 0 and before == self._steps_half:
                raise
            return None
        return seen if before % 2 == 0 and before == self._steps_half else None

    def submit_look(self, look: Look[Result]) -> Future[Result]:
        """Queue a look at the state. A look is so short that it need not wait for a free slot. Raises Busy."""
        future: Future[Result] = Future()
        self._enqueue(partial(_settle, future, lambda: look(self._state)))
        return future

    def end(self) -> None:
        """Take nothing new. The last step answers everything that came before and copies a checkpoint."""
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
        self._queue.put(None)  # the last thing that ever comes: no caller can be left waiting behind it

    def step(self) -> bool:
        """Work off everything that waits now; if nothing does, wait for the first item.

        Returns False after the last step.

        With many submissions, some of them wait for the next step.
        """
        running = True
        items: list[_Item] = [] if self._turns.heap else [self._queue.get()]
        while not self._queue.empty():  # all of it, or what waits behind one analyst's crowd would have no turn
            items.append(self._queue.get_nowait())
        self._steps_half += 1
        for item in items:
            if isinstance(item, Submission):
                self._turns.put(item.turn, item.cost.time_ns, item)
                continue
            if self._turns.heap:
                self._answer_waiting()
            if item is not None:
                item()
            else:
                running = False
                while self._turns.heap:
                    self._answer_waiting()
        if self._turns.heap:
            self._answer_waiting()
        if not (self.checkpoints.is_preparing or self._state.shards.take_prepared()):
            self.checkpoints.prepare(self._state.shards)
        self._bound_tail(is_last=not running)
        self._steps_half += 1
        return running

    def _bound_tail(self, *, is_last: bool) -> None:
        """Copy a checkpoint when a restart would have much to replay, and at the end when it would have anything.

        With slots, the pages are copied in a free slot, because the time of the copy depends on how many people were
        charged.
        """
        is_due = self._state.is_tail_long(entries=self.checkpoint_every)
        if is_last:
            self._copy_checkpoint_if_any()
        elif is_due and self.when_free is None:
            self._copy_checkpoint_if_idle()
        elif is_due and not self._is_copy_waiting and self.when_free is not None:
            self._is_copy_waiting = True
            self.when_free(lambda _: self._enqueue_or_fail(self._copy_checkpoint_if_idle, Future()), self._own)
        if is_last:
            self.checkpoints.end()
            self._state.shards.close()

    def _copy_checkpoint_if_idle(self) -> None:
        self._is_copy_waiting = False
        if self.checkpoints.is_idle and self._state.is_tail_long(entries=self.checkpoint_every):
            self._copy_checkpoint()

    def _copy_checkpoint_if_any(self) -> None:
        if self._state.is_tail_long(entries=1):
            self._copy_checkpoint()

    def _copy_checkpoint(self) -> None:
        """Copy the pages. While a shard of the dataset is lost, no copy is made."""
        try:
            self.checkpoints.take(self._state.checkpoint())
        except ShardLost:
            return
        self.committer.optimistic.forget()  # so that the next batch sees how far checkpoints have come

    def _enqueue(self, item: Submission | _Job) -> None:
        with self._lock:
            if not self.is_open:
                raise Unavailable
            # One analyst may have as many as are left for others, so that none is kept out.
            turn = item.turn if isinstance(item, Submission) else None
            own = 0 if turn is None else self._waiting.get(turn, 0)
            if self.length + own >= QUEUE_MAX:
                raise Busy
            self._queue.put(item)
            if turn is not None:
                self._waiting[turn] = own + 1

    def _job(self, task: Callable[[], Result], principal: Hashable) -> Future[Result]:
        future: Future[Result] = Future()
        job = partial(_settle, future, task)
        if self.when_free is None:
            self._enqueue(job)
        else:
            try:
                self.when_free(lambda _: self._enqueue_or_fail(job, future), principal)
            except ScheduleFull as full:
                raise Busy(full.retry_after_s) from None
        return future

    def _enqueue_or_fail(self, job: _Job, future: Future[Any]) -> None:
        try:
            self._enqueue(job)
        except WorkflowError as refusal:
            future.set_exception(refusal)

    # One step

    def _answer_waiting(self) -> None:
        """Answer the submissions whose turn it is, in one transaction."""
        batch: list[Submission] = []
        requests = kept_bytes = 0
        while self._turns.heap:
            submission = self._turns.peek()
            requests += len(submission.requests)
            kept_bytes += submission.cost.kept_bytes
            if batch and (requests > BATCH_MAX or kept_bytes > BATCH_KEPT_BYTES_MAX):
                break
            batch.append(self._turns.take())
        with self._lock:
            for submission in batch:
                self._forget(submission.turn)
        self._answer(batch)

    def _forget(self, turn: int) -> None:
        """Count one waiting submission less for an analyst; an analyst without any has no count."""
        left = self._waiting.pop(turn) - 1
        if left > 0:
            self._waiting[turn] = left

    def _answer(self, submissions: Sequence[Submission]) -> None:
        """Settle every promise of those submissions whose clients are still there."""
        started = [submission for submission in submissions if submission.start()]
        if not started:
            return
        outcomes = self.committer.answer([request for submission in started for request in submission.requests])
        rest = iter(outcomes)
        for submission in started:
            submission.settle(list(islice(rest, len(submission.requests))))


def _settle(future: Future[Result], task: Callable[[], Result]) -> None:
    try:
        future.set_result(task())
    except BaseException as error:  # noqa: BLE001 - the caller that waits on the future gets it
        future.set_exception(error)
