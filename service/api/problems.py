"""One shape for everything that is not an answer: RFC 9457 problem documents.

`PROBLEMS` lists every kind with its status and title; the OpenAPI document follows it. No text here comes from an
exception that data could have shaped. Workflow errors are written for analysts to read (`service.ledger.model.errors`),
validation errors are about the request, and every other error is answered with `internal_error`.

A validation error says where in the request it lies, in the caller's own words. A location of pydantic's also names the
members of unions that it tried and the validators that it ran, but the caller knows only the document that it sent. So
a location is followed along that document, and its parts that are not in the document are dropped.
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, Final, NamedTuple

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from service.ledger.model.errors import (
    AllowanceExceeded,
    Busy,
    ClockImplausible,
    DatasetArchived,
    DatasetMissing,
    DatasetNotEmpty,
    DiskFull,
    Fenced,
    InvalidRequest,
    InvalidRows,
    KeyConflict,
    LedgerDamaged,
    NameTaken,
    NotFound,
    NotWaiting,
    OverLimit,
    QueryCancelled,
    RateLimited,
    RegistrationChanged,
    RoleRequired,
    TooManyAtOnce,
    TooManyBytesSpooled,
    TooManyParametersKept,
    TooManyStrangers,
    Unavailable,
    UnknownDataset,
    WitnessLost,
    WorkflowError,
)
from service.ledger.ports.shards import ShardLost
from service.ledger.ports.store import CommitUnclear, StoreUnavailable
from service.query.json_text import ERRORS_MAX, first_distinct
from service.query.problems import FieldError, QueryProblem, quoted
from service.query.schema import ClosedModel, doc

MEDIA_TYPE = "application/problem+json"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")

STATUSES: Mapping[type[WorkflowError], int] = {
    InvalidRequest: 422,
    InvalidRows: 422,
    KeyConflict: 422,
    NotFound: 404,
    UnknownDataset: 404,
    NameTaken: 409,
    DatasetMissing: 409,
    NotWaiting: 409,
    QueryCancelled: 410,
    DatasetArchived: 410,
    DatasetNotEmpty: 409,
    RoleRequired: 403,
    AllowanceExceeded: 403,
    RateLimited: 429,
    Busy: 429,
    TooManyAtOnce: 429,
    TooManyStrangers: 429,
    TooManyBytesSpooled: 429,
    TooManyParametersKept: 429,
    DiskFull: 507,
    Unavailable: 503,
    ClockImplausible: 503,
    RegistrationChanged: 503,
    Fenced: 503,
    WitnessLost: 503,
    LedgerDamaged: 503,
}


class ProblemKind(NamedTuple):
    """A kind of problem: its status and title."""

    status: int
    title: str


PROBLEMS: Final[Mapping[str, ProblemKind]] = {
    **{error.slug: ProblemKind(status, error.title) for error, status in STATUSES.items()},
    "malformed-request": ProblemKind(400, "The request is not valid HTTP/1.1."),
    "idempotency-key-missing": ProblemKind(400, "A query needs an Idempotency-Key; retry with the same one."),
    "idempotency-key-invalid": ProblemKind(400, "An Idempotency-Key is 1 to 128 printable ASCII characters."),
    "unauthorized": ProblemKind(401, "A valid API key is required."),
    "cross-site-request": ProblemKind(403, "This request comes from another site."),
    "method-not-allowed": ProblemKind(405, "This path does not take that method."),
    "request-timeout": ProblemKind(408, "The request did not arrive in time."),
    "content-too-large": ProblemKind(413, "The request's body is too large."),
    "uri-too-long": ProblemKind(414, "The request's path and query are too long."),
    "unsupported-media-type": ProblemKind(415, "Send the body as it is, or in gzip."),
    "headers-too-large": ProblemKind(431, "The request's headers are too large."),
    "internal-error": ProblemKind(500, "Something went wrong here; quote the request_id to the operator."),
    "not-implemented": ProblemKind(501, "The service has neither this method nor this transfer coding."),
    "too-many-connections": ProblemKind(503, "The service has no room for another connection; retry later."),
    "draining": ProblemKind(503, "The service is shutting down; retry with the same Idempotency-Key."),
    "not-ready": ProblemKind(503, "Not ready: database-unavailable."),
    "http-version-unsupported": ProblemKind(505, "The service speaks HTTP/1.1."),
}
"""Every kind of problem by its slug, the last part of its type: those of workflows, and those of HTTP itself."""
_BY_BARE_STATUS: Final[Mapping[int, str]] = {
    PROBLEMS[slug].status: slug
    for slug in ("unauthorized", "method-not-allowed", "content-too-large", "uri-too-long", "headers-too-large")
}
"""The problems for which the router and the outer layers state only a status."""


class ProblemField(ClosedModel):
    """One thing wrong with a request: where, and what."""

    field: Annotated[
        str, doc("The place in the request, such as `where.and[0].ge[1]`; `body` is the document as a whole.")
    ]
    message: Annotated[str, doc("The fault, for people to read.")]


class RowsGroup(ClosedModel):
    """The rows of an upload with one fault in one column."""

    column: Annotated[str | None, doc("The column; null where the row as a whole is wrong.")] = None
    message: Annotated[str, doc("The fault, for people to read.")]
    rows: Annotated[int, doc("How many rows have it.")]
    first_rows: Annotated[tuple[int, ...], doc("The numbers of the first of the rows, from 1.")]


class RowsOfProblem(ClosedModel):
    """The wrong rows of an upload in numbers; not complete where the file was given up before its end."""

    wrong: Annotated[int, doc("How many rows are wrong.")]
    is_complete: Annotated[bool, doc("Whether the file was read to its end.")]
    groups: Annotated[tuple[RowsGroup, ...], doc("The wrong rows by column and fault.")]
    over_limit: Annotated[
        OverLimit | None, doc("The individuals with more rows than the schema allows; null for none.")
    ] = None


class Problem(ClosedModel):
    """A problem document (RFC 9457): the shape of every refusal."""

    type: Annotated[str, doc("The kind of problem, stable: `urn:sparing:problem:` and a slug.")]
    title: Annotated[str, doc("The kind of problem, for people to read.")]
    status: Annotated[int, doc("The status of the response.")]
    detail: Annotated[str, doc("The problem in particular, for people to read.")]
    request_id: Annotated[
        str, doc("The id of the request, which the header `X-Request-Id` has too; quote it to the operator.")
    ]
    errors: Annotated[list[ProblemField] | None, doc("The fields that are wrong, at most twenty; on 422 alone.")] = None
    rows: Annotated[RowsOfProblem | None, doc("The wrong rows of an upload in numbers.")] = None


class Refusal(Exception):
    """A refusal by HTTP itself, before any workflow is asked."""

    def __init__(self, slug: str, title: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        """`title` is that of the kind by default. It is also the detail, since there is nothing more to say."""
        self.status, known = PROBLEMS[slug]
        self.slug, self.title, self.headers = slug, title or known, dict(headers or {})
        super().__init__(self.title)


def unauthorized() -> Refusal:
    """The one refusal of a missing, malformed, unknown or revoked key."""
    return Refusal("unauthorized", headers={"WWW-Authenticate": "Bearer"})


def internal_error() -> Refusal:
    """The one answer to every unexpected error. A specific message would be a release that nobody accounts for."""
    return Refusal("internal-error")


def problem_of(error: Exception, request_id: str) -> tuple[Problem, dict[str, str]]:
    """The problem document and the headers for any exception that may reach the edge; an unknown one becomes a 500."""
    match error:
        case Refusal():
            return _problem(error.status, error.slug, error.title, request_id), error.headers
        case QueryProblem():
            return problem_of(InvalidRequest(*error.errors), request_id)
        case RequestValidationError():
            return problem_of(_of_validation(error), request_id)
        case HTTPException():
            return problem_of(_of_router(error), request_id)
        case StoreUnavailable() | CommitUnclear() | ShardLost():
            return problem_of(Unavailable(), request_id)
        case WorkflowError() if type(error) in STATUSES:
            return _of_workflow(error, request_id)
        case _:
            return problem_of(internal_error(), request_id)


def response_of(error: Exception, request_id: str) -> Response:
    """The response for any exception that may reach the edge."""
    problem, headers = problem_of(error, request_id)
    return Response(problem_bytes(problem), status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)


def problem_bytes(problem: Problem) -> bytes:
    """The document as it is sent, without absent members.

    It is ASCII, so that every text of a request can be sent back.
    """
    return json.dumps(problem.model_dump(exclude_none=True)).encode()


def request_id_of(scope: Scope) -> str:
    """The id that the outermost layer gave this request."""
    request_id: str = scope["state"]["request_id"]
    return request_id


REFUSALS: tuple[type[Exception], ...] = (
    Refusal,
    QueryProblem,
    RequestValidationError,
    HTTPException,
    *STATUSES,
    StoreUnavailable,
    CommitUnclear,
)
"""Every family of refusal; everything else is an incident (`service.api.middleware.request_limits`)."""


def exception_handlers() -> dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]]:
    """FastAPI's handler for each family of refusal."""

    async def refuse(request: Request, error: Exception) -> Response:
        return refusal_of(request, error)

    return dict.fromkeys(REFUSALS, refuse)


