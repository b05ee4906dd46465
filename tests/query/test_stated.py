"""One answer is stated in one way; a preview promises what the answer then says."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest

from service.accounting.accountings import PURE
from service.arrays import Integers
from service.core.charge import UNITS_PER_RHO
from service.core.laws import Gaussian, Laplace, Law, PrepaidGaussian
from service.query.stated import Shown, answer_of, promise_of, shown_of
from tests.query.samples import changed, plan_of, query

ID = UUID(int=7)
AT = datetime(2026, 3, 31, 12, tzinfo=UTC)
LAPLACE = Laplace.priced(20.0, "pure", PURE.laplace_prices)
SHOWN = Shown(
    table="people",
    labels=({"select": "count"},),
    axes=({"select": [{"select": "count", "offset": 0, "size": 1, "item": 0}]},),
    l2_clip=1.0,
    shortens=False,
    notes=("A note.",),
)


class Limits(NamedTuple):
    """The public limits of a dataset of a rho of 1, of which half is the smallest limit."""

    budget_units: int = UNITS_PER_RHO
    floor_units: int = UNITS_PER_RHO // 2


@dataclass(frozen=True, kw_only=True)
class Released:
    """A release of a number 40."""

    law: Law
    query_id: UUID = ID
    seq: int = 3
    epoch: int = 2
    asked_at: datetime = AT
    worst_case_units: int = UNITS_PER_RHO // 4
    worst_case_total_units: int = UNITS_PER_RHO // 2
    grid_log2: int = 0
    item_sigmas: tuple[float, ...] = ()
    dimension: int = 1

    def steps(self) -> Integers:
        """One number for each coordinate."""
        return np.full(self.dimension, 40, dtype=np.int64)


def answered(law: Law, shown: Shown = SHOWN, *, reused: bool = False, **more: Any) -> dict[str, Any]:
    """The answer."""
    return answer_of(shown, Released(law=law, **more), Limits(), reused=reused)


@pytest.mark.parametrize("law", [Gaussian(20.0), LAPLACE])
def test_an_answer_states_what_was_released(law: Law) -> None:
    """And keeps what its preview has promised."""
    plan = changed(plan_of(query()), law=law, worst_case_units=UNITS_PER_RHO // 4)
    answer = answered(law, shown_of(plan))
    promise = promise_of(plan, Limits(), worst_cases_before=UNITS_PER_RHO // 4)
    facts = {"id": str(ID), "sequence": 3, "table": "people", "epoch": 2, "dimension": 1, "reused": False}
    assert facts.items() <= answer.items()
    assert (answer["values"].tolist(), answer["released_at"], answer["notes"]) == ([40], AT.isoformat(), ())
    assert (answer["sigma"], answer["grid"]) == (promise.noise.sigma, 1.0)
    assert answer["half_width_95"] == law.half_width(0.95)
    assert answer["worst_case_rho"] == promise.worst_case_rho == "0.25"
    assert answer["worst_case_share"] == promise.worst_case_share == 0.25
    assert answer["largest_countable_norm"] == promise.largest_countable_norm == law.longest(UNITS_PER_RHO // 2)
    assert (answer["coverage_certified"], answer["coverage_words"]) == (True, promise.coverage_words)
    assert answer["warnings"] == promise.warnings == []


def test_laplace_noise_is_stated_by_its_scale() -> None:
    """A Gaussian has none, and only a tick has a number."""
    assert {"mechanism": "laplace", "scale": 20.0}.items() <= answered(LAPLACE).items()
    assert not {"mechanism", "scale", "tick"} & answered(Gaussian(20.0)).keys()
    tick = answered(PrepaidGaussian(20.0, tick=4))
    assert (tick["tick"], tick["largest_countable_norm"], "scale" in tick) == (4, 1.0, False)


def test_an_answer_that_is_given_again_says_when_it_was_released() -> None:
    """Behind its notes."""
    *notes, last = answered(Gaussian(20.0), reused=True)["notes"]
    assert (notes, "2026-03-31" in last) == (["A note."], True)


def test_each_item_has_its_own_noise_where_it_has_steps_of_its_own() -> None:
    """In its own unit, as the answer's numbers are."""
    plan = plan_of(query(select=[{"count": {}}, {"sum": {"column": "age"}}], noise={"sigma": [2.0, 40.0]}))
    answer = answered(Gaussian(4.0), shown_of(plan), item_sigmas=(2.0, 40.0), dimension=2)
    assert (answer["sigma"], answer["grid"], answer["values"].tolist()) == ((2.0, 40.0), (0.5, 10.0), [20.0, 400.0])
    assert [item["sigma"] for item in answer["axes"][-1]["select"]] == [2.0, 40.0]
    assert answer["largest_countable_norm"] == (2.0, 40.0)


def test_a_budget_of_nothing_has_no_shares() -> None:
    """And coverage that is not certain is not promised."""
    plan = changed(plan_of(query()), law=Gaussian(20.0), l2_charged=10**6)
    promise = promise_of(plan, Limits(budget_units=0), worst_cases_before=UNITS_PER_RHO)
    assert (promise.worst_case_share, promise.is_certified) == (None, False)
    assert len(promise.warnings) == 1
