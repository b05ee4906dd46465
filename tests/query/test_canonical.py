"""The canonical form: one query, one sequence of bytes, the same as the library of the scheme writes."""

import enum
import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from service.query.canonical import canonical_bytes, canonical_json, request_hash
from service.query.parse import parse_query
from tests.query.samples import body, queries, query


def canonical(sent: bytes) -> bytes:
    """The canonical form of a body."""
    return canonical_bytes(parse_query(sent))


def test_a_query_that_is_refused_has_its_form() -> None:
    """Its key is looked up all the same: a later schema may refuse what was answered before."""
    twice = canonical(body(query(select=[{"count": {}}, {"count": {}}])))
    assert b'"select":[{"count":{}},{"count":{}}]' in twice
    assert canonical(twice) == twice


def spelled(value: Any, data: st.DataObject) -> str:
    """JSON with the keys in any order, numbers in any spelling and space anywhere."""
    space = data.draw(st.sampled_from(["", " ", "\n\t"]))
    if isinstance(value, dict):
        members = data.draw(st.permutations(list(value.items())))
        return "{" + ",".join(f"{space}{json.dumps(key)}:{spelled(inner, data)}" for key, inner in members) + "}"
    if isinstance(value, list):
        return "[" + f"{space},".join(spelled(inner, data) for inner in value) + space + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return data.draw(st.sampled_from(spellings(value)))
    return json.dumps(value, ensure_ascii=data.draw(st.booleans()))


def spellings(number: float) -> list[str]:
    """Ways to write a number that every reader takes for the same double."""
    ways = [repr(number), f"{number!r}E0" if "e" not in repr(number) else repr(number)]
    if float(number).is_integer() and abs(number) < 2**53:
        ways += [f"{int(number)}", f"{int(number)}.0", f"{int(number)}.000e+0", f"{int(number)}.0E-0"]
    return ways


def test_defaults_are_written_out() -> None:
    """The bytes say everything that was asked, and keep the order of what is ordered."""
    assert canonical(body(query(noise={"sigma": 20.0}))) == (
        b'{"from":null,"group_by":[],"noise":{"sigma":20},"per_individual":{"l2_clip":null},"rule":"skip",'
        b'"select":[{"count":{}}],"version":1,"where":null}'
    )


@given(queries())
def test_the_canonical_form_is_a_query_with_itself_as_canonical_form(asked: dict[str, Any]) -> None:
    """Reading it back changes nothing."""
    once = canonical(body(asked))

    assert canonical(once) == once


@given(queries(), st.data())
def test_spelling_does_not_matter(asked: dict[str, Any], data: st.DataObject) -> None:
    """Key order, space, escapes and the spelling of numbers are not part of the query."""
    assert canonical(spelled(asked, data).encode()) == canonical(body(asked))


@given(queries(), queries())
def test_different_questions_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Equal bytes mean equal models, but for `reuse`."""
    first, second = parse_query(body(one)), parse_query(body(other))

    same = first.model_copy(update={"reuse": True}) == second.model_copy(update={"reuse": True})
    assert same <= (canonical_bytes(first) == canonical_bytes(second))
    if canonical_bytes(first) == canonical_bytes(second):
        assert first.model_dump(exclude={"reuse", "per_individual"}) == second.model_dump(
            exclude={"reuse", "per_individual"}
        )


def test_what_means_different_things_has_different_bytes() -> None:
    """True is not 1, text is not a number, and order is kept as asked."""
    asked = [
        {"eq": [{"col": "a"}, 1]},
        {"eq": [{"col": "a"}, True]},
        {"eq": [{"col": "a"}, "1"]},
        {"in": [{"col": "a"}, [1]]},
        {"in": [{"col": "a"}, [1, 2]]},
        {"in": [{"col": "a"}, [2, 1]]},
    ]

    assert len({canonical(body(query(where=where))) for where in asked}) == len(asked)


def test_asking_for_a_fresh_answer_is_the_same_question() -> None:
    """`reuse` tells how to serve a query, not which it is: a fresh answer can be reused for the next analyst."""
    assert canonical(body(query(reuse=False))) == canonical(body(query(reuse=True)))


def test_a_request_is_its_query_and_its_wish_for_reuse() -> None:
    """The hash that stored replies have: another query or wish is another request."""
    asked = b'{"version":1}'
    assert request_hash(asked, reuse=True) == hashlib.sha256(b"1:" + asked).digest()
    assert request_hash(asked, reuse=False) == hashlib.sha256(b"0:" + asked).digest()


@given(queries())
def test_the_table_that_is_meant_needs_no_plan(asked: dict[str, Any]) -> None:
    """The individuals where none is named, and else the name, whether there is such a table or not."""
    canonical = json.loads(canonical_bytes(parse_query(json.dumps(asked).encode()), table="everyone"))
    assert canonical["from"] == (asked.get("from") or "everyone")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Colour(enum.StrEnum):
    """A string that is not quite one."""

    RED = "red"


@given(DOCUMENTS)
def test_the_bytes_are_those_of_the_scheme(document: Any) -> None:
    """Keys of any script, floats of any size, tuples, text with every escape."""
    try:
        expected = rfc8785.dumps(document)
    except rfc8785.CanonicalizationError as refusal:
        with pytest.raises(type(refusal)):
            canonical_json(document)
    else:
        assert canonical_json(document) == expected


@pytest.mark.parametrize("text", ["\x00\x08\x09\x0a\x0b\x0c\x0d\x1f", '"\\/', "\x7f\x80\u2028", "\U0001f600"])
def test_escapes_are_those_of_the_scheme(text: str) -> None:
    """Short ones, long ones, and none where none is needed."""
    assert canonical_json({text: text}) == rfc8785.dumps({text: text})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, {1: 2}, {"a": b"x"}, object()])
def test_what_has_no_canonical_form_is_refused_as_the_library_refuses_it(value: Any) -> None:
    """One kind of error for every caller."""
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_json(value)


def test_a_kind_of_its_own_is_left_to_the_library() -> None:
    """Nothing is guessed about subclasses."""
    assert canonical_json([Colour.RED]) == rfc8785.dumps([Colour.RED])
