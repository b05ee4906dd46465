"""The size of the noise that a stated precision asks for, on any grid, by a mechanism that has prices."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, ldexp

from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.core.mechanisms import Mechanism
from service.query.noise_ast import PREPAID_ALONE, HalfWidth, Noise, Prepaid, Rho, Share, Sigma, SizeForm
from service.query.problems import QueryProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSize:
    """A size in query units: a sigma, or the scale of Laplace noise."""

    field: str
    size: float

    def size_steps(self, _norm_squared: int, grid_log2: int) -> float:
        """The size in steps of a grid. It is exact, since a grid is a power of two."""
        return ldexp(self.size, -grid_log2)

    estimate = size_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedHalfWidth:
    """A distance in query units that the noise keeps to at a confidence. The whole steps in it give the size."""

    field: str
    half_width: float
    confidence: float
    mechanism: Mechanism

    def size_steps(self, _norm_squared: int, grid_log2: int) -> float:
        """The largest size whose noise is within the half width, of which only the whole steps count."""
        return self.mechanism.size_within(floor(ldexp(self.half_width, -grid_log2)), self.confidence)

    estimate = size_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """The most that one individual may be charged, in ledger units."""

    field: str
    units: int
    mechanism: Mechanism

    def estimate(self, norm_squared: int, _grid_log2: int) -> float:
        """About the size at which a vector of this squared norm costs `units`."""
        return self.mechanism.estimate_for(norm_squared, self.units)

    def size_steps(self, norm_squared: int, _grid_log2: int) -> float:
        """A size at which a vector of this squared norm costs at most `units`."""
        return self.mechanism.size_for(norm_squared, self.units)


Precision = FixedSize | FixedHalfWidth | WorstCase
"""A stated precision. It says which size of noise it asks for on a grid, in steps; its `estimate` is about that."""


def precision_of(noise: Noise, mechanism: Mechanism, *, budget_units: int) -> Precision:
    """The precision of `noise` on a dataset with this budget.

    Raises QueryProblem for a rho out of range, a share of less than a unit, a confidence too small for an interval, and
    a form that belongs to another mechanism.
    """
    match noise:
        case Sigma() if not isinstance(noise.sigma, tuple):
            return FixedSize(field="noise.sigma", size=noise.sigma / mechanism.law.deviation)
        case SizeForm() if mechanism.law.size_word == noise.KIND:
            return FixedSize(field=f"noise.{noise.KIND}", size=noise.size)
        case Rho():
            units = floor(Fraction(noise.rho) * UNITS_PER_RHO)
            return _worst_case("noise.rho", units, mechanism, "must be at least 2^-40 and at most 2^21")
        case Share():
            units = floor(Fraction(noise.share) * budget_units)
            problem = "is too small: of this dataset's budget it is less than 2^-40 rho"
            return _worst_case("noise.share", units, mechanism, problem)
        case HalfWidth() if not isinstance(noise.half_width, tuple):
            if 1 - noise.confidence == 1:
                raise QueryProblem.of("noise.confidence", "is too small for an interval")
            return FixedHalfWidth(
                field="noise.half_width", half_width=noise.half_width, confidence=noise.confidence, mechanism=mechanism
            )
        case SizeForm():
            word = noise.MECHANISM
            problem = f"is of {word.capitalize()} noise: ask with mechanism {word}, or give a sigma"
            raise QueryProblem.of(f"noise.{noise.KIND}", problem)
        case Prepaid():
            raise QueryProblem.of("noise.prepaid", PREPAID_ALONE)
    raise TypeError("a list of numbers makes a scale for each item (service.query.item_scale)")


def _worst_case(field: str, units: int, mechanism: Mechanism, problem: str) -> WorstCase:
    if not 1 <= units <= LIMIT_UNITS_MAX:
        raise QueryProblem.of(field, problem)
    return WorstCase(field=field, units=units, mechanism=mechanism)
