"""Predicates over codes mean what they say; conditions against a table, with three-valued logic and named literals."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.engine.selection import selects_nulls
from service.query.columns import coding_of
from service.query.conditions import (
    All,
    Among,
    Conjunction,
    Disjunction,
    Nothing,
    Predicate,
    Within,
    among,
    conjunction,
    disjunction,
    predicate_of,
    within,
)
from service.query.expressions_ast import Condition, Eq, Not
from service.query.parse import parse_query
from service.query.problems import QueryProblem
from service.query.query_columns import QueryColumns
from tests.query.samples import (
    ODD_LITERALS,
    ORDERED,
    PEOPLE,
    SCHEMA,
    VALUES,
    body,
    conditions,
    holds,
    query,
    refused,
    truth,
)
from tests.rotation import times

SPAN = 9
leaves = st.one_of(
    st.just(All()),
    st.just(Nothing()),
    st.builds(lambda low, size: Within("a", low, low + size), st.integers(0, 5), st.integers(0, 4)),
    st.lists(st.integers(0, SPAN), min_size=1, unique=True).map(lambda codes: Among("b", tuple(sorted(codes)))),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda join, parts: join(parts), st.sampled_from([conjunction, disjunction]), st.lists(inner, max_size=3)
    ),
)
drawn_rows = st.fixed_dictionaries({"a": st.integers(0, SPAN + 1), "b": st.integers(0, SPAN + 1)})


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(0, SPAN + 1))
def test_a_range_is_cut_to_the_domain(low: int, high: int, code: int) -> None:
    """The codes of the domain that lie within it, never the code of NULL."""
    assert holds(within("a", low, high, span=SPAN), {"a": code}) == (low <= code <= high and code <= SPAN)


@given(st.lists(st.integers(-3, SPAN + 3)), st.booleans(), st.integers(0, SPAN + 1))
def test_a_list_of_codes_or_its_complement(codes: list[int], negated: bool, code: int) -> None:
    """The complement is taken within the domain: NULL is in neither."""
    selected = holds(among("a", codes, span=SPAN, negated=negated), {"a": code})

    assert selected == (code <= SPAN and (code in codes) != negated)


def test_lists_take_the_smallest_shape() -> None:
    """Neighbours are a range; a complement is a few ranges, or a list, but never of a large domain."""
    every_other = range(0, 100, 2)

    assert among("a", [3, 1, 2, 2], span=SPAN) == Within("a", 1, 3)
    assert among("a", [3, 1], span=SPAN) == Among("a", (1, 3))
    assert among("a", [], span=SPAN) == Nothing()
    assert among("a", [], span=SPAN, negated=True) == Within("a", 0, SPAN)
    assert among("a", [3], span=SPAN, negated=True) == Disjunction((Within("a", 0, 2), Within("a", 4, SPAN)))
    assert among("a", range(SPAN + 1), span=SPAN, negated=True) == Nothing()
    assert among("a", every_other, span=99, negated=True) == Among("a", tuple(range(1, 100, 2)))
    assert isinstance(among("a", every_other, span=2**31, negated=True), Disjunction)


@given(st.lists(predicates, max_size=4), drawn_rows)
def test_joining_means_what_it_says(parts: list[Predicate], row: dict[str, int]) -> None:
    """All of the parts, or any of them; of no parts, every row or none."""
    assert holds(conjunction(parts), row) == all(holds(part, row) for part in parts)
    assert holds(disjunction(parts), row) == any(holds(part, row) for part in parts)


@given(predicates)
def test_what_is_joined_is_flat(predicate: Predicate) -> None:
    """No part of an And is an And or a constant, and there are at least two; likewise Or."""

    def check(part: Predicate) -> None:
        if isinstance(part, (Conjunction, Disjunction)):
            assert len(part.parts) >= 2
            assert not any(isinstance(inner, (type(part), All, Nothing)) for inner in part.parts)
            for inner in part.parts:
                check(inner)

    check(predicate)


CONDITION: TypeAdapter[Any] = TypeAdapter(Condition)
ADULT, ADULTS = {"ge": [{"col": "age"}, 18]}, Within("age", 18, 120)
rows = st.fixed_dictionaries({column: st.sampled_from(values) for column, values in VALUES.items()})


def predicate(where: dict[str, Any]) -> Predicate:
    """The predicate of a condition on people."""
    return predicate_of(CONDITION.validate_python(where), QueryColumns(SCHEMA, "people"))


def problem(where: dict[str, Any]) -> tuple[str, str]:
    """The field and the message for which a condition is refused."""
    return refused(predicate, where)


def code(column: str, value: Any) -> int:
    """The code under which a value is held, worked out by hand rather than by the room."""
    coding = coding_of(PEOPLE.columns[column])
    if value is None:
        return coding.null_code
    if column == "balance":
        steps: int = round(value * 2.0**-coding.step_log2)
        return steps - coding.offset
    order: dict[str, list[Any]] = {"country": ["NO", "SE", "DK"], "grade": [3, 1, "1"], "level": [-2, -1, 0, 1, 2, 3]}
    order["joined"] = VALUES["joined"][1:]
    return order[column].index(value) if column in order else int(value)


def coded(row: dict[str, Any]) -> dict[str, int]:
    """A row as the engine holds it."""
    return {column: code(column, value) for column, value in row.items()}


@settings(max_examples=times(100, 200))
@given(conditions(), rows)
def test_a_row_is_selected_if_and_only_if_the_condition_is_true(where: dict[str, Any], row: dict[str, Any]) -> None:
    """Kleene's logic evaluated straight from the JSON agrees with the predicate over codes, NULLs included."""
    assert holds(predicate(where), coded(row)) is (truth(where, row) is True)


