"""Group commit for one dataset: all waiting queries are answered in one transaction and made durable by one COMMIT.

Lock the dataset's row, catch up with entries of other processes, answer each query in order, append all, commit once,
and only then release the answers. While no other process appends, the lock and the catching up are assumed, and the
commit proves the assumption or does nothing (`writer.optimistic`). An error from COMMIT is resolved by reading the keys
under the lock, never by drawing noise again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from service.core.noise import Entropy
from service.failpoints import reach
from service.incidents import report_incident
from service.workflows.model.errors import KeyConflict, Unavailable, WorkflowError
from service.workflows.model.rows import AnswerRecord, DatasetRecord, Head
from service.workflows.ports.store import CommitRejected, CommitUnclear, HeadMoved, StoreUnavailable
from service.workflows.ports.telemetry import Telemetry
from service.workflows.ports.transaction import ConditionalAppend, Transaction
from service.workflows.replication.exchange import ReplicaExchange
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.batch import Batch, Outcome, QueryRequest, stored_answer
from service.workflows.writer.optimistic import OptimisticCommit
from service.workflows.writer.prepared import PreparedOperation
from service.workflows.writer.state import DatasetState

_COMMIT_READS_MAX: Final = 3

Result = TypeVar("Result")
Operation = Callable[[Transaction, DatasetState], Result]


class Committer:
    """Changes one dataset's state. One caller at a time."""

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

    def answer(self, requests: Sequence[QueryRequest]) -> list[Outcome]:
        """An outcome for every query: an answer that is durable and witnessed, or a refusal.

        CommitRejected is the outcome of a query that the store rejects by itself: an incident, to which no retry
        helps.
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
            outcome: Outcome = CommitRejected(rejection.code)  # without the frames, and the values in them
        except Exception as error:  # noqa: BLE001 - every query must have an outcome, that shows nothing of the fault
            self.state.invalidate_all()
            self._report(error, f"batch of {len(requests)}")
            outcome = Unavailable()
        if len(requests) == 1:
            return [outcome]
        # Nothing of the batch is durable. One bad query must not take its neighbours down: each gets its own
        # transaction.
        return [each for request in requests for each in self.answer([request])]

    def _transact(self, requests: Sequence[QueryRequest]) -> list[Outcome]:
        self._telemetry.batched(len(requests))
        head, batch, outcomes = self._commit_at_once(requests) or self._commit_locked(requests)
        self._guard.confirm_recorded(head)
        reach("witnessed")
        self.optimistic.note(head, requests)
        if not batch.is_empty:
            self._exchange.committed(self._record, head, batch.entries)
        return outcomes

    def _commit_at_once(self, requests: Sequence[QueryRequest]) -> tuple[Head, Batch, list[Outcome]] | None:
        """In one round trip, without the lock; None where the batch has to be answered under the lock."""
        proposed = self.optimistic.propose(requests)
        if proposed is None:
            return None
        try:
            with proposed as conditional_append, self.state.tentative():
                batch = self._batch(conditional_append)
                outcomes = batch.answer_all(requests)
                if not batch.is_empty:
                    self._commit(conditional_append)
        except HeadMoved:
            self.optimistic.refused()
            return None
        return conditional_append.head, batch, outcomes

    def _commit_locked(self, requests: Sequence[QueryRequest]) -> tuple[Head, Batch, list[Outcome]]:
        asked = [request.asked for request in requests]
        with self._guard.transaction(lock=True, asked=asked) as transaction:
            reach("lock-held")
            self.state.catch_up(transaction)
            reach("budgets-read")
            batch = self._batch(transaction)
            with self.state.tentative():
                outcomes = batch.answer_all(requests)
                if not batch.is_empty:
                    self._commit(transaction)
        return transaction.head, batch, outcomes

    def _batch(self, transaction: Transaction | ConditionalAppend) -> Batch:
        return Batch(transaction=transaction, state=self.state, entropy=self._entropy)

    def _commit(self, transaction: Transaction | ConditionalAppend) -> None:
        reach("before-commit")
        transaction.commit()
        self._telemetry.committed("questions")
        reach("acknowledged")

    def _read_outcomes(self, requests: Sequence[QueryRequest]) -> list[Outcome]:
        """After an unclear COMMIT: the answers under the idempotency keys, read under the dataset's lock."""
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
        """Run a change in a locked transaction and commit it; only then memory is changed.

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
        """The act's own, locked, or a new one; memory has come to its head."""
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
        report_incident(error, f"{about} on dataset {self._record.id}{code}")

    def catch_up(self) -> None:
        """Bring memory to where a snapshot stands. Raises Unavailable, Fenced."""
        try:
            with self._guard.transaction(lock=False) as transaction:
                self.state.catch_up(transaction)
        except StoreUnavailable as fault:
            self.state.invalidate()
            raise Unavailable from fault


def _as_stored(request: QueryRequest, known: AnswerRecord | None) -> Outcome:
    if known is None:
        return Unavailable()
    if known.request_hash != request.request_hash:
        return KeyConflict()
    return stored_answer(known)
