"""A public schema with every kind of column, queries over it, and slow, obvious readings of them to compare with."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from math import ldexp
from typing import Any, ParamSpec

import pytest
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.core.laws import Gaussian
from service.query.columns import QueryColumn, coding_of
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within
from service.query.dataset_terms import MonitorScale, Pricing
from service.query.expressions_ast import Row
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.query.query_columns import QueryColumns
from service.query.schema import Schema
from service.query.stated_noise import stated_noise
from tests.laws.fraction_values import FractionValues

P = ParamSpec("P")

CAPACITY = 1_000_000
BUDGET_UNITS = 2**40  # a rho of 1

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "country": {"type": "category", "categories": ["NO", "SE", "DK"]},
            "grade": {"type": "category", "categories": [3, 1, "1"]},
            "area": {"type": "category", "size": 5},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "level": {"type": "integer", "lower": -2, "upper": 3},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "balance": {"type": "real", "lower": -0.7, "upper": 0.1},
            "member": {"type": "boolean"},
            "joined": {"type": "date", "lower": "2020-01-01", "upper": "2020-01-04"},
            "limit_rho": {"type": "budget"},
        },
    },
    "visits": {
        "kind": "events",
        "key": "person_id",
        "columns": {
            "day": {"type": "integer", "lower": 0, "upper": 364},
            "item": {"type": "category", "size": 100_000},
            "paid": {"type": "real", "lower": 0, "upper": 99.99},
        },
    },
}
SCHEMA = Schema.model_validate(TABLES)
PEOPLE = SCHEMA.tables["people"]

# Small domains, so that a law meets every case: the values a row may hold, NULL always among them.
VALUES: dict[str, list[Any]] = {
    "country": [None, "NO", "SE", "DK"],
    "grade": [None, 3, 1, "1"],
    "area": [None, 0, 1, 2, 3, 4],
    "level": [None, -2, -1, 0, 1, 2, 3],
    "balance": [None, -0.7, -0.25, -0.1, 0.0, 0.05, 0.1],
    "member": [None, False, True],
    "joined": [None, "2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"],
}
ORDERED = ("level", "balance", "joined")
# Beyond the bounds, between the integers, and spelled otherwise.
ODD_LITERALS: dict[str, list[Any]] = {
    "level": [-1000, -3, -2.5, 0.5, 1.0, 4, 1e300, 2**53 - 1],
    "joined": ["1900-01-01", "2020-02-29"],
    "balance": [-5, -0.70001, -0.3, 0, 1e-6, 0.1000001, 7],
}


_ROW: TypeAdapter[Row] = TypeAdapter(Row)


def row_of(node: dict[str, Any]) -> Row:
    """A value as it is read."""
    return _ROW.validate_python(node)


def columns_of(table: str) -> QueryColumns:
    """The columns of a table."""
    return QueryColumns(SCHEMA, table)


def column_of(node: dict[str, Any], *, table: str = "people") -> QueryColumn:
    """The column of a value."""
    return columns_of(table).value(row_of(node), "v")


def plan_of(
    asked: dict[str, Any],
    schema: Schema = SCHEMA,
    *,
    capacity: int = CAPACITY,
    budget_units: int = BUDGET_UNITS,
    pricing: Pricing | None = None,
    monitor: MonitorScale | None = None,
) -> Plan:
    """The plan of a query as it is sent."""
    query = parse_query(body(asked))
    return compile_query(query, schema, capacity=capacity, budget_units=budget_units, pricing=pricing, monitor=monitor)


def refused(make: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> tuple[str, str]:
    """The field and the message of the one error for which something is refused."""
    with pytest.raises(QueryProblem) as refusal:
        make(*args, **kwargs)
    (error,) = refusal.value.errors
    return error.field, error.message


AGE, LEVEL = {"col": "age"}, {"col": "level"}
CALCULATED: list[dict[str, Any]] = [
    {"add": [AGE, LEVEL]},
    {"mul": [{"col": "spend"}, {"sub": [AGE, 1.5]}]},
    {"abs": {"clip": [LEVEL, -1, 2]}},
]
MATRICES: list[dict[str, Any]] = [
    {"starts": [0, 2, 2, 3], "indices": [40, 41, 40], "values": [1, -3, 7]},
    {"starts": [0, 1, 3], "indices": [7, 7, 8], "values": [0.5, 1e6, -2.25]},
]
COMPARED: list[dict[str, Any]] = [{"lt": [LEVEL, AGE]}, {"ne": [{"col": "country"}, {"col": "country"}]}]
PARTS: list[dict[str, Any]] = [
    {"bin": {"column": "age", "edges": [0, 18, 65.5, 120]}},
    {"bin": {"column": "spend", "width": 0.01}},
    {"bucket": {"column": "joined", "by": "week"}},
]


def body(query: Any) -> bytes:
    """A query as it comes off the wire."""
    return json.dumps(query).encode()


def query(**fields: Any) -> dict[str, Any]:
    """A valid query, but for the fields given; `from_` stands for `from`."""
    asked = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20}} | fields
    if "from_" in asked:
        asked["from"] = asked.pop("from_")
    return asked


def matrix(column: str, *functionals: dict[Any, float]) -> dict[str, Any]:
    """The item of functionals by the values of a column."""
    starts = [sum(map(len, functionals[:number])) for number in range(len(functionals) + 1)]
    indices = [index for functional in functionals for index in functional]
    values = [weight for functional in functionals for weight in functional.values()]
    return {"linear": {"column": column, "matrix": {"starts": starts, "indices": indices, "values": values}}}


def comparisons(*, odd: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Leaves that the small domains allow; with `odd`, also literals that equal no value."""

    def of_column(column: str) -> st.SearchStrategy[dict[str, Any]]:
        literals = st.sampled_from(VALUES[column][1:] + (ODD_LITERALS.get(column, []) if odd else []))
        operators = ["eq", "ne", *(["lt", "le", "gt", "ge"] if column in ORDERED else [])]
        single = st.builds(
            lambda operator, literal: {operator: [{"col": column}, literal]}, st.sampled_from(operators), literals
        )
        listed = st.lists(literals, min_size=1, max_size=4).map(lambda chosen: {"in": [{"col": column}, chosen]})
        null = st.just({"is_null": {"col": column}})
        between = st.builds(lambda low, high: {"between": [{"col": column}, low, high]}, literals, literals)
        return st.one_of(single, listed, null, *([between] if column in ORDERED else []))

    return st.sampled_from(sorted(VALUES)).flatmap(of_column)


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    """Conditions over the small domains, nested a few deep."""
    return st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
            inner.map(lambda part: {"not": part}),
        ),
        max_leaves=6,
    ).filter(lambda condition: depth(condition) <= 12)