def refusal_of(request: Request, error: Exception) -> Response:
    """The response to a request that is refused with one of `REFUSALS`."""
    response = response_of(error, request_id_of(request.scope))
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """The methods that the path takes over all routers. The router that refused knows only its own."""
    path = request.scope["path"]
    here = (context for context in iter_route_contexts(request.app.routes) if context.path_regex.match(path))
    return {method for context in here for method in context.methods or ()}


def _problem(
    status: int,
    slug: str,
    title: str,
    request_id: str,
    *,
    detail: str = "",
    errors: Sequence[FieldError] | None = None,
    rows: RowsOfProblem | None = None,
) -> Problem:
    fields = None if errors is None else [ProblemField(field=e.field, message=e.message) for e in errors]
    return Problem(
        type=f"urn:sparing:problem:{slug}",
        title=title,
        status=status,
        detail=detail or title,
        request_id=request_id,
        errors=fields,
        rows=rows,
    )


def _of_workflow(error: WorkflowError, request_id: str) -> tuple[Problem, dict[str, str]]:
    errors: Sequence[FieldError] | None = None
    if isinstance(error, InvalidRequest):
        errors = error.errors[:ERRORS_MAX]
    elif isinstance(error, KeyConflict):
        errors = (FieldError(field="Idempotency-Key", message=error.title),)
    rows = _rows(error) if isinstance(error, InvalidRows) else None
    status, slug, title, detail = STATUSES[type(error)], error.slug, error.title, str(error)
    problem = _problem(status, slug, title, request_id, detail=detail, errors=errors, rows=rows)
    return problem, {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}


