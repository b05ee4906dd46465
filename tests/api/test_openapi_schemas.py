"""The schemas of the document: the query language in named parts, and descriptions that speak to callers."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.models import KEY_PATTERN
from service.api.openapi_schemas import nested, tidy
from service.api.problems import Refusal
from service.api.query_requests import checked_key
from service.query.language import Query
from service.query.literals_ast import Closed
from tests.api.described import Document, operations, reached, the_document

CODE = re.compile(
    r"\bNone\b|\bRaises\b|\b[A-Z]+(?:_[A-Z]+)+\b|\b[a-z_]+\.py\b|\bmodel_validate\b|`parse_|\bdict\b|\btuple\b"
)
"""Words that speak to readers of the code."""


@pytest.fixture
def document() -> Document:
    """The document as it is made."""
    return the_document()


def texts(part: Any) -> Iterator[str]:
    """Every description and summary of a part."""
    if isinstance(part, dict):
        yield from (each for name, each in part.items() if name in {"description", "summary"} and isinstance(each, str))
    if isinstance(part, dict | list):
        for each in part.values() if isinstance(part, dict) else part:
            yield from texts(each)


class TestWords:
    """The descriptions."""

    def test_descriptions_speak_to_callers(self, document: Document) -> None:
        """In whole sentences, and in no word of the code's own."""
        assert [text for text in texts(document) if CODE.search(text)] == []
        schemas = document["components"]["schemas"].values()
        members = [member for schema in schemas for member in schema.get("properties", {}).values()]
        assert [each["description"] for each in members if not each["description"].endswith(".")] == []


class TestQueries:
    """The query language, which the framework does not read."""

    @pytest.mark.parametrize("place", ["", "/preview", "/batch"])
    def test_a_body_leads_to_the_language(self, document: Document, place: str) -> None:
        """Every part of it has a schema, each of which says what its members are."""
        body = document["paths"][f"/v1/datasets/{{dataset}}/queries{place}"]["post"]["requestBody"]
        parts = set(Query.model_json_schema(by_alias=True)["$defs"]) | {"Query"}
        assert body["required"]
        assert parts <= reached(document, body)
        assert {each.__name__ for each in _subclasses(Closed)} - parts <= {
            "CentredItem",
            "Comparison",
            "CompositeItem",
            "Item",
            "Keyed",
            "NoiseForm",
            "SizeForm",
            "ValueItem",
        }

    def test_a_union_is_written_once(self, document: Document) -> None:
        """And referred to by its name everywhere else."""
        schemas = document["components"]["schemas"]
        union = {"Condition", "Operand", "RowValue", "SelectItem", "Noise", "GroupKey", "Table", "Column"}
        for name in union:
            written = [each for each in nested(schemas) if each.get("oneOf") == schemas[name]["oneOf"]]
            assert len(written) == 1, name

    def test_every_part_is_typed(self, document: Document) -> None:
        """No member of a query may be anything."""
        for name in reached(document, {"$ref": "#/components/schemas/Query"}):
            for member, schema in document["components"]["schemas"][name].get("properties", {}).items():
                assert {"type", "$ref", "anyOf", "oneOf", "const"} & schema.keys(), (name, member)

    @given(key=st.text(st.characters(max_codepoint=255), max_size=130) | st.text(" ~aZ", min_size=125, max_size=130))
    def test_the_key_is_described_as_it_is_checked(self, key: str) -> None:
        """Length and pattern admit the same texts as the service."""
        is_taken = False
        with suppress(Refusal):
            is_taken = checked_key(key) == key
        schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": KEY_PATTERN}
        assert jsonschema_rs.is_valid(schema, key) == is_taken

    def test_the_key_of_a_query_is_required(self, document: Document) -> None:
        """A generated client must make one; of an upload it need not. Both say what a key is."""
        headers = {
            each.name: header
            for each in operations(document)
            for header in each.body.get("parameters", ())
            if header["in"] == "header"
        }
        assert {name: each["required"] for name, each in headers.items()} == {
            "ask": True,
            "cancel": True,
            "append_rows": False,
        }
        for header in headers.values():
            assert header["name"] == "Idempotency-Key"
            assert header["schema"] == {"type": "string", "minLength": 1, "maxLength": 128, "pattern": KEY_PATTERN}


def _subclasses(kind: type[Any]) -> set[type[Any]]:
    return {each for sub in kind.__subclasses__() for each in (sub, *_subclasses(sub))}


def test_a_part_is_made_tidy() -> None:
    """Names of pages, titles, broken lines and bounds; what is an example or the name of a property stays."""
    part = {
        "title": "Cursor",
        "description": "One\nline.\n\nAnother.",
        "properties": {"title": {"title": "Title", "type": "string", "minLength": 1, "default": ""}},
        "items": {"$ref": "#/components/schemas/Page_Row_", "maximum": 1000.0, "minimum": -1e30},
        "example": {"title": "kept", "maximum": 1.0},
    }
    assert tidy(part) == {
        "description": "One line.\n\nAnother.",
        "properties": {"title": {"type": "string", "minLength": 1}},
        "items": {"$ref": "#/components/schemas/RowPage", "maximum": 1000, "minimum": -1e30},
        "example": {"title": "kept", "maximum": 1.0},
    }
