"""A grid of noise multipliers, and the counts of each individual's own steps in its cells. No filter.

An individual whose vectors have the norms C_1, C_2, ... in sums with noise sigma takes part in Gaussian steps of mu_t =
C_t / sigma, one over its noise multiplier. Rounding a step's mu up to the next mu of a grid can only overstate its
privacy loss (data processing). A composition is then given by the number of steps at each mu of the grid, so that
tables made once for each mu serve every individual (Koskela, Tobaben and Honkela 2023, Appendix D.2 and Theorem D.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparing.research.subsampled_rdp import MU_MAX, subsampled_divergences

CELLS_MAX = 2**14
_ROWS = 1024  # whose counts and sums stay in a core's cache
_KEY_BITS = 45
"""The number of low bits that are dropped from a double to get its key; this leaves 128 keys for each octave."""


@dataclass(frozen=True, slots=True)
class NoiseGrid:
    """The increasing mus of a grid. Cell 0 is a mu of 0 and costs nothing; mus in cell k are rounded up to the k-th.

    Raises ValueError unless there are 1 to CELLS_MAX increasing mus between 0 and MU_MAX, both excluded.
    """

    mus: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that are no grid."""
        rising = all(low < high for low, high in zip((0.0, *self.mus), self.mus, strict=False))
        if not (0 < len(self.mus) <= CELLS_MAX and rising and self.mus[-1] < MU_MAX):
            raise ValueError(f"a grid has from 1 to {CELLS_MAX} mus, rising from above 0 to below {MU_MAX}")

    @property
    def charged(self) -> NDArray[np.float64]:
        """The mu (cells,) charged for each cell: the next larger double, as norm / sigma may have been rounded down."""
        charged: NDArray[np.float64] = np.nextafter(np.array((0.0, *self.mus)), np.inf)
        charged[0] = 0.0
        return charged

    def cells(self, norms: NDArray[np.float64], *, sigma: float) -> NDArray[np.int64]:
        """The cell (n,) of each individual's norm (n,) in a sum with noise `sigma`, which is in the unit of the norms.

        Norms are rounded up: the charged mu of a cell is never below norm / sigma. Raises ValueError for a sigma that
        is not above 0, a norm below 0, and a norm beyond the grid.
        """
        if not sigma > 0:
            raise ValueError(f"sigma must be above 0, got {sigma}")
        quotients = norms / sigma + 0.0  # no negative zero
        if not (norms.min(initial=0.0) >= 0 and quotients.max(initial=0.0) <= self.mus[-1]):
            raise ValueError(f"norms must be from 0 to sigma times {self.mus[-1]}, the last mu of the grid")
        firsts, most = _firsts(self.mus)
        mus = np.array(self.mus)
        below = firsts.take(quotients.view(np.int64) >> _KEY_BITS)
        for _ in range(most):  # the first mus of a key are below all of its doubles, the others are looked at
            below += mus.take(below, mode="clip") < quotients
        return below + (norms > 0)


def grid_of_multipliers(least: float, greatest: float, *, intervals: int) -> NoiseGrid:
    """The paper's grid (Appendix D.2): the inverses of noise multipliers at equal distances from `least` to `greatest`.

    A multiplier above `greatest` counts as `greatest`. Raises ValueError unless 1 / MU_MAX < least < greatest and there
    is an interval.
    """
    _refuse_ends(1 / MU_MAX, least, greatest, intervals)
    return NoiseGrid(tuple((1 / np.linspace(least, greatest, intervals + 1)[::-1]).tolist()))


def grid_of_equal_ratios(least: float, greatest: float, *, intervals: int) -> NoiseGrid:
    """The grid of mus from `least` to `greatest` in equal ratios; rounding up costs at most this ratio.

    A mu below `least` counts as `least`. Raises ValueError unless 0 < least < greatest < MU_MAX and there is an
    interval.
    """
    _refuse_ends(math.ulp(0.0), least, greatest, intervals)
    mus = np.geomspace(least, greatest, intervals + 1)
    mus[-1] = greatest
    return NoiseGrid(tuple(mus.tolist()))


class OwnSteps:
    """The numbers of n individuals' own steps in each cell of a grid, at 4 bytes a number.

    A row depends on that individual's own norms alone. All steps are counted, sampled or not, as an individual is
    charged for the chance of being sampled.
    """

    def __init__(self, grid: NoiseGrid, individuals: int) -> None:
        self.grid = grid
        self.counts: NDArray[np.int32] = np.zeros((individuals, len(grid.mus) + 1), dtype=np.int32)
        self._begins = np.arange(individuals, dtype=np.int64) * self.counts.shape[1]

    def record(self, norms: NDArray[np.float64], *, sigma: float) -> None:
        """Count one more step with these norms (n,) and this noise, in the same unit.

        Raises ValueError for a wrong number of norms, and as `NoiseGrid.cells` does; nothing is counted then.
        """
        if norms.shape != self._begins.shape:
            raise ValueError(f"there are {len(self._begins)} individuals, and norms of shape {norms.shape}")
        self.counts.reshape(-1)[self._begins + self.grid.cells(norms, sigma=sigma)] += 1

    def divergences(self, *, rate: float, orders: Sequence[float]) -> NDArray[np.float64]:
        """The Rényi divergences (n, orders) of all steps so far, each with this sampling rate.

        They are sums over the cells, to a relative 1e-12, with norms rounded up to the grid. Raises ValueError as
        `subsampled_divergences` does.
        """
        table = subsampled_divergences(self.grid.charged, rate=rate, orders=orders)
        total = np.zeros((len(self.counts), len(orders)))
        for start in range(0, len(self.counts), _ROWS):
            counts = self.counts[start : start + _ROWS].T.astype(np.float64)
            block = np.zeros((len(orders), counts.shape[1]))
            for cell, own in enumerate(counts):  # elementwise: no row's sum depends on another row
                block += table[cell, :, None] * own
            total[start : start + _ROWS] = block.T
        return total


@lru_cache(maxsize=16)
def _firsts(mus: tuple[float, ...]) -> tuple[NDArray[np.int64], int]:
    """For each key up to that of the last mu, the number of mus below its first double; and the most mus in one key."""
    last = int(np.float64(mus[-1]).view(np.int64)) >> _KEY_BITS
    begins = (np.arange(last + 2, dtype=np.int64) << _KEY_BITS).view(np.float64)
    firsts = np.searchsorted(np.array(mus), begins, side="left")
    return firsts[:-1], int(np.diff(firsts).max())


def _refuse_ends(bound: float, least: float, greatest: float, intervals: int) -> None:
    if not (bound <= least < greatest and intervals >= 1):
        raise ValueError(f"a grid needs an interval between two ends, from {bound}; got {least} and {greatest}")