def depth(value: Any) -> int:
    """How deep objects and lists lie within each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def queries() -> st.SearchStrategy[dict[str, Any]]:
    """Valid queries of both tables; a few are too much for any grid, which only compiling finds out."""
    return _queries_of_people() | _queries_of_visits()


def noises() -> st.SearchStrategy[dict[str, Any]]:
    """The three ways to ask for precision, over many orders of magnitude."""
    return st.one_of(
        st.floats(0.3, 1e12).map(lambda sigma: {"sigma": sigma}),
        st.floats(1e-11, 4).map(lambda rho: {"rho": rho}),
        st.builds(
            lambda half_width, confidence: {"half_width": half_width, "confidence": confidence},
            st.floats(0.5, 1e9),
            st.floats(0.01, 0.999999),
        ),
    )


def _queries_of_people() -> st.SearchStrategy[dict[str, Any]]:
    items = st.sampled_from(
        [{"count": {}}, *({"sum": {"column": name}} for name in ("age", "level", "spend", "balance"))]
        + [{"histogram": {"column": name}} for name in ("age", "grade", "area", "joined")]
        + [{"sum": {"of": value}} for value in CALCULATED]
        + [{"linear": {"column": "country", "weights": {"indices": ["SE", "DK"], "values": [1, -2.5]}}}]
        + [{"linear": {"column": "area", "weights": [{"indices": [n], "values": [n]} for n in (1, 4)]}}]
        + [{"linear": {"column": "age", "matrix": matrix}} for matrix in MATRICES]
        + [{"histogram": {"column": "country", "values": ["DK", "NO"]}}]
    )
    alone = st.sampled_from([0.5, 0.9, 1]).map(lambda share: [{"active": {"share": share}}])
    names = ["country", "member", "level", *PARTS]
    groups = st.lists(st.sampled_from(names), unique_by=lambda key: str(key).partition("edges")[0], max_size=3)
    wheres = conditions() | st.sampled_from([{"le": [value, 3]} for value in CALCULATED] + COMPARED)
    several = st.lists(items, min_size=1, max_size=4, unique_by=str)
    selects: st.SearchStrategy[list[Any]] = st.integers(0, 7).flatmap(lambda number: alone if number == 7 else several)
    return _queries(selects, groups, wheres, [{}, {"from": "people"}, {"from": None}]).map(_not_reused)


def _queries_of_visits() -> st.SearchStrategy[dict[str, Any]]:
    items = st.sampled_from(
        [
            {"count": {}},
            {"count_individuals": {}},
            {"sum": {"column": "day"}},
            {"sum": {"column": "paid"}},
            {"histogram": {"column": "day"}},
            {"histogram": {"column": "item", "values": [99_999, 0]}},
            {"linear": {"column": "item", "matrix": MATRICES[1]}},
        ]
    )
    days = st.integers(-10, 400).map(lambda day: {"le": [{"col": "day"}, day]})
    groups = st.sampled_from([[], ["people.country"], [{"bin": {"column": "people.spend", "width": 100}}]])
    own = st.just({"eq": [{"col": "people.member"}, True]})
    return _queries(st.lists(items, min_size=1, max_size=4, unique_by=str), groups, days | own, [{"from": "visits"}])


def _not_reused(asked: dict[str, Any]) -> dict[str, Any]:
    """Without `reuse` where it would be refused."""
    is_refused = "active" in asked["select"][0] and asked.get("reuse", False)
    return {name: value for name, value in asked.items() if name != "reuse" or not is_refused}


def _queries(
    selects: st.SearchStrategy[list[Any]],
    groups: st.SearchStrategy[Any],
    wheres: st.SearchStrategy[Any],
    sources: list[dict[str, Any]],
) -> st.SearchStrategy[dict[str, Any]]:
    clips = st.none() | st.floats(0.001, 1e6)
    optional = st.fixed_dictionaries(
        {},
        optional={
            "where": st.none() | wheres,
            "group_by": groups,
            "per_individual": st.none() | st.just({}) | clips.map(lambda clip: {"l2_clip": clip}),
            "rule": st.sampled_from(["skip", "clip"]),
            "reduce": st.sampled_from([None, "max", "norm"]),
            "reuse": st.booleans(),
        },
    )
    return st.builds(
        lambda select, noise, rest, source: {"version": 1, "select": select, "noise": noise} | rest | source,
        selects,
        noises(),
        optional,
        st.sampled_from(sources),
    )


EVALUATOR = FractionValues({"from": "people"}, TABLES)


def truth(condition: dict[str, Any], row: dict[str, Any]) -> bool | None:
    """Kleene's three values in fractions, straight from the JSON: None is unknown."""
    return EVALUATOR.truth(condition, EVALUATOR.stored(row))


