"""The HTTP of the fake service, which reads addresses and parameters and words refusals as the real service does."""

import json
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx

from sparing._rooms.fake import QueryProblem, did_you_mean, no_dataset

ENTRIES_MAX = 256
LIMIT_DEFAULT, LIMIT_MAX = 100, 1000
_KEY = re.compile(r"[\x20-\x7e]{1,128}")
TITLES: Mapping[str, tuple[int, str]] = {
    "idempotency-key-missing": (400, "A query needs an Idempotency-Key; retry with the same one."),
    "idempotency-key-invalid": (400, "An Idempotency-Key is 1 to 128 printable ASCII characters."),
    "unauthorized": (401, "A valid API key is required."),
    "allowance-exceeded": (403, "The query's worst-case cost exceeds what is left of your allowance."),
    "role-required": (403, "Your key does not have the role that this request needs."),
    "not-found": (404, "There is nothing here."),
    "method-not-allowed": (405, "This path does not take that method."),
    "query-not-waiting": (409, "No query waits under this Idempotency-Key: it has begun, or there is none."),
    "idempotency-key-reused": (
        422,
        "This Idempotency-Key was used for another request; use a new key for a new request.",
    ),
    "invalid-request": (422, "The request is not valid."),
    "not-in-fake": (501, "FakeService does not do this."),
}


class Refused(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self,
        slug: str,
        detail: str | None = None,
        *,
        status: int | None = None,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """A refusal. A slug that is not in TITLES needs a `status`; `errors` are pairs of field and text."""
        known_status, title = TITLES.get(slug, (500, detail or "The request was refused."))
        self.status = known_status if status is None else status
        self.slug, self.title, self.detail = slug, title, detail or title
        self.errors, self.headers = tuple(errors), dict(headers or {})
        super().__init__(self.detail)


def invalid(field: str, message: str) -> Refused:
    """The refusal (422) of a parameter or a body, which names the field."""
    return Refused("invalid-request", f"{field}: {message}", errors=[(field, message)])


def invalid_query(problem: QueryProblem) -> Refused:
    """The refusal (422) of a query, which names the fields."""
    return Refused("invalid-request", str(problem), errors=[(error.field, error.message) for error in problem.errors])


def unknown_dataset(name: str, names: Collection[str]) -> Refused:
    """The refusal (404) for a dataset that is not among `names`, those that the analyst may query."""
    return Refused("not-found", no_dataset(name, names))


def document_of(refusal: Refused, request_id: str) -> dict[str, Any]:
    """The problem document (RFC 9457) of a refusal; it has `errors` if the refusal names fields."""
    body: dict[str, Any] = {
        "type": f"urn:sparing:problem:{refusal.slug}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
        "request_id": request_id,
    }
    if refusal.errors:
        body["errors"] = [{"field": field, "message": message} for field, message in refusal.errors]
    return body


ANALYSTS = (
    "GET /datasets",
    "GET /datasets/{dataset}",
    "GET /datasets/{dataset}/monitor",
    "POST /datasets/{dataset}/queries",
    "DELETE /datasets/{dataset}/queries",
    "POST /datasets/{dataset}/queries/preview",
    "POST /datasets/{dataset}/queries/batch",
    "GET /queries",
    "GET /queries/{query}",
    "GET /allowances",
)
_PARAMETERS: Mapping[str, tuple[str, ...]] = {"GET /datasets": ("cursor", "limit"), "GET /queries": ("cursor", "limit")}
_CURATOR, _ALL = "curator", "curator, for all datasets"
OTHERS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "POST /datasets",
            "DELETE /datasets/{dataset}",
            "POST /files/preview",
            "GET /principals",
            "POST /principals",
            "PATCH /principals/{principal}",
            "DELETE /principals/{principal}",
            "POST /principals/{principal}/key",
        ),
        _ALL,
    ),
    **dict.fromkeys(
        (
            "PATCH /datasets/{dataset}",
            "POST /datasets/{dataset}/tables/{table}/rows",
            "GET /datasets/{dataset}/individual",
            "PATCH /datasets/{dataset}/individual",
            "DELETE /datasets/{dataset}/individual",
            "POST /datasets/{dataset}/individuals/keys",
            "POST /datasets/{dataset}/epochs",
            "POST /datasets/{dataset}/archive",
            "POST /datasets/{dataset}/forecast",
            "PUT /datasets/{dataset}/alarm",
            "POST /datasets/{dataset}/verification",
            *(
                f"GET /datasets/{{dataset}}/{part}"
                for part in (
                    *("budgets", "budgets/summary", "budgets/history", "budgets/export", "alarm", "verification"),
                    *("backup", "events", "receipts", "record", "divergence", "erasure-requests", "acts", "analysts"),
                )
            ),
        ),
        _CURATOR,
    ),
    "GET /datasets/{dataset}/ledger": "auditor or curator",
    **dict.fromkeys(
        (
            "GET /me/budgets",
            "GET /me/receipts",
            "POST /me/budgets/{dataset}/lower",
            "POST /me/budgets/{dataset}/resume",
            "GET /me/record/{dataset}",
            "GET /me/erasure/{dataset}",
            "POST /me/erasure/{dataset}",
        ),
        "individual",
    ),
}
"""Routes that are not for analysts, with the roles that they need, in the service's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A requested route: its name in ANALYSTS or OTHERS, and the names in its address."""

    name: str
    parts: Mapping[str, str]


