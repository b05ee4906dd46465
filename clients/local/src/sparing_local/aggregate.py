"""The collector of the local model, which need not be trusted: exact sums of reports, with their standard errors."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sparing_local.device import LocalReport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """The sum of the vectors of all devices that could pay, plus the noise of every device."""

    sums: NDArray[np.float64]  # (d,) in the vectors' unit
    reports: int
    sigma: float  # of the noise of one report

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise on each sum. The noises are independent, so that their variances add up.

        The grid adds a twelfth of a squared step for each report. With a sigma of at least ten thousand steps this is
        less than a part in 10^9 of the variance.
        """
        return self.sigma * sqrt(self.reports)


def aggregate(reports: Iterable[LocalReport]) -> Aggregate:
    """The sum of reports of one query. Raises ValueError without reports, or if they are of different queries."""
    total: NDArray[np.int64] | None = None
    count, terms = 0, None
    for report in reports:
        if total is None:
            total, terms = np.zeros_like(report.steps), (report.steps.shape, report.grid, report.sigma)
        if (report.steps.shape, report.grid, report.sigma) != terms:
            raise ValueError("the reports are of different lengths, grids or sigmas")
        total += report.steps
        count += 1
    if total is None or terms is None:
        raise ValueError("there are no reports")
    return Aggregate(sums=np.multiply(total, terms[1], dtype=np.float64), reports=count, sigma=terms[2])
