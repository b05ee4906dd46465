"""The laws of noise as the audit knows them: prices, losses, and statistics that tell a law from others.

Where lengths, answers and sizes are priced or tested, they are in whole steps of a grid. Under rounded Laplace noise
round(Lap(b)), with x = 1 / (2 b), the probability of 0 is 1 - e^-x, and that of any other k is sinh(x) e^(-|k| / b).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Final

import mpmath
import numpy as np

from sparing_audit.accountings import Accounting
from sparing_audit.curves import DIGITS
from sparing_audit.laws import Doubles, evened

UNITS_PER_RHO: Final = 2**40
"""The ledger's units in a rho, or in an amount of 1 under another accounting, as the service documents them."""
ROUNDED_UP: Final = Fraction(1, 10_000)
"""The part by which a service's price of Laplace noise may exceed the exact one, beside a unit."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of units from `least`, which the papers ask for, to `most`, up to which a service may round."""

    least: int
    most: int

    def __add__(self, other: "Range") -> "Range":
        return Range(self.least + other.least, self.most + other.most)

    def nearest(self, units: int) -> int:
        """The number in the range that is nearest to these units."""
        return min(max(units, self.least), self.most)


NOTHING: Final = Range(0, 0)


@dataclass(frozen=True)
class Gaussian:
    """Rounded Gaussian noise with sigma `size`."""

    size: float
    spread: ClassVar[float] = 2.0
    """The variance of the sizes in `statistics`, whose mean is 1."""
    label: ClassVar[str] = "Gaussian noise"

    def charge(self, length: int) -> Range:
        """The charge length^2 / (2 sigma^2) rho, rounded up to units. It is exact, because a double is a fraction."""
        price = _price_of(self.size)
        units = -(-length * length * price.numerator // price.denominator)
        return Range(units, units)

    def longest(self, room: int) -> int:
        """The longest vector whose charge fits into `room`.

        A charge fits exactly when it fits before rounding up to units.
        """
        price = _price_of(self.size)
        return math.isqrt(max(room, 0) * price.denominator // price.numerator)

    def losses(self, steps: Doubles, counted: Doubles) -> Doubles:
        """The log of how much likelier answers (k,) are with the counted numbers (k,) than without them."""
        return (steps * counted - counted**2 / 2) / self.size**2

    @property
    def variance(self) -> float:
        """The variance in squares of sigma, with the part that rounding adds."""
        return 1 + 1 / (12 * self.size**2)

    def statistics(self, noise: Doubles, _: np.random.Generator) -> tuple[Doubles, Doubles]:
        """Two statistics of noise (k,): sizes of mean 1, and numbers that are even in [0, 1] if this law is right."""
        draws = noise / (self.size * math.sqrt(self.variance))
        return draws**2, evened(draws)


@dataclass(frozen=True)
class Laplace:
    """Rounded Laplace noise of scale `size`, at the prices of an accounting."""

    size: float
    accounting: Accounting

    def charge(self, length: int) -> Range:
        """The charge of a number, from the exact price to the most to which a service may round it up."""
        return _laplace_charge(self, abs(length))

    def losses(self, steps: Doubles, counted: Doubles) -> Doubles:
        """The losses of steps, which never exceed |counted| / b but by the rounding of doubles."""
        return self._log_shape(steps - counted) - self._log_shape(steps)

    @property
    def label(self) -> str:
        """The name of the law for people."""
        return f"Laplace noise of {self.size:.5g}"

    @property
    def spread(self) -> float:
        """The variance of |k| over the square of its mean."""
        return 2 * math.cosh(1 / (2 * self.size)) - 1

    @property
    def variance(self) -> float:
        """The variance in squares of the scale."""
        return (self.spread + 1) * (self._mean / self.size) ** 2

    def statistics(self, noise: Doubles, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
        """Two statistics of noise as for a Gaussian.

        The distribution jumps at whole numbers; there the even number is drawn.
        """
        size, x = np.abs(noise), 1 / (2 * self.size)
        inner, outer = 0.5 * np.exp(-(2 * size - 1) * x), 0.5 * np.exp(-(2 * size + 1) * x)  # beyond k -+ 1/2
        drawn = rng.random(size.size)
        tails = np.where(size == 0, 0.5 * math.exp(-x) + drawn * -math.expm1(-x), outer + drawn * (inner - outer))
        return size / self._mean, np.where(noise > 0, 1 - tails, tails)

    @property
    def _mean(self) -> float:
        return 1 / (2 * math.sinh(1 / (2 * self.size)))

    def _log_shape(self, steps: Doubles) -> Doubles:
        """The log of the probability without the common factor sinh(x)."""
        x = 1 / (2 * self.size)
        return np.where(steps == 0, math.log(-math.expm1(-x) / math.sinh(x)), -np.abs(steps) / self.size)


Law = Gaussian | Laplace


@cache
def _price_of(sigma_steps: float) -> Fraction:
    """The units that a squared step costs."""
    return Fraction(UNITS_PER_RHO) / (2 * Fraction(sigma_steps) ** 2)


@cache
def _laplace_charge(law: Laplace, steps: int) -> Range:
    t = steps / Fraction(law.size)
    if law.accounting.kind == "pure":
        exact = math.ceil(t * UNITS_PER_RHO)
        return Range(exact, exact)
    with mpmath.workdps(DIGITS):
        units = law.accounting.laplace_amount(t) * UNITS_PER_RHO
        least = int(mpmath.ceil(units))
        return Range(least, least + int(units * ROUNDED_UP.numerator / ROUNDED_UP.denominator) + 1)
