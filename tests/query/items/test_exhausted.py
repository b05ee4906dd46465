"""A tick as a query: what it may state, its canonical form, and a scale that the registration has decided."""

import json
from typing import Any

import pytest

from service.accounting.monitor import monitor_of
from service.query.canonical import canonical_bytes
from service.query.items.exhausted import Exhausted
from service.query.parse import parse_query
from service.query.plan import Plan
from service.query.words import in_words
from tests.query.samples import BUDGET_UNITS, plan_of, refused

MONITOR = monitor_of({"rho": "0.001", "ticks": 16, "share": 0.1}, budget_units=BUDGET_UNITS)
TICK: dict[str, Any] = {"version": 1, "select": [{"exhausted": {}}]}


def tick(**more: Any) -> Plan:
    """The plan of a tick."""
    return plan_of(TICK | more, monitor=MONITOR)


def test_its_scale_is_the_monitors() -> None:
    """One number of no charge, on a grid of its own, that no earlier answer stands for."""
    compiled = tick()
    assert compiled.layout.items == (Exhausted(),)
    assert (compiled.dimension, compiled.scale.worst_case_units) == (1, 0)
    assert (compiled.reuse, compiled.has_one_norm) == (False, False)
    assert (compiled.scale.size, compiled.scale.law.size_steps, compiled.scale.grid_log2) == (
        MONITOR.sigma,
        MONITOR.sigma_steps,
        -20,
    )
    assert (compiled.scale.charged_squared_steps, compiled.scale.l2_charged, compiled.answered.labels()) == (
        2**40,
        1.0,
        [{"select": "exhausted"}],
    )


def test_the_canonical_form_writes_the_noise_out_and_is_a_query() -> None:
    """It names the table and `prepaid`, is read again as the same, and has words."""
    canonical = tick().canonical
    document = json.loads(canonical)
    assert document["noise"] == {"prepaid": {}}
    assert document["from"] == "people"
    again = parse_query(canonical)
    assert canonical_bytes(again) == canonical
    assert tick(**document).query_hash == tick().query_hash == tick(reuse=False).query_hash
    assert in_words(document) == "tick of the count of exhausted people"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"where": {"ge": [{"col": "age"}, 40]}}, "where"),
        ({"group_by": ["country"]}, "group_by"),
        ({"per_individual": {"l2_clip": 1.0}}, "per_individual"),
        ({"noise": {"sigma": 3.0}}, "noise"),
        ({"noise": {"rho": 0.1}}, "noise"),
        ({"rule": "clip"}, "rule"),
        ({"reduce": "max"}, "reduce"),
        ({"reuse": True}, "reuse"),
        ({"from": "visits"}, "from"),
        ({"select": [{"exhausted": {}}, {"count": {}}], "noise": {"sigma": 3.0}}, "select"),
        ({"select": [{"count": {}}, {"exhausted": {}}], "noise": {"sigma": 3.0}}, "select"),
        ({"per_individual": {"l2_clip": [1.0]}}, "per_individual"),
        ({"mechanism": "laplace"}, "mechanism"),
    ],
)
def test_nothing_else_may_be_stated(more: dict[str, Any], field: str) -> None:
    """The field is named."""
    assert refused(tick, **more)[0] == field


def test_a_dataset_without_a_monitor_has_no_ticks() -> None:
    """By public facts."""
    assert refused(plan_of, TICK) == ("select[0].exhausted", "this dataset has no monitor")


@pytest.mark.parametrize("select", [[{"count": {}}], [{"exhausted": {}}, {"count": {}}], [{"active": {"share": 0.5}}]])
def test_noise_is_required_of_all_other_queries(select: list[dict[str, Any]]) -> None:
    """The refusal names the field."""
    assert refused(plan_of, {"version": 1, "select": select}) == ("noise", "is required")


@pytest.mark.parametrize("null", [TICK, {"version": 1, "select": [{"count": {}}]}])
def test_null_is_no_noise(null: dict[str, Any]) -> None:
    """Neither of a tick nor of another query."""
    wanted = "must be an object with sigma, or rho, or share, or half_width and confidence, or scale"
    assert refused(plan_of, null | {"noise": None}) == ("noise", wanted)


@pytest.mark.parametrize(
    "asked",
    [
        {"select": [{"count": {}}]},
        {"select": [{"count": {}}, {"sum": {"column": "age"}}]},
        {"select": [{"count": {}}, {"sum": {"column": "age"}}], "per_individual": {"l2_clip": [1.0, 5.0]}},
        {"select": [{"count": {}}], "mechanism": "gaussian", "group_by": ["country"]},
    ],
)
def test_prepaid_is_for_ticks_alone(asked: dict[str, Any]) -> None:
    """Everybody else pays."""
    wanted = ("noise.prepaid", "is the noise of a tick: select exhausted, or give a sigma")
    assert refused(plan_of, {"version": 1, "noise": {"prepaid": {}}} | asked) == wanted


def test_other_mistakes_of_a_tick_are_named_without_the_noise() -> None:
    """The messages are those for a query that states its noise."""
    assert refused(tick, nois=1) == ("nois", "is not a field of the query language")
    assert refused(tick, select=[{"exhausted": {"share": 1}}])[0] == "select[0].exhausted.share"
