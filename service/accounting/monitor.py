"""A continual count of the exhausted: its coefficients, and the noise for which all ticks cost nobody above a reserve.

An individual that is first counted at tick k adds r_(j-k) at each tick j >= k, where r_n = C(2n, n) / 4^n. The matrix R
of these coefficients, lower triangular and Toeplitz, is the square root of the matrix of running sums: R R x are the
running sums of x. So a reader of R x + z applies R again. All that one individual adds is a column of R. Each tick is a
linear query with Gaussian noise, chosen in view of the answers before it. Together the ticks charge ||column||^2 / (2
sigma^2), whatever decides k (Feldman and Zrnic 2021, Corollary 4.7; Koskela, Tobaben and Honkela 2023, Theorem 12). No
column is longer than the first.

The coefficients are rounded to steps of 2^-20. The noise is certified for the sum of the squares of these rounded
coefficients.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, ldexp, nextafter, sqrt
from typing import Any, Final

import numpy as np

from service.arrays import Integers
from service.core.charge import UNITS_PER_RHO, units_down
from service.core.noise import SIGMA_STEPS_MAX

GRID_LOG2: Final = -20
TICKS_MAX: Final = 2**14
"""The most ticks of a monitor: one a day for 44 years."""


class NoiseTooLarge(ValueError):
    """The reserve is so small that the noise for it would be too large to be drawn exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """The terms of a continual count, all public.

    The monitor keeps back `reserve_units` of each limit, in units of 2^-40 rho. An individual that has less than
    `threshold_units` left at a tick is counted from that tick on. `rho` and `share` are as they were stated, and
    `sigma_steps` is in steps of 2^GRID_LOG2. Raises ValueError for ticks that are not from 1 to TICKS_MAX and for a
    reserve that is not positive, NoiseTooLarge for a reserve that is too small.
    """

    rho: str
    reserve_units: int
    ticks: int
    share: float
    threshold_units: int
    sigma_steps: float = field(init=False)

    def __post_init__(self) -> None:
        """Work out the noise, and refuse a reserve for which there is none."""
        object.__setattr__(self, "sigma_steps", sigma_steps_of(self.ticks, self.reserve_units))

    @property
    def grid_log2(self) -> int:
        """The exponent of the grid on which ticks are counted."""
        return GRID_LOG2

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a tick, in individuals. It is exact: a grid is a power of two."""
        return ldexp(self.sigma_steps, GRID_LOG2)

    @property
    def document(self) -> dict[str, str | int | float]:
        """The document that a registration states."""
        return {"rho": self.rho, "ticks": self.ticks, "share": self.share}


@lru_cache(maxsize=64)
def coefficients(ticks: int) -> Integers:
    """The coefficients r_0 to r_(ticks - 1) in steps of 2^GRID_LOG2: (ticks,) int64, read-only, never rising.

    They are worked out in integers and rounded half up: C(2n, n) = C(2n - 2, n - 1) 2 (2n - 1) / n, without a
    remainder. Raises ValueError unless there are from 1 to TICKS_MAX ticks.
    """
    if not 1 <= ticks <= TICKS_MAX:
        raise ValueError(f"ticks must be from 1 to {TICKS_MAX}, got {ticks}")
    rounded, central = [1 << -GRID_LOG2], 1
    for n in range(1, ticks):
        central = central * 2 * (2 * n - 1) // n
        rounded.append(((central << 1 - GRID_LOG2) + (1 << 2 * n)) >> 2 * n + 1)
    steps = np.array(rounded, dtype=np.int64)
    steps.flags.writeable = False  # shared by all datasets with so many ticks
    return steps


def squared_steps(ticks: int) -> int:
    """The largest sum of squares of one individual's contributions to `ticks` ticks, in squared steps."""
    return sum(step * step for step in coefficients(ticks).tolist())


def sigma_steps_of(ticks: int, reserve_units: int) -> float:
    """The smallest double sigma, in steps of 2^GRID_LOG2, at which all ticks cost no individual more than the reserve.

    That is squared_steps / (2 sigma^2) <= reserve_units / UNITS_PER_RHO, exactly. Raises ValueError for a reserve that
    is not positive, and NoiseTooLarge for a sigma above SIGMA_STEPS_MAX.
    """
    if reserve_units < 1:
        raise ValueError(f"the reserve must be positive, got {reserve_units} units")
    least = Fraction(squared_steps(ticks) * UNITS_PER_RHO, 2 * reserve_units)  # of sigma^2
    sigma = sqrt(least)
    while Fraction(sigma) ** 2 >= least:
        sigma = nextafter(sigma, 0.0)
    while Fraction(sigma) ** 2 < least:
        sigma = nextafter(sigma, inf)
    if sigma > SIGMA_STEPS_MAX:
        raise NoiseTooLarge(f"its noise would have sigma {ldexp(sigma, GRID_LOG2):.4g}, and 4096 is the largest")
    return sigma


def monitor_of(document: Mapping[str, Any], *, budget_units: int) -> Monitor:
    """The monitor that a registration has stated, from its JSON, in a dataset with this budget.

    The reserve is rounded down to whole units. The share of the budget is rounded up. Raises the errors of `Monitor`.
    """
    rho, ticks, share = (document[name] for name in ("rho", "ticks", "share"))
    return Monitor(
        rho=rho,
        reserve_units=units_down(Fraction(rho)),
        ticks=ticks,
        share=share,
        threshold_units=ceil(Fraction(share) * budget_units),
    )