def route_of(request: httpx.Request) -> Route:
    """The route of a request. Raises Refused for an unknown address, and for a method that an address does not take."""
    raw = request.url.raw_path.decode("ascii").partition("?")[0]
    words = [unquote(part) for part in raw.removeprefix("/v1/").split("/")]
    found: dict[str, Route] = {}
    for name in (*OTHERS, *ANALYSTS):
        method, _, template = name.partition(" /")
        parts = _matched(template.split("/"), words) if raw.startswith("/v1/") else None
        if parts is not None and (method not in found or len(parts) < len(found[method].parts)):
            found[method] = Route(name=name, parts=parts)
    if not found:
        raise Refused("not-found")
    if request.method not in found:
        raise Refused("method-not-allowed", headers={"Allow": ", ".join(sorted(found))})
    return found[request.method]


def refuse_other_parameters(route: Route, request: httpx.Request) -> None:
    """Raise Refused for a parameter that the route does not read, and for a parameter that is given twice."""
    known = _PARAMETERS.get(route.name, ())
    names = [name for name, _ in request.url.params.multi_items()]
    for name in names:
        if name not in known:
            raise invalid(name, f"is no parameter of this address{did_you_mean(name, known)}")
        if names.count(name) > 1:
            raise invalid(name, "is in the address more than once")


def _matched(template: list[str], words: list[str]) -> dict[str, str] | None:
    """The names in an address, or None if the address does not fit the template."""
    if len(template) != len(words):
        return None
    pairs = list(zip(template, words, strict=True))
    if any(expected != word for expected, word in pairs if not expected.startswith("{")):
        return None
    return {expected.strip("{}"): word for expected, word in pairs if expected.startswith("{")}


def entries_in(content: bytes) -> Sequence[Mapping[str, Any]]:
    """The entries of a batch. Raises Refused, which names the field, for a malformed batch."""
    try:
        body = json.loads(content)
    except ValueError:
        raise invalid("body", "must be a JSON document in UTF-8") from None
    match body:
        case {"queries": list(entries), **others} if not others:
            if not 1 <= len(entries) <= ENTRIES_MAX:
                raise invalid("queries", f"must hold 1 to {ENTRIES_MAX} entries")
        case {"queries": list(), **others}:
            raise invalid(str(next(iter(others))), "is not a member of a batch")
        case _:
            raise invalid("queries", "must be a list of entries")
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or "query" not in entry or entry.keys() - {"query", "idempotency_key"}:
            raise invalid(f"queries[{place}]", "must have a query, an idempotency_key and nothing else")
    return entries


def checked_key(key: object) -> str:
    """The idempotency key. Raises Refused if it is missing, or is not 1 to 128 printable ASCII characters."""
    if key is None or (isinstance(key, str) and not key.strip()):
        raise Refused("idempotency-key-missing")
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise Refused("idempotency-key-invalid")
    return key


def limit_of(text: str | None) -> int:
    """The most rows of a page, by the parameter `limit`. Raises Refused for a wrong limit."""
    if text is None:
        return LIMIT_DEFAULT
    if re.fullmatch(r"-?[0-9]{1,9}", text) is None:
        raise invalid("limit", "must be an integer in the digits 0 to 9")
    if not 1 <= int(text) <= LIMIT_MAX:
        bound = "greater than or equal to 1" if int(text) < 1 else f"less than or equal to {LIMIT_MAX}"
        raise invalid("limit", f"input should be {bound}")
    return int(text)


def cursor_at(name: str) -> str:
    """The cursor of the page that follows the dataset `name`, as the service writes it."""
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_in(cursor: str | None) -> str:
    """The name of the dataset before a page; empty for the first page. Raises Refused for a wrong cursor."""
    if cursor is None:
        return ""
    with suppress(ValueError):
        name = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", name) is not None:
            return name
    raise invalid("cursor", "not a cursor of this listing")


def cursor_of(text: str | None) -> int | None:
    """The number of releases that are left to list; None for the first page. Raises Refused for a wrong cursor."""
    if text is None:
        return None
    if re.fullmatch(r"p[0-9]{1,9}", text) is None:
        raise invalid("cursor", "not a cursor of this listing")
    return int(text[1:])
