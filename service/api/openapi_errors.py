"""The refusals of each operation in the OpenAPI document: by status, each problem by its type, with an example.

Most problems follow from what an operation takes: a key, names in its path, a body, an idempotency key. `_PARTICULAR`
has all others.
"""

from collections.abc import Mapping
from typing import Any, Final

from service.api.openapi_schemas import Schema, reference
from service.api.problems import MEDIA_TYPE, PROBLEMS

REFUSED: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "Any other refusal (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": reference("Problem")}},
    }
}
METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})


_CLOSED: Final = ("ledger-rollback", "witness-lost", "ledger-damaged")
_WITHOUT_LEDGER: Final = frozenset(
    """
    ask_many cancel create_individuals_keys list_analysts read_alarm read_backup read_budget_history read_dataset
    read_verification set_alarm verify_ledger watch_ledger
    """.split()
)
"""The operations on one dataset that work while it is closed. In a batch each entry is refused on its own."""
_WITH_LEDGER: Final = frozenset({"list_my_budgets", "list_my_receipts", "read_release"})
"""The operations that need the ledger of a dataset which their path does not name."""
_SPOOLED: Final = ("too-many-bytes-spooled", "disk-full")
_PARTICULAR: Final[Mapping[str, tuple[str, ...]]] = {
    "append_rows": ("dataset-archived", "unsupported-media-type", *_SPOOLED),
    "ask": ("allowance-exceeded", "dataset-archived", "query-cancelled", "too-many-parameters-kept"),
    "cancel": ("query-not-waiting",),
    "check_readiness": ("not-ready",),
    "correct_record": ("dataset-archived",),
    "delete_dataset": ("dataset-not-empty",),
    "extend_dataset": ("dataset-archived",),
    "list_my_budgets": ("not-found",),
    "list_my_receipts": ("not-found",),
    "make_forecast": ("dataset-archived",),
    "preview": ("dataset-archived",),
    "preview_file": _SPOOLED,
    "register_dataset": ("dataset-missing", "name-taken"),
    "sign_in": ("not-found",),
}
_ROLES: Final = frozenset({"analyst", "auditor", "curator", "individual"})


def slugs_of(operation: Schema) -> list[str]:
    """The problems that an operation can answer with, by status and then by name."""
    parameters = operation.get("parameters", ())
    places = {each["in"] for each in parameters}
    roles, name, has_body = set(operation["tags"]), operation["operationId"], "requestBody" in operation
    found = {"internal-error", "invalid-request", "uri-too-long", "headers-too-large", *_PARTICULAR.get(name, ())}
    if "security" in operation:
        found |= {"unauthorized", "cross-site-request", "unavailable", "clock-implausible", "draining"}
        found |= {"rate-limited", "too-many-at-once", "too-many-strangers"}
        found |= {"role-required"} if roles != _ROLES else set()
    found |= {"not-found"} if "path" in places else set()
    found |= {"content-too-large", "request-timeout"} if has_body else set()
    if any(each["name"] == "Idempotency-Key" for each in parameters):
        found |= {"idempotency-key-missing", "idempotency-key-invalid"}
        found |= {"idempotency-key-reused"} if has_body else set()
    if _needs_ledger(operation):
        found |= {"busy", *_CLOSED}
    found |= {"busy"} if "analyst" in roles and name != "cancel" else set()  # which waits for no turn
    return sorted(found, key=lambda slug: (PROBLEMS[slug].status, slug))


def _needs_ledger(operation: Schema) -> bool:
    if operation["operationId"] in _WITH_LEDGER:
        return True
    names = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
    return "dataset" in names and operation["operationId"] not in _WITHOUT_LEDGER


def refuse(document: Schema) -> None:
    """Add to each operation its refusals by status, and to the components what the refusals share."""
    components = document["components"]
    responses: dict[str, Schema] = components.setdefault("responses", {})
    used: set[str] = set()
    for methods in document["paths"].values():
        for operation in (methods[method] for method in sorted(METHODS & methods.keys())):
            by_status: dict[int, list[str]] = {}
            for slug in slugs_of(operation):
                by_status.setdefault(PROBLEMS[slug].status, []).append(slug)
                used.add(slug)
            for status, slugs in by_status.items():
                name = ".".join([str(status), *slugs])
                responses[name] = _response(status, slugs)
                operation["responses"][str(status)] = {"$ref": f"#/components/responses/{name}"}
            operation["responses"] = dict(sorted(operation["responses"].items()))  # 2xx, 4xx, 5xx, default
    components["examples"] = {slug: _example(slug) for slug in sorted(used)}
    components["headers"] = {**components.get("headers", {}), **_HEADERS}
    components["schemas"]["Problem"]["properties"]["type"]["pattern"] = "^urn:sparing:problem:[a-z-]+$"


OF_EVERY_RESPONSE: Final = ("X-Request-Id", "Sparing-Reply-To")
"""The headers that any response may have."""

_HEADERS: Final[Mapping[str, Schema]] = {
    "X-Request-Id": {
        "description": "The id of the request: the caller's own, if it sent one, else a new one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
    },
    "Sparing-Reply-To": {
        "description": "The word that the request had in a header of this name; absent without one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
    },
    "Retry-After": {"description": "In so many seconds, retry.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"description": "The scheme of a key.", "schema": {"type": "string", "const": "Bearer"}},
}
_HEADERS_OF: Final[Mapping[int, str]] = {
    401: "WWW-Authenticate",
    429: "Retry-After",
    503: "Retry-After",
    507: "Retry-After",
}


def _response(status: int, slugs: list[str]) -> Schema:
    headers = [*OF_EVERY_RESPONSE, *([_HEADERS_OF[status]] if status in _HEADERS_OF else [])]
    return {
        "description": " ".join(f"`{slug}`: {PROBLEMS[slug].title.removesuffix('.')}." for slug in slugs),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            MEDIA_TYPE: {
                "schema": reference("Problem"),
                "examples": {slug: {"$ref": f"#/components/examples/{slug}"} for slug in slugs},
            }
        },
    }


_DETAILS: Final[Mapping[str, str]] = {
    "invalid-request": "where.and[0].ge[1]: must be a number, as the column is numeric; got '40'",
    "role-required": "This request needs a key with the role curator.",
}
_ERRORS: Final[Mapping[str, Schema]] = {
    "invalid-request": {
        "field": "where.and[0].ge[1]",
        "message": "must be a number, as the column is numeric; got '40'",
    },
    "idempotency-key-reused": {
        "field": "Idempotency-Key",
        "message": "This Idempotency-Key was used for another request; use a new key for a new request.",
    },
}


def _example(slug: str) -> Schema:
    problem = PROBLEMS[slug]
    value = {
        "type": f"urn:sparing:problem:{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": _DETAILS.get(slug, problem.title),
        "request_id": "5f0c9a4e6d1b47f2a3c8e09b7d21f604",
    }
    return {"summary": problem.title, "value": value | ({"errors": [_ERRORS[slug]]} if slug in _ERRORS else {})}
