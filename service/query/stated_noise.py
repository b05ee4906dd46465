"""The noise in an answer as it is stated, and the answer's numbers in query units.

An answer is counted in whole steps, of a grid or of each select item, and the size of its noise is a number of these
steps. Sigma, the step and the half width of each number follow from that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ldexp
from typing import Any

import numpy as np

from service.arrays import Integers, Reals
from service.core.laws import Law

Numbers = float | tuple[float, ...]
"""One number, or one for each select item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNoise:
    """The noise in query units: single numbers, or one for each select item where each has steps of its own.

    `half_width_95` is the least multiple of each step within which the noise is with a probability of at least 0.95.
    The interval thus holds what was counted with that probability: the sum over the active individuals, clipped and in
    whole steps. It need not hold the truth, which includes those left out. `scale` is the size of noise whose size has
    its own word.
    """

    sigma: Numbers
    grid: Numbers
    half_width_95: Numbers
    scale: float | None

    def of_steps(self, steps: float) -> Numbers:
        """The length of a number of steps, in query units."""
        return _of_steps(steps, self.grid)

    def of_item(self, place: int) -> dict[str, float]:
        """The sigma, grid and half width of one select item."""
        each = {"sigma": self.sigma, "grid": self.grid, "half_width_95": self.half_width_95}
        return {name: value[place] if isinstance(value, tuple) else value for name, value in each.items()}


@lru_cache(maxsize=64)  # analysts ask again and again with the same noise; a law may hold a table
def stated_noise(law: Law, *, grid_log2: int, sigmas: tuple[float, ...]) -> StatedNoise:
    """The noise of a plan or an entry. With `sigmas`, one for each select item, each item has its own steps."""
    grid = grid_of(law.size_steps, grid_log2=grid_log2, sigmas=sigmas)
    size = ldexp(law.size_steps, grid_log2)
    return StatedNoise(
        sigma=sigmas or law.deviation * size,
        grid=grid,
        half_width_95=_of_steps(law.half_width(0.95), grid),
        scale=None if law.size_word == "sigma" or sigmas else size,
    )


def grid_of(size_steps: float, *, grid_log2: int, sigmas: Sequence[float]) -> Numbers:
    """The step in query units; with `sigmas` that of each select item, an exact quotient by a power of two."""
    return tuple(each / size_steps for each in sigmas) or 2.0**grid_log2


def _of_steps(steps: float, grid: Numbers) -> Numbers:
    return tuple(steps * each for each in grid) if isinstance(grid, tuple) else steps * grid


def packed(sigmas: Sequence[float]) -> bytes:
    """The sigmas as an entry keeps them: big-endian doubles."""
    return np.array(sigmas, dtype=">f8").tobytes()


def unpacked(sigmas: bytes) -> tuple[float, ...]:
    """The sigmas that were packed. Damaged bytes give other numbers, and no error."""
    whole = sigmas.ljust(-(-len(sigmas) // 8) * 8, b"\0")
    return tuple(np.frombuffer(whole, dtype=">f8").tolist())


def in_query_units(
    steps: Integers, *, grid_log2: int, grid: Numbers, axes: Sequence[Mapping[str, Any]]
) -> Integers | Reals:
    """The numbers (dimension,) of an answer. They are exact while |steps| < 2^53; rounding beyond is post-processing.

    `axes` give the select item of each coordinate, where each item has its own steps.
    """
    if isinstance(grid, tuple):
        items = axes[-1]["select"]
        of_group = np.repeat([grid[item["item"]] for item in items], [item["size"] for item in items])
        numbers: Reals = (steps.reshape(-1, of_group.size) * of_group).reshape(-1)
        return numbers
    return steps if grid_log2 == 0 else np.ldexp(steps.astype(np.float64), grid_log2)


def with_noise(axes: Sequence[Mapping[str, Any]], noise: StatedNoise) -> Sequence[Mapping[str, Any]]:
    """The axes. Where each select item has its own steps, each states its own noise."""
    if not isinstance(noise.grid, tuple):
        return axes
    items = [{**item, **noise.of_item(item["item"])} for item in axes[-1]["select"]]
    return [*axes[:-1], {"select": items}]
