"""Laws of noise of one size: how they are drawn, what they charge an individual, and how far they reach.

Everything is in grid steps. Every law can be made and stated. A law without a price raises ValueError only when it is
asked for one, so that a damaged ledger row can be named and does not stop the process.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import ClassVar, Final, Self

import numpy as np

from service.arrays import Integers
from service.core.charge import UNITS_PER_RHO, charge_units, norm_within, price_of_step, wide_rounds, worst_case_units
from service.core.half_widths import half_width_steps, laplace_half_width_steps
from service.core.laplace import (
    LaplacePrices,
    laplace_charge_units,
    laplace_worst_case_units,
    longest_steps,
    rounded_laplace,
)
from service.core.noise import Entropy, rounded_gaussian

PREPAID: Final = "gaussian prepaid"
"""The name of a tick's law begins with these words, and the tick's number follows."""


class Law(ABC):
    """Noise of one size: `size_steps` is a Gaussian's standard deviation, or the scale of Laplace noise."""

    word: ClassVar[str]
    """The word by which a query asks for it."""
    size_word: ClassVar[str]
    deviation: ClassVar[float]
    """The standard deviation at size 1."""
    is_free: ClassVar[bool] = False
    """It charges nobody, and the filter leaves nobody out for it."""
    size_steps: float
    name: str
    """The words by which a ledger entry names it: with its size they price the entry."""
    tick: int = 0
    """The number of a monitor's tick, from 1; 0 for every other law."""

    @abstractmethod
    def draw(self, count: int, entropy: Entropy) -> Integers:
        """`count` independent draws, int64 of shape (count,), in grid steps."""

    @abstractmethod
    def charges(self, norms_squared: Integers, *, norm_squared_max: int | None = None) -> Integers:
        """The charge of each squared norm (k,), (k,) units. With `norm_squared_max` the time depends on no other norm.

        Raises TypeError unless norms are int64, ValueError for a norm or a size that has no price.
        """

    @abstractmethod
    def charge(self, norm_squared: int) -> int:
        """The charge of one squared norm, in units. Raises ValueError as `charges`."""

    @abstractmethod
    def norms_within(self, room_units: Integers, *, norm_squared_max: int) -> Integers:
        """The largest squared norm (k,), at most `norm_squared_max`, whose charge fits each room (k,)."""

    @abstractmethod
    def longest(self, units: int) -> float:
        """The length in steps of the longest vector that costs at most `units`."""

    @abstractmethod
    def half_width(self, confidence: float) -> int:
        """The number of steps within which the noise is with this probability."""

    @abstractmethod
    def rounds(self, norm_squared_max: int) -> int:
        """The rounds of work that one charge takes beyond a charge of few bits. The number is public."""

    def numbered(self, tick: int) -> "Law":  # noqa: ARG002 - of ticks alone
        """This law for the monitor's tick with this number. A law that is no tick's stays as it is."""
        return self


@dataclass(frozen=True)
class Gaussian(Law):
    """round(N(0, sigma^2)), which charges ||v||^2 / (2 sigma^2): `service.core.charge`."""

    size_steps: float
    name: str = field(default="gaussian", init=False)
    word: ClassVar[str] = "gaussian"
    size_word: ClassVar[str] = "sigma"
    deviation: ClassVar[float] = 1.0

    def draw(self, count: int, entropy: Entropy) -> Integers:
        """The draws of `rounded_gaussian`."""
        return rounded_gaussian(count, self.size_steps, entropy)

    def charges(self, norms_squared: Integers, *, norm_squared_max: int | None = None) -> Integers:
        """The charges of `charge_units`."""
        return charge_units(norms_squared, self.size_steps, norm_squared_max=norm_squared_max)

    def charge(self, norm_squared: int) -> int:
        """The charge of `worst_case_units`."""
        return worst_case_units(norm_squared, self.size_steps)

    def norms_within(self, room_units: Integers, *, norm_squared_max: int) -> Integers:
        """The norms of `norm_within`."""
        return norm_within(room_units, self.size_steps, norm_squared_max=norm_squared_max)

    def longest(self, units: int) -> float:
        """The length sigma sqrt(2 rho): the formula of the charge solved for the norm."""
        return self.size_steps * sqrt(2 * units / UNITS_PER_RHO)

    def half_width(self, confidence: float) -> int:
        """The half width of `half_width_steps`."""
        return half_width_steps(self.size_steps, confidence)

    def rounds(self, norm_squared_max: int) -> int:
        """The rounds of `wide_rounds`."""
        return wide_rounds(norm_squared_max, price_of_step(self.size_steps))