def every_leaf(column: str) -> Iterator[dict[str, Any]]:
    """Each comparison of a column with each of its literals, and with those that equal no value."""
    literals = VALUES[column][1:] + ODD_LITERALS.get(column, [])
    signs = ["eq", "ne", *(["lt", "le", "gt", "ge"] if column in ORDERED else [])]
    yield {"is_null": {"col": column}}
    yield from ({sign: [{"col": column}, literal]} for sign, literal in product(signs, literals))
    for one, other in product(literals, literals):
        yield {"in": [{"col": column}, [one, other]]}
        if column in ORDERED:
            yield {"between": [{"col": column}, one, other]}


@pytest.mark.parametrize("column", sorted(VALUES))
def test_every_leaf_agrees_on_its_whole_column(column: str) -> None:
    """Each comparison and its negation, with every literal, for every value of the column and NULL."""
    for leaf in every_leaf(column):
        for where in (leaf, {"not": leaf}):
            found = predicate(where)
            for value in VALUES[column]:
                assert holds(found, {column: code(column, value)}) is (truth(where, {column: value}) is True)


@settings(max_examples=times(40, 100))
@given(st.lists(conditions(), min_size=1, max_size=3), conditions())
def test_de_morgan(parts: list[dict[str, Any]], one: dict[str, Any]) -> None:
    """A negation moves to the leaves by De Morgan's laws, and two negations are none: the predicates are the same."""
    negated = [{"not": part} for part in parts]

    assert predicate({"not": {"and": parts}}) == predicate({"or": negated})
    assert predicate({"not": {"or": parts}}) == predicate({"and": negated})
    assert predicate({"not": {"not": one}}) == predicate(one)


