"""Queries over every node of the language, as JSON that the Python client can write.

Calculated values and conditions are made of each other, not taken from a list.
"""

from fractions import Fraction
from functools import cache
from itertools import accumulate, chain
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.laws.fraction_evaluator import FractionEvaluator
from tests.laws.fraction_values import domain
from tests.laws.node_world import BESIDE, COLUMNS, CUTS, TABLES, VALUES
from tests.query.samples import depth

Json = dict[str, Any]

DEPTH_MAX, DIMENSION_MAX, DOMAIN_MAX = 16, 3000, 400
COUNTABLE = ("category", "boolean", "integer", "date", "datetime")
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
UNORDERED = ["category", "boolean"]
ORDERED = ["integer", "real", "date", "datetime", "calculated"]
Leaf = tuple[str, str, str]
LEAVES: list[Leaf] = [
    *((kind, of, beside) for kind in COMPARISONS for of in ORDERED for beside in ("a literal", "a value")),
    *((kind, of, beside) for kind in ("eq", "ne") for of in UNORDERED for beside in ("a literal", "a value")),
    *(("between", of, "literals") for of in ORDERED),
    *((kind, of, "literals") for kind in ("in", "is_null") for of in (*ORDERED, *UNORDERED)),
]
"""A condition, the type of its value, and what stands beside it."""
NUMBERS = [-3, -1, 0, 1, 2, 10, 0.5, 2.5, 0.1, -1.25]
WEIGHTS = [1, -2, 0, 7, 0.5, 0.1, -2.75, 1e-3]
UNITS = ["day", "week", "month", "quarter", "year", "weekday"]


def names(table: str, *types: str) -> list[str]:
    """The columns of these types that a query of a table may mention."""
    return [name for name, column in COLUMNS[table].items() if column["type"] in types]


def literals(name: str, column: Json) -> list[Any]:
    """Values of the column's type; categories are declared ones."""
    own = name.removeprefix("people.")
    listed = [each for each in VALUES[own] if each is not None]
    return [each for each in listed if column["type"] != "category" or each in domain(column)] + BESIDE.get(own, [])


# Values and conditions


@cache
def numbers(table: str) -> st.SearchStrategy[Json]:
    """Numbers of a row: columns, differences in time, and what is calculated from them."""
    columns = st.sampled_from([{"col": name} for name in names(table, "integer", "real", "boolean")])
    differences = st.sampled_from(
        [
            {"sub": [{"col": a}, {"col": b}]}
            for kind in ("date", "datetime")
            for a in names(table, kind)
            for b in names(table, kind)
            if a != b
        ]
    )
    return st.recursive(columns | columns | differences, lambda inner: _calculated(inner, table), max_leaves=3)


@cache
def calculated(table: str) -> st.SearchStrategy[Json]:
    """Those that are no column."""
    return numbers(table).filter(lambda value: "col" not in value)


def _calculated(inner: st.SearchStrategy[Json], table: str) -> st.SearchStrategy[Json]:
    two = st.tuples(inner, inner | st.sampled_from(NUMBERS)).flatmap(st.permutations)
    ends = st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=2).map(sorted)
    return st.one_of(
        st.builds(lambda kind, body: {kind: list(body)}, st.sampled_from(["add", "sub", "mul"]), two),
        inner.map(lambda value: {"abs": value}),
        st.builds(lambda value, ends: {"clip": [value, *_in_steps(value, ends, table)]}, inner, ends),
    )


def _in_steps(value: Json, ends: list[Any], table: str) -> list[Any]:
    """The bounds of a clip in steps of the value, so that nothing is rounded: whole ones for a whole number."""
    step = FractionEvaluator({"from": table}, TABLES).extent(value).step
    rounded = [round(Fraction(end) / step) * step for end in ends]
    return [int(end) if end.denominator == 1 else float(end) for end in rounded]


@cache
def conditions(table: str) -> st.SearchStrategy[Json]:
    """Conditions as the client writes them: a chain of one junction is one list."""
    leaf = st.sampled_from(LEAVES).flatmap(lambda leaf: _leaf(*leaf, table))
    part = leaf | leaf.map(lambda part: {"not": part})
    junction = st.sampled_from(["and", "or", "or"])
    two = st.builds(_junction, junction, st.lists(part, min_size=2, max_size=3))
    four = st.builds(
        _junction, junction, st.lists(part | two | two.map(lambda part: {"not": part}), min_size=2, max_size=3)
    )
    return st.one_of(part, two, four)


