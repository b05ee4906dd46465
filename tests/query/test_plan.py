"""Compiling: a query and a public schema to a plan, or a problem that names the field."""

import hashlib
import json
from fractions import Fraction
from math import erf, floor, sqrt
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.core.charge import worst_case_units
from service.query import plan as plan_module
from service.query.canonical import canonical_bytes
from service.query.conditions import Within
from service.query.language import Query
from service.query.parse import parse_query
from service.query.plan import Count, Histogram, KeptPlans, Plan, Sum, compile_query
from service.query.problems import QueryProblem
from service.query.schema import Schema
from tests.query.samples import BUDGET_UNITS, CAPACITY, SCHEMA, body, half_width_95, queries, query

MATRIX = {"starts": [0, 1, 2], "indices": [1, 2], "values": [1, 2]}
COLUMNS = {"age": {"type": "integer", "lower": 0, "upper": 9}, "item": {"type": "category", "size": 9}}
TABLES = {"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}}


def plan(asked: dict[str, Any], schema: Schema = SCHEMA) -> Plan:
    """The plan of a query."""
    return compile_query(parse_query(body(asked)), schema, capacity=CAPACITY, budget_units=BUDGET_UNITS)


def covered(compiled: Plan, half_width: float) -> float:
    """How likely the noise is within a distance, in query units."""
    steps = floor(Fraction(half_width) / Fraction(2) ** compiled.grid_log2)
    return erf((steps + 0.5) / compiled.sigma_steps / sqrt(2)) if steps >= 0 else 0.0


def problem(asked: dict[str, Any]) -> str:
    """The field for which a query is refused."""
    with pytest.raises(QueryProblem) as refusal:
        plan(asked)
    (error,) = refusal.value.errors
    return error.field


def test_the_contract_query_compiles() -> None:
    """The example of the wire contract, field by field."""
    compiled = plan(
        query(
            select=[{"count": {}}, {"sum": {"column": "spend"}}],
            where={"ge": [{"col": "age"}, 40]},
            group_by=["country"],
            per_individual={"l2_clip": 3.0},
            reuse=False,
        )
    )

    assert (compiled.table, compiled.group_by, compiled.dimension) == ("people", ("country",), 6)
    assert compiled.items == (Count(), Sum(column="spend"))
    assert [item.size for item in compiled.items] == [1, 1]
    assert compiled.predicate == Within("age", 40, 120)
    assert (compiled.grid_log2, compiled.clip_binds, compiled.l2_clip) == (-23, True, 3.0)
    assert (compiled.sigma, compiled.sigma_steps) == (20.0, 20.0 * 2**23)
    assert half_width_95(sigma=compiled.sigma, grid_log2=compiled.grid_log2) == pytest.approx(39.19928)
    assert compiled.reuse is False
    assert compiled.labels[3] == {"country": "SE", "select": "sum(spend)"}
    assert compiled.axes[0] == {"column": "country", "size": 3, "categories": ["NO", "SE", "DK"]}


def test_from_is_the_individuals_table_by_default_and_the_canonical_form_says_so() -> None:
    """Left out, null or named: one query."""
    plans = [plan(query()), plan(query(from_=None)), plan(query(from_="people"))]

    assert {compiled.table for compiled in plans} == {"people"}
    assert len({compiled.query_hash for compiled in plans}) == 1
    assert json.loads(plans[0].canonical)["from"] == "people"
    assert plans[0].query_hash == hashlib.sha256(plans[0].canonical).hexdigest()


def test_an_events_table_counts_every_row_of_a_person() -> None:
    """The natural bound is that of all the rows a person may have."""
    compiled = plan(query(from_="visits", select=[{"count": {}}, {"sum": {"column": "day"}}], noise={"rho": 0.01}))

    assert compiled.clip_squared_steps == 4096**2 * (1 + 364**2)
    assert compiled.worst_case_units <= 0.01 * 2**40


def test_every_kind_of_item_and_group_has_its_size() -> None:
    """The domain is the declared one, whatever the data hold."""
    compiled = plan(
        query(
            select=[{"histogram": {"column": "age"}}, {"count": {}}, {"histogram": {"column": "area"}}],
            group_by=["member", "level", "grade"],
        )
    )

    assert compiled.items == (Histogram(column="age", size=121), Count(), Histogram(column="area", size=5))
    assert compiled.dimension == 2 * 6 * 3 * 127
    assert len(compiled.labels) == compiled.dimension
    assert compiled.clip_squared_steps == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"from_": "nobody"}, "from"),
        ({"from_": "visits", "where": {"ge": [{"col": "age"}, 1]}}, "where.ge[0].col"),
        ({"where": {"and": [{"ge": [{"col": "age"}, "x"]}]}}, "where.and[0].ge[1]"),
        ({"select": [{"sum": {"column": "height"}}]}, "select[0].sum.column"),
        ({"select": [{"count": {}}, {"sum": {"column": "country"}}]}, "select[1].sum.column"),
        ({"select": [{"sum": {"column": "member"}}]}, "select[0].sum.column"),
        ({"select": [{"sum": {"column": "limit_rho"}}]}, "select[0].sum.column"),
        ({"select": [{"histogram": {"column": "spend"}}]}, "select[0].histogram.column"),
        ({"select": [{"histogram": {"column": "limit_rho"}}]}, "select[0].histogram.column"),
        ({"select": [{"histogram": {"column": "age"}}], "group_by": ["age"]}, "select[0].histogram.column"),
        ({"group_by": ["spend"]}, "group_by[0]"),
        ({"group_by": ["country", "limit_rho"]}, "group_by[1]"),
        ({"group_by": ["country", "country"]}, "group_by[1]"),
        ({"group_by": ["country", "person_id"]}, "group_by[1]"),
        ({"from_": "visits", "group_by": ["item", "day"]}, "group_by[1]"),
        ({"from_": "visits", "select": [{"histogram": {"column": "item"}}], "group_by": ["day"]}, "select"),
        ({"select": [{"count": {}}, {"sum": {"column": "age"}}, {"count": {}}]}, "select[2]"),
        ({"select": [{"sum": {"column": "age"}}, {"histogram": {"column": "age"}}, {"sum": {"column": "age"}}]},
         "select[2]"),
        ({"select": [{"count": {}}] * 64}, "select[1]"),
        ({"noise": {"sigma": 0.1}}, "noise.sigma"),
        ({"noise": {"rho": 100}}, "noise.rho"),
        ({"noise": {"rho": 1e-13}}, "noise.rho"),
        ({"noise": {"half_width": 0.98, "confidence": 0.95}}, "noise.half_width"),
        ({"noise": {"half_width": 1, "confidence": 1e-20}}, "noise.confidence"),
        ({"from_": "visits", "select": [{"sum": {"column": "paid"}}], "per_individual": {"l2_clip": 1e-20}},
         "per_individual.l2_clip"),
    ],
)  # fmt: skip
def test_what_the_schema_does_not_allow_is_named(change: dict[str, Any], field: str) -> None:
    """Unknown names, wrong types, too many coordinates, noise out of range."""
    assert problem(query(**change)) == field


