"""Bytes to a Query, and the refusal of everything else, with the field named."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from service.query.expressions_ast import In
from service.query.language import GROUP_BY_MAX, Query
from service.query.noise_ast import SELECT_MAX
from service.query.parse import BODY_BYTES_MAX, KEPT_BODY_BYTES_MAX, kept_query, parse_query, query_of
from service.query.problems import FieldError, QueryProblem
from tests.query.samples import body, queries, query

AGE = {"col": "age"}


def errors(sent: bytes) -> list[FieldError]:
    """The errors of a refused body."""
    with pytest.raises(QueryProblem) as refusal:
        parse_query(sent)
    return list(refusal.value.errors)


def fields(sent: bytes) -> list[str]:
    """The fields that a refused body is refused for."""
    return [error.field for error in errors(sent)]


def test_a_text_is_read_once_for_each_asker() -> None:
    """Another reads it again, so that no duration tells that the first has asked it."""
    asked = body(query(where={"eq": [AGE, 1]}))
    kept = kept_query(asked, "ann")
    assert kept == parse_query(asked)
    assert kept_query(bytes(asked), "ann") is kept
    assert kept_query(asked, "bob") is not kept
    assert kept_query(asked + b" ", "ann") is not kept


def test_values_that_compare_equal_are_told_apart() -> None:
    """One is True to Python, and no number of the language."""
    kept = [kept_query(body(query(where={"eq": [AGE, value]})), "ann") for value in (1, True)]
    assert [type(each.model_dump()["where"]["eq"][1]) for each in kept] == [int, bool]


def test_neither_a_long_text_nor_a_refused_one_is_kept() -> None:
    """Memory is bounded by texts that are short."""
    long = body(query()) + b" " * KEPT_BODY_BYTES_MAX
    assert kept_query(long, "ann") is not kept_query(long, "ann")
    for _ in "ab":
        with pytest.raises(QueryProblem):
            kept_query(b"{}", "ann")


def test_a_query_is_read_with_its_defaults() -> None:
    """A missing part has the documented default."""
    parsed = parse_query(body(query()))

    assert (parsed.from_, parsed.where, parsed.group_by, parsed.per_individual) == (None, None, (), None)
    assert (parsed.rule, parsed.reuse) == ("skip", True)


@given(queries())
def test_every_valid_query_is_read(asked: dict[str, Any]) -> None:
    """And reading it through the standard reader gives the same models."""
    assert parse_query(body(asked)) == Query.model_validate(asked)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 2}, ["version"]),
        ({"version": True}, ["version"]),
        ({"version": "1"}, ["version"]),
        ({"from_": 5}, ["from"]),
        ({"from_": ""}, ["from"]),
        ({"select": []}, ["select"]),
        ({"select": {}}, ["select"]),
        ({"select": [{"count": {}}] * 65}, ["select"]),
        ({"select": [{"nonlinear": {"column": "item"}}]}, ["select[0]"]),
        ({"select": [{"count": {}}, {"derivative": {}}, 3]}, ["select[1]", "select[2]"]),
        ({"select": [{"count": {}, "sum": {"column": "age"}}]}, ["select[0]"]),
        ({"select": [{}]}, ["select[0]"]),
        ({"select": [{"count": {"column": "age"}}]}, ["select[0].count.column"]),
        ({"select": [{"count": {"count": {}}}]}, ["select[0].count.count"]),
        ({"select": [{"sum": {}}]}, ["select[0].sum"]),
        ({"select": [{"sum": "age"}]}, ["select[0].sum"]),
        ({"where": []}, ["where"]),
        ({"where": {}}, ["where"]),
        ({"where": {"like": [AGE, "x"]}}, ["where"]),
        ({"where": {"and": []}}, ["where.and"]),
        ({"where": {"and": {"and": 5}}}, ["where.and"]),
        ({"where": {"and": [{"not": {"or": 5}}]}}, ["where.and[0].not.or"]),
        ({"where": {"not": {"not": {"eq": [AGE]}}}}, ["where.not.not.eq[1]"]),
        ({"where": {"eq": []}}, ["where.eq[0]", "where.eq[1]"]),
        ({"where": {"eq": [AGE, 1, 2]}}, ["where.eq"]),
        ({"where": {"eq": [40, AGE]}}, ["where.eq[0]"]),
        ({"where": {"eq": [{"col": "age", "of": "x"}, 1]}}, ["where.eq[0]"]),
        ({"where": {"eq": [AGE, None]}}, ["where.eq[1]"]),
        ({"where": {"eq": [AGE, "x" * 1001]}}, ["where.eq[1]"]),
        ({"where": {"in": [AGE, []]}}, ["where.in[1]"]),
        ({"where": {"in": [AGE, 3]}}, ["where.in[1]"]),
        ({"where": {"in": [AGE, [1, [2]]]}}, ["where.in[1][1]"]),
        ({"where": {"in": [AGE, [1] * 32_769]}}, ["where.in[1]"]),
        ({"group_by": "country"}, ["group_by"]),
        ({"group_by": None}, ["group_by"]),
        ({"group_by": [1]}, ["group_by[0]"]),
        ({"per_individual": 3}, ["per_individual"]),
        ({"per_individual": {"l2_clip": 0}}, ["per_individual.l2_clip"]),
        ({"per_individual": {"l2_clip": True}}, ["per_individual.l2_clip"]),
        ({"per_individual": {"l1_clip": 3}}, ["per_individual.l1_clip"]),
        ({"noise": {}}, ["noise"]),
        ({"noise": None}, ["noise"]),
        ({"noise": {"sigma": 0}}, ["noise.sigma"]),
        ({"noise": {"sigma": "20"}}, ["noise.sigma"]),
        ({"noise": {"sigma": 20, "rho": 0.1}}, ["noise.rho"]),
        ({"noise": {"rho": -1}}, ["noise.rho"]),
        ({"noise": {"half_width": 3}}, ["noise.confidence"]),
        ({"noise": {"half_width": 3, "confidence": 1}}, ["noise.confidence"]),
        ({"noise": {"confidence": 0.9}}, ["noise"]),
        ({"rule": "drop"}, ["rule"]),
        ({"reuse": 1}, ["reuse"]),
        ({"reuse": "true"}, ["reuse"]),
        ({"limit": 5}, ["limit"]),
        ({"a b": 5}, ["['a b']"]),
        ({"from_": "x" * 64, "rule": 3, "reuse": None}, ["from", "rule", "reuse"]),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: list[str]) -> None:
    """Each field that is wrong is named as a path into the request, and nothing else is."""
    assert fields(body(query(**change))) == named


@pytest.mark.parametrize("missing", ["version", "select", "noise"])
def test_what_is_missing_is_named(missing: str) -> None:
    """Three fields have no default."""
    asked = query()
    del asked[missing]

    assert errors(body(asked)) == [FieldError(field=missing, message="is required")]


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"", ["body"]),
        (b"null", ["body"]),
        (b"[]", ["body"]),
        (b'"x"', ["body"]),
        (b"{} {}", ["body"]),
        (b"{'a': 1}", ["body"]),
        (b'{"version": 1,}', ["body"]),
        (b"\xef\xbb\xbf{}", ["body"]),
        ('{"version": 1}'.encode("utf-16"), ["body"]),
        (b'{"version": "\xff"}', ["body"]),
        (b'{"version": "\x01"}', ["body"]),
        (b'{"version": 01}', ["body"]),
        (b'{"version": "', ["body"]),
        (b'{"version": "\\', ["body"]),
        (b'{"version": 1, "version": 1}', ["body"]),
        (b'{"noise": {"sigma": 1, "sigma": 2}}', ["noise"]),
        (b'{"where": {"and": [{"eq": [{"col": "a", "col": "b"}, 1]}]}}', ["where.and[0].eq[0]"]),
        (b'{"x": {"a": 1, "a": 1}}', ["x"]),
        (b'{"noise": {"sigma": NaN}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": Infinity}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": -Infinity}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": 1e400}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": -1e400}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": 9007199254740993}}', ["noise.sigma"]),
        (b'{"noise": {"sigma": ' + b"1" * 5000 + b"}}", ["noise.sigma"]),
        (b'{"where": {"eq": [{"col": "age"}, 1e999]}, "noise": {"sigma": NaN}}', ["where.eq[1]", "noise.sigma"]),
        (b"NaN", ["body"]),
        (b"9" * 5000, ["body"]),
        (b'{"from": "\\ud800", "version": 1, "select": [{"count": {}}], "noise": {"sigma": 1}}', ["from"]),
        (b'{"\\ud800": 1, "version": 1, "select": [{"count": {}}], "noise": {"sigma": 1}}', ["body"]),
    ],
)
def test_what_json_readers_disagree_about_is_refused(sent: bytes, named: list[str]) -> None:
    """Duplicate keys, numbers that are none, integers beyond a double, text that is none."""
    assert fields(sent) == named


@pytest.mark.parametrize(
    "digits",
    [
        *("9007199254740991", "-9007199254740991", "9007199254740992", "1e20", "100000000000000000000", "2.50"),
        *("1152921504606846976", "1152921504606847000", "-1152921504606847000"),
    ],
)
def test_numbers_that_a_double_holds_are_read(digits: str) -> None:
    """Also 2^60, both in full and in the digits that its canonical form has."""
    sent = body(query(where={"lt": [AGE, 0]})).replace(b", 0]", f", {digits}]".encode())
    literal = parse_query(sent).model_dump()["where"]["lt"][1]

    assert literal == float(digits)
    assert not (isinstance(literal, float) and literal.is_integer() and abs(literal) < 2**53)


def test_one_and_true_are_told_apart_in_a_list() -> None:
    """JSON's types are the language's types, also where Python's equality confuses them."""
    where = parse_query(body(query(where={"in": [AGE, [1, True, 1.0, "1"]]}))).where

    assert isinstance(where, In)
    assert [type(literal) for literal in where.in_[1]] == [int, bool, int, str]


