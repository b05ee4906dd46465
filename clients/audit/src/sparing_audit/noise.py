"""The laws of noise as the audit knows them: prices, losses, and statistics that tell a law from others.

Lengths, answers and sizes are in whole steps of a grid where they are priced or tested. Under rounded Laplace noise
round(Lap(b)), with x = 1 / (2 b), the probability of 0 is 1 - e^-x, and that of another k is sinh(x) e^(-|k| / b).
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
"""The ledger's unit, as the service documents it: of rho, or of another accounting's amount."""
ROUNDED_UP: Final = Fraction(1, 10_000)
"""The part by which a price of Laplace noise may be above the exact one, besides a unit."""


@dataclass(frozen=True, slots=True)
class Range:
    """Units: not below `least`, which the papers ask for, and at most `most`, to which a service may round."""

    least: int
    most: int

    def __add__(self, other: "Range") -> "Range":
        return Range(self.least + other.least, self.most + other.most)

    def nearest(self, units: int) -> int:
        """The number within the range that is nearest to another one."""
        return min(max(units, self.least), self.most)


NOTHING: Final = Range(0, 0)


@dataclass(frozen=True)
class Gaussian:
    """Rounded Gaussian noise of a sigma."""

    size: float
    spread: ClassVar[float] = 2.0
    """The variance of a size in `statistics`, whose mean is 1."""
    label: ClassVar[str] = "Gaussian noise"

    def charge(self, length: int) -> Range:
        """Length^2 / (2 sigma^2) rho, rounded up to units: exact, as the double is a fraction."""
        price = _price_of(self.size)
        units = -(-length * length * price.numerator // price.denominator)
        return Range(units, units)

    def longest(self, room: int) -> int:
        """The longest vector whose charge fits the room: length^2 times the price fits exactly when the charge does."""
        price = _price_of(self.size)
        return math.isqrt(max(room, 0) * price.denominator // price.numerator)

    def losses(self, steps: Doubles, counted: Doubles) -> Doubles:
        """The log of how much likelier answers (k,) are with the counted numbers (k,) than without."""
        return (steps * counted - counted**2 / 2) / self.size**2

    @property
    def variance(self) -> float:
        """The variance in squares of sigma, of which rounding is a part."""
        return 1 + 1 / (12 * self.size**2)

    def statistics(self, noise: Doubles, _: np.random.Generator) -> tuple[Doubles, Doubles]:
        """The sizes of noise (k,), of mean 1, and evenly distributed numbers in [0, 1], if the law is this one."""
        draws = noise / (self.size * math.sqrt(self.variance))
        return draws**2, evened(draws)


@dataclass(frozen=True)
class Laplace:
    """Rounded Laplace noise of a scale, at the prices of an accounting."""

    size: float
    accounting: Accounting

    def charge(self, length: int) -> Range:
        """The charge of a number: not below the exact price, and above it by what a service may round."""
        return _laplace_charge(self, abs(length))

    def losses(self, steps: Doubles, counted: Doubles) -> Doubles:
        """The losses of steps, never above |counted| / b, but for a rounding of doubles."""
        return self._log_shape(steps - counted) - self._log_shape(steps)

    @property
    def label(self) -> str:
        """The law in words."""
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
        """The statistics of noise; even numbers are drawn within the jump of the distribution at each whole one."""
        size, x = np.abs(noise), 1 / (2 * self.size)
        inner, outer = 0.5 * np.exp(-(2 * size - 1) * x), 0.5 * np.exp(-(2 * size + 1) * x)  # beyond k -+ 1/2
        drawn = rng.random(size.size)
        tails = np.where(size == 0, 0.5 * math.exp(-x) + drawn * -math.expm1(-x), outer + drawn * (inner - outer))
        return size / self._mean, np.where(noise > 0, 1 - tails, tails)

    @property
    def _mean(self) -> float:
        return 1 / (2 * math.sinh(1 / (2 * self.size)))

    def _log_shape(self, steps: Doubles) -> Doubles:
        """The log of the probability but for the common factor sinh(x)."""
        x = 1 / (2 * self.size)
        return np.where(steps == 0, math.log(-math.expm1(-x) / math.sinh(x)), -np.abs(steps) / self.size)


Law = Gaussian | Laplace


@cache
def _price_of(sigma_steps: float) -> Fraction:
    """Units for a squared step."""
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
