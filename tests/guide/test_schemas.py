"""Schemas in words: types with their bounds and links, members with what stands for those left out."""

from typing import Any

import pytest

from clients.guide.schemas import Words, left_out, table, types_within

REFERENCE = {"$ref": "#/components/schemas/Table"}
WORDS = Words({"Table": "a.md"})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "boolean"}, "boolean"),
        ({}, "anything"),
        ({"type": "integer", "minimum": 0, "maximum": 2**40}, "integer, at least 0 and at most 1,099,511,627,776"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5e300}, "number, above 0 and at most 1.5e+300"),
        ({"type": "string", "format": "date-time"}, "time"),
        ({"type": "string", "minLength": 1, "maxLength": 63}, "text, 1 to 63 characters"),
        ({"type": "string", "maxLength": 63}, "text, at most 63 characters"),
        (REFERENCE, "[Table](a.md#type-Table)"),
        ({"anyOf": [REFERENCE, {"type": "null"}]}, "[Table](a.md#type-Table) or null"),
        ({"enum": ["a", 1]}, '`"a"` or `1`'),
        ({"const": True}, "`true`"),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2}, "list of null, at least 2 entries"),
        (
            {"type": "array", "items": {"oneOf": [{"type": "null"}, REFERENCE]}},
            "list of (null or [Table](a.md#type-Table))",
        ),
        ({"type": "array", "prefixItems": [{"type": "null"}, REFERENCE]}, "\\[null, [Table](a.md#type-Table)\\]"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "object of null by name"),
        ({"type": "object", "patternProperties": {"^a": REFERENCE}}, "object of [Table](a.md#type-Table) by name"),
        ({"type": "object", "additionalProperties": True}, "object"),
    ],
)
def test_a_type_is_said_in_words(schema: dict[str, Any], said: str) -> None:
    """Each form that the service's document has."""
    assert WORDS.type_of(schema) == said


def test_members_say_what_stands_for_them() -> None:
    """A default, or that the member is needed, or nothing."""
    properties = {"a": {"type": "null", "description": "One."}, "b": {"type": "boolean", "default": False}, "c": {}}

    assert WORDS.members_of({"properties": properties, "required": ["a"]}) == [
        ["`a`", "null", "needed", "One."],
        ["`b`", "boolean", "`false`", ""],
        ["`c`", "anything", "", ""],
    ]
    assert left_out({"default": None}, needed=True) == "needed"


def test_types_follow_the_first_that_leads_to_them() -> None:
    """Each once, also where two lead to each other."""
    schemas: dict[str, Any] = {
        "A": {"x": {"$ref": "#/components/schemas/B"}},
        "B": {"y": [{"$ref": "#/components/schemas/A"}]},
        "C": {},
    }

    assert types_within(schemas, "A") == ["A", "B"]
    assert types_within(schemas, "C", "B") == ["C", "B", "A"]


def test_a_cell_is_one_line_without_borders_of_its_own() -> None:
    """A bar in code stays, as it is no border there."""
    assert table(["a"], [["x\n| `|`"]]) == "| a |\n| --- |\n| x \\| `|` |"
