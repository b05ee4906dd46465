"""All exceptions of this library.

    SparingError
    ├── APIConnectionError        no response: refused, cut off, name not found
    │   └── APITimeoutError       no response in time
    ├── APIReplyError             a response that is not this service's: wrong address, or versions too far apart
    └── APIStatusError            the service refused; carries its problem document
        ├── InvalidRequestError   400, 413, 415, 422: the request must be changed; `errors` name the fields
        ├── AuthenticationError   401: no key, or not a valid one
        ├── PermissionDeniedError 403: this key has another role, or its allowance is used up
        ├── NotFoundError         404, 410: unknown, or hidden from this key (never told apart), archived, or cancelled
        ├── ConflictError         409: the name is taken, or the same request is still running
        ├── RateLimitedError      429: too many requests, of this key or of all; try again later, with the same key
        └── UnavailableError      502, 503, 504, 507: try again later, with the same idempotency key

Every other status, such as 500, is a plain `APIStatusError`. A query whose outcome is unknown is not lost:
`error.idempotency_key` is the key with which it was sent. Asking the same query with this key returns the stored
answer, and charges only once.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from sparing._constants import ERRORS_MAX, TEXT_LENGTH_MAX
from sparing._printable import printable, printable_lines
from sparing._strict_json import json_document


class SparingError(Exception):
    """The base of all exceptions of this library. Its text has no control characters for a terminal."""

    idempotency_key: str | None = None  # the idempotency key of the request, for asking again
    retry_after_s: float | None = None  # how long the service asked to wait, in seconds

    def __init__(self, message: str = "") -> None:
        """An error with a text, in which unprintable characters except newlines are escaped."""
        super().__init__(printable_lines(message))


class APIConnectionError(SparingError):
    """The service could not be reached, or the connection broke before the response."""


class APITimeoutError(APIConnectionError):
    """The response did not come in time. The request may have been carried out."""


class APIReplyError(SparingError):
    """The response has a form that this version of the client cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One error in a request: the field (such as `where.and[0].ge[1]`), and a message."""

    field: str
    message: str


class APIStatusError(SparingError):
    """A refusal by the service, with its reason.

    Each text is on one line, without control characters for a terminal.

    Attributes: `status` (the HTTP status), `type` (a stable URN), `title` and `detail` (for people), `request_id`
    (quote it to the operator), `errors` (one `Wrong` per field, on 422), and `rows` for an upload with wrong rows. The
    mapping `rows` has `wrong`, the number of wrong rows; `groups` of these rows by column and message; and
    `over_limit`, the individuals with too many rows.
    """

    by_status: ClassVar[dict[int, type["APIStatusError"]]] = {}

    def __init__(self, *, status: int, body: Mapping[str, Any], request_id: str | None = None) -> None:
        """Read the problem document `body`; texts that it lacks are empty."""
        self.status = status
        self.type = _text(body.get("type", "about:blank"))
        self.title = _text(body.get("title", f"HTTP {status}"))
        self.detail = _text(body.get("detail", self.title))
        self.request_id = _text(body.get("request_id", request_id or "")) or None
        errors, rows = body.get("errors"), body.get("rows")
        listed = errors[:ERRORS_MAX] if isinstance(errors, list | tuple) else ()
        self.errors = tuple(_wrong(item) for item in listed if isinstance(item, Mapping))
        self.rows = rows if isinstance(rows, dict) else None
        super().__init__(self._message())

    @property
    def slug(self) -> str:
        """The last part of `type`, such as `name-taken`."""
        return self.type.rpartition(":")[2]

    def __reduce__(self) -> tuple[object, ...]:
        """The parts from which a pickled error is restored, such as by a pool of processes."""
        return _restored, (type(self), *self.args), self.__dict__

    def _message(self) -> str:
        # The service's detail usually names the first few already.
        unsaid = (item for item in self.errors if item.message not in self.detail)
        where = "".join(f"\n  {item.field}: {item.message}" for item in unsaid)
        quote = f" (request {self.request_id})" if self.request_id is not None else ""
        wrong = "" if self.rows is None else f"\n  {_text(self.rows.get('wrong'))} rows are wrong in all"
        return f"{self.status} {self.detail}{quote}{where}{wrong}"


class InvalidRequestError(APIStatusError):
    """The request is not valid and will never be; `errors` name the fields."""


class AuthenticationError(APIStatusError):
    """No API key, or not a valid one. Set SPARING_API_KEY or pass `api_key`."""


class PermissionDeniedError(APIStatusError):
    """The request needs a key of another role, or costs more than what is left of the key's allowance."""


class NotFoundError(APIStatusError):
    """The resource does not exist, is hidden from this key, or is archived, or the query was cancelled."""


class ConflictError(APIStatusError):
    """The name is taken, or a request with the same idempotency key is still running."""


class RateLimitedError(APIStatusError):
    """Too many requests, with this key or with all keys."""


class UnavailableError(APIStatusError):
    """The service cannot answer now."""


APIStatusError.by_status.update(
    {
        **dict.fromkeys((400, 413, 415, 422), InvalidRequestError),
        401: AuthenticationError,
        403: PermissionDeniedError,
        **dict.fromkeys((404, 410), NotFoundError),
        409: ConflictError,
        429: RateLimitedError,
        **dict.fromkeys((502, 503, 504, 507), UnavailableError),
    }
)


def error_of(status: int, headers: Mapping[str, str], content: bytes) -> APIStatusError:
    """The exception for a reply whose status is not a success."""
    try:
        body = json_document(content)
    except ValueError:
        body = None
    kind = APIStatusError.by_status.get(status, APIStatusError)
    return kind(status=status, body=body if isinstance(body, dict) else {}, request_id=headers.get("X-Request-Id"))


def refusal_of(outcome: object) -> APIStatusError | None:
    """The exception for an outcome of a batch that is a problem document; None for an answer."""
    if not isinstance(outcome, dict) or not isinstance(outcome.get("type"), str):
        return None
    told = outcome.get("status")
    status = told if isinstance(told, int) and 100 <= told <= 599 else 500
    return APIStatusError.by_status.get(status, APIStatusError)(status=status, body=outcome)


def failure_of(error: httpx.RequestError) -> APIConnectionError:
    """The exception for a request that got no response. Its text names the address and no header."""
    url = error.request.url.copy_with(query=None, username=None, password=None)
    if isinstance(error, httpx.TimeoutException):
        return APITimeoutError(f"No reply in time from {url}")
    return APIConnectionError(f"No reply from {url}: {error}")


@contextlib.contextmanager
def misread(what: str) -> Iterator[None]:
    """A context that turns errors from a malformed reply into an APIReplyError; its text begins with `what`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise APIReplyError(f"{what}: {error}") from error


def _restored(kind: type[APIStatusError], message: str) -> APIStatusError:
    """An error with its message but without its attributes, which pickle adds afterwards."""
    return kind.__new__(kind, message)


def _wrong(item: Mapping[str, Any]) -> Wrong:
    return Wrong(field=_text(item.get("field", "")), message=_text(item.get("message", "")))


def _text(told: object) -> str:
    """A text of the service, on one line and cut to TEXT_LENGTH_MAX; empty for a list or an object."""
    if isinstance(told, dict | list):
        return ""
    return printable(str(told)[:TEXT_LENGTH_MAX])