def test_a_good_surrogate_pair_is_text() -> None:
    """Escapes beyond the basic plane are read as the character they mean."""
    sent = body(query(from_="x")).replace(b'"x"', rb'"\ud83d\ude00"')

    assert parse_query(sent).from_ == "\U0001f600"


def test_brackets_in_text_are_not_nesting() -> None:
    """Only objects and lists nest; an escaped quote does not end the text that it is in."""
    text = r"[{" * 20 + r"\"" + "[" * 20

    parsed = parse_query(body(query(where={"eq": [{"col": "country"}, text]})))
    assert parsed.model_dump()["where"]["eq"][1] == text


def test_nesting_is_allowed_sixteen_deep() -> None:
    """Objects and lists together, the whole document included; one more is refused."""
    leaf: Any = {"eq": [AGE, 1]}
    for _ in range(11):
        leaf = {"not": leaf}

    parse_query(body(query(where=leaf)))
    parse_query(body(query(where={"not": leaf})))
    assert fields(body(query(where={"not": {"not": leaf}}))) == ["body"]


def test_a_body_as_large_as_allowed_is_read() -> None:
    """256 KiB and not a byte more."""
    sent = body(query())

    parse_query(sent + b" " * (BODY_BYTES_MAX - len(sent)))
    assert fields(sent + b" " * (BODY_BYTES_MAX + 1 - len(sent))) == ["body"]


