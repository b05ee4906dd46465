"""One dataset's single line of events: whoever steps it takes everything waiting and gives it one commit.

Questions queue here and HTTP only waits. All questions waiting at that moment share one transaction: lock the dataset's
row, catch up with what others appended, answer each in order, append all, commit once, and only then release each
answer. While nobody else appends, the lock and the catching up are assumed, and the commit proves the assumption or
does nothing (`service.workflows.proposing`). An error from COMMIT is resolved by reading the keys under the lock, never
by drawing noise again.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

from service.core.noise import Entropy
from service.failpoints import reach
from service.workflows.answering import Batch, Outcome, Question, stored_answer
from service.workflows.checkpointing import Checkpointer
from service.workflows.errors import Busy, KeyConflict, Unavailable, WorkflowError
from service.workflows.incidents import report_incident
from service.workflows.ports import (
    AnswerRecord,
    CommitUnclear,
    DatasetRecord,
    Head,
    Outdated,
    Proposal,
    StoreUnavailable,
    Transaction,
)
from service.workflows.proposing import Proposer
from service.workflows.sharing import UNSHARED, Exchange
from service.workflows.state import DatasetState
from service.workflows.tail import Tail
from service.workflows.telemetry import SILENT, Telemetry
from service.workflows.views import PendingAnswer
from service.workflows.witnessing import Guard

QUEUE_MAX: Final = 1024
BATCH_MAX: Final = 256
CHECKPOINT_EVERY: Final = 1024
_COMMIT_READS_MAX: Final = 3

Result = TypeVar("Result")
Act = Callable[[Transaction, DatasetState], Result]


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
        self.guard = self._guard = guard
        self.tail = Tail()
        self._exchange = exchange
        self._is_working = False
        self._catching_up: Future[None] | None = None
        self._entropy = entropy
        self._telemetry = telemetry
        self._state = DatasetState(record, self.tail)
        self._proposer = Proposer(guard, self._state)
        self.checkpoints = Checkpointer(record=record, guard=guard, telemetry=telemetry)
        self._queue: queue.Queue[_Waiting | _Errand | None] = queue.Queue(maxsize=QUEUE_MAX)
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
        return self._errand(lambda: self._act(act))

    def submit_reading(self, reading: Act[Result]) -> Future[Result]:
        """Queue a reading; it gets a snapshot that memory has caught up with. Raises Busy."""
        return self._errand(lambda: self._read(reading))

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
            self._proposer.forget()  # so that the next batch sees how far checkpoints have come
        if is_last:
            self.checkpoints.end()

    def _enqueue(self, item: _Waiting | _Errand) -> None:
        with self._door:
            if not self._open:
                raise Unavailable
            try:
                self._queue.put_nowait(item)
            except queue.Full:
                raise Busy from None

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

    def _answer(self, batch: list[_Waiting]) -> None:
        """Settle every promise of the batch, whatever happens."""
        questions = [waiting.question for waiting in batch]
        try:
            outcomes: list[Outcome] = self._transact(questions)
        except WorkflowError as refusal:
            outcomes = [refusal for _ in questions]
        except CommitUnclear:
            self._telemetry.commit_unclear()
            self._state.doubt()
            outcomes = self._read_outcomes(questions)
        except StoreUnavailable:
            self._state.doubt()
            outcomes = [Unavailable() for _ in questions]
        except Exception as error:  # noqa: BLE001 - every promise must be settled, and nothing of the fault be shown
            # Nothing of the batch is durable. One bad question must not take its neighbours down: each gets its own
            # transaction.
            self._state.doubt_all()
            report_incident(error, f"batch of {len(batch)} on dataset {self._record.id}")
            if len(batch) > 1:
                for waiting in batch:
                    self._answer([waiting])
                return
            outcomes = [Unavailable()]
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.settle(outcome)

    def _transact(self, questions: list[Question]) -> list[Outcome]:
        self._telemetry.batched(len(questions))
        head, batch, outcomes = self._commit_at_once(questions) or self._commit_locked(questions)
        self._guard.vouch(head)
        reach("witnessed")
        self._proposer.note(head, questions)
        if not batch.is_empty:
            self._exchange.committed(self._record, head, batch.entries, batch.fresh)
        return outcomes

    def _commit_at_once(self, questions: list[Question]) -> tuple[Head, Batch, list[Outcome]] | None:
        """In one journey and without waiting for the lock; None when it has to be done the long way."""
        proposed = self._proposer.propose(questions)
        if proposed is None:
            return None
        try:
            with proposed as proposal, self._state.trial():
                batch = self._batch(proposal)
                outcomes = batch.answer_all(questions)
                if not batch.is_empty:
                    self._commit(proposal)
        except Outdated:
            self._proposer.refused()
            return None
        return proposal.head, batch, outcomes

    def _commit_locked(self, questions: list[Question]) -> tuple[Head, Batch, list[Outcome]]:
        asked = [question.asked for question in questions]
        with self._guard.transaction(lock=True, asked=asked) as transaction:
            reach("lock-held")
            self._state.catch_up(transaction)
            reach("budgets-read")
            batch = self._batch(transaction)
            outcomes = batch.answer_all(questions)
            if not batch.is_empty:
                self._commit(transaction)
        return transaction.head, batch, outcomes

    def _batch(self, transaction: Transaction | Proposal) -> Batch:
        return Batch(
            transaction=transaction,
            state=self._state,
            entropy=self._entropy,
            limit_floor_units=self._record.limit_floor_units,
        )

    def _commit(self, transaction: Transaction | Proposal) -> None:
        reach("before-commit")
        transaction.commit()
        self._telemetry.committed("questions")
        reach("acknowledged")

    def _read_outcomes(self, questions: list[Question]) -> list[Outcome]:
        """After an unclear COMMIT: what the keys say, read under the lock that the lost transaction held to its end."""
        for _ in range(_COMMIT_READS_MAX):
            try:
                asked = [question.asked for question in questions]
                with self._guard.transaction(lock=True, asked=asked) as transaction:
                    known = transaction.known.answers
                self._guard.vouch(transaction.head)
            except StoreUnavailable:
                continue
            except WorkflowError as refusal:
                return [refusal for _ in questions]
            return [_as_stored(question, known.get(question.address)) for question in questions]
        return [Unavailable() for _ in questions]

    def _act(self, act: Act[Result]) -> Result:
        try:
            with self._guard.transaction(lock=True) as transaction:
                self._state.catch_up(transaction)
                result = act(transaction, self._state)
                transaction.commit()
                self._state.data_version = transaction.head.data_version
                self._telemetry.committed("act")
            self._guard.vouch(transaction.head)
            self._exchange.committed(self._record, transaction.head, (), ())
        except WorkflowError:
            raise
        except (CommitUnclear, StoreUnavailable) as fault:
            self._state.doubt_all()
            if isinstance(fault, CommitUnclear):
                self._telemetry.commit_unclear()
            raise Unavailable from fault
        except BaseException:
            self._state.doubt_all()
            raise
        return result

    def _read(self, reading: Act[Result]) -> Result:
        try:
            with self._guard.transaction(lock=False) as transaction:
                self._state.catch_up(transaction)
                return reading(transaction, self._state)
        except StoreUnavailable as fault:
            self._state.doubt()
            raise Unavailable from fault


def _as_stored(question: Question, known: AnswerRecord | None) -> Outcome:
    if known is None:
        return Unavailable()
    if known.request_hash != question.request_hash:
        return KeyConflict()
    return stored_answer(known, question.plan.grid_log2)
