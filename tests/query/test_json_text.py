"""The one reader of JSON text: what JSON leaves open is refused by field, and the work is bounded by counting."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from service.query.json_text import (
    DEPTH_MAX,
    ERRORS_MAX,
    MEMBERS_MAX,
    PARTS_MAX,
    document_of,
    first_distinct,
    reading_of,
    written,
)
from service.query.problems import QueryProblem


def refused(sent: bytes) -> list[tuple[str, str]]:
    """The fields that a text is refused for, and why."""
    with pytest.raises(QueryProblem) as refusal:
        document_of(sent)
    return [(error.field, error.message) for error in refusal.value.errors]


@pytest.mark.parametrize(
    ("sent", "field", "message"),
    [
        (b'{"role": "auditor", "role": "curator"}', "body", "has the key 'role' twice"),
        (b'{"guarantee": {"rho": "1", "rho": "50"}}', "guarantee", "has the key 'rho' twice"),
        (b'{"a": [{}, {"b": 1, "b": 1}]}', "a[1]", "has the key 'b' twice"),
        (b'{"name": "a\\u0000b"}', "name", "has the character U+0000"),
        (b'{"a": [["x", "\\u0000"]]}', "a[0][1]", "has the character U+0000"),
        (b'{"a": {"b\\u0000": 1}}', "a", "has the character U+0000, in the name of a member"),
        (b'"\\u0000"', "body", "has the character U+0000"),
        (b'{"a": "\\uDabc"}', "a", "has half of a surrogate pair, which is not text"),
        (b'{"\\udfff": 1}', "body", "has half of a surrogate pair, which is not text, in the name of a member"),
        (b'{"a": NaN}', "a", "is NaN, which is not JSON"),
        (b'{"a": 1e999}', "a", "is a number too large for a double"),
        (b"\xef\xbb\xbf{}", "body", "begins with a byte order mark, which JSON in UTF-8 has not"),
        ('{"a": 1}'.encode("utf-16"), "body", "is not UTF-8 at byte 0"),
        (b'{"a": "\xed\xa0\x80"}', "body", "is not UTF-8 at byte 7"),
        (b'{"a": "\x00"}', "body", "is not JSON at line 1, column 8: Invalid control character at"),
        (b"", "body", "is not JSON at line 1, column 1: Expecting value"),
    ],
)
def test_what_json_leaves_open_is_refused_by_field(sent: bytes, field: str, message: str) -> None:
    """Wherever it stands in the document."""
    assert refused(sent) == [(field, message)]


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\u0000"', r'"\\ud800"', '"é"', '{"a": [0, -0]}', "0.1"])
def test_text_that_only_looks_odd_is_read(text: str) -> None:
    """A surrogate pair in full is text, and so is a backslash before a u."""
    assert document_of(text.encode()) == json.loads(text)


def test_one_value_has_one_spelling() -> None:
    """A number of the text that is long enough to be too large makes no difference."""
    for beside in ("1", "1234567890123456", "9007199254740992"):
        value, *_ = document_of(f"[3.0, {beside}]".encode())
        assert (value, type(value)) == (3, int)
    assert document_of(b"[9007199254740992]") == [2.0**53]


def nested(opening: str, closing: str, deep: int) -> bytes:
    """The text of `deep` objects or lists within each other."""
    return (opening * deep + "1" + closing * deep).encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_bounded(opening: str, closing: str) -> None:
    """On the bytes: the deepest that is allowed is read, and one more is not."""
    document_of(nested(opening, closing, DEPTH_MAX))
    assert refused(nested(opening, closing, DEPTH_MAX + 1)) == [("body", f"is nested more than {DEPTH_MAX} deep")]
    assert reading_of(nested(opening, closing, DEPTH_MAX + 1), depth_max=DEPTH_MAX + 1).document != 1


def test_objects_and_lists_are_counted_before_any_is_made() -> None:
    """Brackets within text count for nothing."""
    most = b"[" + b",".join([b"[]"] * (PARTS_MAX - 2)) + b',"[[[["]'
    assert len(document_of(most)) == PARTS_MAX - 1
    too_many = most.replace(b'"[[[["', b"{},{}")
    assert refused(too_many) == [("body", f"has more than {PARTS_MAX} objects and lists")]


def test_members_are_counted_before_an_object_is_made() -> None:
    """An object has at most as many as a table may have columns, wherever it stands."""
    members = {f"c{number}": 1 for number in range(MEMBERS_MAX)}
    assert document_of(json.dumps(members).encode()) == members
    assert refused(json.dumps({"a": [members | {"more": 1}]}).encode()) == [
        ("a[0]", f"has more than {MEMBERS_MAX} members")
    ]


def test_no_more_errors_are_looked_at_than_are_kept() -> None:
    """However many follow; a repeat counts for nothing."""
    looked_at = 0

    def errors() -> Iterator[int]:
        nonlocal looked_at
        for number in range(1000):
            looked_at += 1
            yield number // 2

    assert first_distinct(errors()) == list(range(ERRORS_MAX))
    assert looked_at == 2 * ERRORS_MAX - 1
    assert len(refused(b"[" + b",".join([b"NaN"] * 1000) + b"]")) == ERRORS_MAX


def test_no_more_refusals_are_made_than_are_told() -> None:
    """One object stands for all the others."""
    document = reading_of(b"[" + b",".join([b"NaN"] * 1000) + b"]").document
    assert len({id(each) for each in document}) == ERRORS_MAX + 1
    twice = reading_of(b"[" + b",".join([b'{"a":1,"a":1}'] * 1000) + b"]").document
    assert len({id(each) for each in twice}) == ERRORS_MAX + 1


def test_a_part_is_refused_alone() -> None:
    """A marked value in one part of a document leaves the others alone."""
    reading = reading_of(b'[{"a": 1, "a": 2}, {"b": 1}]')
    reading.check(reading.document[1])
    with pytest.raises(QueryProblem, match="has the key 'a' twice"):
        reading.check(reading.document[0])


@pytest.mark.parametrize(
    ("path", "field"),
    [((), "body"), (("where", "and", 0), "where.and[0]"), (("a b", 1), "['a b'][1]"), ((0, "x"), "[0].x")],
)
def test_a_path_is_written_as_in_a_script(path: tuple[Any, ...], field: str) -> None:
    """A name that is not plain is quoted."""
    assert written(path) == field
