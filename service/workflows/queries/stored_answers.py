"""Stored answers for requests that would be refused today, although their keys were answered before.

A later version may refuse a query that an earlier one has answered; the answer stays under its key. It is looked up
only when a request is about to be refused, on threads of this module, and reads only public columns: the key's
answer and the head. Its time depends on nothing else.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from service.query.canonical import canonical_bytes, request_hash, table_of
from service.query.cost import PublicCost
from service.query.language import Query
from service.query.schema import Schema
from service.workflows.admission.admission import Admission
from service.workflows.admission.schedule import Reservation
from service.workflows.model.analyst_views import StoredAnswer
from service.workflows.model.errors import Busy, InvalidRequest, Unavailable, WorkflowError
from service.workflows.model.rows import Address, AnswerRecord, Asked, DatasetRecord
from service.workflows.ports.store import StoreUnavailable
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.batch import stored_answer
from service.workflows.writer.submission import AdmittedUnit, PendingAnswer

THREADS: Final = 2
ANSWER_BYTES: Final = 2**16
"""The public cost of a lookup, in bytes read for each key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedQuery:
    """A request that is about to be refused with `refusal`. `request_hash` is not called in the caller's thread."""

    address: Address
    request_hash: Callable[[], bytes]
    refusal: WorkflowError


class StoredAnswers:
    """Looks up the keys of requests before they are refused. Thread-safe."""

    def __init__(self, guard_of: Callable[[DatasetRecord], RollbackGuard], admission: Admission) -> None:
        """The threads start when first needed."""
        self._guard_of, self._admission = guard_of, admission
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="stored-answers")

    def close(self) -> None:
        """Accept no new request; lookups under way end by themselves."""
        self._threads.shutdown(wait=False)

    def stored_or_refused(self, record: DatasetRecord, requests: Sequence[RefusedQuery]) -> list[PendingAnswer]:
        """For each request, all of one principal, the promise of the answer stored under its key for the same request.

        Without one the promise fails with the refusal. The lookup is admitted as one unit: the promises fail with Busy
        when there is no room for it, and with Unavailable or Fenced when the database cannot tell. Returns at once.
        """
        cost = self._admission.read_cost(ANSWER_BYTES * len(requests))
        look = _Lookup(requests, cost, self._guard_of(record), self._threads)
        try:
            look.ticket = self._admission.admit(requests[0].address[0], cost, look)
        except Busy as busy:
            look.settle([busy for _ in requests])
        except InvalidRequest:  # no room for it, ever
            look.settle([each.refusal for each in requests])
        else:
            if not look.ticket.is_scheduled:
                look.begin()
        return look.answers


class _Lookup(AdmittedUnit):
    """One transaction in which the keys of refused requests are looked up."""

    __slots__ = ("_guard", "_requests", "_threads")

    def __init__(
        self, requests: Sequence[RefusedQuery], cost: PublicCost, guard: RollbackGuard, threads: Executor
    ) -> None:
        super().__init__([0 for _ in requests], cost)
        self._requests, self._guard, self._threads = requests, guard, threads

    def begin(self, reservation: Reservation | None = None) -> None:  # noqa: ARG002 - the schedule's port
        """Start the lookup on a thread."""
        try:
            self._threads.submit(self._run)
        except RuntimeError:  # closed meanwhile
            self.settle([Unavailable() for _ in self.answers])

    def _run(self) -> None:
        if not self.start():
            return
        outcomes: Sequence[StoredAnswer | Exception]
        try:
            outcomes = self._outcomes()
        except StoreUnavailable:
            outcomes = [Unavailable() for _ in self.answers]
        except Exception as error:  # noqa: BLE001 - the caller that waits on the promises gets it
            outcomes = [error for _ in self.answers]
        self.settle(outcomes)

    def _outcomes(self) -> list[StoredAnswer | Exception]:
        """Each key's answer to the same request, once it is witnessed; otherwise the refusal."""
        asked = [Asked(address=each.address, query_hash=None) for each in self._requests]
        with self._guard.transaction(lock=False, asked=asked) as transaction:
            known, head = transaction.known.answers, transaction.head
        answers = [_answer(each, known.get(each.address)) for each in self._requests]
        found = [answer.sequence for answer in answers if answer is not None]
        if found:
            self._guard.confirm_recorded_up_to(max(found), head)  # they may have been withheld when they were committed
        return [answer or each.refusal for answer, each in zip(answers, self._requests, strict=True)]


def _answer(request: RefusedQuery, known: AnswerRecord | None) -> StoredAnswer | None:
    if known is None or known.request_hash != request.request_hash():
        return None
    return stored_answer(known)


def hash_of(query: Query, schema: Schema) -> bytes:
    """The request hash of a query for which there is no plan."""
    return request_hash(canonical_bytes(query, table=table_of(query, schema)), reuse=query.reuse)
