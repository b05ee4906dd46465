"""How much noise a query asks for, in whichever of the three ways it says so."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, ldexp, nextafter, sqrt
from statistics import NormalDist

from service.core.charge import worst_case_units
from service.core.units import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.query.language import HalfWidth, Noise, Rho, Sigma
from service.query.problems import QueryProblem

__all__ = ["FixedSigma", "Precision", "WorstCase", "half_width_95", "precision_of"]

_QUANTILE_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSigma:
    """A standard deviation in query units, given as such or by a half width."""

    field: str
    sigma: float

    def estimate(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """Sigma in steps of a grid, to choose the grid by."""
        return ldexp(self.sigma, -grid_log2)

    def sigma_steps(self, _clip_squared_steps: int, grid_log2: int) -> float:
        """Sigma in steps of a grid, exactly: a grid is a power of two."""
        return ldexp(self.sigma, -grid_log2)


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


Precision = FixedSigma | WorstCase


def precision_of(noise: Noise) -> Precision:
    """What `noise` asks for. Raises QueryProblem for a rho out of range or a confidence without a width."""
    match noise:
        case Sigma():
            return FixedSigma(field="noise.sigma", sigma=noise.sigma)
        case Rho():
            units = floor(Fraction(noise.rho) * UNITS_PER_RHO)
            if not 1 <= units <= LIMIT_UNITS_MAX:
                raise QueryProblem.of("noise.rho", "must be at least 2^-40 and at most 2^21")
            return WorstCase(field="noise.rho", units=units)
        case HalfWidth():
            # 1 - confidence is exact from 1/2 up, and the lower tail keeps its digits where the upper one is 1.
            quantile = -NormalDist().inv_cdf((1 - noise.confidence) / 2)
            if quantile <= 0:
                raise QueryProblem.of("noise.confidence", "is too small for an interval")
            return FixedSigma(field="noise.half_width", sigma=noise.half_width / quantile)


def half_width_95(sigma: float) -> float:
    """The two-sided 95 % normal quantile times sigma, in the unit of sigma; rounding to the grid adds half a step."""
    return _QUANTILE_95 * sigma