@settings(max_examples=times(50, 100))
@given(conditions())
def test_a_row_of_nothing_but_null_is_selected_only_by_asking_for_null(where: dict[str, Any]) -> None:
    """An empty slot looks like one, and the engine leaves it out where a predicate says that it selects one."""
    selected = holds(predicate(where), coded(dict.fromkeys(VALUES)))
    assert selected == (truth(where, dict.fromkeys(VALUES)) is True)
    assert selected == selects_nulls(predicate(where))
    assert not selected or "is_null" in str(where)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"ge": [{"col": "age"}, 40]}, Within("age", 40, 120)),
        ({"ge": [{"col": "age"}, 39.5]}, Within("age", 40, 120)),
        ({"gt": [{"col": "age"}, 39.5]}, Within("age", 40, 120)),
        ({"lt": [{"col": "age"}, 39.5]}, Within("age", 0, 39)),
        ({"le": [{"col": "age"}, 39.5]}, Within("age", 0, 39)),
        ({"eq": [{"col": "age"}, 39.5]}, Nothing()),
        ({"ne": [{"col": "age"}, 39.5]}, Within("age", 0, 120)),
        ({"ge": [{"col": "age"}, -5]}, Within("age", 0, 120)),
        ({"not": {"ge": [{"col": "age"}, -5]}}, Nothing()),
        ({"gt": [{"col": "age"}, 120]}, Nothing()),
        ({"not": {"gt": [{"col": "age"}, 500]}}, Within("age", 0, 120)),
        ({"lt": [{"col": "age"}, 1e300]}, Within("age", 0, 120)),
        ({"ge": [{"col": "level"}, 1]}, Within("level", 3, 5)),
        ({"eq": [{"col": "member"}, True]}, Within("member", 1, 1)),
        ({"ne": [{"col": "member"}, True]}, Within("member", 0, 0)),
        ({"in": [{"col": "country"}, ["NO", "DK", "NO"]]}, Among("country", (0, 2))),
        ({"in": [{"col": "grade"}, [1, "1"]]}, Within("grade", 1, 2)),
        ({"eq": [{"col": "area"}, 4]}, Within("area", 4, 4)),
        ({"ne": [{"col": "area"}, 2]}, Disjunction((Within("area", 0, 1), Within("area", 3, 4)))),
        ({"ge": [{"col": "spend"}, 12.5]}, Within("spend", int(12.5 * 2**43), 500 * 2**43)),
        ({"gt": [{"col": "spend"}, 12.5]}, Within("spend", int(12.5 * 2**43) + 1, 500 * 2**43)),
        ({"and": [ADULT, {"and": [{"eq": [{"col": "area"}, 0]}]}]}, Conjunction((ADULTS, Within("area", 0, 0)))),
        ({"and": [ADULT, {"gt": [{"col": "age"}, 200]}]}, Nothing()),
    ],
)
def test_literals_become_codes(where: dict[str, Any], expected: Predicate) -> None:
    """A literal beyond the bounds selects every row that has a value, or none; NULL is never selected."""
    assert predicate(where) == expected


def test_without_a_condition_every_row_is_selected() -> None:
    """Also a row of nothing but NULL."""
    assert predicate_of(None, QueryColumns(SCHEMA, "people")) == All()


@pytest.mark.parametrize("column", [{"col": "spend"}, {"clip": [{"col": "spend"}, 0, 500]}])
@pytest.mark.parametrize(
    ("values", "others"), [([-3, 0], [0]), ([0, -3, 5], [0, 5]), ([500, 501], [500]), ([501, -1, 5], [5])]
)
def test_a_value_beyond_the_domain_changes_nothing_of_a_list(column: Any, values: list[int], others: list[int]) -> None:
    """No row has it, declared or calculated; the rows of the other values stay."""
    assert predicate({"in": [column, values]}) == predicate({"in": [column, others]})
    assert predicate({"not": {"in": [column, values]}}) == predicate({"not": {"in": [column, others]}})
    assert predicate({"in": [column, [-3, 501]]}) == Nothing()


def test_a_real_column_does_not_see_less_than_its_step() -> None:
    """The price of that: a literal that rounds to the code of 0 is 0, in every comparison."""
    for operator in ("eq", "ne", "lt", "le", "gt", "ge"):
        assert predicate({operator: [{"col": "spend"}, 1e-300]}) == predicate({operator: [{"col": "spend"}, 0]})
    assert predicate({"gt": [{"col": "spend"}, 1e-13]}) != predicate({"gt": [{"col": "spend"}, 0]})


