"""The audit's own accountings: what Laplace noise costs under each, and what a total of charges promises.

They are written from the papers, not from the service's code.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import mpmath

from sparing_audit.curves import DIGITS, concentrated_delta, gaussian_delta, largest, renyi_delta

STEPS_PER_SCALE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Accounting:
    """One accounting with a budget: in rho under GDP and zCDP, as divergence over order, or in epsilon."""

    kind: Literal["gdp", "zcdp", "rdp", "pure"]
    amount: float
    order: float = 0.0  # of Rényi differential privacy, above 1

    @property
    def has_gaussian(self) -> bool:
        """Tell whether Gaussian noise has a finite charge. Its loss has no bound, so that pure DP gives it none."""
        return self.kind != "pure"

    @property
    def deviation(self) -> float:
        """The scale of a loss at the whole budget: a standard deviation, or the bound itself under pure DP."""
        return math.sqrt(2 * self.amount) if self.has_gaussian else self.amount

    @property
    def unit(self) -> str:
        """The amount's name, as a service shows it."""
        of_order = f"rho at order {self.order:.15g}" if self.kind == "rdp" else "rho"
        return of_order if self.has_gaussian else "epsilon"

    @property
    def document(self) -> str | dict[str, object]:
        """The accounting as a registration states it, and as a description of the dataset repeats it."""
        match self.kind:
            case "gdp":
                return "gdp"
            case "pure":
                return {"kind": "pure"}
        order = {"order": self.order} if self.kind == "rdp" else {}
        return {"kind": self.kind, **order, "conversion": "optimal"}

    def laplace_amount(self, t: Fraction) -> Any:  # noqa: ANN401 - a real number of mpmath, which has no types
        """The exact price of Laplace noise for a number of t scales.

        The formulas are those of Mironov (2017), of Harrison and Manurangsi (2025), and of the log-concave Phi.
        """
        with mpmath.workdps(DIGITS):
            exact = mpmath.mpf(t.numerator) / t.denominator
            match self.kind:
                case "pure":
                    return exact
                case "zcdp":
                    return exact + mpmath.expm1(-exact)
                case "rdp":
                    a = mpmath.mpf(self.order)
                    moment = a * mpmath.exp((a - 1) * exact) + (a - 1) * mpmath.exp(-a * exact)
                    return mpmath.log(moment / (2 * a - 1)) / (a - 1) / a
            if t == 0:
                return mpmath.mpf(0)
            # Phi(-mu / 2) = e^(-t / 2) / 2, from near the root: sqrt(pi / 2) t for small t, 2 sqrt(t) for large ones.
            near = min(exact * mpmath.sqrt(mpmath.pi / 8), mpmath.sqrt(exact))
            tail = mpmath.log(mpmath.mpf(2)) + exact / 2
            return 2 * mpmath.findroot(lambda half: mpmath.log(mpmath.ncdf(-half)) + tail, near) ** 2

    def laplace_scale(self, amount: float) -> float:
        """A scale, in steps, at which a number of one step costs about this amount, rounded to 2^-20 of a step."""
        t = largest(lambda t: bool(self.laplace_amount(Fraction(t)) < amount))
        return round(STEPS_PER_SCALE / t) / STEPS_PER_SCALE

    def delta(self, epsilon: float) -> float:
        """The delta that the budget promises at epsilon."""
        match self.kind:
            case "gdp":
                return gaussian_delta(epsilon, self.deviation)
            case "zcdp":
                return concentrated_delta(epsilon, self.amount)
            case "rdp":
                return renyi_delta(epsilon, self.divergence(self.order), self.order)
        return max(0.0, math.exp(self.amount) - math.exp(epsilon)) / (1 + math.exp(self.amount))

    def divergence(self, order: float) -> float:
        """The Rényi divergence that the budget promises at an order; infinite where it promises nothing."""
        return order * self.amount if self.kind == "zcdp" or order == self.order else math.inf


ACCOUNTINGS: Final = {
    "gdp": Accounting("gdp", 0.5),
    "zcdp": Accounting("zcdp", 0.5),
    "rdp": Accounting("rdp", 0.125, order=4.0),
    "pure": Accounting("pure", 2.0),
}
"""Those of the audit's datasets: twice a budget shows at once, and of an order the moment may be seen."""
OF_RULES: Final = Accounting("gdp", 8.0)
"""That of the audits of rules, mu = 4: a budget so large that a loss that is 5 % too large shows in one run."""
