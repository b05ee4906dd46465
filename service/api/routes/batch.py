"""Many queries in one request, each with its own key, each answered or refused on its own.

The entries are one unit in the schedule: they share their slots and a commit, and have adjacent sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from service.api.auth import current_replica
from service.api.models import KEY_PATTERN
from service.api.places import current_places
from service.api.problems import Problem, Refusal, problem_bytes, problem_of, request_id_of
from service.api.query_requests import admitted, checked_key, wait_for_answer
from service.api.responses import JSON, Answer
from service.incidents import report_incident
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.views import Principal
from service.query.json_text import DEPTH_MAX, Reading, reading_of, written
from service.query.language import Query
from service.query.parse import query_of
from service.query.problems import QueryProblem
from service.query.schema import ClosedModel, doc
from service.workflows.replica import Replica
from service.writer.submission import PendingAnswer, refused

ENTRIES_MAX = 256
_ENVELOPE_DEPTH: Final = 3
"""How many objects and lists enclose a query in a batch."""

BATCH_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {JSON: {"schema": {"$ref": "#/components/schemas/BatchRequest"}}}}
}


class BatchEntry(ClosedModel):
    """One query of a batch, under a key of its own."""

    idempotency_key: Annotated[
        str,
        Field(min_length=1, max_length=128, pattern=KEY_PATTERN),
        doc("The key of this query alone: 1 to 128 printable ASCII characters."),
    ]
    query: Annotated[Query, doc("The query.")]


class BatchRequest(ClosedModel):
    """Many queries, each answered or refused on its own."""

    queries: Annotated[
        list[BatchEntry],
        Field(min_length=1, max_length=ENTRIES_MAX),
        doc("The entries, which are worked on together and answered each on its own."),
    ]


class BatchAnswers(BaseModel):
    """The outcomes in the order of the entries."""

    answers: Annotated[
        list[Answer | Problem], doc("For each entry its answer, or the problem for which it was refused.")
    ]


BATCH_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"model": BatchAnswers}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One query of a batch: its key as sent, and the query, or the error that it is none."""

    key: object
    query: Query | QueryProblem


def parse_batch(body: bytes) -> list[Entry]:
    """The entries of `{"queries": [{"idempotency_key", "query"}, ...]}`.

    Raises InvalidRequest or QueryProblem for the envelope; a bad key or query is refused in its own entry.
    """
    reading = reading_of(body, depth_max=DEPTH_MAX + _ENVELOPE_DEPTH)
    match reading.document:
        case {"queries": list(listed), **others} if not others:
            if not 1 <= len(listed) <= ENTRIES_MAX:
                raise InvalidRequest.of("queries", f"must hold 1 to {ENTRIES_MAX} entries")
            return [_entry(reading, index, each) for index, each in enumerate(listed)]
        case {"queries": list(), **others}:
            raise InvalidRequest.of(written([str(next(iter(others)))]), "is not a member of a batch")
        case document:
            reading.check(document)
            raise InvalidRequest.of("queries", "must be a list of entries")


async def answer_all(request: Request, principal: Principal, dataset: str, entries: Sequence[Entry]) -> bytes:
    """The bytes of `{"answers": [...]}`: for each entry the stored reply, byte for byte, or a problem document.

    All valid entries are one unit: admitted, worked on and committed together. Raises NotFound for a dataset that the
    principal may not see, and InvalidRequest or Busy where the unit as a whole is refused.
    """
    submit = partial(_submit, current_replica(request), principal, dataset, entries)
    pending = await current_places(request).queries.run(principal.id, submit)
    with admitted(request, *pending):
        outcomes = [await _outcome(each, request_id_of(request.scope)) for each in pending]
    return b'{"answers":[' + b",".join(outcomes) + b"]}"


def _submit(replica: Replica, principal: Principal, dataset: str, entries: Sequence[Entry]) -> list[PendingAnswer]:
    """The promise of each entry: the readable ones are submitted together, the others have failed."""
    keyed = [_keyed(entry) for entry in entries]
    readable = [each for each in keyed if isinstance(each, tuple)]
    waiting = iter(replica.analysts.submit_all(principal, dataset, readable))
    return [next(waiting) if isinstance(each, tuple) else each for each in keyed]


def _keyed(entry: Entry) -> tuple[str, Query] | PendingAnswer:
    """The key and the query of an entry, or a promise that has failed."""
    try:
        key = checked_key(entry.key if isinstance(entry.key, str | None) else "\x7f")
    except Refusal as refusal:
        return refused(refusal)
    return refused(entry.query) if isinstance(entry.query, QueryProblem) else (key, entry.query)


async def _outcome(pending: PendingAnswer, request_id: str) -> bytes:
    try:
        return (await wait_for_answer(pending)).body
    except ClientDisconnect:
        raise
    except Exception as error:  # noqa: BLE001 - the same
        problem, _ = problem_of(error, request_id)
        if problem.type.endswith(":internal-error"):
            report_incident(error, f"request_id={request_id}")
        return problem_bytes(problem)


def _entry(reading: Reading, index: int, entry: object) -> Entry:
    match entry:
        case {"query": document, **others} if others.keys() <= {"idempotency_key"}:
            return Entry(key=others.get("idempotency_key"), query=_query(reading, document))
        case _:
            reading.check(reading.document)
            raise InvalidRequest.of(f"queries[{index}]", "must have a query, an idempotency_key and nothing else")


def _query(reading: Reading, document: object) -> Query | QueryProblem:
    try:
        reading.check(document)
        return query_of(document)
    except QueryProblem as problem:
        problem.__traceback__ = None  # it is kept for the reply, and with it would be every document on the way
        return problem
