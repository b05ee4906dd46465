"""Laws of noise of any size, and the size that a precision asks for. Sizes and norms are in grid steps.

A size is asked for before it is known, so that this belongs to no law of one size. An accounting has the mechanisms
that it prices, by the word of a query.
"""

from abc import ABC, abstractmethod
from math import inf, nextafter, sqrt
from typing import ClassVar, Final

from service.core.charge import UNITS_PER_RHO, worst_case_units
from service.core.half_widths import sigma_steps_within
from service.core.laws import Gaussian, Law


class Mechanism(ABC):
    """A law of any size, at the prices of an accounting."""

    law: ClassVar[type[Law]]
    of_one_number: ClassVar[bool]
    """It is priced by one number of an individual, and not by the norm of a vector."""
    name: str
    """The words by which a ledger entry names it."""

    @abstractmethod
    def at(self, size_steps: float) -> Law:
        """The law of this size."""

    @abstractmethod
    def size_for(self, norm_squared: int, units: int) -> float:
        """A size at which a vector of this squared norm costs at most `units`, larger than the least by 2^-18 of it."""

    @abstractmethod
    def estimate_for(self, norm_squared: int, units: int) -> float:
        """About that size, in less time."""

    @abstractmethod
    def size_within(self, steps: int, confidence: float) -> float:
        """The largest size at which the noise is within so many steps at this confidence. Raises ValueError."""


class GaussianMechanism(Mechanism):
    """Gaussian noise, which has one price under all accountings that have one."""

    law: ClassVar = Gaussian
    of_one_number: ClassVar = False
    name: str = Gaussian.word

    def at(self, size_steps: float) -> Law:
        """The Gaussian of this sigma."""
        return Gaussian(size_steps)

    def size_for(self, norm_squared: int, units: int) -> float:
        """The smallest double at which a vector costs at most `units`, by the ledger's own arithmetic.

        The estimate is one correctly rounded division and one correctly rounded root, so it exceeds the exact root by
        less than the distance to the next smaller double: no smaller one will do, and a few larger ones may be tried.
        """
        sigma = self.estimate_for(norm_squared, units)
        while worst_case_units(norm_squared, sigma) > units:
            sigma = nextafter(sigma, inf)
        return sigma

    def estimate_for(self, norm_squared: int, units: int) -> float:
        """The root of ||v||^2 / (2 rho)."""
        return sqrt((norm_squared * (UNITS_PER_RHO // 2)) / units)

    def size_within(self, steps: int, confidence: float) -> float:
        """The sigma of `sigma_steps_within`."""
        return sigma_steps_within(steps, confidence)


GAUSSIAN_NOISE: Final = GaussianMechanism()
