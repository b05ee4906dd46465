"""The public terms of a dataset that a query is compiled on."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from service.core.mechanisms import Mechanism


class Pricing(Protocol):
    """The mechanisms that a dataset's accounting prices."""

    @property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The mechanisms by their words in a query."""


Priced = Pricing | None


class MonitorScale(Protocol):
    """The public scale of a monitor's ticks: the noise in steps of 2^grid_log2."""

    @property
    def grid_log2(self) -> int:
        """The exponent of the grid, at most 0."""

    @property
    def sigma_steps(self) -> float:
        """The sigma of the noise in steps."""


Ticking = MonitorScale | None
"""The monitor's scale; None for a dataset without a monitor."""


class DatasetTerms(NamedTuple):
    """The terms of a dataset: `pricing` has the prices of its accounting, `monitor` the scale of its ticks."""

    capacity: int
    budget_units: int
    pricing: Priced
    monitor: Ticking