def test_an_item_that_is_repeated_is_named_with_the_first() -> None:
    """The same numbers twice are work without a query."""
    asked = query(select=[{"sum": {"column": "age"}}, {"count": {}}, {"sum": {"column": "spend"}}, {"count": {}}])
    with pytest.raises(QueryProblem) as refused:
        compile_query(parse_query(body(asked)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    (error,) = refused.value.errors
    assert (error.field, error.message) == ("select[3]", "repeats select[1]")


@pytest.mark.slow
def test_a_histogram_over_a_million_categories_lists_none() -> None:
    """Nothing is listed, neither for a size nor for a million declared names."""
    names = [f"n{place}" for place in range(2**20)]
    for domain in ({"size": 2**20}, {"categories": names}):
        columns = {"item": {"type": "category"} | domain}
        schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": columns}})
        asked = parse_query(body(query(select=[{"histogram": {"column": "item"}}])))
        compiled = compile_query(asked, schema, capacity=CAPACITY, budget_units=BUDGET_UNITS)
        assert compiled.labels == []
        assert len(json.dumps(compiled.axes)) < 200
        assert compiled.dimension == 2**20


@pytest.mark.slow
@settings(max_examples=150)
@given(queries())
def test_every_plan_keeps_its_bounds(asked: dict[str, Any]) -> None:
    """Compiling a valid query gives a plan whose numbers agree, or names a field of the scale, the rule or `reduce`."""
    try:
        compiled = plan(asked)
    except QueryProblem as refusal:
        assert refusal.errors[0].field.split(".")[0].split("[")[0] in {  # noqa: PT017 - the other outcome
            "noise",
            "per_individual",
            "reduce",
            "rule",
            "select",
        }
        return
    grid = Fraction(2) ** compiled.grid_log2
    assert 0.3 <= compiled.sigma_steps <= 2**32
    assert Fraction(compiled.sigma_steps) * grid == Fraction(compiled.sigma)
    assert 1 <= compiled.clip_squared_steps <= 2**61
    assert compiled.grid_log2 == 0 or compiled.clip_squared_steps >= 2**34 - 2**20
    assert compiled.worst_case_units == worst_case_units(compiled.clip_squared_steps, compiled.sigma_steps)
    width = half_width_95(sigma=compiled.sigma, grid_log2=compiled.grid_log2)
    assert covered(compiled, width) >= 0.95
    assert covered(compiled, width - float(grid)) < 0.95 + 1e-12
    if "half_width" in asked["noise"]:
        assert covered(compiled, asked["noise"]["half_width"]) >= asked["noise"]["confidence"] - 1e-15
    assert 1 <= compiled.dimension <= 2**20
    assert len(compiled.labels) == (compiled.dimension if compiled.dimension <= 10_000 else 0)
    assert canonical_bytes(parse_query(compiled.canonical)) == compiled.canonical
    if "rho" in asked["noise"]:
        assert Fraction(compiled.worst_case_units, 2**40) <= Fraction(asked["noise"]["rho"])


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["age", "country", "spend", "limit_rho", "NO", "people", "visits", "skip", "\ud800"]),
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["count", "sum", "column", "col", "and", "not", "in", "eq", "ge", "sigma", "rho", "from", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@st.composite
def nearly_queries(draw: st.DrawFn) -> Any:
    """A valid query in which a few values, keys or entries were replaced, added or taken away."""
    document = draw(queries())
    for _ in range(draw(st.integers(1, 3))):
        document = _damaged(document, draw)
    return document


def _damaged(value: Any, draw: st.DrawFn) -> Any:
    if not isinstance(value, (dict, list)) or not value or draw(st.integers(0, 4)) == 0:
        return draw(JUNK)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    copy: Any = value.copy()
    match draw(st.sampled_from(["into", "into", "into", "drop", "add"])):
        case "drop":
            del copy[key]
        case "add" if isinstance(copy, dict):
            copy[draw(st.sampled_from(["x", "from", "count", "rho", "l2_clip", "and", "\ud800"]))] = draw(JUNK)
        case "add":
            copy.append(draw(JUNK))
        case _:
            copy[key] = _damaged(value[key], draw)
    return copy


@pytest.mark.slow
@settings(max_examples=300)
@given(nearly_queries() | JUNK)
@example({"version": 1, "select": [{"sum": {"column": "level"}}], "noise": {"sigma": 1e100}})
@example({"version": 1, "select": [{"sum": {"column": "spend"}}], "noise": {"rho": 5e-324}})
@example({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 5e-324}, "per_individual": {"l2_clip": 1e-30}})
def test_arbitrary_json_gives_a_plan_or_a_problem(document: Any) -> None:
    """Nothing else is ever raised, and what is said can always be encoded."""
    try:
        compiled = compile_query(parse_query(body(document)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    except QueryProblem as refusal:
        assert refusal.errors  # noqa: PT017 - a refusal is one of the two outcomes
        for error in refusal.errors:
            assert error.field
            assert f"{error.field}{error.message}".isascii()
        return
    assert 0.3 <= compiled.sigma_steps <= 2**32


def registrations() -> tuple[Schema, Schema]:
    """Two that compare equal."""
    return Schema.model_validate(TABLES), Schema.model_validate(TABLES)


def compiled(asked: Query, schema: Schema) -> Plan:
    """The plan, made anew."""
    return compile_query(asked, schema, capacity=100, budget_units=2**40)


def test_a_plan_is_kept_for_one_query_and_one_registration() -> None:
    """The same objects, not equal ones: an extension makes another registration."""
    first, second = registrations()
    asked, equal = (parse_query(body(query())) for _ in "ab")
    plans = KeptPlans(compiled)
    plan = plans.of(asked, first)
    assert plans.of(asked, first) is plan
    assert plans.of(equal, first) is not plan
    assert plans.of(equal, first) == plan
    assert plans.of(asked, second) is not plan
    assert plans.of(asked, first) is not plan  # one registration of each query at a time


def test_values_that_compare_equal_have_plans_of_their_own() -> None:
    """The second is refused, although the first is kept."""
    schema, _ = registrations()
    plans = KeptPlans(compiled)
    one, true = (parse_query(body(query(where={"eq": [{"col": "age"}, value]}))) for value in (1, True))
    assert one == true
    plans.of(one, schema)
    with pytest.raises(QueryProblem):
        plans.of(true, schema)


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({"where": {"in": [{"col": "item"}, [1, 3, 5]]}}, True),
        ({"where": {"in": [{"col": "item"}, [1, 3, 5, 7]]}}, False),
        ({"select": [{"linear": {"column": "item", "matrix": MATRIX}}]}, False),
        ({"where": {"or": [{"eq": [{"col": "age"}, 1]}] * 99}}, False),
    ],
)
def test_only_what_is_small_is_kept(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, object], *, is_kept: bool
) -> None:
    """A matrix or a list may be longer than the text that it is of."""
    schema, _ = registrations()
    asked = parse_query(body(query(**fields)))
    monkeypatch.setattr(plan_module, "KEPT_CODES_MAX", 3)
    plans = KeptPlans(compiled)
    assert (plans.of(asked, schema) is plans.of(asked, schema)) is is_kept


