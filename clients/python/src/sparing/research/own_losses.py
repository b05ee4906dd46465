"""The epsilon of each individual by the privacy loss distribution of its own steps. No filter, and no promise.

The accountant of Koskela, Tobaben and Honkela 2023, Appendix D. The transforms of the losses of a grid's cells are made
once. An individual's composition is the product of these transforms, each to the power of the individual's count in the
cell. Spacing, window and tilt are those for `steps_max` steps at the last mu of the grid, so that an individual's
epsilon depends on no other individual.

If the steps depend on earlier answers, such an epsilon bounds nothing (docs/natural-filters.md).
"""

import math

import numpy as np
from numpy.typing import NDArray

from sparing.research.noise_grid import NoiseGrid, OwnSteps
from sparing.research.privacy_loss import (
    POINTS_MAX,
    Composition,
    Steps,
    folded,
    log_moments,
    losses_of,
    refuse_steps,
    spacing_of,
    tilted_masses,
    window_of,
    windowed,
)

_FINER = 2  # than for equal steps: an individual of a hundredth of the largest loss is told to some 1e-3 too
_LEAST = 1e-300  # of a transform; it has no logarithm at 0


def epsilons_of_own_steps(own: OwnSteps, *, rate: float, steps_max: int, delta: float) -> NDArray[np.float64]:
    """The epsilon (n,) at this delta of each individual's steps: the larger of those for adding and removing it.

    It is never below the epsilon of the individual's exact norms, and above it only as the grid rounds norms up. It is
    no guarantee if the steps depend on answers. A row depends on that individual's counts, `rate`, `steps_max`, `delta`
    and the grid. The work is one pass over the window's points for each cell and individual. Raises ValueError for more
    than `steps_max` counted steps, and as `composed_losses` does.
    """
    steps = own.counts[:, 1:].sum(axis=1, dtype=np.int64)
    if steps.max(initial=0) > steps_max:
        raise ValueError(f"there are individuals with more than {steps_max} steps")
    accountants = [_OwnAccountant(own.grid, rate, steps_max, delta, direction) for direction in (0, 1)]
    rows, inverse = np.unique(own.counts[:, 1:], axis=0, return_inverse=True)
    found = [max(each.epsilon(counts) for each in accountants) if counts.any() else 0.0 for counts in rows]
    return np.array(found)[inverse.reshape(-1)]


class _OwnAccountant:
    """The accountant for one direction, with a table for each cell: 0 for removing, 1 for adding."""

    def __init__(self, grid: NoiseGrid, rate: float, steps_max: int, delta: float, direction: int) -> None:
        worst = Steps(float(grid.charged[-1]), rate, steps_max)
        refuse_steps([worst], delta)
        self.delta, self.spacing = delta, spacing_of([worst]) / _FINER
        while True:
            of_worst = losses_of(*worst[:2], self.spacing)[direction]
            moments = log_moments([(of_worst, steps_max)], self.spacing)
            self.window = window_of(moments, steps_max, self.spacing, delta)
            if self.window.points <= POINTS_MAX:
                break
            self.spacing *= 2
        losses = [losses_of(mu, rate, self.spacing)[direction] for mu in grid.charged[1:].tolist()]
        self.infinite = [each.infinite for each in losses]
        self.moments = [log_moments([(each, 1)], self.spacing) for each in losses]
        tilted = [tilted_masses(each, self.spacing, self.window.tilt) for each in losses]
        self.log_moments = [log_moment for _, log_moment in tilted]
        self.logs = [
            self._log(folded(each, masses, self.window.points))
            for each, (masses, _) in zip(losses, tilted, strict=True)
        ]

    def _log(self, masses: NDArray[np.float64]) -> NDArray[np.complex128]:
        transform = np.fft.rfft(masses)
        return np.log(np.where(np.abs(transform) < _LEAST, _LEAST, transform))

    def epsilon(self, counts: NDArray[np.int32]) -> float:
        """The epsilon of an individual with these numbers of steps (cells,), by summing logarithms of transforms."""
        taken = np.flatnonzero(counts).tolist()
        exponents = np.zeros(self.window.points // 2 + 1, dtype=np.complex128)
        moments = np.zeros(len(self.moments[0]))
        for cell in taken:  # elementwise and in order: a sum by a library's product of matrices may differ by row
            exponents += int(counts[cell]) * self.logs[cell]
            moments += int(counts[cell]) * self.moments[cell]
        composition = Composition(
            log_moment=math.fsum(int(counts[cell]) * self.log_moments[cell] for cell in taken),
            moments=moments,
            steps=int(counts.sum()),
            infinite=math.fsum(int(counts[cell]) * self.infinite[cell] for cell in taken),
            roundings=12 + 4 * len(taken),
        )
        return windowed(np.exp(exponents), self.window, self.spacing, composition).epsilon(self.delta)
