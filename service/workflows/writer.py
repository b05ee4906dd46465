"""One dataset's single line of events: whoever steps it takes everything that waits and puts it on the desk.

Questions queue here and HTTP only waits. All that wait at one moment share a commit (`service.workflows.desk`).
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

from service.core.noise import Entropy
from service.failpoints import reach
from service.workflows.answering import Outcome, Question
from service.workflows.checkpointing import Checkpointer
from service.workflows.desk import Act, Desk
from service.workflows.errors import Busy, Unavailable, WorkflowError
from service.workflows.records import DatasetRecord
from service.workflows.sharing import UNSHARED, Exchange
from service.workflows.state import DatasetState
from service.workflows.tail import Tail
from service.workflows.telemetry import SILENT, Telemetry
from service.workflows.views import PendingAnswer
from service.workflows.witnessing import Guard

QUEUE_MAX: Final = 1024
BATCH_MAX: Final = 256
CHECKPOINT_EVERY: Final = 1024

Result = TypeVar("Result")


@dataclass(slots=True)
class _Waiting:
    """A question and the promise of its answer."""

    question: Question
    future: PendingAnswer

    def settle(self, outcome: Outcome) -> None:
        if isinstance(outcome, WorkflowError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


@dataclass(slots=True)
class _Errand:
    """A curator's act or a reading, run in the same line."""

    run: Callable[[], None]


class Line:
    """Owns one dataset's state; everything that touches it waits here in order of arrival, until somebody steps.

    Passive, so that a simulation can decide what happens when; one caller of `step` at a time.
    """

    checkpoint_every = CHECKPOINT_EVERY

    def __init__(
        self,
        *,
        record: DatasetRecord,
        guard: Guard,
        entropy: Entropy,
        telemetry: Telemetry = SILENT,
        exchange: Exchange = UNSHARED,
    ) -> None:
        """The dataset is loaded when it is first needed."""
        self._record = record
        self.guard = guard
        self.tail = Tail()
        self._is_working = False
        self._catching_up: Future[None] | None = None
        self._state = DatasetState(record, self.tail)
        self.desk = Desk(
            record=record, state=self._state, guard=guard, entropy=entropy, telemetry=telemetry, exchange=exchange
        )
        self.checkpoints = Checkpointer(record=record, guard=guard, telemetry=telemetry)
        self._queue: queue.SimpleQueue[_Waiting | _Errand | None] = queue.SimpleQueue()
        self._open, self._door = True, threading.Lock()

    @property
    def length(self) -> int:
        """How much waits in the line."""
        return self._queue.qsize()

    @property
    def position(self) -> tuple[int, int, int] | None:
        """Fence, sequence and version of the memory; None while it holds nothing that can be relied on."""
        return self._state.position

    @property
    def is_at_hand(self) -> bool:
        """Whether a reading would be served at once: the dataset is in memory, and nobody is before it."""
        return self.position is not None and self.length == 0 and not self._is_working

    def wake(self) -> None:
        """Catch up in the background; whatever waits already will do so anyway."""
        is_under_way = self._catching_up is not None and not self._catching_up.done()
        if not is_under_way and self.length == 0:
            with suppress(WorkflowError):
                self._catching_up = self.submit_reading(lambda _transaction, _state: None)

    def submit(self, question: Question) -> PendingAnswer:
        """Queue a question. When the line is full the promise fails with Busy, when it is closed with Unavailable."""
        waiting = _Waiting(question, PendingAnswer(question.plan.dimension))
        reach("queueing")
        try:
            self._enqueue(waiting)
        except WorkflowError as refusal:
            waiting.settle(refusal)
        return waiting.future

    def submit_act(self, act: Act[Result]) -> Future[Result]:
        """Queue a change; it gets a locked transaction of its own and a commit. Raises Busy."""
        return self._errand(lambda: self.desk.act(act))

    def submit_reading(self, reading: Act[Result]) -> Future[Result]:
        """Queue a reading; it gets a snapshot that memory has caught up with. Raises Busy."""
        return self._errand(lambda: self.desk.read(reading))

    def end(self) -> None:
        """Take nothing new, and let the step that meets this end answer what came before and copy a checkpoint."""
        with self._door:
            if not self._open:
                return
            self._open = False
        self._queue.put(None)  # the last thing that ever comes: nobody can be left waiting behind it

    def step(self) -> bool:
        """Work off everything that waits now, at least one thing. False after the last step."""
        running, items = True, self._take()
        self._is_working = True
        for kind, group in groupby(items, key=type):
            if kind is _Waiting:
                self._answer([waiting for waiting in group if isinstance(waiting, _Waiting)])
            elif kind is _Errand:
                for errand in group:
                    errand.run()  # type: ignore[union-attr]  # groupby keeps no type
            else:
                running = False
        self._bound_tail(is_last=not running)
        self._is_working = False
        return running

    def _bound_tail(self, *, is_last: bool) -> None:
        """Have a checkpoint written when a restart would have much to replay, and at the end when it would have any."""
        is_due = self._state.is_tail_long(entries=1 if is_last else self.checkpoint_every)
        if is_due and (is_last or self.checkpoints.is_idle):
            self.checkpoints.take(self._state.checkpoint())
            self.desk.proposer.forget()  # so that the next batch sees how far checkpoints have come
        if is_last:
            self.checkpoints.end()

    def _enqueue(self, item: _Waiting | _Errand) -> None:
        with self._door:
            if not self._open:
                raise Unavailable
            if self._queue.qsize() >= QUEUE_MAX:
                raise Busy
            self._queue.put(item)

    def _errand(self, task: Callable[[], Result]) -> Future[Result]:
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - whoever waits on the future gets it
                future.set_exception(error)

        self._enqueue(_Errand(run))
        return future

    # One step

    def _take(self) -> list[_Waiting | _Errand | None]:
        """Everything that waits now, at least one thing."""
        items = [self._queue.get()]
        while len(items) < BATCH_MAX and not self._queue.empty():
            items.append(self._queue.get_nowait())
        return items

    def _answer(self, batch: Sequence[_Waiting]) -> None:
        """Settle every promise of the batch, whatever happens."""
        outcomes = self.desk.answer([waiting.question for waiting in batch])
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.settle(outcome)