def test_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all places are taken, all are given up."""
    monkeypatch.setattr(plan_module, "KEPT_MAX", 2)
    schema, _ = registrations()
    plans = KeptPlans(compiled)
    asked = [parse_query(body(query())) for _ in range(3)]
    first, second = (plans.of(each, schema) for each in asked[:2])
    assert (plans.of(asked[0], schema), plans.of(asked[1], schema)) == (first, second)
    assert plans.of(asked[0], schema) is first
    plans.of(asked[2], schema)
    assert plans.of(asked[0], schema) is not first


@pytest.mark.parametrize("select", [{"count": {}}, {"sum": {"column": "age"}}, {"histogram": {"column": "country"}}])
@pytest.mark.parametrize("sigma", [0.5, 20.0, 2.0**13])
def test_under_the_clip_rule_the_grid_is_fine(select: dict[str, Any], sigma: float) -> None:
    """The clip spans 2^18 steps or more, and a count has no norm that is one by the query."""
    compiled = plan(query(select=[select], noise={"sigma": sigma}, rule="clip"))
    assert compiled.clip_squared_steps >= 2**36
    assert (compiled.shortens, compiled.has_one_norm) == (True, False)
    whole = plan(query(select=[select], noise={"sigma": sigma}))
    assert (whole.shortens, whole.grid_log2) == (False, 0)
    assert compiled.worst_case_units - whole.worst_case_units in {0, 1}
    assert compiled.query_hash != whole.query_hash