@pytest.mark.parametrize(
    ("where", "field", "says"),
    [
        ({"ge": [{"col": "height"}, 1]}, "where.ge[0].col", "no column 'height'"),
        ({"ge": [{"col": "person_id"}, 1]}, "where.ge[0].col", "no column 'person_id'"),
        ({"ge": [{"col": "limit_rho"}, 1]}, "where.ge[0].col", "limits"),
        ({"in": [{"col": "limit_rho"}, [1]]}, "where.in[0].col", "limits"),
        ({"lt": [{"col": "country"}, "SE"]}, "where.lt[0].col", "no order"),
        ({"ge": [{"col": "member"}, True]}, "where.ge[0].col", "no order"),
        ({"eq": [{"col": "country"}, "FI"]}, "where.eq[1]", "a declared category of the column; got 'FI'"),
        ({"eq": [{"col": "country"}, 0]}, "where.eq[1]", "declared category"),
        ({"in": [{"col": "country"}, ["NO", "FI"]]}, "where.in[1][1]", "declared category"),
        ({"eq": [{"col": "grade"}, True]}, "where.eq[1]", "declared category"),
        ({"eq": [{"col": "grade"}, 1.5]}, "where.eq[1]", "declared category"),
        ({"eq": [{"col": "area"}, 5]}, "where.eq[1]", "an integer from 0 to 4"),
        ({"eq": [{"col": "area"}, -1]}, "where.eq[1]", "an integer from 0 to 4"),
        ({"eq": [{"col": "area"}, "1"]}, "where.eq[1]", "an integer from 0 to 4"),
        ({"eq": [{"col": "area"}, True]}, "where.eq[1]", "an integer from 0 to 4"),
        ({"eq": [{"col": "member"}, 1]}, "where.eq[1]", "true or false"),
        ({"eq": [{"col": "age"}, True]}, "where.eq[1]", "a number"),
        ({"ge": [{"col": "age"}, "40"]}, "where.ge[1]", "a number"),
        ({"in": [{"col": "spend"}, [1, False]]}, "where.in[1][1]", "a number"),
        (
            {"and": [ADULT, {"or": [{"not": {"eq": [{"col": "member"}, "x"]}}]}]},
            "where.and[1].or[0].not.eq[1]",
            "true or",
        ),
    ],
)
def test_a_literal_that_the_column_cannot_hold_is_named(where: dict[str, Any], field: str, says: str) -> None:
    """The message speaks of the public schema alone."""
    found = problem(where)
    assert (found[0], says in found[1]) == (field, True)


def test_a_category_may_be_spelled_as_a_double() -> None:
    """1.0 is 1 in JSON, also for a query that was built in Python."""
    assert predicate({"eq": [{"col": "area"}, 1.0]}) == predicate({"eq": [{"col": "area"}, 1]})
    assert predicate({"eq": [{"col": "grade"}, 1.0]}) == predicate({"eq": [{"col": "grade"}, 1]})


def test_conditions_and_literals_are_counted() -> None:
    """4,096 together, and 32,768 literals in lists; both counts are of the whole tree, not of one list."""
    leaf = {"in": [{"col": "age"}, list(range(100))]}
    pair = {"or": [{"eq": [{"col": "age"}, 1]}, leaf]}

    assert isinstance(predicate({"or": [leaf] * 327}), Disjunction)
    assert "literals in lists" in problem({"or": [leaf] * 328})[1]
    assert isinstance(predicate({"not": {"and": [pair] * 326}}), Disjunction)
    assert "literals in lists" in problem({"not": {"and": [pair] * 328}})[1]
    assert "conditions and literals outside" in problem({"or": [{"eq": [{"col": "age"}, 1]}] * 2048})[1]


def test_a_list_may_have_as_many_values_as_a_large_domain() -> None:
    """32,768 of them in one list; one more is refused where it stands."""
    items = list(range(0, 2 * 32_768, 2))
    visits = QueryColumns(SCHEMA, "visits")
    listed = CONDITION.validate_python({"in": [{"col": "item"}, items]})
    assert predicate_of(listed, visits) == Among("item", tuple(items))
    longer = body(query(where={"in": [{"col": "item"}, [*items, 1]]}))
    assert refused(parse_query, longer) == ("where.in[1]", "must have at most 32768 entries")


def test_a_condition_built_in_python_may_not_be_nested_deeper_than_the_wire_allows() -> None:
    """The wire refuses depth by its bytes; a caller that builds models is refused before anything recurses."""
    node: Any = Eq.model_validate({"eq": [{"col": "age"}, 1]})
    for _ in range(10_000):
        node = Not.model_construct(not_=node)

    with pytest.raises(QueryProblem, match="nested"):
        predicate_of(node, QueryColumns(SCHEMA, "people"))
