"""Group commit for one dataset: all waiting queries are answered in one transaction and made durable by one COMMIT.

A batch is tried first on the head that this process has written last, without asking the database (`OptimisticCommit`).
Charges, answers and the assumed head go in one round trip, and the database refuses all of it if another process has
appended meanwhile. In any other case the dataset's row is locked, memory catches up with the entries of other
processes, each query is answered in order, and everything is committed at once. Answers leave only then. An error from
COMMIT is resolved by reading the keys under the lock, never by drawing noise again.

An act is committed in a transaction of its own. A long act has two parts. The long part writes and builds outside the
writer. The short part (`PreparedOperation`) takes the lock, journals, commits and puts in place what was built. In
between, queries are answered and limits lowered, while other uploads and erasures wait for the end of the act.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from service.core.noise import Entropy
from service.failpoints import reach
from service.incidents import report_incident
from service.ledger.model.errors import KeyConflict, Unavailable, WorkflowError
from service.ledger.model.rows import Address, AnswerRecord, DatasetRecord, Head
from service.ledger.ports.store import CommitRejected, CommitUnclear, HeadMoved, StoreUnavailable
from service.ledger.ports.telemetry import Telemetry
from service.ledger.ports.transaction import Appending, ConditionalAppend, LongAct, Transaction
from service.writer.batch import Batch, QueryOutcome, stored_answer
from service.writer.replication.exchange import ReplicaExchange
from service.writer.rollback.guard import RollbackGuard
from service.writer.state import DatasetState, RecordsView
from service.writer.submission import QueryRequest

SEEN_MAX: Final = 4096
CAUTIOUS_BATCHES: Final = 32
"""How many batches take the lock after a refusal, which shows that a process appends or an analyst repeats a query."""
_COMMIT_READS_MAX: Final = 3

Result = TypeVar("Result")
Operation = Callable[[Transaction, DatasetState], Result]


class OptimisticCommit:
    """A writer's knowledge of its head and of answered queries, which decides whether a batch may skip the lock."""

    def __init__(self, guard: RollbackGuard, state: DatasetState) -> None:
        self._guard, self._state = guard, state
        self._head: Head | None = None
        self._seen: OrderedDict[Address | str, None] = OrderedDict()  # keys and query hashes, the latest last
        self._cautious_batches = 0

    def propose(self, requests: Sequence[QueryRequest]) -> AbstractContextManager[ConditionalAppend] | None:
        """A conditional append for a batch that is likely to be accepted; None if the head must be read first."""
        head = self._head
        if self._cautious_batches > 0:
            self._cautious_batches -= 1
            return None
        if head is None or not (self._state.is_at(head) and self._guard.is_confirmed(head)):
            return None
        if not all(map(self._is_new, requests)):
            return None
        return self._guard.conditional_append(head, asked=[request.asked for request in requests])

    def note(self, head: Head, requests: Sequence[QueryRequest]) -> None:
        """Note the head that this replica has just written or read, and the queries answered in it."""
        self._head = head
        for request in requests:
            self._seen[request.address] = self._seen[request.plan.query_hash] = None
        while len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)

    def moved(self, head: Head) -> None:
        """Note the head to which an act of this writer has moved, if the head before was known.

        So the next query is answered in the same way as without the act, and does not show that there was one.
        """
        if self._head is not None:
            self._head = head

    def refused(self) -> None:
        """Note that a conditional append was refused: the next batches take the lock."""
        self._cautious_batches = CAUTIOUS_BATCHES
        self.forget()

    def forget(self) -> None:
        """Have the next batch read the head."""
        self._head = None

    def _is_new(self, request: QueryRequest) -> bool:
        """Tell whether key and query are unknown here.

        False where only the database can judge an allowance or a tick.
        """
        if request.analyst.allowance_units is not None or request.address in self._seen:
            return False
        if request.plan.scale.law.is_free:
            return False
        return not (request.plan.reuse and request.plan.query_hash in self._seen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseVersion:
    """The records in memory, and the head, on which the long part of an act builds."""

    head: Head
    records: RecordsView

    def check(self, state: DatasetState, head: Head) -> None:
        """Raise HeadMoved unless state and locked head still have everything on which the long part has relied."""
        relied_on, now = ((each.fence, each.slots, each.joining_units) for each in (self.head, head))
        if not state.holds(self.records) or relied_on != now:
            raise HeadMoved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedOperation(Generic[Result]):
    """The short part of a long act, to be run in the same transaction."""

    transaction: LongAct
    base: BaseVersion
    act: Callable[[Transaction, DatasetState], Result]

    def __call__(self, transaction: Transaction, state: DatasetState) -> Result:
        """Journal what the long part has written."""
        return self.act(transaction, state)


class Committer:
    """The only code that changes one dataset's state. One caller at a time."""

    def __init__(
        self,
        *,
        record: DatasetRecord,
        state: DatasetState,
        guard: RollbackGuard,
        entropy: Entropy,
        telemetry: Telemetry,
        exchange: ReplicaExchange,
    ) -> None:
        self.state = state
        self.optimistic = OptimisticCommit(guard, state)
        self._record, self._guard = record, guard
        self._entropy, self._telemetry, self._exchange = entropy, telemetry, exchange

    def answer(self, requests: Sequence[QueryRequest]) -> list[QueryOutcome]:
        """An outcome for every query: an answer that is durable and witnessed, or a refusal.

        The outcome of a query that the store rejects even by itself is CommitRejected. That is an incident, and asking
        again does not help.
        """
        try:
            return self._transact(requests)
        except WorkflowError as refusal:
            return [refusal for _ in requests]
        except CommitUnclear:
            self._telemetry.commit_unclear()
            self.state.invalidate()
            return self._read_outcomes(requests)
        except StoreUnavailable:
            self.state.invalidate()
            return [Unavailable() for _ in requests]
        except CommitRejected as rejection:
            self._report(rejection, f"batch of {len(requests)}")
            outcome: QueryOutcome = CommitRejected(rejection.code)  # without the frames, and the values in them
        except Exception as error:  # noqa: BLE001 - every query must have an outcome, that shows nothing of the fault
            self.state.invalidate_all()
            self._report(error, f"batch of {len(requests)}")
            outcome = Unavailable()
        if len(requests) == 1:
            return [outcome]
        # Nothing of the batch is durable. One bad query must not take its neighbours down: each gets its own
        # transaction.
        return [each for request in requests for each in self.answer([request])]

    def _transact(self, requests: Sequence[QueryRequest]) -> list[QueryOutcome]:
        self._telemetry.batched(len(requests))
        head, batch, outcomes = self._commit_at_once(requests) or self._commit_locked(requests)
        self._guard.confirm_recorded(head)
        reach("witnessed")
        self.optimistic.note(head, requests)
        if not batch.is_empty:
            self._exchange.committed(self._record, head, batch.entries)
        return outcomes

    def _commit_at_once(self, requests: Sequence[QueryRequest]) -> tuple[Head, Batch, list[QueryOutcome]] | None:
        """Commit in one round trip, without the lock; None if the batch must be answered under the lock."""
        proposed = self.optimistic.propose(requests)
        if proposed is None:
            return None
        try:
            with proposed as conditional_append:
                return self._appended(conditional_append, requests)
        except HeadMoved:
            self.optimistic.refused()
            return None

    def _commit_locked(self, requests: Sequence[QueryRequest]) -> tuple[Head, Batch, list[QueryOutcome]]:
        with self._guard.transaction(lock=True, asked=[request.asked for request in requests]) as transaction:
            reach("lock-held")
            self.state.catch_up(transaction)
            reach("budgets-read")
            return self._appended(transaction, requests)

    def _appended(
        self, transaction: Appending, requests: Sequence[QueryRequest]
    ) -> tuple[Head, Batch, list[QueryOutcome]]:
        """Answer in the transaction and commit it, unless there is nothing to commit."""
        batch = Batch(transaction=transaction, state=self.state, entropy=self._entropy)
        with self.state.tentative():
            outcomes = batch.answer_all(requests)
            if not batch.is_empty:
                reach("before-commit")
                transaction.commit()
                self._telemetry.committed("questions")
                reach("acknowledged")
        return transaction.head, batch, outcomes

    def _read_outcomes(self, requests: Sequence[QueryRequest]) -> list[QueryOutcome]:
        """Read the answers under the idempotency keys, under the dataset's lock, after an unclear COMMIT."""
        for _ in range(_COMMIT_READS_MAX):
            try:
                asked = [request.asked for request in requests]
                with self._guard.transaction(lock=True, asked=asked) as transaction:
                    known = transaction.known.answers
                self._guard.confirm_recorded(transaction.head)
            except StoreUnavailable:
                continue
            except WorkflowError as refusal:
                return [refusal for _ in requests]
            return [_as_stored(request, known.get(request.address)) for request in requests]
        return [Unavailable() for _ in requests]

    def act(self, act: Operation[Result]) -> Result:
        """Run an act in a locked transaction and commit it; memory changes only after that.

        Raises what the act raises, Unavailable, and HeadMoved when a long act was prepared in vain.
        """
        try:
            with self._transaction_of(act) as transaction:
                result = act(transaction, self.state)
                transaction.commit()
                self.state.acted(transaction.head)
                self._telemetry.committed("act")
            self._guard.confirm_recorded(transaction.head)
            self.optimistic.moved(transaction.head)
            self._exchange.committed(self._record, transaction.head, ())
        except (WorkflowError, HeadMoved):
            raise
        except (CommitUnclear, StoreUnavailable) as fault:
            # Memory is as it was; if the act is durable, the next transaction follows it by the journal.
            if isinstance(fault, CommitUnclear):
                self._telemetry.commit_unclear()
            raise Unavailable from fault
        except CommitRejected as rejection:
            self._report(rejection, "an act")
            raise
        except BaseException:
            self.state.invalidate_all()
            raise
        finally:
            self.state.drop_staged()
        return result

    @contextmanager
    def _transaction_of(self, act: Operation[Result]) -> Iterator[Transaction]:
        """The transaction of a prepared act, now locked, or a new one. Memory has caught up with its head."""
        if isinstance(act, PreparedOperation):
            self._guard.lock(act.transaction)
            self.state.catch_up(act.transaction, reads_records=False)  # it would read what the act has written
            act.base.check(self.state, act.transaction.head)
            yield act.transaction
            return
        with self._guard.transaction(lock=True) as transaction:
            self.state.catch_up(transaction)
            yield transaction

    def _report(self, error: Exception, about: str) -> None:
        code = f" code={error.code}" if isinstance(error, CommitRejected) else ""
        report_incident(error, f"{about} on dataset {self._record.id}{code}", dataset=self._record.name)

    def catch_up(self) -> None:
        """Bring memory to the head of a snapshot. Raises Unavailable, Fenced."""
        try:
            with self._guard.transaction(lock=False) as transaction:
                self.state.catch_up(transaction)
        except StoreUnavailable as fault:
            self.state.invalidate()
            raise Unavailable from fault


def _as_stored(request: QueryRequest, known: AnswerRecord | None) -> QueryOutcome:
    if known is None:
        return Unavailable()
    if known.request_hash != request.request_hash:
        return KeyConflict()
    return stored_answer(known)
