"""Coverage as a query: the individuals counted, the share at which it is refused, and that no old answer will do."""

import json
from fractions import Fraction
from math import nextafter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.query.canonical import canonical_bytes
from service.query.items.active import Active
from service.query.parse import parse_query
from service.query.problems import QueryProblem
from service.query.stated import shown_of
from tests.query.samples import body, plan_of, query, refused

SHARES = st.floats(2.0**-40, 1) | st.integers(1, 10**6).map(lambda part: part / 10**6)
BUDGETS = st.integers(1, 2**61)


def active(share: float = 0.1, **more: Any) -> dict[str, Any]:
    """A query for the individuals that have a share left."""
    return query(select=[{"active": {"share": share}}]) | more


def threshold(share: float, *, budget_units: int) -> int:
    """The units that an individual must have left, for a query of hardly any charge."""
    units = plan_of(active(share, noise={"sigma": 2.0**31}), budget_units=budget_units).layout.items[0].room_units
    assert units is not None
    return units


@given(share=SHARES, budget=BUDGETS)
@example(share=0.1, budget=10)
@example(share=0.1, budget=2**40)
@example(share=0.5, budget=2**40)
def test_the_threshold_is_the_share_in_whole_units_rounded_up(share: float, budget: int) -> None:
    """Exactly: one unit less would be less than the share of the budget, by the double that was sent."""
    units = threshold(share, budget_units=budget)
    assert units - 1 < Fraction(share) * budget <= units


def test_it_is_one_number_of_one_norm_for_each_group() -> None:
    """It has the conditions and groups of a count of the table of individuals."""
    compiled = plan_of(active(where={"ge": [{"col": "age"}, 40]}, group_by=["country"]))
    counted = plan_of(query(where={"ge": [{"col": "age"}, 40]}, group_by=["country"]))
    assert compiled.layout.items == (
        Active(room_units=109_951_162_778, title="active(0.1)"),
    )  # 2^40 / 10, and a part of a unit
    assert (compiled.layout.items[0].room_units, counted.layout.items[0].room_units) == (109_951_162_778, None)
    assert compiled.has_one_norm
    assert (compiled.dimension, compiled.rows, compiled.scale) == (counted.dimension, counted.rows, counted.scale)
    assert [label["select"] for label in compiled.answered.labels()] == ["active(0.1)"] * 3
    assert compiled.answered.labels()[2]["country"] == "DK"
    assert shown_of(compiled).axes[-1] == {"select": [{"select": "active(0.1)", "offset": 0, "size": 1}]}


SHARE, ALONE = "select[0].active.share", "active stands alone: ask the other items in a query of their own"
PAYS = "each counted individual pays for this query"


@pytest.mark.parametrize(
    ("asked", "field", "message"),
    [
        (active(select=[{"active": {"share": 0.1}}, {"count": {}}]), "select", ALONE),
        (active(select=[{"count": {}}, {"active": {"share": 0.1}}]), "select", ALONE),
        (active() | {"from": "visits"}, "from", "active is about individuals, and this is a table of events"),
        (active(reuse=True), "reuse", "must be false, or left out: active changes with every charge"),
        (active(0), SHARE, "must be above 0.0"),
        (active(1.5), SHARE, "must be at most 1.0"),
        (query(select=[{"active": {}}]), SHARE, "is required"),
        (active(noise={"sigma": 1.0}), SHARE, f"{PAYS}: at least 0.5"),
        (active(noise={"sigma": 0.6}), SHARE, f"{PAYS}, and it costs more than the whole budget: ask with more noise"),
    ],
)
def test_a_refusal_names_the_field_and_says_why(asked: dict[str, Any], field: str, message: str) -> None:
    """Every refusal is by public numbers: of the query, the schema and the budget."""
    assert refused(plan_of, asked) == (field, message)


@given(
    sigma=st.floats(1, 4000),
    times=st.floats(0.01, 4),
    budget=st.integers(1, 2**61),
    clip=st.sampled_from([None, {"l2_clip": 0.25}]),
)
@example(sigma=20.0, times=0.6, budget=2**40, clip=None)
@example(sigma=20.0, times=1.0, budget=2**40, clip=None)
@example(sigma=1.0, times=0.1, budget=2**39, clip=None)
@example(sigma=1000.0, times=1e-3, budget=2**61, clip=None)
def test_all_who_are_counted_can_pay_or_a_share_is_named_that_will_do(
    sigma: float, times: float, budget: int, clip: dict[str, float] | None
) -> None:
    """An individual with exactly the threshold left pays the worst case; the named share is short and hardly more."""
    worst = plan_of(query(noise={"sigma": sigma}, per_individual=clip)).scale.worst_case_units
    least = Fraction(worst, budget)
    share = min(float(least * Fraction(times)), 1.0)
    asked = active(share, noise={"sigma": sigma}, per_individual=clip)
    try:
        compiled = plan_of(asked, budget_units=budget)
    except QueryProblem as problem:
        (error,) = problem.errors
        assert error.field == "select[0].active.share"
        assert Fraction(share) * budget <= worst - 1
        if worst > budget:
            assert error.message.endswith("ask with more noise")
            return
        named = error.message.rpartition(" ")[2]
        assert least * Fraction(99, 100) <= Fraction(float(named)) <= least * Fraction(102, 100)
        assert len(named) <= 9
        compiled = plan_of(asked | {"select": [{"active": {"share": float(named)}}]}, budget_units=budget)
    assert compiled.layout.items[0].room_units is not None
    assert compiled.layout.items[0].room_units >= compiled.scale.worst_case_units == worst


def test_the_share_of_the_noise_is_a_share_that_will_do() -> None:
    """The worst case is at most that share of the budget, whatever the budget; a little less is refused."""
    for budget in (1000, 2**40, 39_500_727_445, 2**42):
        for share in (0.01, 0.1, 1 / 3):
            compiled = plan_of(active(share, noise={"share": share}), budget_units=budget)
            assert compiled.layout.items[0].room_units is not None
            assert compiled.layout.items[0].room_units >= compiled.scale.worst_case_units
        least = nextafter(compiled.scale.worst_case_units / budget, 0) - 2.0 / budget
        assert (
            refused(plan_of, active(least, noise={"share": 1 / 3}), budget_units=budget)[0] == "select[0].active.share"
        )


def test_a_budget_of_nothing_lets_nobody_pay() -> None:
    """No share of it will do."""
    assert refused(plan_of, active(1.0), budget_units=0)[1].endswith(
        "costs more than the whole budget: ask with more noise"
    )


def test_reuse_is_false_where_it_is_left_out() -> None:
    """And true for every other query; what is asked is the same with and without it."""
    fresh, said = parse_query(body(active())), parse_query(body(active(reuse=False)))
    assert [plan_of(active()).reuse, plan_of(active(reuse=False)).reuse, fresh.may_reuse] == [False] * 3
    assert canonical_bytes(fresh) == canonical_bytes(said)
    assert plan_of(query()).reuse
    asked = [parse_query(body(query(**more))) for more in ({}, {"reuse": True}, {"reuse": False})]
    assert [each.may_reuse for each in asked] == [True, True, False]


def test_the_form_in_the_ledger_is_a_query_again() -> None:
    """It says nothing of reuse, and means none."""
    compiled = plan_of(active(0.25, group_by=["country"]))
    again = plan_of(json.loads(compiled.canonical))
    assert (again.canonical, again.query_hash, again.layout.items) == (
        compiled.canonical,
        compiled.query_hash,
        compiled.layout.items,
    )
    assert not again.reuse
