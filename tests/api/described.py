"""Reading the OpenAPI document in tests: its operations, its schemas, and values held against them."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs
import orjson

from tests.api.world import build_world

Document = dict[str, Any]


@cache
def _made() -> Document:
    world = build_world()
    try:
        return world.app.openapi()
    finally:
        world.replica.close()


def the_document() -> Document:
    """The document, which a test may change."""
    return deepcopy(_made())


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation with its method and path."""

    method: str
    path: str
    body: Document

    @property
    def name(self) -> str:
        """Its id."""
        return str(self.body["operationId"])


def operations(document: Document) -> list[Operation]:
    """Every operation."""
    return [
        Operation(method=method.upper(), path=path, body=body)
        for path, methods in document["paths"].items()
        for method, body in methods.items()
    ]


def resolved(document: Document, part: Document) -> Document:
    """A part of the document, or the component that it refers to."""
    while "$ref" in part and not part["$ref"].startswith("#/components/schemas/"):
        found: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def faults(document: Document, schema: Document, value: Any) -> list[str]:
    """The faults of a value under a schema of the document; formats count."""
    whole = {"allOf": [schema], "components": {"schemas": document["components"]["schemas"]}}
    errors = _validator(orjson.dumps(whole)).iter_errors(value)
    return [f"{list(error.instance_path)}: {error.message[:300]}" for error in errors]


@cache
def _validator(schema: bytes) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(orjson.loads(schema), validate_formats=True)


def references(value: Any) -> set[str]:
    """Every reference within a part of the document."""
    if isinstance(value, dict):
        found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def reached(document: Document, part: Any) -> set[str]:
    """The names of all schemas that a part leads to, through responses and other schemas."""
    seen: set[str] = set()
    new = references(part)
    while new:
        seen |= new
        new = set().union(*(references(_at(document, each)) for each in new)) - seen
    return {each.rpartition("/")[2] for each in seen if each.startswith("#/components/schemas/")}


def _at(document: Document, reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def undescribed(document: Document) -> Iterator[str]:
    """The places that lack a description: everything that has a name."""
    yield from (f"tag {each['name']}" for each in document["tags"] if not each.get("description"))
    components = document["components"]
    for kind in ("schemas", "responses", "headers", "securitySchemes"):
        yield from (f"{kind}.{name}" for name, each in components[kind].items() if not each.get("description"))
    yield from (f"examples.{name}" for name, each in components["examples"].items() if not each.get("summary"))
    for name, schema in components["schemas"].items():
        members = schema.get("properties", {}).items()
        yield from (f"{name}.{member}" for member, each in members if not each.get("description"))
    for operation in operations(document):
        yield from (f"{operation.name}.{word}" for word in ("summary", "description") if not operation.body.get(word))
        for parameter in operation.body.get("parameters", ()):
            if not parameter.get("description"):
                yield f"{operation.name}({parameter['name']})"
        for status, response in operation.body["responses"].items():
            if not resolved(document, response).get("description"):
                yield f"{operation.name} -> {status}"
