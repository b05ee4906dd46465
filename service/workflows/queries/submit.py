"""Submission of queries: compiled, admitted by public cost, and handed to the dataset's writer."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from service.accounting.statements import largest_countable_norm
from service.failpoints import reach
from service.query.canonical import request_hash
from service.query.cost import total_cost
from service.query.language import Query, Sigma
from service.query.plan import CountIndividuals, KeptPlans, Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import EventsTable
from service.workflows.admission.admission import Admission
from service.workflows.model.errors import DatasetArchived, InvalidRequest, NotWaiting
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import Principal
from service.workflows.queries.stored_answers import RefusedQuery, StoredAnswers
from service.workflows.writer.registry import DatasetRegistry
from service.workflows.writer.submission import PendingAnswer, QueryRequest, Submission

UNCLIPPED_ROWS_MAX: Final = 64
"""Up to so many rows an individual, the natural bound is the default clip."""


class QuerySubmitter:
    """Submits queries to the writers."""

    def __init__(self, *, registry: DatasetRegistry, admission: Admission, clock: Callable[[], datetime]) -> None:
        self._registry, self._admission, self._clock = registry, admission, clock
        self._stored_answers = StoredAnswers(registry.guard, admission)
        self._plans = KeptPlans(compiled)

    def close(self) -> None:
        """Accept no new queries. The writers must be closed after this."""
        if self._admission.scheduler is not None:
            self._admission.scheduler.close()
        self._stored_answers.close()

    def submit(self, principal: Principal, record: DatasetRecord, key: str, query: Query) -> PendingAnswer:
        """Queue a query. Raises Busy; all other errors fail the promise.

        A query that would be refused is first looked up under its key.
        """
        try:
            request = self._request(principal, record, key, query)
            self._submit([request], record)
        except (InvalidRequest, DatasetArchived) as refusal:
            refused = RefusedQuery(refusal, principal, record, key, query)
            self._stored_answers.look_up(record, [refused])
            return refused
        return request

    def submit_all(
        self, principal: Principal, record: DatasetRecord, queries: Sequence[tuple[str, Query]]
    ) -> list[PendingAnswer]:
        """Queue several queries as one unit. Raises InvalidRequest or Busy for the unit."""
        promises: list[QueryRequest | RefusedQuery] = []
        for key, query in queries:
            try:
                promises.append(self._request(principal, record, key, query))
            except (InvalidRequest, DatasetArchived) as refusal:
                promises.append(RefusedQuery(refusal, principal, record, key, query))
        requests = [each for each in promises if isinstance(each, QueryRequest)]
        refused = [each for each in promises if isinstance(each, RefusedQuery)]
        if requests:
            self._submit(requests, record)
        if refused:
            self._stored_answers.look_up(record, refused)
        return list(promises)

    def cancel(self, principal: Principal, record: DatasetRecord, key: str) -> None:
        """Cancel the query that waits for its slots under a key, and those of its batch: they are one unit.

        Raises NotWaiting, and always does without slots, where queries begin as they come.
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
        return QueryRequest(
            analyst=principal,
            key=key,
            request_hash=request_hash(plan.canonical, reuse=plan.reuse),
            plan=plan,
            accepted_at=self._clock(),
            version=record.version,
        )

    def _submit(self, requests: Sequence[QueryRequest], record: DatasetRecord) -> None:
        writer = self._registry.writer(record)
        costs = [self._admission.cost_of(request.plan, record) for request in requests]
        submission = Submission(requests, costs[0] if len(costs) == 1 else total_cost(costs), writer)
        reach("queueing")
        submission.ticket = self._admission.admit(requests[0].analyst.id, submission.cost, submission, writer)
        if self._admission.scheduler is None:  # else the schedule hands it to the writer when its slots come
            writer.submit(submission)


def compiled(query: Query, record: DatasetRecord) -> Plan:
    """The plan of a query. Raises InvalidRequest, DatasetArchived."""
    if record.is_archived:
        raise DatasetArchived
    try:
        plan = compile_query(query, record.schema, capacity=record.capacity, budget_units=record.budget_units)
        refuse_unclipped(plan, query, record)
    except QueryProblem as problem:
        raise InvalidRequest(*problem.errors) from problem
    return plan


def refuse_unclipped(plan: Plan, query: Query, record: DatasetRecord) -> None:
    """Raise QueryProblem where the natural bound would stand in for a clip and is too large to be meant.

    Answers from before this rule stay valid: a plan is compiled without it where it is verified or rebuilt.
    """
    table = record.schema.tables[plan.table]
    if not isinstance(table, EventsTable) or all(isinstance(item, CountIndividuals) for item in plan.items):
        return
    if (plan.rows_kept or table.rows_per_individual) <= UNCLIPPED_ROWS_MAX:
        return
    if query.per_individual is not None and query.per_individual.l2_clip is not None:
        return
    needed = f"is required where an individual may have more than {UNCLIPPED_ROWS_MAX} rows (here"
    suggestion = "for a count, the number of rows of one individual that should count; or give `rows`"
    if isinstance(query.noise, Sigma):
        norm = largest_countable_norm(plan.sigma, record.limit_floor_units)
        suggestion += f"; with this sigma, at most {norm:.6g} to leave out no one"
    raise QueryProblem.of("per_individual.l2_clip", f"{needed} {table.rows_per_individual}): {suggestion}")