def test_at_most_twenty_errors_are_told() -> None:
    """A reply does not grow with what is wrong."""
    assert len(fields(body(query(select=[{"sum": {}}] * 64)))) == 20


LITERAL_KINDS = 4
"""Pydantic tells a wrong literal once for each kind that it could be."""
MANY = 2**20
"""The number of wrong parts; a reader that looked at each would find as many errors."""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"select": [{"x": {}}] * 65}, ["select"]),
        ({"group_by": [{}] * 33}, ["group_by"]),
        ({"where": {"and": [{"x": 1}] * MANY}}, ["where.and[0]"]),
        ({"where": {"in": [AGE, [None] * MANY]}}, ["where.in[1][0]"]),
        ({"where": {"eq": [{"add": [{}, {}]}, 1]}}, ["where.eq[0].add[0]"]),
        ({"where": {"fold": {"seed": "s", "of": 2, "in": [None] * MANY}}}, ["where.fold.in[0]"]),
        ({"select": [{"histogram": {"column": "a", "values": [None] * MANY}}]}, ["select[0].histogram.values[0]"]),
        ({"select": [{"linear": {"column": "a", "weights": [None] * MANY}}]}, ["select[0].linear.weights[0]"]),
        ({"group_by": [{"bin": {"column": "a", "edges": [None] * MANY}}]}, ["group_by[0].bin.edges[0]"]),
        ({"noise": {"sigma": [None] * MANY}}, ["noise.sigma[0]"]),
        ({"per_individual": {"l2_clip": [None] * MANY}}, ["per_individual.l2_clip[0]"]),
        ({"select": [{"moments": {"features": [None] * MANY}}]}, ["select[0].moments.features[0]"]),
    ],
)
def test_a_long_list_ends_at_its_first_wrong_part(change: dict[str, Any], named: list[str]) -> None:
    """Errors are made of one part, not of each: a list that may be long fails fast, a short one by its length."""
    with pytest.raises(ValidationError) as refusal:
        Query.model_validate(query(**change))
    assert refusal.value.error_count() <= LITERAL_KINDS
    with pytest.raises(QueryProblem) as problem:
        query_of(query(**change))
    assert [error.field for error in problem.value.errors] == named


def lists_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Every list of any length in a schema of pydantic's, and the checks right around it."""
    if isinstance(schema, dict):
        if schema.get("type") in {"list", "tuple"} and schema.get("variadic_item_index", 0) is not None:
            yield schema
        for each in schema.values():
            yield from lists_of(each)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from lists_of(each)


def test_every_list_of_the_language_fails_fast_or_is_short() -> None:
    """And each has a length."""
    lists = [each for each in lists_of(Query.__pydantic_core_schema__) if "variadic_item_index" in each]
    assert len(lists) > 15
    assert {each.get("max_length", 0) for each in lists if not each.get("fail_fast")} == {SELECT_MAX, GROUP_BY_MAX}
    assert all("max_length" in each for each in lists)


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,0123456789.eE+-\\utrnalsNI ', max_size=80).map(str.encode))
@example(b'{"a":\xed\xa0\x80}')
def test_any_bytes_give_a_query_or_a_problem(sent: bytes) -> None:
    """Nothing else is ever raised."""
    try:
        parse_query(sent)
    except QueryProblem as problem:
        assert problem.errors  # noqa: PT017 - what is raised is the claim
        assert all(error.field and error.message for error in problem.errors)  # noqa: PT017
        json.dumps([error.field + error.message for error in problem.errors]).encode()
