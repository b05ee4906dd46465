"""The audit's own accountings: what Laplace and Gaussian noise cost under each, and what a total of charges promises.

Written from the papers, beside the service's and not from them. A service may round a price of Laplace noise up, as its
documents say by a ten-thousandth and a unit at most, so that such a price here is a range; the others are exact.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal

import mpmath

from sparing_audit.curves import concentrated_delta, gaussian_delta, renyi_delta
from sparing_audit.service import UNITS_PER_RHO

__all__ = ["ACCOUNTINGS", "Accounting", "Range", "accounting_of"]

Kind = Literal["gdp", "zcdp", "rdp", "pure"]

DIGITS = 50
HALVINGS = 40
ROUNDED_UP: Final = Fraction(1, 10_000)
"""The part by which a price of Laplace noise may be above the exact one, besides a unit."""
ORDER: Final = 4.0
"""The order of the audit's datasets under Rényi differential privacy."""


@dataclass(frozen=True, slots=True)
class Range:
    """A charge in units: not below `least`, which the papers ask for, and at most `most`."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """One accounting. Its amount is rho under GDP and zCDP, the divergence over the order, or epsilon."""

    kind: Kind
    order: float | None = None  # of Rényi differential privacy

    @property
    def has_gaussian(self) -> bool:
        """Tell whether a Gaussian has a finite charge: its loss has no bound."""
        return self.kind != "pure"

    @property
    def unit(self) -> str:
        """The amount, as a service names it."""
        of_order = "rho" if self.order is None else f"rho at order {self.order:.15g}"
        return "epsilon" if self.kind == "pure" else of_order

    @property
    def document(self) -> str | dict[str, object]:
        """The accounting as a registration states it."""
        stated = {} if self.order is None else {"order": self.order}
        return "gdp" if self.kind == "gdp" else {"kind": self.kind, **stated}

    def laplace_amount(self, t: Fraction) -> Any:  # noqa: ANN401 - a real number of mpmath, which has no types
        """The exact price of Laplace noise for a number of t scales."""
        with mpmath.workdps(DIGITS):
            return _laplace_amount(self.kind, self.order, mpmath.mpf(t.numerator) / t.denominator)

    def laplace_charge(self, steps: int, scale_steps: float) -> Range:
        """The charge of a number of so many steps under Laplace noise."""
        return _laplace_charge(self, abs(steps), scale_steps)

    def laplace_scale(self, amount: float) -> float:
        """A scale, in steps, at which a number of one step costs about so much, rounded to 2^-20 of a step."""
        low, high = Fraction(0), Fraction(1)
        while self.laplace_amount(high) < amount:
            low, high = high, 2 * high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.laplace_amount(middle) < amount else (low, middle)
        return round(float(1 / high) * 2**20) / 2**20

    def delta(self, epsilon: float, amount: float) -> float:
        """The delta that a total promises at epsilon."""
        match self.kind:
            case "gdp":
                return gaussian_delta(epsilon, math.sqrt(2 * amount))
            case "zcdp":
                return concentrated_delta(epsilon, amount)
            case "rdp":
                return renyi_delta(epsilon, self.divergence(self.order or math.nan, amount), self.order or math.nan)
        return max(0.0, math.exp(amount) - math.exp(epsilon)) / (1 + math.exp(amount))

    def divergence(self, order: float, amount: float) -> float:
        """The Rényi divergence of an order that a total promises; infinite where nothing is promised of the order."""
        if self.kind == "zcdp" or (self.kind == "rdp" and order == self.order):
            return order * amount
        return math.inf


ACCOUNTINGS: Final = {
    "gdp": Accounting(kind="gdp"),
    "zcdp": Accounting(kind="zcdp"),
    "rdp": Accounting(kind="rdp", order=ORDER),
    "pure": Accounting(kind="pure"),
}
"""The accountings of the audit's datasets, by kind."""


def accounting_of(document: object) -> Accounting:
    """The accounting that a dataset's description states. Raises ValueError for one that the audit does not know."""
    match document:
        case "gdp":
            return Accounting(kind="gdp")
        case {"kind": "zcdp" | "pure" as kind}:
            return Accounting(kind=kind)
        case {"kind": "rdp", "order": float() | int() as order}:
            return Accounting(kind="rdp", order=float(order))
    raise ValueError(f"the audit knows no accounting {document}")


@lru_cache(maxsize=4096)
def _laplace_charge(accounting: Accounting, steps: int, scale_steps: float) -> Range:
    t = steps / Fraction(scale_steps)
    if accounting.kind == "pure":
        exact = math.ceil(t * UNITS_PER_RHO)
        return Range(exact, exact)
    with mpmath.workdps(DIGITS):
        units = accounting.laplace_amount(t) * UNITS_PER_RHO
        least = int(mpmath.ceil(units))
        return Range(least, least + int(units * ROUNDED_UP.numerator / ROUNDED_UP.denominator) + 1)


def _laplace_amount(kind: Kind, order: float | None, t: Any) -> Any:  # noqa: ANN401 - as above
    """The formulas of Mironov (2017), of Harrison and Manurangsi (2025), and of the log-concave Phi."""
    match kind:
        case "pure":
            return t
        case "zcdp":
            return t + mpmath.expm1(-t)
        case "rdp":
            a = mpmath.mpf(order)
            moment = a * mpmath.exp((a - 1) * t) + (a - 1) * mpmath.exp(-a * t)
            return mpmath.log(moment / (2 * a - 1)) / (a - 1) / a
    if t == 0:
        return mpmath.mpf(0)
    # Phi(-mu / 2) = e^(-t / 2) / 2, from near the root: sqrt(pi / 2) t for a small t, 2 sqrt(t) for a large one.
    near = min(t * mpmath.sqrt(mpmath.pi / 8), mpmath.sqrt(t))
    tail = mpmath.log(mpmath.mpf(2)) + t / 2
    return 2 * mpmath.findroot(lambda half: mpmath.log(mpmath.ncdf(-half)) + tail, near) ** 2
