"""Laws of noise of any size, and the size that a precision asks for. Sizes and norms are in grid steps.

A law in `service.core.laws` has one size. A mechanism is the same noise before its size is known. An accounting has the
mechanisms that it prices, by the word that a query uses for each.
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
    """The price is that of one number for each individual, and not that of a vector's norm."""
    name: str
    """The words by which a ledger entry names it."""

    @abstractmethod
    def at(self, size_steps: float) -> Law:
        """The law of this size."""

    @abstractmethod
    def size_for(self, norm_squared: int, units: int) -> float:
        """The least size at which a vector of this squared norm costs at most `units`, or up to 2^-18 of it more."""

    @abstractmethod
    def estimate_for(self, norm_squared: int, units: int) -> float:
        """About the size that `size_for` gives, in less time."""

    @abstractmethod
    def size_within(self, steps: int, confidence: float) -> float:
        """The largest size at which the noise is within `steps` steps at this confidence. Raises ValueError."""


class GaussianMechanism(Mechanism):
    """Gaussian noise, which has the same price under every accounting that prices it."""

    law: ClassVar = Gaussian
    of_one_number: ClassVar = False
    name: str = Gaussian.word

    def at(self, size_steps: float) -> Law:
        """The Gaussian of this sigma."""
        return Gaussian(size_steps)

    def size_for(self, norm_squared: int, units: int) -> float:
        """The smallest double at which a vector costs at most `units`, by the ledger's own arithmetic.

        The estimate is one correctly rounded division and one correctly rounded root. So the next smaller double is
        below the exact root and is not enough, and a few larger doubles may have to be tried.
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
