"""The findings follow from answers, ledger, budgets and truth by arithmetic that can be redone by hand."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing import Answer, BudgetRow, LedgerRow
from sparing_demo.dataset import Area
from sparing_demo.report import (
    AreaResult,
    Budgets,
    active_share,
    area_results,
    budgets_of,
    smoothed_active_shares,
    worst_case_queries,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def result(*, charged: int, left_out: int, answer: float = 0.0) -> AreaResult:
    """One query about an area without a name."""
    return AreaResult(
        number=1,
        area=Area(id="1", title="", path="/"),
        topic="",
        answer=answer,
        half_width_95=35.0,
        truth=charged + left_out,
        charged=charged,
        left_out=left_out,
        certified=False,
        reused=False,
    )


def answer(sequence: int, value: float) -> Answer:
    """A released answer with one value."""
    return Answer(
        id=str(sequence),
        sequence=sequence,
        values=(value,),
        labels=({"select": "count"},),
        axes=(),
        sigma=18.0,
        grid=1.0,
        dimension=1,
        half_width_95=35.3,
        worst_case_rho=Decimal("0.0015"),
        coverage_certified=True,
        reused=False,
        epoch=1,
        released_at=NOW,
        table="people",
    )


def row(sequence: int, charged: int, left_out: int) -> LedgerRow:
    """A row of the ledger."""
    return LedgerRow(
        sequence=sequence,
        query_id=str(sequence),
        analyst="Ann",
        query={},
        sigma=18.0,
        grid=1.0,
        dimension=1,
        worst_case_rho=Decimal("0.0015"),
        charged=charged,
        left_out=left_out,
        asked_at=NOW,
        epoch=1,
        previous_hash="",
        hash="",
    )


@pytest.mark.parametrize(
    ("budget", "charge", "queries"), [("0.03", "0.0015", 20), ("0.02999", "0.0015", 19), ("0.001", "0.0015", 0)]
)
def test_worst_case_accounting_stops_where_the_budget_ends(budget: str, charge: str, queries: int) -> None:
    """Exactly: a budget that is just enough pays for the last query."""
    assert worst_case_queries(budget_rho=Decimal(budget), worst_case_rho=Decimal(charge)) == queries


def test_the_horizon_of_the_demo() -> None:
    """(1, 1e-6) allows mu = 0.2367, so rho = 0.028, which at sigma 18 is 18 counts; redone from the Gaussian curve."""

    def delta(mu: float) -> float:
        def upper(x: float) -> float:
            return math.erfc(x / math.sqrt(2)) / 2

        return upper(1 / mu - mu / 2) - math.e * upper(1 / mu + mu / 2)

    low, high = 0.01, 1.0
    for _ in range(60):
        low, high = (low, (low + high) / 2) if delta((low + high) / 2) > 1e-6 else ((low + high) / 2, high)

    assert int(low**2 / 2 * 2 * 18**2) == 18


def test_answers_meet_their_ledger_rows_by_sequence() -> None:
    """For every order of the ledger, and with other entries in it."""
    downloads, norway = Area(id="1008", title="Free Downloads", path="/d"), Area(id="1005", title="Norway", path="/n")
    found = area_results(
        [(norway, answer(8, 50.0)), (downloads, answer(9, 12_400.0))],
        ledger=[row(9, 12_000, 511), row(8, 45, 0), row(7, 1, 1)],
        truth={"1008": 12_511, "1005": 45},
    )

    assert [(r.number, r.topic, r.charged, r.left_out, r.truth) for r in found] == [
        (1, "countries", 45, 0, 45),
        (2, "front page", 12_000, 511, 12_511),
    ]
    assert [(r.error, r.is_inside) for r in found] == [(5.0, True), (-111.0, False)]
    assert [r.is_inside_counted for r in found] == [True, False]


def test_those_left_out_are_in_the_truth_and_not_in_what_was_counted() -> None:
    """The error bar is about the counted people."""
    found = result(charged=1_000, left_out=60, answer=1_010.0)

    assert (found.is_inside_counted, found.is_inside) == (True, False)


def test_an_answer_that_the_ledger_lacks_is_an_error() -> None:
    """It must never happen, so it is not hidden."""
    with pytest.raises(LookupError):
        area_results([(Area(id="1", title="", path="/"), answer(8, 1.0))], ledger=[row(9, 1, 0)], truth={})


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=40), st.integers(1, 50))
def test_active_shares(counts: Sequence[tuple[int, int]], window: int) -> None:
    """A share of visits: one when no individual is left out, the plain quotient over everything at the end."""
    results = [result(charged=charged, left_out=left_out) for charged, left_out in counts]
    trend = smoothed_active_shares(results, window=window)

    assert len(trend) == len(results)
    assert all(0.0 <= share <= 1.0 for share in trend)
    assert trend[0] == results[0].active_share
    assert smoothed_active_shares(results, window=len(results))[-1] == active_share(results)
    assert active_share([r for r in results if r.left_out == 0]) == 1.0


def test_budgets_in_a_few_numbers() -> None:
    """The people without the next charge, the spent share, and the rest by tenths."""
    rows = [
        BudgetRow(
            key=str(spent),
            budget_rho=Decimal(100),
            spent_rho=Decimal(spent),
            remaining_rho=Decimal(100 - spent),
            spent_units=spent,
            budget_units=100,
            paused=False,
            queries_charged=1,
            queries_left_out=0,
        )
        for spent in (0, 25, 50, 75, 100)
    ]

    assert budgets_of(rows, next_charge_rho=Decimal(5)) == Budgets(
        people=5,
        spent_share_mean=0.5,
        spent_share_max=1.0,
        out_of_budget=1,
        remaining_share=(1, 0, 1, 0, 0, 1, 0, 1, 0, 1),
    )


def test_a_limit_of_nothing_is_spent() -> None:
    """A limit of zero before any charge is a budget of zero; no division by it."""
    closed = BudgetRow(
        key="1",
        budget_rho=Decimal(0),
        spent_rho=Decimal(0),
        remaining_rho=Decimal(0),
        spent_units=0,
        budget_units=0,
        paused=False,
        queries_charged=0,
        queries_left_out=0,
    )

    assert budgets_of([closed], next_charge_rho=Decimal(1)).out_of_budget == 1
