"""The port of what is kept beside a ledger for its curators: points in time of the budget summary, and the alarm."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPoint:
    """The budgets at one ledger sequence: `quantiles` of the remaining share (those of `QUANTILES`), and counts."""

    seq: int
    at: datetime
    individuals: int
    exhausted: int
    paused: int
    cannot_afford: int | None
    quantiles: Sequence[float]


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
