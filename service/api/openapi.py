"""The OpenAPI document. FastAPI writes it, and this module adds what routes read, answer and refuse by themselves.

The query language comes from `service.api.openapi_schemas`, the problems of every operation by status from
`service.api.openapi_errors`. Each route has an example, a request that works and its response: a line of
`openapi_examples.jsonl`, which `python -m tests.golden` records and compares. Everything else is described where it is
declared: a property beside its field, a parameter beside its type.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI

from service.api.auth import COOKIE
from service.api.models import KEY_PATTERN
from service.api.openapi_errors import OF_EVERY_RESPONSE, refuse
from service.api.openapi_schemas import Schema, complete, tidy
from service.api.responses import JSON

Example = dict[str, Any]
"""An example of a route.

Its members are `route`, `title`, `parameters` by name, `request` of the media type `type`, and the response's `status`,
`headers` and `body`.
"""

EXAMPLES: Final = Path(__file__).with_name("openapi_examples.jsonl")

ABOUT: Final = """\
Every request but the probes carries an API key, `Authorization: Bearer <key>`, or the cookie of a browser's sign-in.

Amounts of rho are decimals as text, exact to the unit of 2^-40. Times are ISO 8601 in UTC.

A query names itself by an `Idempotency-Key`. Sent again with the same key and body, after a broken connection or a \
503, it gets the same bytes and is charged once.

A listing is read page by page: `next` of a page is the `cursor` of the following one, and null at the end.

A refusal is a problem document (RFC 9457) with a stable `type`, and the id of the request. A path that does not take \
a method answers 405, `method-not-allowed`. After `Retry-After` seconds a 429 or 503 may be retried.
"""
_SIGN_IN: Final[Schema] = {
    "type": "apiKey",
    "in": "cookie",
    "name": COOKIE,
    "description": "The cookie of a browser's sign-in; on loopback its name is `sparing_session`. A request that"
    " changes something also carries the header `X-Sparing-Request`, which no other site can send.",
}
_ROLES: Final[Mapping[str, str]] = {
    "curator": "Curators are entrusted with the data: they register datasets, upload rows, hand out keys, and watch the"
    " budgets.",
    "analyst": "Analysts ask queries and read their own answers. Nothing here depends on data but the noisy numbers.",
    "individual": "Individuals are the people whose data it is: each reads its own account and receipts, pauses, lowers"
    " its limit, asks to be erased.",
    "auditor": "Auditors check the chain of the ledger, and see no number of people.",
    "ops": "Probes of the operator: public codes alone, no key.",
}
_IN_PATHS: Final[Mapping[str, str]] = {
    "dataset": "The name of the dataset.",
    "key": "The key of the individual, as it was uploaded; it may hold anything, a slash too.",
    "principal": "The id of the principal.",
    "query_id": "The id of the answer.",
    "table": "The name of the table.",
}
_HEADERS: Final[Mapping[str, str]] = {
    "Idempotent-Replayed": "`true` where an earlier request has stored these rows.",
    "Public-Cost-Bytes": "The most memory that the query can take, in bytes.",
    "Public-Cost-Ms": "The most time that the query can take, in milliseconds.",
    "Public-Delay-Ms": "How long the slots that the query takes delay the answer, in milliseconds.",
    "Set-Cookie": "The cookie of the sign-in, which no script can read; empty after a sign-out.",
    "X-Query-Id": "The id of the answer.",
}
_HEADERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "append_rows": ("Idempotent-Replayed",),
    "ask": ("Public-Cost-Bytes", "Public-Cost-Ms", "Public-Delay-Ms", "X-Query-Id"),
    "read_release": ("X-Query-Id",),
    "sign_in": ("Set-Cookie",),
    "sign_out": ("Set-Cookie",),
}
"""The headers of an operation's success, beside those of every response."""


def describe(app: FastAPI) -> None:
    """Make `app.openapi` give the whole document."""
    generated = app.openapi

    @cache
    def described() -> dict[str, Any]:
        return _completed(generated())

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to extend the document


def _completed(document: Schema) -> Schema:
    components = document["components"]
    document["info"]["description"] = ABOUT
    document["tags"] = [{"name": role, "description": text} for role, text in _ROLES.items()]
    document["paths"] = tidy(document["paths"])
    components["schemas"] = complete(components["schemas"])
    components["securitySchemes"]["sign_in"] = dict(_SIGN_IN)
    components["headers"] = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.items()
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _complete(operation)
            if success(operation)["description"] == "Successful Response":
                success(operation)["description"] = _told(success(operation), components["schemas"])
            _attach(operation, examples().get(f"{method.upper()} {path}", ()))
    refuse(document)
    return document


def _complete(operation: Schema) -> None:
    """Complete the security, the parameters and the headers of an operation."""
    if "security" in operation:
        operation["security"] = [{"api_key": []}, {"sign_in": []}]
    for parameter in operation.get("parameters", ()):
        parameter["schema"].pop("description", None)
        if parameter["name"] == "Idempotency-Key":
            parameter["schema"] = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": KEY_PATTERN}
        elif parameter["in"] == "path":
            parameter["description"] = _IN_PATHS[parameter["name"]]
    response = success(operation)
    names = (*OF_EVERY_RESPONSE, *_HEADERS_OF.get(operation["operationId"], ()))
    response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    if JSON in response.get("content", {}):
        response["content"] = {JSON: response["content"].pop(JSON), **response["content"]}


def _told(response: Schema, schemas: Mapping[str, Schema]) -> str:
    """The description of a success: the first sentence about its schema."""
    schema = response.get("content", {}).get(JSON, {}).get("schema", {})
    named = schema.get("items", schema)
    found = next((each["$ref"] for each in (named, *named.get("anyOf", ())) if "$ref" in each), None)
    if found is None:
        return "A list." if schema.get("type") == "array" else "Done."
    sentence = re.split(r"(?<=[.])\s", schemas[found.rpartition("/")[2]]["description"])[0]
    return f"A list. {sentence}" if schema.get("type") == "array" else sentence


@cache
def examples() -> dict[str, list[Example]]:
    """The examples by route."""
    found: dict[str, list[Example]] = {}
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        example = json.loads(line)
        found.setdefault(example["route"], []).append(example)
    return found


def _attach(operation: Schema, shown: Sequence[Example]) -> None:
    """Add to an operation its examples: every request, and the first response of success."""
    bodies = operation.get("requestBody", {}).get("content", {})
    for each in shown:
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in each["parameters"]:
                parameter["example"] = each["parameters"][parameter["name"]]
        if isinstance(each["request"], str | dict | list):
            bodies[each["type"]].setdefault("examples", {})[each["title"]] = {"value": each["request"]}
        if each["body"] is not None and each["status"] < HTTPStatus.BAD_REQUEST:
            media_type = each["headers"]["content-type"].partition(";")[0]
            success(operation)["content"][media_type].setdefault("example", each["body"])


def success(operation: Schema) -> Schema:
    """The successful response of an operation."""
    found: Schema = next(each for status, each in operation["responses"].items() if status.startswith("2"))
    return found
