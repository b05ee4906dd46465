"""Compiling: a query and a public schema to a plan, or a problem that names the field."""

import hashlib
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings

from service.core.charge import worst_case_units
from service.query import plan as plan_module
from service.query.canonical import canonical_bytes
from service.query.language import Query
from service.query.parse import parse_query
from service.query.plan import KeptPlans, Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import Schema
from service.query.stated import shown_of
from tests.query.samples import body, half_width_95, plan_of, queries, query, refused
from tests.rotation import times

MATRIX = {"starts": [0, 1, 2], "indices": [1, 2], "values": [1, 2]}
AGES, CLIP = {"sum": {"column": "age"}}, "per_individual.l2_clip"
COLUMNS = {"age": {"type": "integer", "lower": 0, "upper": 9}, "item": {"type": "category", "size": 9}}
TABLES = {"people": {"kind": "individuals", "key": "id", "columns": COLUMNS}}


def test_from_is_the_individuals_table_by_default_and_the_canonical_form_says_so() -> None:
    """Left out, null or named: one query."""
    plans = [plan_of(query()), plan_of(query(from_=None)), plan_of(query(from_="people"))]

    assert {compiled.rows.table for compiled in plans} == {"people"}
    assert len({compiled.query_hash for compiled in plans}) == 1
    assert json.loads(plans[0].canonical)["from"] == "people"
    assert plans[0].query_hash == hashlib.sha256(plans[0].canonical).hexdigest()


def test_an_events_table_counts_every_row_of_a_person() -> None:
    """The natural bound is that of all the rows a person may have."""
    compiled = plan_of(query(from_="visits", select=[{"count": {}}, {"sum": {"column": "day"}}], noise={"rho": 0.01}))

    assert compiled.scale.charged_squared_steps == 4096**2 * (1 + 364**2)
    assert compiled.scale.worst_case_units <= 0.01 * 2**40


def test_every_kind_of_item_and_group_has_its_size() -> None:
    """The domain is the declared one, whatever the data hold."""
    histograms = [{"histogram": {"column": name}} for name in ("age", "area")]
    found = plan_of(query(select=[histograms[0], {"count": {}}, histograms[1]], group_by=["member", "level", "grade"]))

    assert [(item.title, item.column, item.size) for item in found.layout.items] == [
        ("histogram(age)", "age", 121),
        ("count", None, 1),
        ("histogram(area)", "area", 5),
    ]
    assert (found.rows.group_by, found.dimension) == (("member", "level", "grade"), 2 * 6 * 3 * 127)
    assert (found.scale.charged_squared_steps, len(found.answered.labels())) == (3, found.dimension)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"from_": "nobody"}, "from"),
        ({"from_": "visits", "where": {"ge": [{"col": "age"}, 1]}}, "where.ge[0].col"),
        ({"select": [{"sum": {"column": "height"}}]}, "select[0].sum.column"),
        ({"select": [{"count": {}}, {"sum": {"column": "country"}}]}, "select[1].sum.column"),
        ({"select": [{"sum": {"column": "limit_rho"}}]}, "select[0].sum.column"),
        ({"select": [{"histogram": {"column": "spend"}}]}, "select[0].histogram.column"),
        ({"select": [{"histogram": {"column": "limit_rho"}}]}, "select[0].histogram.column"),
        ({"select": [{"histogram": {"column": "age"}}], "group_by": ["age"]}, "select[0].histogram.column"),
        ({"group_by": ["country", "limit_rho"]}, "group_by[1]"),
        ({"group_by": ["country", "country"]}, "group_by[1]"),
        ({"group_by": ["country", "person_id"]}, "group_by[1]"),
        ({"from_": "visits", "group_by": ["item", "day"]}, "group_by[1]"),
        ({"from_": "visits", "select": [{"histogram": {"column": "item"}}], "group_by": ["day"]}, "select"),
        ({"select": [AGES, {"histogram": {"column": "age"}}, AGES]}, "select[2]"),
        ({"select": [{"count": {}}] * 64}, "select[1]"),
        ({"noise": {"sigma": 0.1}}, "noise.sigma"),
        ({"noise": {"rho": 100}}, "noise.rho"),
        ({"noise": {"half_width": 0.98, "confidence": 0.95}}, "noise.half_width"),
        ({"from_": "visits", "select": [{"sum": {"column": "paid"}}], "per_individual": {"l2_clip": 1e-20}}, CLIP),
    ],
)
def test_what_the_schema_does_not_allow_is_named(change: dict[str, Any], field: str) -> None:
    """Unknown names, wrong types, too many coordinates, noise out of range."""
    assert refused(plan_of, query(**change))[0] == field


def test_an_item_that_is_repeated_is_named_with_the_first() -> None:
    """Repeated numbers are work without a query."""
    asked = query(select=[AGES, {"count": {}}, {"sum": {"column": "spend"}}, {"count": {}}])
    assert refused(plan_of, asked) == ("select[3]", "repeats select[1]")


def test_a_histogram_over_a_million_categories_lists_none() -> None:
    """Nothing is listed, neither for a size nor for a million declared names."""
    names = [f"n{place}" for place in range(2**20)]
    for domain in ({"size": 2**20}, {"categories": names}):
        columns = {"item": {"type": "category"} | domain}
        schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": columns}})
        found = plan_of(query(select=[{"histogram": {"column": "item"}}]), schema)
        assert (found.answered.labels(), found.dimension) == ([], 2**20)
        assert len(json.dumps(shown_of(found).axes)) < 200


