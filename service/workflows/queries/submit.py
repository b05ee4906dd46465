"""Submission of queries: compiled, admitted by public cost, and handed to the dataset's writer."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from service.failpoints import reach
from service.ledger.model.errors import DatasetArchived, InvalidRequest, NotWaiting, TooManyParametersKept
from service.ledger.model.parameters import hashes_in, with_numbers
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import Principal
from service.query.asking import answerable
from service.query.canonical import request_hash
from service.query.cost import total_cost
from service.query.language import Query
from service.query.parameters_ast import PARAMETERS_MAX
from service.query.plan import KeptPlans, Plan
from service.query.problems import FieldError, QueryProblem
from service.reads.ledger import snapshot
from service.workflows.queries.parameter_storage import ParameterStorage
from service.workflows.queries.stored_answers import RefusedQuery, StoredAnswers
from service.writer.admission.admission import Admission
from service.writer.registry import DatasetRegistry
from service.writer.submission import PendingAnswer, QueryRequest, Submission

REFUSED: Final = (InvalidRequest, DatasetArchived, TooManyParametersKept)
"""The errors before which a query's key is looked up for a stored answer."""
UNIT_PARAMETERS_MAX: Final = 4 * PARAMETERS_MAX
"""How many parameters the queries of a unit may name by hash together; these are read before the unit has a cost."""


class QuerySubmitter:
    """Submits queries to the writers."""

    def __init__(
        self,
        *,
        registry: DatasetRegistry,
        admission: Admission,
        clock: Callable[[], datetime],
        parameter_storage: ParameterStorage,
    ) -> None:
        self._parameter_storage = parameter_storage
        self._registry, self._admission, self._clock = registry, admission, clock
        self._stored_answers = StoredAnswers(registry.guard, admission)
        self._plans = KeptPlans(compiled)

    def close(self) -> None:
        """Accept no new queries. The writers must be closed after this."""
        if self._admission.scheduler is not None:
            self._admission.scheduler.close()
        self._stored_answers.close()

    def has_plan(self, query: Query) -> bool:
        """Tell whether the plan of this very query is kept."""
        return query in self._plans

    def submit(self, principal: Principal, record: DatasetRecord, key: str, query: Query) -> PendingAnswer:
        """Queue a query. Raises Busy, and Unavailable or Fenced where kept parameters cannot be read.

        All other errors come through the returned answer. A refused query still gets the answer stored under its key.
        """
        reach("validated")
        if query.hashed:
            query = self.numbered(principal, record, query)
        try:
            request = self._request(principal, record, key, query)
            self._submit([request], record)
        except REFUSED as refusal:
            refused = RefusedQuery(refusal, principal, record, key, query)
            self._stored_answers.look_up(record, [refused])
            return refused
        return request

    def submit_all(
        self, principal: Principal, record: DatasetRecord, queries: Sequence[tuple[str, Query]]
    ) -> list[PendingAnswer]:
        """Queue several queries as one unit. Raises InvalidRequest for the unit, and what `submit` raises."""
        promises: list[QueryRequest | RefusedQuery] = []
        for key, query in self._numbered_all(principal, record, queries):
            try:
                promises.append(self._request(principal, record, key, query))
            except REFUSED as refusal:
                promises.append(RefusedQuery(refusal, principal, record, key, query))
            except BaseException:
                _cancel(promises)
                raise
        requests = [each for each in promises if isinstance(each, QueryRequest)]
        refused = [each for each in promises if isinstance(each, RefusedQuery)]
        if requests:
            self._submit(requests, record)
        if refused:
            self._stored_answers.look_up(record, refused)
        return list(promises)

    def _numbered_all(
        self, principal: Principal, record: DatasetRecord, queries: Sequence[tuple[str, Query]]
    ) -> list[tuple[str, Query]]:
        """The queries of a unit, each as `numbered` gives it.

        Raises InvalidRequest where their numbers are too many together.
        """
        found: list[tuple[str, Query]] = []
        left = UNIT_PARAMETERS_MAX
        for key, asked in queries:
            query = self.numbered(principal, record, asked)
            left -= sum(len(each.numbers) // 8 for each in query.hashed)
            if left < 0:
                said = f"name more than {UNIT_PARAMETERS_MAX} parameters by their hashes; send them in parts"
                raise InvalidRequest(FieldError(field="queries", message=said))
            found.append((key, query))
        return found

    def numbered(self, principal: Principal, record: DatasetRecord, query: Query) -> Query:
        """The query with its numbers, where it named some by their hash that this analyst has sent before.

        If the query names any by hash, the database is read: not for the event loop. A query with an unknown hash stays
        without these numbers, and has no plan. Raises Unavailable, Fenced.
        """
        if not hashes_in(query):
            return query
        with snapshot(self._registry.guard(record)) as transaction:
            return with_numbers(query, partial(transaction.parameters, principal.id))

    def cancel(self, principal: Principal, record: DatasetRecord, key: str) -> None:
        """Cancel the query that waits for its slots under a key, and the queries submitted with it as one unit.

        Raises NotWaiting where no query waits under the key. Without slots none ever waits: queries begin as they come.
        """
        scheduler, writer = self._admission.scheduler, self._registry.writer(record)
        address = principal.id, key
        job = scheduler and scheduler.withdraw(
            lambda job: isinstance(job, Submission) and job.is_asked(address, writer)
        )
        if not isinstance(job, Submission) or not job.withdraw():
            raise NotWaiting

    def _request(self, principal: Principal, record: DatasetRecord, key: str, query: Query) -> QueryRequest:
        plan = self._plans.of(query, record)
        request = QueryRequest(
            analyst=principal,
            key=key,
            request_hash=request_hash(plan.canonical, reuse=plan.reuse),
            plan=plan,
            accepted_at=self._clock(),
            version=record.version,
        )
        if plan.parameters:
            self._parameter_storage.admit(request, record)
        return request

    def _submit(self, requests: Sequence[QueryRequest], record: DatasetRecord) -> None:
        try:
            writer = self._registry.writer(record)
            costs = [self._admission.cost_of(request.plan, record, writer.shards.count) for request in requests]
            submission = Submission(requests, costs[0] if len(costs) == 1 else total_cost(costs), writer)
            reach("queueing")
            submission.ticket = self._admission.admit(requests[0].analyst.id, submission.cost, submission, writer)
            if self._admission.scheduler is None:  # else the schedule hands it to the writer when its slots come
                writer.submit(submission)
        except BaseException:
            _cancel(requests)
            raise


def _cancel(promises: Sequence[PendingAnswer]) -> None:
    """Cancel promises that no caller has received, so that the callbacks that wait for their end are called."""
    for promise in promises:
        promise.cancel()


def compiled(query: Query, record: DatasetRecord) -> Plan:
    """The plan of a query. Raises InvalidRequest, DatasetArchived."""
    if record.is_archived:
        raise DatasetArchived
    try:
        return answerable(
            query,
            record.schema,
            capacity=record.capacity,
            budget_units=record.budget_units,
            floor_units=record.floor_units,
            pricing=record.accounting,
            monitor=record.monitor,
        )
    except QueryProblem as problem:
        raise InvalidRequest(*problem.errors) from problem
