"""The public terms of a dataset that a query is compiled on."""

from typing import NamedTuple, Protocol

from service.core.laplace import LaplacePrices


class Pricing(Protocol):
    """The prices of a dataset's accounting: of Laplace noise, under a name, and whether a Gaussian has one."""

    @property
    def has_gaussian(self) -> bool:
        """Tell whether a Gaussian has a finite charge."""

    @property
    def name(self) -> str:
        """The word by which an entry names it."""

    @property
    def laplace_prices(self) -> LaplacePrices:
        """The prices of Laplace noise."""


Priced = Pricing | None


class MonitorScale(Protocol):
    """The public scale of a monitor's ticks: the noise in steps of 2^grid_log2."""

    @property
    def grid_log2(self) -> int:
        """The grid's exponent, at most 0."""

    @property
    def sigma_steps(self) -> float:
        """Sigma in steps."""


Ticking = MonitorScale | None
"""The monitor of a dataset that has one, or None."""


class DatasetTerms(NamedTuple):
    """The terms of a dataset: `pricing` has the prices of its accounting, `monitor` the scale of its ticks."""

    capacity: int
    budget_units: int
    pricing: Priced
    monitor: Ticking
