"""The refusals of the fake service, in the words and with the statuses of the real one."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Refused", "document_of", "invalid", "not_found", "not_in_fake", "quoted", "role_required"]

_QUOTED_MAX = 60
_TITLES: Mapping[str, tuple[int, str]] = {
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
        """`status` is needed for a slug that the fake does not use by itself; `errors` are pairs of field and text."""
        known_status, title = _TITLES.get(slug, (500, detail or "The request was refused."))
        self.status = known_status if status is None else status
        self.slug, self.title, self.detail = slug, title, detail or title
        self.errors, self.headers = tuple(errors), dict(headers or {})
        super().__init__(self.detail)


def invalid(field: str, message: str) -> Refused:
    """A query or parameter that is refused, with 422, naming the field."""
    return Refused("invalid-request", f"{field}: {message}", errors=[(field, message)])


def not_found() -> Refused:
    """No such thing, or not this analyst's to see."""
    return Refused("not-found")


def role_required(roles: str) -> Refused:
    """A route that is not for analysts; `roles` as the detail says them."""
    return Refused("role-required", f"This request needs a key with the role {roles}.")


def not_in_fake(what: str) -> Refused:
    """A thing that the real service does and the fake does not, with 501."""
    return Refused("not-in-fake", what)


def document_of(refusal: Refused, request_id: str) -> dict[str, Any]:
    """The problem document (RFC 9457); `errors` is present where fields are named."""
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


def quoted(value: object) -> str:
    """A sent value as messages show it: ASCII, and short."""
    text = ascii(value)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}..."