def _rows(error: InvalidRows) -> RowsOfProblem:
    counts = error.counts
    return RowsOfProblem(
        wrong=counts.rows_wrong,
        is_complete=counts.is_complete,
        groups=tuple(RowsGroup(**asdict(group)) for group in counts.groups),
        over_limit=error.over_limit,
    )


def _of_validation(error: RequestValidationError) -> WorkflowError:
    # An id in the path that is no id names nothing; it is not a field that the caller could mend.
    if any(problem["loc"][0] == "path" for problem in error.errors()):
        return NotFound()
    return InvalidRequest(*field_errors(error.errors(), error.body))


def _of_router(error: HTTPException) -> Exception:
    if error.status_code == HTTPStatus.NOT_FOUND:
        return NotFound()
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # FastAPI says this only of a body that it cannot read as JSON: not UTF-8, or nested too deeply.
        return InvalidRequest.of("body", "must be a JSON document in UTF-8")
    if error.status_code not in _BY_BARE_STATUS:
        return internal_error()
    return Refusal(_BY_BARE_STATUS[error.status_code], headers=error.headers)


_CONFIRM: Final = (
    "marks a domain that was proposed from the data; domains are public and must not be read off the data: state it"
    " from elsewhere, or accept it, and remove this member"
)


def body_errors(error: ValidationError, document: object) -> list[FieldError]:
    """Word the errors of a document without its request. Models stop at the first errors, so that there are few."""
    told = error.errors(include_url=False, include_input=False)
    return field_errors([{**each, "loc": ("body", *each["loc"])} for each in told], document)


def field_errors(errors: Iterable[Mapping[str, Any]], body: object) -> list[FieldError]:
    """The first twenty of pydantic's `errors` about a request whose JSON document was `body`, without repeats.

    A field is written as `tables.people.columns.age.lower` or `queries[3].query`; the document as a whole is `body`.
    """
    return first_distinct(FieldError(field=_field(error, body), message=_message(error)) for error in errors)


def _field(error: Mapping[str, Any], body: object) -> str:
    source, *location = error["loc"]
    if source != "body":
        return str(location[0]) if location else str(source)
    if error["type"] == "json_invalid":
        return "body"
    return "".join(_steps(location, body, missing=error["type"] == "missing")).removeprefix(".") or "body"


def _steps(location: Sequence[str | int], document: object, *, missing: bool) -> Iterator[str]:
    for depth, part in enumerate(location):
        last = depth == len(location) - 1
        match document:
            case dict() if part in document or (missing and last):
                yield f".{part}" if _PLAIN.fullmatch(str(part)) else f"[{quoted(part)}]"
                document = document.get(part)
            case list() if isinstance(part, int) and part < len(document):
                yield f"[{part}]"
                document = document[part]
            case _:
                pass  # a union's member or a validator's name: in the model, not in the document


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "must be a JSON document in UTF-8"
    if error["type"] == "extra_forbidden":
        return _CONFIRM if error["loc"][-1] == "confirm" else "is no field that is known here"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
