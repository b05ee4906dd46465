"""Schemas of JSON in words: the type of a value, and the members of an object."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_REFERENCE: Final = re.compile(r"#/components/schemas/(\w+)")
_TEXTS: Final = {"date-time": "time", "uuid": "id", "binary": "bytes"}
_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_EXACT_MAX: Final = 1e16


class Words:
    """Descriptions of schemas in words; `pages` has the page of each named type."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    def type_of(self, schema: Schema) -> str:
        """The type of a value, with links to named types."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f"[{name}]({self._pages[name]}#{anchor_of(name)})"
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return " or ".join(map(self.type_of, several))
        if "const" in schema or "enum" in schema:
            return " or ".join(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
        return self._plain(schema)

    def _plain(self, schema: Schema) -> str:
        match schema.get("type"):
            case "array" if "prefixItems" in schema:
                return f"\\[{', '.join(map(self.type_of, schema['prefixItems']))}\\]"
            case "array":
                return f"list of {self._grouped(schema.get('items', {}))}{_size(schema, 'Items', 'entries')}"
            case "object":
                values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")][0]
                return f"object of {self._grouped(values)} by name" if isinstance(values, Mapping) else "object"
            case "string":
                return f"{_TEXTS.get(schema.get('format', ''), 'text')}{_size(schema, 'Length', 'characters')}"
            case "integer" | "number":
                bounds = [f"{words} {_number(schema[key])}" for key, words in _BOUNDS.items() if key in schema]
                return f"{schema['type']}{', ' if bounds else ''}{' and '.join(bounds)}"
            case kind:
                return str(kind or "anything")

    def _grouped(self, schema: Schema) -> str:
        words = self.type_of(schema)
        return f"({words})" if "anyOf" in schema or "oneOf" in schema else words

    def members_of(self, schema: Schema) -> list[list[str]]:
        """A row for each member: its name, its type, its default or that it is needed, and its meaning."""
        needed = schema.get("required", ())
        return [
            [f"`{name}`", self.type_of(each), left_out(each, needed=name in needed), each.get("description", "")]
            for name, each in schema.get("properties", {}).items()
        ]


def left_out(schema: Schema, *, needed: bool) -> str:
    """The value that a left-out member or parameter has, or the word "needed"."""
    if needed:
        return "needed"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def anchor_of(name: str) -> str:
    """The anchor of a type on its page."""
    return f"type-{name}"


def types_within(schemas: Mapping[str, Schema], *names: str) -> list[str]:
    """The names of these types and of all types that they refer to, in the order of first reference."""
    found: list[str] = []

    def follow(wanted: Iterable[str]) -> None:
        for name in wanted:
            if name not in found:
                found.append(name)
                follow(_REFERENCE.findall(json.dumps(schemas[name])))

    follow(names)
    return found


def table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """The text in one line, with every bar escaped outside code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if place % 2 else part.replace("|", "\\|") for place, part in enumerate(parts))


def _size(schema: Schema, unit: str, words: str) -> str:
    least, most = schema.get(f"min{unit}", 0), schema.get(f"max{unit}")
    if most is None:
        return f", at least {least:,} {words}" if least > 1 else ""
    return f", {least:,} to {most:,} {words}" if least else f", at most {most:,} {words}"


def _number(value: float) -> str:
    if isinstance(value, int) and abs(value) < _EXACT_MAX:
        return f"{value:,}"
    return f"{value:g}"