@cache
def _leaf(kind: str, of: str, beside: str, table: str) -> st.SearchStrategy[Json]:
    """A value of a type beside literals, or beside a value that it may be compared with."""
    if of == "calculated":
        literal = st.sampled_from([-120, *NUMBERS, 86_400, 37.5])
        return _condition(kind, beside, calculated(table), literal, calculated(table))
    return st.one_of(
        [
            _condition(
                kind,
                beside,
                st.just({"col": name}),
                st.sampled_from(literals(name, COLUMNS[table][name])),
                _alike(COLUMNS[table][name], table),
            )
            for name in names(table, of)
        ]
    )


def _condition(
    kind: str,
    beside: str,
    value: st.SearchStrategy[Json],
    literal: st.SearchStrategy[Any],
    other: st.SearchStrategy[Json],
) -> st.SearchStrategy[Json]:
    if kind == "is_null":
        return value.map(lambda of: {"is_null": of})
    if kind == "between":
        return st.builds(lambda of, low, high: {"between": [of, low, high]}, value, literal, literal)
    if kind == "in":
        listed = st.lists(literal, min_size=1, max_size=4)
        return st.builds(lambda of, listed: {"in": [of, listed]}, value, listed)
    right = literal if beside == "a literal" else other
    return st.builds(lambda left, right: {kind: [left, right]}, value, right)


