"""The schemas of the OpenAPI document: the query language in named parts.

Pydantic writes out a union in every place where it is used. Here each union of the language becomes a schema with a
name, to which the other schemas refer. So a reader and a generated client meet `Condition` once.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from service.api.models import BurnReason
from service.api.routes.batch import BatchRequest
from service.query import expressions_ast, items, literals_ast, noise_ast, schema
from service.query.language import Query

Schema = dict[str, Any]

_TEMPLATE: Final = "#/components/schemas/{model}"
_PAGE: Final = re.compile(r"\bPage_(\w+?)_(?![A-Za-z])")
_LINE_END: Final = re.compile(r"(?<!\n)\n(?!\n)")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NOTES: Final = frozenset({"title", "description", "default"})
_EXACT_MAX: Final = 2**53

_UNIONS: Final[Mapping[str, tuple[Any, str]]] = {
    "Condition": (expressions_ast.Condition, "A condition on a row, told by its one key: true, false or unknown."),
    "Operand": (expressions_ast.Operand, "A value that is compared or calculated with: of the row, or a literal."),
    "RowValue": (expressions_ast.Row, "A value of the row, told by its one key: a column, or calculated from columns."),
    "Literal": (literals_ast.Value, 'A literal of the column\'s type: `true` is not 1 and `"40"` is not 40.'),
    "SelectItem": (items.AnyItem, "A select item, told by its one key."),
    "Noise": (noise_ast.Noise, "The precision, in one of five ways, or of a tick."),
    "GroupKey": (expressions_ast.GroupKey, "A column to group by: its name, or a bin or a bucket of it."),
    "Table": (schema.Table, "A table: of individuals, or of events."),
    "Column": (schema.Column, "A column of the table of individuals, with its domain."),
    "EventColumn": (schema.DataColumn, "A column of an event table, with its domain."),
}
"""(the union in the code, its description), by the name of its schema."""

_QUERY: Final[Schema] = {"$ref": _TEMPLATE.format(model="Query")}
_QUERY_OR_BURN: Final[Schema] = {"anyOf": [_QUERY, {"$ref": _TEMPLATE.format(model="BurnReason")}]}
_QUERIES: Final[Mapping[tuple[str, str], Schema]] = {
    ("Preview", "canonical"): _QUERY,
    ("ReleaseRow", "query"): _QUERY,
    ("LedgerRow", "query"): _QUERY_OR_BURN,
    ("AuditedRow", "query"): _QUERY_OR_BURN,
    ("Receipt", "asked"): _QUERY_OR_BURN,
}
"""The properties that hold a query in canonical form; in the code their type is any object."""


def reference(name: str) -> Schema:
    """A reference to a schema."""
    return {"$ref": _TEMPLATE.format(model=name)}


def complete(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The schemas by name, with those of bodies that the framework does not read, and everything described."""
    unions = {name: {"description": text, **_written_out(name)} for name, (_, text) in _UNIONS.items()}
    found = {**schemas, **_read_by_routes(), **unions}
    for (name, member), query in _QUERIES.items():
        properties = found[name]["properties"]
        properties[member] = query | {"description": properties[member]["description"]}
    found = tidy({name: _folded(each, but=name) for name, each in found.items()})
    for name, each in found.items():
        each["title"] = name
    return dict(sorted(found.items()))


def tidy(part: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A part of the document with plain names for pages and whole bounds, without line ends and made-up titles."""
    named = json.loads(_PAGE.sub(r"\1Page", json.dumps(part)))
    for each in nested(named):
        if isinstance(each.get("title"), str):
            del each["title"]
        if isinstance(each.get("description"), str):
            each["description"] = _LINE_END.sub(" ", each["description"])
        if each.get("default") == "" and each.get("minLength", 0) > 0:
            del each["default"]  # stands for a member that is left out
        for bound in _BOUNDS:
            if isinstance(each.get(bound), float) and each[bound].is_integer() and abs(each[bound]) < _EXACT_MAX:
                each[bound] = int(each[bound])
    return named


def nested(part: Any) -> Iterator[Schema]:  # noqa: ANN401 - any JSON
    """Every schema within a part of the document.

    Names of properties and values of examples are not taken for schemas.
    """
    if isinstance(part, list):
        for each in part:
            yield from nested(each)
    elif isinstance(part, dict):
        yield part
        for key, each in part.items():
            if key in {"properties", "patternProperties"}:
                for member in each.values():
                    yield from nested(member)
            elif key not in {"example", "examples", "default", "enum", "const", "required"}:
                yield from nested(each)


def _read_by_routes() -> dict[str, Schema]:
    """The schemas of bodies that routes read by themselves, and of queries that are sent back."""
    models = [(model, "validation") for model in (Query, BatchRequest, BurnReason)]
    _, found = models_json_schema(models, by_alias=True, ref_template=_TEMPLATE)  # type: ignore[arg-type]
    schemas: dict[str, Schema] = found["$defs"]
    return schemas


@cache
def _written_out(name: str) -> Schema:
    """A union as pydantic writes it out."""
    written = TypeAdapter(_UNIONS[name][0]).json_schema(by_alias=True, ref_template=_TEMPLATE)
    written.pop("$defs", None)
    return written


def _folded(part: Any, *, but: str = "") -> Any:  # noqa: ANN401 - JSON in, JSON out
    """The schema with a reference in place of each written out union, except the union `but`, which is defined here."""
    if isinstance(part, list):
        return [_folded(each) for each in part]
    if not isinstance(part, dict):
        return part
    plain = {key: each for key, each in part.items() if key not in _NOTES}
    found = next((name for name in _UNIONS if name != but and plain == _written_out(name)), None)
    if found is not None:
        return reference(found) | {key: each for key, each in part.items() if key in _NOTES}
    return {key: _folded(each) for key, each in part.items()}
