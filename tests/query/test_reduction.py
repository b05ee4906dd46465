"""Which vector sums are reduced to one number, what an individual is charged for at most, and what is refused."""

from fractions import Fraction
from math import isqrt
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN, PURE, Accounting
from service.core.charge import worst_case_units
from service.query.cost import Costs, Speed
from service.query.parse import parse_query
from service.query.plan import Plan
from service.query.problems import QueryProblem
from service.query.reduction import REDUCTIONS
from service.query.schema import Schema
from service.query.stated import shown_of
from service.query.words import in_words
from service.store.shards.messages import packed, unpacked
from tests.query.samples import plan_of, refused

SCHEMA = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {
                "age": {"type": "integer", "lower": -20, "upper": 120},
                "place": {"type": "category", "size": 5},
                "sex": {"type": "category", "size": 2},
            },
        },
        "visits": {
            "kind": "events",
            "key": "id",
            "rows_per_individual": 8,
            "columns": {
                "spend": {"type": "real", "lower": 0, "upper": 10},
                "item": {"type": "category", "size": 3},
                "kind": {"type": "category", "size": 2**16},
            },
        },
    }
)
CAPACITY = 1000
MOMENTS = {"select": [{"moments": {"features": [{"of": {"col": "age"}}, {"one_hot": "sex"}]}}]}
SUM, HISTOGRAM = {"sum": {"column": "age"}}, {"histogram": {"column": "place"}}
OF_VISITS: dict[str, Any] = {"from": "visits"}
OF_ITEM: dict[str, Any] = {"from": "visits", "select": [{"histogram": {"column": "item"}}]}
WEIGHTS = [{"indices": [0, 1], "values": [3, -4]}, {"indices": [1, 2], "values": [12, 2]}]


def reduced(pricing: Accounting | None = GAUSSIAN, **query: Any) -> Plan:
    """The plan of a reduced histogram, or of what is given."""
    document = {"version": 1, "select": [HISTOGRAM], "noise": {"sigma": 20.0}, "reduce": "max"} | query
    return plan_of(document, SCHEMA, capacity=CAPACITY, pricing=pricing)


@pytest.mark.parametrize(
    ("query", "longest", "title"),
    [
        ({}, 1, "max(histogram(place)) of 5"),
        ({"select": [SUM], "group_by": ["place"]}, 120, "max(sum(age)) of 5"),
        (OF_ITEM, 8, "max(histogram(item)) of 3"),
        (OF_ITEM | {"per_individual": {"rows": 3}}, 3, "max(histogram(item)) of 3"),
        (OF_VISITS | {"select": [{"count_individuals": {}}], "group_by": ["item"]}, 1, "max(count_individuals) of 3"),
        (OF_VISITS | {"select": [{"linear": {"column": "item", "weights": WEIGHTS}}]}, 96, "max(2 functionals) of 2"),
    ],
)
def test_the_largest_number_charges_for_the_largest_entry_at_most(
    query: dict[str, Any], longest: int, title: str
) -> None:
    """All rows of an individual are in one cell, at their bounds; the norm may be longer. The answer is one number."""
    plan = reduced(**query)
    assert (plan.scale.charged_squared_steps, plan.scale.l2_charged) == (
        longest**2 << -2 * plan.scale.grid_log2,
        longest,
    )
    assert (plan.scale.grid_log2 == 0) == (plan.rows.rows_kept is None)
    assert (
        plan.scale.worst_case_units
        == worst_case_units(longest**2, 20.0)
        == worst_case_units(longest**2, plan.scale.size)
    )
    assert (plan.dimension, plan.answered.labels(), plan.terms.dimension) == (
        1,
        [{"select": title}],
        plan.layout.dimension,
    )
    assert shown_of(plan).axes == [{"select": [{"select": title, "offset": 0, "size": 1}]}]
    assert plan.scale.clip_squared_steps >= plan.scale.charged_squared_steps == plan.terms.norm_squared_max


def test_a_clip_bounds_the_largest_entry_too() -> None:
    """It does so in whole steps: a vector within the clip has no entry beyond it."""
    plan = reduced(**OF_ITEM, per_individual={"l2_clip": 2.5})
    assert plan.scale.charged_squared_steps == isqrt(plan.scale.clip_squared_steps) ** 2
    assert plan.scale.l2_charged == 2.5


@pytest.mark.parametrize(
    "query", [{}, OF_ITEM, {"select": [SUM], "group_by": ["place"]}, OF_ITEM | {"noise": {"share": 1e-3}}]
)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_norm_has_a_grid_of_which_the_clip_has_many_steps(query: dict[str, Any], mechanism: str) -> None:
    """2^18 at least, for whole numbers too; charged is the clip rounded up and a step."""
    plan = reduced(**query, reduce="norm", mechanism=mechanism)
    clip = plan.scale.clip_squared_steps
    root = isqrt(clip)
    assert root >= 2**18
    assert plan.scale.charged_squared_steps == (root + (root**2 < clip) + 1) ** 2
    assert Fraction(plan.scale.charged_squared_steps, clip) < Fraction(1 + 2**-16)
    assert plan.terms.norm_squared_max == plan.scale.charged_squared_steps


