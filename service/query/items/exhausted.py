"""A tick of a dataset's monitor as an item. The registration decides its scale.

A tick is prepaid: each limit is lower by the monitor's reserve, which pays for all ticks. So a tick's worst case is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from service.core.laws import PrepaidGaussian
from service.query.dataset_terms import DatasetTerms
from service.query.item import AskedPrecision, Item, ItemPlace, PlanItem
from service.query.literals_ast import Empty
from service.query.problems import QueryProblem
from service.query.scale import Scale
from service.query.schema import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted(PlanItem):
    """A tick of the monitor. An individual adds the coefficient for the number of ticks since it was first counted."""

    has_own_scale: ClassVar = True

    title: str = "exhausted"

    def scaled(self, precision: AskedPrecision, terms: DatasetTerms) -> "tuple[Exhausted, Scale]":  # noqa: ARG002
        """The scale of a tick: no individual adds more than one, and no individual is charged."""
        if terms.monitor is None:
            raise ValueError("a tick is of a dataset with a monitor")
        scale = Scale(
            grid_log2=terms.monitor.grid_log2,
            clip_squared_steps=4**-terms.monitor.grid_log2,
            clip_binds=False,
            l2_clip=1.0,
            charged_squared_steps=4**-terms.monitor.grid_log2,
            l2_charged=1.0,
            law=PrepaidGaussian(terms.monitor.sigma_steps),
            worst_case_units=0,
        )
        return self, scale


class ExhaustedItem(Item):
    """The next tick of the dataset's monitor: a number from which clients sum how many individuals are exhausted.

    It stands alone in a query that has no noise, condition or group of its own.
    """

    stands_alone: ClassVar = True
    may_reuse: ClassVar = False
    has_own_noise: ClassVar = True
    exhausted: Annotated[Empty, doc("Nothing: `{}`.")]

    @classmethod
    def sentence(cls, body: Any, table: str) -> str:  # noqa: ANN401, ARG003 - JSON
        """Words that name a tick."""
        return f"tick of the count of exhausted {table}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The tick. Raises QueryProblem in a dataset without a monitor."""
        if place.terms.monitor is None:
            raise QueryProblem.of(f"{place.field}.exhausted", "this dataset has no monitor")
        return [Exhausted()]