def holds(predicate: Predicate, codes: dict[str, int]) -> bool:
    """Tell whether a row of codes is selected."""
    match predicate:
        case All():
            return True
        case Nothing():
            return False
        case Within(column, low, high):
            return low <= codes[column] <= high
        case Among(column, listed):
            return codes[column] in listed
        case Null(column):
            return codes[column] == coding_of(PEOPLE.columns[column]).null_code
        case Conjunction(parts):
            return all(holds(part, codes) for part in parts)
        case Disjunction(parts):
            return any(holds(part, codes) for part in parts)


def half_width_95(*, sigma: float, grid_log2: int) -> float:
    """The half width that an answer on a grid states."""
    width = stated_noise(Gaussian(ldexp(sigma, -grid_log2)), grid_log2=grid_log2, sigmas=()).half_width_95
    assert not isinstance(width, tuple)
    return width


def changed(plan: Plan, **changes: Any) -> Plan:
    """A plan with other facts of its scale, its layout or its own, each by its name."""
    parts = {name: getattr(plan, name) for name in ("scale", "layout")}
    for name, value in changes.items():
        owner = next((part for part, of in parts.items() if name in {each.name for each in fields(of)}), None)
        if owner is None:
            plan = replace(plan, **{name: value})
        else:
            parts[owner] = replace(parts[owner], **{name: value})
    return replace(plan, **parts)
