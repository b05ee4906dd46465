"""The port of what is kept beside a ledger for its curators: points in time of the budget summary, and the alarm."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Protocol

from service.query.schema import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPoint:
    """The budgets at one sequence of the ledger."""

    seq: Annotated[int, doc("The ledger's sequence.")]
    at: Annotated[datetime, doc("When the point was kept.")]
    individuals: Annotated[int, doc("How many individuals the dataset had.")]
    exhausted: Annotated[int, doc("How many individuals have nothing left.")]
    paused: Annotated[int, doc("How many individuals had paused.")]
    cannot_afford: Annotated[
        int | None, doc("How many could not pay for another query like the last; null before the first.")
    ]
    quantiles: Annotated[Sequence[float], doc("The remaining share at each of the quantiles of the history.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAlarm:
    """Rings once, at `rang_seq`, when at least `share` of the people cannot pay for another query like the last."""

    share: float
    rang_seq: int | None = None


class SummaryTable(Protocol):
    """Points and alarms by dataset, durable."""

    def add_point(self, dataset_id: int, point: SummaryPoint) -> None:
        """Keep a point, unless there is one of its sequence."""

    def points(self, dataset_id: int) -> list[SummaryPoint]:
        """All points, by sequence."""

    def drop_points(self, dataset_id: int, seqs: Sequence[int]) -> None:
        """Forget the points of these sequences."""

    def alarm(self, dataset_id: int) -> BudgetAlarm | None:
        """The alarm that is set."""

    def set_alarm(self, dataset_id: int, alarm: BudgetAlarm | None) -> None:
        """Set, replace or remove the alarm."""