def _with(leaf: st.SearchStrategy[Json], other: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    both = st.builds(_junction, st.sampled_from(["and", "or"]), st.tuples(leaf, other).map(list))
    return leaf | leaf.map(lambda part: {"not": part}) | both


def _alike(column: Json, table: str) -> st.SearchStrategy[Json]:
    """The values that a column may be compared with."""
    if column["type"] in {"integer", "real"}:
        return st.sampled_from([{"col": name} for name in names(table, "integer", "real")]) | calculated(table)
    domain_of = [column.get(part) for part in ("categories", "size")]
    alike = [name for name in names(table, column["type"]) if COLUMNS[table][name].get("size") == domain_of[1]]
    return st.sampled_from([{"col": name} for name in alike if COLUMNS[table][name].get("categories") == domain_of[0]])


def _junction(kind: str, parts: list[Json]) -> Json:
    return {kind: [*parts[0].get(kind, parts[:1]), *parts[1:]]}


# Items, groups and the rest


@cache
def items(table: str) -> st.SearchStrategy[Json]:
    """The items that may be selected."""
    listable = st.sampled_from(names(table, *COUNTABLE))
    return st.one_of(
        st.sampled_from([{"count": {}}, {"count_individuals": {}}]),
        st.sampled_from(names(table, "integer", "real", "boolean")).map(lambda name: {"sum": {"column": name}}),
        calculated(table).map(lambda value: {"sum": {"of": value}}),
        st.sampled_from(_countable(table)).map(lambda name: {"histogram": {"column": name}}),
        parts_of(table).map(lambda part: {"histogram": part}),
        listable.flatmap(lambda name: _listed(name, COLUMNS[table][name])),
        listable.flatmap(lambda name: _linear(name, COLUMNS[table][name])),
    )


def _countable(table: str) -> list[str]:
    """The columns of a few hundred values at most."""
    return [name for name in names(table, *COUNTABLE) if len(domain(COLUMNS[table][name])) <= DOMAIN_MAX]


def _listed(name: str, column: Json) -> st.SearchStrategy[Json]:
    """A histogram of some values."""
    values = st.lists(st.sampled_from(_declared(name, column)), min_size=1, max_size=4, unique=True)
    return values.map(lambda listed: {"histogram": {"column": name, "values": listed}})


def _linear(name: str, column: Json) -> st.SearchStrategy[Json]:
    """One functional of declared values of a column, or several in a list or as a matrix."""
    weights = st.lists(
        st.tuples(st.sampled_from(_declared(name, column)), st.sampled_from(WEIGHTS)),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: pair[0],
    ).map(lambda pairs: {"indices": [each for each, _ in pairs], "values": [weight for _, weight in pairs]})
    several = st.lists(weights, min_size=1, max_size=3)
    asked = (weights | several).map(lambda weights: {"weights": weights}) | _matrix(name, column)
    return asked.map(lambda functionals: {"linear": {"column": name, **functionals}})


def _matrix(name: str, column: Json) -> st.SearchStrategy[Json]:
    """Compressed sparse rows as scipy has them: of one type, without zeros, values in one order in each row."""
    values = sorted(_declared(name, column)[:4], key=repr)
    weights: list[list[Any]] = [[None, 1, -2, 7], [None, 0.5, 0.1, -2.75, 1.0]]
    rows = [st.lists(st.sampled_from(some), min_size=len(values), max_size=len(values)) for some in weights]
    matrix = st.one_of([st.lists(row, min_size=1, max_size=4) for row in rows]).filter(lambda rows: any(map(any, rows)))
    return matrix.map(lambda rows: {"matrix": _compressed(rows, values)})


def _compressed(rows: list[list[Any]], values: list[Any]) -> Json:
    entries = [[(value, cell) for value, cell in zip(values, row, strict=True) if cell is not None] for row in rows]
    starts = [0, *accumulate(map(len, entries))]
    indices, weights = zip(*chain.from_iterable(entries), strict=True)
    return {"starts": starts, "indices": list(indices), "values": list(weights)}


def _declared(name: str, column: Json) -> list[Any]:
    """Values of a column's domain."""
    return [each for each in VALUES[name.removeprefix("people.")] if _is_declared(each, column)]


def _is_declared(value: Any, column: Json) -> bool:
    if column["type"] in {"category", "boolean"}:
        return value in domain(column)
    return value is not None and bool(column["lower"] <= value <= column["upper"])


@cache
def parts_of(table: str) -> st.SearchStrategy[Any]:
    """Bins and buckets of columns."""
    own = sorted(COLUMNS[table])
    bins = [{"bin": {"column": name, **cut}} for name in own for cut in CUTS.get(name.removeprefix("people."), [])]
    buckets = [
        {"bucket": {"column": name, "by": unit}}
        for name in names(table, "date", "datetime")
        for unit in (*UNITS, *(["hour"] if COLUMNS[table][name]["type"] == "datetime" else []))
    ]
    return st.sampled_from(bins) | st.sampled_from(buckets)


@cache
def keys(table: str) -> st.SearchStrategy[Any]:
    """Columns, bins and buckets."""
    return st.sampled_from(_countable(table)) | parts_of(table)


@cache
def noises() -> st.SearchStrategy[Json]:
    """Some of them so large that values lie halfway between two steps of the grid."""
    return st.sampled_from(
        [
            *({"sigma": 30.0}, {"sigma": 30}, {"sigma": 2.0**18}, {"rho": 0.01}, {"share": 0.5}),
            *({"half_width": 2500, "confidence": 0.9}, {"rho": 1e-8}, {"rho": 2e-8}, {"share": 1e-8}),
        ]
    )


@st.composite
def documents(draw: st.DrawFn, leaf: Leaf | None = None) -> Json:
    """Queries from both tables, if need be with a leaf in `where`; a few are refused, as the page says."""
    document = draw(_documents(draw(st.sampled_from(["people", "visits"])), leaf))
    assume(depth(document) <= DEPTH_MAX)
    return document


@cache
def _selects(table: str) -> st.SearchStrategy[list[Json]]:
    """Several items, or of individuals now and then those that are active, who are selected alone."""
    several = st.lists(items(table), min_size=1, max_size=3, unique_by=repr)
    alone = st.sampled_from([0.5, 0.75, 1, 0.7500000000000001]).map(lambda share: [{"active": {"share": share}}])
    rarely = 9 if table == "people" else None
    return st.integers(0, 9).flatmap(lambda number: alone if number == rarely else several)


@cache
def _documents(table: str, leaf: Leaf | None) -> st.SearchStrategy[Json]:
    clips = [{}, {"l2_clip": 0.5}, {"l2_clip": 2.5}, {"l2_clip": 40}, {"l2_clip": 1e6}]
    rows: list[Json] = [{}, {}, *({"rows": rows} for rows in (1, 2, 3, 9))] if table == "visits" else [{}]
    bounds = st.builds(lambda clip, rows: clip | rows or None, st.sampled_from(clips), st.sampled_from(rows))
    parts = {
        "from": st.sampled_from([table, None] if table == "people" else [table]),
        "select": _selects(table),
        "where": st.none() | conditions(table) if leaf is None else _with(_leaf(*leaf, table), conditions(table)),
        "group_by": st.lists(keys(table), unique_by=column_of, max_size=2),
        "per_individual": st.none() | bounds,
        "noise": noises(),
        "reuse": st.sampled_from([None, False]),
    }
    return st.fixed_dictionaries(parts).map(_fitting)


def column_of(key: Any) -> str:
    """The column that a key of group_by is of."""
    return key if isinstance(key, str) else str(next(iter(key.values()))["column"])


def _counted(histogram: Json) -> str:
    """The column that a histogram is of."""
    return str(histogram["column"]) if "column" in histogram else column_of(histogram)


def _fitting(parts: Json) -> Json:
    """Without keys that a histogram is of, with as many keys as make few coordinates, and without absent parts."""
    counted = [_counted(item["histogram"]) for item in parts["select"] if "histogram" in item]
    document = {"version": 1, **{name: part for name, part in parts.items() if part is not None}}
    document["group_by"] = [key for key in parts["group_by"] if column_of(key) not in counted]
    while FractionEvaluator(document, TABLES).dimension > DIMENSION_MAX:
        document["group_by"].pop()
    if not document["group_by"]:
        del document["group_by"]
    return document