@pytest.mark.parametrize("reduce", ["max", "norm"])
@pytest.mark.parametrize("noise", [{"share": 0.01}, {"rho": 0.01}])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_worst_case_is_that_of_the_number(reduce: str, noise: dict[str, float], mechanism: str) -> None:
    """At most what is asked for, and hardly less."""
    plan = reduced(**OF_ITEM, reduce=reduce, noise=noise, mechanism=mechanism)
    assert 0.01 * (1 - 1e-4) * 2**40 < plan.scale.worst_case_units <= 0.01 * 2**40


@given(clip_squared=st.integers(1, 2**61), peak=st.integers(1, 2**31))
def test_what_is_charged_at_most(clip_squared: int, peak: int) -> None:
    """The largest entry of a vector within the clip; its norm rounded up, and a step."""
    most = isqrt(REDUCTIONS["max"].charged_squared(clip_squared, peak))
    assert most**2 == REDUCTIONS["max"].charged_squared(clip_squared, peak) <= clip_squared
    assert most == peak or (most < peak and (most + 1) ** 2 > clip_squared)
    longest = isqrt(REDUCTIONS["norm"].charged_squared(clip_squared, peak)) - 1
    assert (longest + 1) ** 2 == REDUCTIONS["norm"].charged_squared(clip_squared, peak)
    assert (longest - 1) ** 2 < clip_squared <= longest**2


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"select": [SUM]}, "reduce", "is for several coordinates, and this query has one"),
        ({"select": [{"histogram": {"column": "place", "values": [3]}}]}, "reduce", "is for several coordinates"),
        ({"select": [HISTOGRAM, SUM]}, "reduce", "is for one select item"),
        ({"select": [{"active": {"share": 0.5}}], "group_by": ["place"]}, "reduce", "not for active"),
        (MOMENTS, "reduce", "not for moments"),
        ({"noise": {"sigma": [20.0]}}, "reduce", "has one number: give one number"),
        ({"per_individual": {"l2_clip": [1.0]}}, "reduce", "has one number: give one number"),
        ({"rule": "clip"}, "rule", "clip shortens vectors"),
        ({"rule": "clip", "mechanism": "laplace"}, "rule", "clip shortens vectors"),
        ({"reduce": "min"}, "reduce", "max"),
        ({"reduce": ["max"]}, "reduce", "max"),
    ],
)
def test_other_queries_are_refused_by_their_field(query: dict[str, Any], field: str, said: str) -> None:
    """By their form alone."""
    found = refused(reduced, **query)
    assert (found[0], said in found[1]) == (field, True)


def test_a_gaussian_has_no_charge_under_pure_and_laplace_noise_has() -> None:
    """A reduced vector sum is one number of each individual, so that its L1 and L2 norms are one."""
    with pytest.raises(QueryProblem, match="gaussian has no finite charge in this dataset; ask with laplace"):
        reduced(PURE)
    for query in (OF_ITEM, {"from": "visits", "select": [{"count": {}}], "group_by": ["item"]}):
        plan = reduced(PURE, **query, mechanism="laplace", noise={"scale": 16.0})
        assert plan.scale.worst_case_units == 2**39  # 8 rows over 16
        with pytest.raises(QueryProblem, match="laplace is for one number"):
            reduced(PURE, **query, mechanism="laplace", reduce=None)


def test_a_query_that_is_not_reduced_has_the_canonical_form_of_before() -> None:
    """Null is what is left out; a reduced query is another one, and says which."""
    plain, spelt = reduced(reduce=None), parse_query(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":1}}')
    assert b"reduce" not in plain.canonical
    assert spelt.reduce is None
    largest, norm = reduced(), reduced(reduce="norm")
    assert b'"reduce":"max"' in largest.canonical
    assert len({plain.query_hash, largest.query_hash, norm.query_hash}) == 3
    told = [in_words(orjson.loads(plan.canonical)) for plan in (largest, norm)]
    assert told == [
        "histogram of place in people, the largest number, σ 20",
        "histogram of place in people, the norm of the numbers, σ 20",
    ]


def test_a_plan_goes_to_a_shard_with_that_of_its_vectors() -> None:
    """The messages of a shard carry both."""
    plan = reduced(**OF_ITEM, reduce="norm")
    there = unpacked(packed(plan))
    assert (there.reduce, there.layout.dimension, there.terms) == ("norm", 3, plan.terms)


@pytest.mark.parametrize("reduce", ["max", "norm"])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_price_has_the_vectors_and_one_number(reduce: str, shards: int) -> None:
    """One noise and one number of 2^16; the vectors, their norms, their sum and what is made of it are all paid for."""
    query: dict[str, Any] = {"from": "visits", "select": [{"histogram": {"column": "kind"}}]}
    costs = Costs(SCHEMA, capacity=CAPACITY, speed=Speed(), shards=shards)
    price, whole = costs.of(reduced(**query, reduce=reduce)), costs.of(reduced(**query, reduce=None))
    few = costs.of(reduced(**OF_ITEM, reduce=reduce))
    assert few.time_ns + 2**16 * 50 < price.time_ns < whole.time_ns
    assert few.working_bytes < price.working_bytes <= whole.working_bytes
    assert few.kept_bytes * 1.2 > price.kept_bytes
    assert whole.kept_bytes > 2**16
    one = costs.of(reduced(**query, reduce="max" if reduce == "norm" else "norm"))
    assert one != price
    assert costs.of(reduced(**OF_ITEM, reduce=None)).time_ns < few.time_ns
