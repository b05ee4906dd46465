"""Stored answers for queries that would be refused today, although their keys were answered before.

A dataset may be archived, or registered anew with narrower bounds, after a query was answered; the answer stays under
its key. The key is looked up only when a query is about to be refused, on threads of this module. The lookup reads only
public columns, the key's answer and the head, so that its time depends on nothing else.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import Busy, InvalidRequest, Unavailable, WorkflowError
from service.ledger.model.rows import Address, AnswerRecord, Asked, DatasetRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import StoreUnavailable
from service.query.canonical import canonical_bytes, request_hash
from service.query.cost import PublicCost
from service.query.item_precision import by_item
from service.query.language import Query
from service.query.problems import QueryProblem
from service.writer.admission.admission import Admission
from service.writer.admission.schedule import Reservation
from service.writer.batch import stored_answer
from service.writer.rollback.guard import RollbackGuard
from service.writer.submission import AdmittedUnit, PendingAnswer

THREADS: Final = 2
ANSWER_BYTES: Final = 2**16
"""The public cost of a lookup, in bytes read for each key."""


class RefusedQuery(PendingAnswer):
    """A query that is about to be refused with `refusal`, and that has no plan."""

    def __init__(
        self, refusal: WorkflowError, analyst: Principal, record: DatasetRecord, key: str, query: Query
    ) -> None:
        super().__init__()
        self.refusal, self.query, self.schema = refusal, query, record.schema
        self.address: Address = analyst.id, key

    def request_hash(self) -> bytes:
        """The hash of the request, as a `QueryRequest` has it.

        Working it out takes time: call it on a thread of the lookup.
        """
        canonical = canonical_bytes(_meant(self.query), table=self.schema.individuals_name)
        return request_hash(canonical, reuse=self.query.may_reuse)


def _meant(query: Query) -> Query:
    """The query as a plan has it, or as it was asked if it can have no plan."""
    try:
        return by_item(query)
    except QueryProblem:
        return query


class StoredAnswers:
    """Looks up the keys of requests before they are refused. Thread-safe."""

    def __init__(self, guard_of: Callable[[DatasetRecord], RollbackGuard], admission: Admission) -> None:
        """The threads start when first needed."""
        self._guard_of, self._admission = guard_of, admission
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="stored-answers")

    def close(self) -> None:
        """Accept no new request; lookups under way end by themselves."""
        self._threads.shutdown(wait=False)

    def look_up(self, record: DatasetRecord, requests: Sequence[RefusedQuery]) -> None:
        """Settle each promise with the answer stored under its key for the same request. Returns at once.

        Without a stored answer a promise fails with its refusal. The requests, all of one principal, are admitted as
        one unit. The promises fail with Busy when there is no room for the lookup, and with Unavailable or Fenced when
        the database cannot tell.
        """
        cost = self._admission.read_cost(ANSWER_BYTES * len(requests))
        look = _Lookup(requests, cost, self._guard_of(record), self._threads)
        try:
            look.ticket = self._admission.admit(requests[0].address[0], cost, look)
        except Busy as busy:
            look.fail(busy)
        except InvalidRequest:  # no room for it, ever
            look.settle([each.refusal for each in requests])
        else:
            if not look.ticket.is_scheduled:
                look.begin()


class _Lookup(AdmittedUnit[RefusedQuery]):
    """One transaction in which the keys of refused queries are looked up."""

    __slots__ = ("_guard", "_threads")

    def __init__(
        self, requests: Sequence[RefusedQuery], cost: PublicCost, guard: RollbackGuard, threads: Executor
    ) -> None:
        super().__init__(requests, cost)
        self._guard, self._threads = guard, threads

    def begin(self, reservation: Reservation | None = None) -> None:  # noqa: ARG002 - the schedule's port
        """Start the lookup on a thread."""
        try:
            self._threads.submit(self._run)
        except RuntimeError:  # closed meanwhile
            self.fail(Unavailable())

    def _run(self) -> None:
        if not self.start():
            return
        try:
            self.settle(self._outcomes())
        except StoreUnavailable:
            self.fail(Unavailable())
        except Exception as error:  # noqa: BLE001 - the caller that waits on the promises gets it
            self.fail(error)

    def _outcomes(self) -> list[StoredAnswer | Exception]:
        """For each request its stored answer, once this is witnessed, or else the refusal."""
        asked = [Asked(address=each.address, query_hash=None) for each in self.requests]
        with self._guard.transaction(lock=False, asked=asked) as transaction:
            known, head = transaction.known.answers, transaction.head
        answers = [_answer(each, known.get(each.address)) for each in self.requests]
        found = [answer.sequence for answer in answers if answer is not None]
        if found:
            self._guard.confirm_recorded_up_to(max(found), head)  # they may have been withheld when they were committed
        return [answer or each.refusal for answer, each in zip(answers, self.requests, strict=True)]


def _answer(request: RefusedQuery, known: AnswerRecord | None) -> StoredAnswer | None:
    if known is None or known.request_hash != request.request_hash():
        return None
    return stored_answer(known)
