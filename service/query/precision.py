"""The noise that a query asks for, in each of the four ways to say so."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, ldexp, nextafter, sqrt

from service.core.charge import worst_case_units
from service.core.interval import half_width_steps, sigma_steps_within
from service.core.units import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.query.language import HalfWidth, Noise, Rho, Share, Sigma
from service.query.problems import QueryProblem

__all__ = ["FixedHalfWidth", "FixedSigma", "Precision", "WorstCase", "half_width_95", "precision_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSigma:
    """A standard deviation in query units."""

    field: str
    sigma: float

    def estimate(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """Sigma in steps of a grid, to choose the grid by."""
        return ldexp(self.sigma, -grid_log2)

    def sigma_steps(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """Sigma in steps of a grid, exactly: a grid is a power of two."""
        return ldexp(self.sigma, -grid_log2)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedHalfWidth:
    """A distance in query units that the noise keeps to at a confidence. The whole steps in it give sigma."""

    field: str
    half_width: float
    confidence: float

    def estimate(self, clip_squared_steps: int, grid_log2: int) -> float:
        """The sigma itself, which no clip changes."""
        return self.sigma_steps(clip_squared_steps, grid_log2)

    def sigma_steps(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """The largest sigma whose noise is within the half width: between two multiples of the grid there is none."""
        return sigma_steps_within(floor(ldexp(self.half_width, -grid_log2)), self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """The most that one individual may be charged, in ledger units."""

    field: str
    units: int

    def estimate(self, clip_squared_steps: int, _grid_log2: int) -> float:
        """About the sigma in steps at which a vector at the clip costs `units`."""
        return sqrt((clip_squared_steps * (UNITS_PER_RHO // 2)) / self.units)

    def sigma_steps(self, clip_squared_steps: int, grid_log2: int) -> float:
        """The smallest double at which a vector at the clip costs at most `units`, by the ledger's own arithmetic.

        The estimate is one correctly rounded division and one correctly rounded root, so it exceeds the exact root by
        less than the distance to the next smaller double: no smaller one will do, and a few larger ones may be tried.
        """
        sigma = self.estimate(clip_squared_steps, grid_log2)
        while worst_case_units(clip_squared_steps, sigma) > self.units:
            sigma = nextafter(sigma, inf)
        return sigma


Precision = FixedSigma | FixedHalfWidth | WorstCase


def precision_of(noise: Noise, *, budget_units: int) -> Precision:
    """The precision of `noise` on a dataset with this budget.

    Raises QueryProblem for a rho out of range, a share of less than a unit and a confidence of next to nothing.
    """
    match noise:
        case Sigma():
            return FixedSigma(field="noise.sigma", sigma=noise.sigma)
        case Rho():
            units = floor(Fraction(noise.rho) * UNITS_PER_RHO)
            if not 1 <= units <= LIMIT_UNITS_MAX:
                raise QueryProblem.of("noise.rho", "must be at least 2^-40 and at most 2^21")
            return WorstCase(field="noise.rho", units=units)
        case Share():
            units = floor(Fraction(noise.share) * budget_units)
            if not 1 <= units <= LIMIT_UNITS_MAX:
                raise QueryProblem.of("noise.share", "is too small: of this dataset's budget it is less than 2^-40 rho")
            return WorstCase(field="noise.share", units=units)
        case HalfWidth():
            if 1 - noise.confidence == 1:
                raise QueryProblem.of("noise.confidence", "is too small for an interval")
            return FixedHalfWidth(field="noise.half_width", half_width=noise.half_width, confidence=noise.confidence)


def half_width_95(*, sigma: float, grid_log2: int) -> float:
    """The least multiple of the grid within which the noise is with a probability of at least 0.95.

    In query units, like sigma. It is the probability of holding what was counted: the sum over the active individuals,
    clipped and on the grid. Of the truth, which those left out belong to, it says nothing.
    """
    return ldexp(half_width_steps(ldexp(sigma, -grid_log2), 0.95), grid_log2)
