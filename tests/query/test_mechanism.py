"""Laplace noise is for one number of each individual, and for datasets that have a price for it."""

from typing import Any

import numpy as np
import orjson
import pytest

from service.accounting.accountings import GAUSSIAN, PURE, Accounting
from service.core.laplace import laplace_worst_case_units
from service.core.laws import Gaussian
from service.query.plan import Plan
from service.query.problems import QueryProblem
from service.query.schema import Schema
from service.query.words import in_words
from service.store.shards.messages import packed, unpacked
from tests.query.samples import plan_of, refused

SCHEMA = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}, "place": {"type": "category", "size": 5}},
        },
        "visits": {
            "kind": "events",
            "key": "id",
            "rows_per_individual": 8,
            "columns": {"spend": {"type": "real", "lower": 0, "upper": 10}, "item": {"type": "category", "size": 3}},
        },
    }
)
SUM, HISTOGRAM = {"sum": {"column": "age"}}, {"histogram": {"column": "place"}}


def laplace_plan(pricing: Accounting | None = GAUSSIAN, **query: Any) -> Plan:
    """The plan of a count with Laplace noise, or of what is given."""
    document = {"version": 1, "select": [{"count": {}}], "noise": {"scale": 20.0}, "mechanism": "laplace"} | query
    return plan_of(document, SCHEMA, capacity=1000, pricing=pricing)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"select": [SUM]},
        {"select": [HISTOGRAM]},
        {"group_by": ["place"]},
        {"select": [{"count_individuals": {}}]},
        {"from": "visits"},
        {"from": "visits", "select": [{"sum": {"column": "spend"}}], "per_individual": {"l2_clip": 20.0}},
        {"from": "visits", "where": {"eq": [{"col": "item"}, 1]}, "per_individual": {"rows": 2}},
        {"from": "visits", "select": [{"count_individuals": {}}]},
    ],
)
def test_an_individual_has_one_number(query: dict[str, Any]) -> None:
    """One item over the individuals' table, in groups too; one count or sum of events. The worst case is the price."""
    plan = laplace_plan(**query)
    assert plan.scale.law.name == "laplace gdp"
    assert plan.terms.law is plan.scale.law
    assert plan.scale.worst_case_units == laplace_worst_case_units(
        plan.scale.charged_squared_steps, plan.scale.law.size_steps, GAUSSIAN.laplace_prices
    )
    assert (plan.noise.scale, plan.noise.sigma) == (20.0, 20.0 * 2**0.5)


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"select": [SUM, {"count": {}}]}, "mechanism", "ask each item in a query of its own"),
        ({"from": "visits", "select": [{"histogram": {"column": "item"}}]}, "mechanism", "select count, count_ind"),
        ({"from": "visits", "group_by": ["item"]}, "mechanism", "events of one individual may be in several groups"),
        ({"select": [{"active": {"share": 0.5}}]}, "mechanism", "select count, count_individuals, sum or histogram"),
        ({"rule": "clip"}, "rule", "clip is for vectors with Gaussian noise"),
        ({"noise": {"scale": 1e-9}}, "noise.scale", "must give a scale of at least"),
        ({"noise": {"scale": 1e30}}, "noise.scale", "must give a scale of at most"),
        ({"noise": {"share": 1e-30}}, "noise.share", "is too small"),
        ({"mechanism": "gaussian"}, "noise.scale", "is of Laplace noise"),
        ({"mechanism": "gaussian", "select": [SUM, {"count": {}}]}, "noise.scale", "is of Laplace noise"),
    ],
)
def test_other_queries_are_refused_by_their_field(query: dict[str, Any], field: str, said: str) -> None:
    """Before any record is read."""
    found = refused(laplace_plan, **query)
    assert (found[0], said in found[1]) == (field, True)


def test_a_mechanism_without_a_price_is_refused() -> None:
    """A Gaussian under pure differential privacy, and Laplace noise where nothing prices it."""
    for pricing, query in ((PURE, {"mechanism": "gaussian", "noise": {"sigma": 2.0}}), (None, {})):
        with pytest.raises(QueryProblem, match="mechanism"):
            laplace_plan(pricing, **query)


def test_a_gaussian_has_the_canonical_form_that_it_always_had() -> None:
    """The mechanism is named for Laplace noise alone, and told in words."""
    gaussian = laplace_plan(mechanism="gaussian", noise={"sigma": 2.0})
    assert b"mechanism" not in gaussian.canonical
    assert gaussian.scale.law == Gaussian(2.0)
    laplace = laplace_plan()
    assert b'"mechanism":"laplace"' in laplace.canonical
    assert in_words(orjson.loads(laplace.canonical)) == "count of people, scale 20, Laplace noise"


@pytest.mark.parametrize("pricing", [GAUSSIAN, PURE])
def test_a_plan_reaches_a_shard_with_its_prices(pricing: Accounting) -> None:
    """It goes as a message between processes, by known classes alone."""
    plan = laplace_plan(pricing)
    received = unpacked(packed(plan))
    norms = np.arange(50, dtype=np.int64) ** 2
    assert (received.scale.law.name, received.scale.law.size_steps) == (plan.scale.law.name, plan.scale.law.size_steps)
    assert received.scale.law.charges(norms).tolist() == plan.scale.law.charges(norms).tolist()
