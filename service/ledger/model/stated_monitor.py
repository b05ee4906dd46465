"""The monitor of a dataset: as its registration states it, and as it is shown with the ticks that were asked."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from service.accounting.monitor import TICKS_MAX
from service.ledger.model.stated_guarantee import PositiveDecimal, Stated
from service.query.schema import doc


class StatedMonitor(Stated):
    """A continual count of the exhausted, paid from a reserve of each individual's limit."""

    rho: Annotated[
        Annotated[PositiveDecimal, Field(le=1_000_000)],
        doc(
            "The reserve in rho: each limit is lower by it for queries, and all ticks together cost nobody more. A"
            " number, or a decimal as text."
        ),
    ]
    ticks: Annotated[
        int, Field(strict=True, ge=1, le=TICKS_MAX), doc("How many ticks there are; of fewer each is more exact.")
    ]
    share: Annotated[
        float,
        Field(strict=True, gt=0, le=1, allow_inf_nan=False),
        doc("An individual counts as exhausted once less than this share of the dataset's budget is left to it."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorFacts:
    """The monitor of a dataset, and how far it has come: all public."""

    rho: Annotated[str, doc("The reserve in rho, by which each limit is lower for queries; a decimal.")]
    ticks: Annotated[int, doc("How many ticks there are.")]
    share: Annotated[float, doc("The share of the budget below which an individual counts as exhausted.")]
    sigma: Annotated[float, doc("The standard deviation of the noise of each tick, in individuals.")]
    asked: Annotated[int, doc("How many ticks were asked.")]
    ended: Annotated[
        bool, doc("Whether there are no more: all are asked, or a backup of the database was put back since.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorTicks(MonitorFacts):
    """The monitor of a dataset with every tick that was answered, to any analyst."""

    values: Annotated[
        tuple[float, ...],
        doc(
            "The number of each tick, from the first on. Applied to them, the inverse of the coefficients"
            " C(2n, n) / 4^n, rounded to 2^-20, gives how many individuals are counted first at each tick."
        ),
    ]


DatasetMonitor = Annotated[
    MonitorFacts | None, doc("The continual count of the exhausted, and how far it has come; null without one.")
]
MonitorReserve = Annotated[
    str, doc("The part of the promised limit, beside `budget_rho`, that is kept for the dataset's monitor; in rho.")
]
