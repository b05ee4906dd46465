"""One answer is stated in one way; a preview promises what the answer then says."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from service.accounting.accountings import PURE
from service.arrays import Integers
from service.core.charge import UNITS_PER_RHO
from service.core.laws import Gaussian, Laplace, Law, PrepaidGaussian
from service.query.stated import StatedPromise, answer_of, promise_of

ID = UUID(int=7)
AT = datetime(2026, 3, 31, 12, tzinfo=UTC)
BUDGET, FLOOR = UNITS_PER_RHO, UNITS_PER_RHO // 2
LAPLACE = Laplace.priced(20.0, "pure", PURE.laplace_prices)


@dataclass(frozen=True, kw_only=True)
class Of:
    """The shown part of a query, and a release of it."""

    law: Law
    table: str = "people"
    l2_clip: float = 1.0
    shortens: bool = False
    notes: tuple[str, ...] = ("A note.",)
    query_id: UUID = ID
    seq: int = 3
    epoch: int = 2
    asked_at: datetime = AT
    worst_case_units: int = BUDGET // 4
    worst_case_total_units: int = FLOOR
    grid_log2: int = 0
    item_sigmas: tuple[float, ...] = ()
    axes: tuple[dict[str, Any], ...] = ({"select": [{"select": "count", "offset": 0, "size": 1, "item": 0}]},)
    labels: tuple[dict[str, object], ...] = ({"select": "count"},)
    dimension: int = 1

    def steps(self) -> Integers:
        """One number for each coordinate."""
        return np.full(self.dimension, 40, dtype=np.int64)


def answered(of: Of, *, reused: bool = False) -> dict[str, Any]:
    """The answer, in a dataset of a rho of 1, of which half is the smallest limit."""
    return answer_of(of, of, budget_units=BUDGET, floor_units=FLOOR, reused=reused)


def promised(of: Of, **more: Any) -> StatedPromise:
    """The promise before it."""
    stated: dict[str, Any] = {"worst_cases": [FLOOR], "budget_units": BUDGET, "floor_units": FLOOR} | more
    units = of.worst_case_units
    return promise_of(of, of.law, grid_log2=of.grid_log2, item_sigmas=of.item_sigmas, worst_case_units=units, **stated)


@pytest.mark.parametrize("law", [Gaussian(20.0), LAPLACE])
def test_an_answer_states_what_was_released(law: Law) -> None:
    """And keeps what its preview has promised."""
    of = Of(law=law)
    answer, promise = answered(of), promised(of)
    facts = {"id": str(of.query_id), "sequence": 3, "table": "people", "epoch": 2, "dimension": 1, "reused": False}
    assert facts.items() <= answer.items()
    assert (answer["values"].tolist(), answer["released_at"], answer["notes"]) == ([40], AT.isoformat(), of.notes)
    assert (answer["sigma"], answer["grid"]) == (promise.noise.sigma, 1.0)
    assert answer["half_width_95"] == law.half_width(0.95)
    assert (answer["worst_case_rho"], answer["worst_case_share"]) == ("0.25", 0.25)
    assert answer["largest_countable_norm"] == promise.largest_countable_norm == law.longest(FLOOR)
    assert (answer["coverage_certified"], answer["coverage_words"]) == (True, promise.coverage_words)
    assert answer["warnings"] == promise.warnings == []


def test_laplace_noise_is_stated_by_its_scale() -> None:
    """A Gaussian has none, and only a tick has a number."""
    assert {"mechanism": "laplace", "scale": 20.0}.items() <= answered(Of(law=LAPLACE)).items()
    assert not {"mechanism", "scale", "tick"} & answered(Of(law=Gaussian(20.0))).keys()
    tick = answered(Of(law=PrepaidGaussian(20.0, tick=4)))
    assert (tick["tick"], tick["largest_countable_norm"], "scale" in tick) == (4, 1.0, False)


def test_an_answer_that_is_given_again_says_when_it_was_released() -> None:
    """Behind its notes."""
    *notes, last = answered(Of(law=Gaussian(20.0)), reused=True)["notes"]
    assert (notes, "2026-03-31" in last) == (["A note."], True)


def test_each_item_has_its_own_noise_where_it_has_steps_of_its_own() -> None:
    """In its own unit, as the answer's numbers are."""
    axes = ({"select": [{"select": name, "offset": at, "size": 1, "item": at} for at, name in enumerate("ab")]},)
    answer = answered(Of(law=Gaussian(4.0), item_sigmas=(2.0, 40.0), axes=axes, dimension=2))
    assert (answer["sigma"], answer["grid"], answer["values"].tolist()) == ((2.0, 40.0), (0.5, 10.0), [20.0, 400.0])
    assert [item["sigma"] for item in answer["axes"][-1]["select"]] == [2.0, 40.0]
    assert answer["largest_countable_norm"] == (2.0, 40.0)


def test_a_budget_of_nothing_has_no_shares() -> None:
    """And coverage that is not certain is not promised."""
    of = Of(law=Gaussian(20.0), l2_clip=10**6)
    promise = promised(of, budget_units=0, worst_cases=[FLOOR, 1])
    assert (promise.worst_case_share, promise.is_certified) == (None, False)
    assert len(promise.warnings) == 1