@dataclass(frozen=True)
class PrepaidGaussian(Gaussian):
    """The Gaussian of a monitor's tick, by its number from 1: the reserve has paid for all ticks together."""

    tick: int = 0
    is_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Put the tick's number into the name."""
        object.__setattr__(self, "name", f"{PREPAID} {self.tick}")

    def numbered(self, tick: int) -> Self:
        """This law for the tick with another number."""
        return replace(self, tick=tick)

    def charges(self, norms_squared: Integers, *, norm_squared_max: int | None = None) -> Integers:  # noqa: ARG002
        """Zero units for each norm: the reserve has paid."""
        return np.zeros(norms_squared.size, dtype=np.int64)

    def charge(self, norm_squared: int) -> int:  # noqa: ARG002 - whatever it is
        """Zero units: the reserve has paid."""
        return 0

    def norms_within(self, room_units: Integers, *, norm_squared_max: int) -> Integers:
        """The largest norm for every room, since nothing is charged."""
        return np.full(room_units.size, norm_squared_max, dtype=np.int64)

    def longest(self, units: int) -> float:  # noqa: ARG002 - none are needed
        """Infinity, since nothing is charged."""
        return inf


@dataclass(frozen=True)
class Laplace(Law):
    """round(Lap(b)) for one number of an individual, at the prices of an accounting: `service.core.laplace`.

    The law holds the table of prices at its scale, which takes milliseconds to make, and may be sent to other
    processes. Two laws with the same scale and accounting are equal, since these determine the table.
    """

    size_steps: float
    name: str = field(init=False)
    accounting: str
    table: tuple[int, Integers | None] = field(repr=False, compare=False)
    word: ClassVar[str] = "laplace"
    size_word: ClassVar[str] = "scale"
    deviation: ClassVar[float] = sqrt(2)

    @classmethod
    def priced(cls, size_steps: float, accounting: str, prices: LaplacePrices) -> Self:
        """The law at the prices of an accounting, by its name. Raises ValueError for a scale outside [0.3, 2^32]."""
        return cls(size_steps, accounting, prices(size_steps))

    def __post_init__(self) -> None:
        """Put the accounting into the name."""
        object.__setattr__(self, "name", f"{self.word} {self.accounting}")

    def _prices(self, _scale_steps: float) -> tuple[int, Integers | None]:
        """The `LaplacePrices` of this law, at its own scale whatever the argument."""
        return self.table

    def draw(self, count: int, entropy: Entropy) -> Integers:
        """The draws of `rounded_laplace`."""
        return rounded_laplace(count, self.size_steps, entropy)

    def charges(self, norms_squared: Integers, *, norm_squared_max: int | None = None) -> Integers:
        """The charges of `laplace_charge_units`."""
        most = int(norms_squared.max(initial=0)) if norm_squared_max is None else norm_squared_max
        return laplace_charge_units(norms_squared, self.size_steps, self._prices, norm_squared_max=most)

    def charge(self, norm_squared: int) -> int:
        """The charge of `laplace_worst_case_units`."""
        return laplace_worst_case_units(norm_squared, self.size_steps, self._prices)

    def norms_within(self, room_units: Integers, *, norm_squared_max: int) -> Integers:  # noqa: ARG002
        """Raise TypeError: vectors of one number are not shortened."""
        raise TypeError("a vector of one number is not shortened")

    def longest(self, units: int) -> float:
        """The number of steps of `longest_steps`."""
        return longest_steps(self._prices, units, self.size_steps)

    def half_width(self, confidence: float) -> int:
        """The half width of `laplace_half_width_steps`."""
        return laplace_half_width_steps(self.size_steps, confidence)

    def rounds(self, norm_squared_max: int) -> int:  # noqa: ARG002 - the table is as large for all
        """One round."""
        return 1