@settings(max_examples=times(75, 150))
@given(queries())
def test_every_plan_keeps_its_bounds(asked: dict[str, Any]) -> None:
    """Compiling a valid query gives a plan whose numbers agree, or names a field of the scale, the rule or `reduce`."""
    try:
        found = plan_of(asked)
    except QueryProblem as refusal:
        named = refusal.errors[0].field.split(".")[0].split("[")[0]
        assert named in {"noise", "per_individual", "reduce", "rule", "select"}
        return
    assert 0.3 <= found.scale.law.size_steps <= 2**32
    assert Fraction(found.scale.law.size_steps) * Fraction(2) ** found.scale.grid_log2 == Fraction(found.scale.size)
    assert 1 <= found.scale.charged_squared_steps <= 2**61
    assert found.scale.grid_log2 == 0 or found.scale.charged_squared_steps >= 2**34 - 2**20
    assert found.scale.worst_case_units == worst_case_units(
        found.scale.charged_squared_steps, found.scale.law.size_steps
    )
    assert found.noise.half_width_95 == half_width_95(sigma=found.scale.size, grid_log2=found.scale.grid_log2)
    assert 1 <= found.dimension <= 2**20
    assert len(found.answered.labels()) == (found.dimension if found.dimension <= 10_000 else 0)
    assert canonical_bytes(parse_query(found.canonical)) == found.canonical
    if "rho" in asked["noise"]:
        assert Fraction(found.scale.worst_case_units, 2**40) <= Fraction(asked["noise"]["rho"])


SCHEMA_KEPT = Schema.model_validate(TABLES)


def compiled(asked: Query, schema: Schema) -> Plan:
    """The plan, made anew."""
    return compile_query(asked, schema, capacity=100, budget_units=2**40)


def test_a_plan_is_kept_for_one_query_and_one_registration() -> None:
    """It is kept for these very objects, and not for equal ones: an extension makes another registration."""
    first, second = SCHEMA_KEPT, Schema.model_validate(TABLES)
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
    plans = KeptPlans(compiled)
    one, true = (parse_query(body(query(where={"eq": [{"col": "age"}, value]}))) for value in (1, True))
    assert one == true
    plans.of(one, SCHEMA_KEPT)
    with pytest.raises(QueryProblem):
        plans.of(true, SCHEMA_KEPT)


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
    asked = parse_query(body(query(**fields)))
    monkeypatch.setattr(plan_module, "KEPT_CODES_MAX", 3)
    plans = KeptPlans(compiled)
    assert (plans.of(asked, SCHEMA_KEPT) is plans.of(asked, SCHEMA_KEPT)) is is_kept


def test_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all places are taken, all are given up."""
    monkeypatch.setattr(plan_module, "KEPT_MAX", 2)
    plans = KeptPlans(compiled)
    asked = [parse_query(body(query())) for _ in range(3)]
    first, second = (plans.of(each, SCHEMA_KEPT) for each in asked[:2])
    assert (plans.of(asked[0], SCHEMA_KEPT), plans.of(asked[1], SCHEMA_KEPT)) == (first, second)
    assert plans.of(asked[0], SCHEMA_KEPT) is first
    plans.of(asked[2], SCHEMA_KEPT)
    assert plans.of(asked[0], SCHEMA_KEPT) is not first


@pytest.mark.parametrize("select", [{"count": {}}, {"sum": {"column": "age"}}, {"histogram": {"column": "country"}}])
@pytest.mark.parametrize("sigma", [0.5, 20.0, 2.0**13])
def test_under_the_clip_rule_the_grid_is_fine(select: dict[str, Any], sigma: float) -> None:
    """The clip spans 2^18 steps or more, and a count has no norm that is one by the query."""
    compiled = plan_of(query(select=[select], noise={"sigma": sigma}, rule="clip"))
    assert compiled.scale.charged_squared_steps >= 2**36
    assert (compiled.shortens, compiled.has_one_norm) == (True, False)
    whole = plan_of(query(select=[select], noise={"sigma": sigma}))
    assert (whole.shortens, whole.scale.grid_log2) == (False, 0)
    assert compiled.scale.worst_case_units - whole.scale.worst_case_units in {0, 1}
    assert compiled.query_hash != whole.query_hash


@settings(max_examples=times(75, 150))
@given(queries())
@example(query(select=[{"histogram": {"column": "area", "values": [1, 2]}}, {"histogram": {"column": "area"}}]))
@example(query(select=[{"linear": {"column": "area", "weights": {"indices": [1], "values": [n]}}} for n in (1, 2)]))
def test_no_two_numbers_have_one_label(asked: dict[str, Any]) -> None:
    """If two items have one title, their places in select stand before it."""
    try:
        labels = [json.dumps(label) for label in plan_of(asked).answered.labels()]
    except QueryProblem:
        return
    assert len(set(labels)) == len(labels)


def test_a_histogram_is_not_asked_in_bins_of_its_own_column() -> None:
    """Both would have one name in labels, and one value would hide the other."""
    field, said = refused(
        plan_of, query(select=[{"histogram": {"column": "age"}}], group_by=[{"bin": {"column": "age", "width": 60}}])
    )
    assert field == "select[0].histogram.column"
    assert said == "'age' is in group_by already; a count gives its histogram"
