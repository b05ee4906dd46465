"""The noise in an answer as it is stated, and the answer's numbers in query units.

An answer is counted in whole steps, of a grid or of each select item, and its noise is so many steps. Everything stated
follows from that: sigma, the step, and the half width of each number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ldexp, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.core.half_widths import half_width_steps, laplace_half_width_steps

GAUSSIAN: Final = "gaussian"
LAPLACE: Final = "laplace"
"""The first word of a mechanism; the others name the accounting by which Laplace noise is priced."""
PREPAID: Final = "gaussian prepaid"
"""The first words of the mechanism of a monitor's tick, which charges nobody; its number follows."""
Numbers = float | tuple[float, ...]
"""One number, or one for each select item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNoise:
    """In query units: one number of each, or one for each select item where each has steps of its own."""

    sigma: Numbers
    grid: Numbers
    sigma_steps: float  # of Laplace noise its scale
    mechanism: str = GAUSSIAN

    @property
    def scale(self) -> float | None:
        """The scale of Laplace noise, in query units; None of a Gaussian."""
        if self.mechanism == GAUSSIAN or isinstance(self.grid, tuple):
            return None
        return self.sigma_steps * self.grid

    @property
    def half_width_95(self) -> Numbers:
        """The least multiple of each step within which the noise is with a probability of at least 0.95.

        It is the probability of holding what was counted: the sum over the active individuals, clipped and in whole
        steps. Of the truth, which those left out belong to, it says nothing.
        """
        of = half_width_steps if self.mechanism == GAUSSIAN else laplace_half_width_steps
        return self.of_steps(of(self.sigma_steps, 0.95))

    def of_steps(self, steps: float) -> Numbers:
        """A number of steps, in query units."""
        return tuple(steps * grid for grid in self.grid) if isinstance(self.grid, tuple) else steps * self.grid

    def of_item(self, place: int) -> dict[str, float]:
        """The numbers of one select item."""
        each = {"sigma": self.sigma, "grid": self.grid, "half_width_95": self.half_width_95}
        return {name: value[place] if isinstance(value, tuple) else value for name, value in each.items()}


def stated_noise(*, sigma: float, grid_log2: int, sigmas: Sequence[float], mechanism: str = GAUSSIAN) -> StatedNoise:
    """The noise of a plan or an entry; with `sigmas` (of each select item) `sigma` and the grid are in steps.

    Of Laplace noise `sigma` is the scale, and the standard deviation that is stated sqrt(2) times that.
    """
    if mechanism != GAUSSIAN:
        steps = ldexp(sigma, -grid_log2)
        return StatedNoise(sigma=sqrt(2) * sigma, grid=2.0**grid_log2, sigma_steps=steps, mechanism=mechanism)
    if not sigmas:
        return StatedNoise(sigma=sigma, grid=2.0**grid_log2, sigma_steps=ldexp(sigma, -grid_log2))
    # A number of steps that is a power of two: the quotients are exact.
    return StatedNoise(sigma=tuple(sigmas), grid=tuple(each / sigma for each in sigmas), sigma_steps=sigma)


def tick_of(mechanism: str) -> int:
    """The number of the tick that a mechanism is of, from 1; 0 of any other query's, and of damaged words."""
    number = mechanism.removeprefix(PREPAID).removeprefix(" ")
    return int(number) if mechanism == f"{PREPAID} {number}" and number.isdecimal() else 0


def packed(sigmas: Sequence[float]) -> bytes:
    """The sigmas as an entry keeps them: big-endian doubles."""
    return np.array(sigmas, dtype=">f8").tobytes()


def unpacked(sigmas: bytes) -> tuple[float, ...]:
    """The sigmas that `packed` took; of damaged bytes, other ones."""
    whole = sigmas.ljust(-(-len(sigmas) // 8) * 8, b"\0")
    return tuple(np.frombuffer(whole, dtype=">f8").tolist())


def in_query_units(
    steps: NDArray[np.int64], *, grid_log2: int, noise: StatedNoise, axes: Sequence[Mapping[str, Any]]
) -> NDArray[np.int64] | NDArray[np.float64]:
    """The numbers (dimension,) of an answer; exact while |steps| < 2^53, which post-processing may round beyond.

    `axes` give the select item of each coordinate, where each has steps of its own.
    """
    if isinstance(noise.grid, tuple):
        items = axes[-1]["select"]
        of_group = np.repeat([noise.grid[item["item"]] for item in items], [item["size"] for item in items])
        numbers: NDArray[np.float64] = (steps.reshape(-1, of_group.size) * of_group).reshape(-1)
        return numbers
    return steps if grid_log2 == 0 else np.ldexp(steps.astype(np.float64), grid_log2)


def with_noise(axes: Sequence[Mapping[str, Any]], noise: StatedNoise) -> Sequence[Mapping[str, Any]]:
    """Axes whose select items say their own noise, where each has steps of its own."""
    if not isinstance(noise.grid, tuple):
        return axes
    items = [{**item, **noise.of_item(item["item"])} for item in axes[-1]["select"]]
    return [*axes[:-1], {"select": items}]
