"""A query in words: every node of the language, in one line that a person reads."""

import json
from typing import Any

import pytest
from hypothesis import given

from service.query.canonical import canonical_bytes
from service.query.parse import parse_query
from service.query.phrases import PARTS_SHOWN_MAX
from service.query.words import in_words
from tests.query.samples import body, queries

LENGTH_MAX = 40_000
COUNT: dict[str, Any] = {"version": 1, "from": "visits", "select": [{"count": {}}], "noise": {"sigma": 18}}


def words(**more: Any) -> str:
    """The words for a count of visits, with some members changed."""
    return in_words(json.loads(canonical_bytes(parse_query(body(COUNT | more)))))


A, B, C = ({"eq": [{"col": name}, number]} for number, name in enumerate("abc", start=1))
ITEM, DAY, PAID = ({"col": name} for name in ("item", "day", "paid"))
TWICE, DAYS = {"mul": [PAID, 2]}, {"abs": {"sub": [DAY, {"col": "people.age"}]}}


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"eq": [ITEM, 7]}, "item = 7"),
        ({"ne": [{"col": "country"}, "NO"]}, "country ≠ “NO”"),
        ({"lt": [PAID, 2.5]}, "paid < 2.5"),
        ({"le": [PAID, 1]}, "paid ≤ 1"),
        ({"gt": [PAID, -1]}, "paid > -1"),
        ({"ge": [DAY, 40]}, "day ≥ 40"),
        ({"eq": [{"col": "member"}, True]}, "member = true"),
        ({"between": [DAY, 1, 9]}, "day from 1 to 9"),
        ({"is_null": DAY}, "day is missing"),
        ({"fold": {"seed": "churn", "of": 5, "in": [0, 2]}}, "in 0 and 2 of 5 parts by “churn”"),
        ({"lt": [TWICE, DAYS]}, "(paid * 2) < |(day - people.age)|"),
        ({"in": [ITEM, [1, 2]]}, "item in (1, 2)"),
        ({"in": [ITEM, list(range(10))]}, "item in (0, 1, 2, 3, 4, 5 more)"),
        ({"and": [A, {"or": [B, C]}]}, "a = 1 and (b = 2 or c = 3)"),
        ({"or": [A]}, "a = 1"),
        ({"not": A}, "not (a = 1)"),
    ],
)
def test_each_condition_has_its_words(where: dict[str, Any], told: str) -> None:
    """The words are those of a person."""
    assert words(where=where) == f"count of visits where {told}, σ 18"


OF_ACTIVE = {"from": "people", "select": [{"active": {"share": 0.125}}], "where": {"eq": [ITEM, 7]}}
SUM, CUT = {"sum": {"column": "paid"}}, {"sum": {"of": {"clip": [{"add": [PAID, 0.5]}, 0, 9]}}}
PARTS = [
    {"bin": {"column": "paid", "width": 10}},
    {"bin": {"column": "day", "edges": [0, 7, 14]}},
    {"bucket": {"column": "at", "by": "month"}},
]
WEIGHTS = {"column": "item", "weights": {"indices": [1, 2], "values": [3, 4.5]}}
MATRIX = {"column": "item", "matrix": {"starts": [0, 2, 2, 3], "indices": [1, 2, 1], "values": [3, 4.5, 1]}}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "count of visits, σ 18"),
        ({"select": [SUM]}, "sum of paid in visits, σ 18"),
        (OF_ACTIVE, "count of people with at least 12.5 % of the budget left where item = 7, σ 18"),
        (
            {"select": [{"count": {}}, SUM, {"histogram": {"column": "day"}}]},
            "count, sum of paid and histogram of day in visits, σ 18",
        ),
        ({"select": [CUT]}, "sum of (paid + 0.5) cut to 0..9 in visits, σ 18"),
        ({"group_by": PARTS}, "count of visits, by paid in bins of 10, day in 2 bins and month of at, σ 18"),
        ({"group_by": ["country", "day"]}, "count of visits, by country and day, σ 18"),
        ({"select": [{"linear": WEIGHTS}]}, "weights of 2 values of item in visits, σ 18"),
        ({"select": [{"linear": MATRIX}]}, "3 functionals of item with 3 weights in visits, σ 18"),
        (
            {"select": [{"histogram": {"column": "item", "values": [1, 5]}}]},
            "histogram of 2 values of item in visits, σ 18",
        ),
        ({"select": [{"count_individuals": {}}]}, "individuals in visits, σ 18"),
        ({"per_individual": {"rows": 5}}, "count of visits, people with more than 5 rows as 5, σ 18"),
        ({"per_individual": {"l2_clip": 3}}, "count of visits, clipped to 3 per person, σ 18"),
        ({"noise": {"share": 0.015}}, "count of visits, at most 1.5 % of the budget per person"),
        ({"noise": {"rho": 0.001}}, "count of visits, at most ρ 0.001 per person"),
        ({"noise": {"half_width": 35, "confidence": 0.95}}, "count of visits, ± 35 with 95 % confidence"),
    ],
)
def test_each_item_group_and_bound_has_its_words(more: dict[str, Any], told: str) -> None:
    """In one sentence."""
    assert words(**more) == told


@given(queries())
def test_every_query_has_words(query: dict[str, Any]) -> None:
    """One bounded line that names the table, and every column of the selection unless there are too many."""
    told = in_words(json.loads(canonical_bytes(parse_query(body(query)), table="people")))
    assert "\n" not in told
    assert len(told) <= LENGTH_MAX
    assert (query.get("from") or "people") in told
    columns = [each["column"] for item in query["select"] for each in item.values() if "column" in each]
    if len(query["select"]) <= PARTS_SHOWN_MAX:
        assert all(column in told for column in columns)


def test_words_do_not_depend_on_the_order_of_members() -> None:
    """Two spellings of one query have one canonical form, and so the same words."""
    turned = dict(reversed(list(COUNT.items())))
    assert in_words(json.loads(canonical_bytes(parse_query(body(turned))))) == words()


def test_a_burn_says_why() -> None:
    """Its ledger entry has no query."""
    burn = {"burn": {"why": "ledger-rollback", "units": "7"}}
    assert in_words(burn) == "burn after a restored backup: ledger-rollback"


@pytest.mark.parametrize("wrong", [{}, {"select": []}, {"burn": {}}])
def test_another_document_is_refused(wrong: dict[str, Any]) -> None:
    """A LookupError, and no words for what is no query."""
    with pytest.raises(LookupError):
        in_words(wrong)
