"""The accountings of the papers: what the charges of one individual add up to, and what may be said of a total.

Under each accounting an account is one integer for each individual. A Gaussian costs ||v||^2 / (2 sigma^2) under the
first three. The unit differs between them, and with it the theorem by which a total is a promise.

| accounting | amount | a total B promises | source |
|---|---|---|---|
| Gaussian DP | rho | sqrt(2 B)-GDP | Koskela, Tobaben and Honkela 2023, Theorem 12 |
| zero-concentrated DP | rho | B-zCDP | Feldman and Zrnic 2021, Remark 4.4 |
| Rényi DP of order a | D / a | (a, a B)-Rényi DP | Feldman and Zrnic 2021, Theorem 4.5 |
| pure DP | epsilon | B-DP | the log-likelihood ratios of answers add up |

A Gaussian has no price under pure DP. Laplace noise has one under each accounting (laplace_prices.py).

Replacing a record is blanking it and then writing another. The triangle inequality of GDP doubles mu, so that rho
quadruples. Group privacy of zCDP quadruples rho too (Bun and Steinke 2016, Proposition 1.9, a group of two). Pure DP
doubles epsilon. One Rényi order gives no statement of the same order, but by group privacy (e, d)-DP gives (2 e, (1 +
e^e) d)-DP.

The loss L so far, at a time that depends on the answers, is bounded by Ville's inequality: e^((a - 1)(L - a * spent))
is a supermartingale for each order a that the accounting bounds. With one order that is one bound for all times. Where
all orders are bounded, levels of spending are fixed beforehand. They share delta, and each level has its best order.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

from service.accounting.conversions import (
    EPSILON_MAX,
    MARGIN,
    ORDER_MAX,
    Conversion,
    amount_of_best_order,
    amount_of_order,
    amount_of_units,
    best_order,
    delta_of_mu,
    least_order,
    log_delta_of_order,
    mu_of_units_exactly,
    real,
    refuse_delta,
    units_of,
)
from service.accounting.laplace_mechanism import LaplaceMechanism
from service.accounting.laplace_prices import laplace_prices_of
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.core.laplace import LaplacePrices
from service.core.laws import Gaussian, Laplace
from service.core.mechanisms import GAUSSIAN_NOISE, Mechanism

_ROUNDING: Final = 1 + 1e-12
"""A factor far larger than the rounding errors of the formula's six binary operations."""
_EPSILON_RELATIVE: Final = 1e-12


class OrderTooLow(ValueError):
    """A Rényi order at which no amount gives the wanted (epsilon, delta)."""


class Accounting(ABC):
    """The rules by which charges of an individual add up, and the promise of a total.

    Totals are in units, 2^-40 of the amount.
    """

    @property
    @abstractmethod
    def unit(self) -> str:
        """The amount in which charges, limits and totals are stated."""

    @property
    @abstractmethod
    def document(self) -> str | dict[str, str | float]:
        """The accounting as a registration states it, in JSON."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word by which a ledger entry names it. The conversion is not part of it, since it decides no price."""

    has_delta: ClassVar[bool] = True
    """Statements give an epsilon at a delta. Where this is false, the delta may be None and is not read."""
    has_advisory: ClassVar[bool] = False
    """A limit has a smaller epsilon while every answer has Gaussian noise."""

    @cached_property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The mechanisms that the accounting prices, each by its word in a query."""
        laplace = LaplaceMechanism(self.name, self.laplace_prices)
        return {Gaussian.word: GAUSSIAN_NOISE, Laplace.word: laplace}

    @property
    def laplace_prices(self) -> LaplacePrices:
        """The prices of Laplace noise in the accounting's amount."""
        return laplace_prices_of(self.name)

    @abstractmethod
    def is_certified(self, epsilon: Decimal | float, units: int, delta: Decimal) -> bool:
        """Tell whether a total of `units` is (epsilon, delta)-DP, with a margin. Raises ValueError for negatives."""

    @abstractmethod
    def budget_units(self, *, epsilon: Decimal, delta: Decimal) -> int:
        """The largest limit, at most LIMIT_UNITS_MAX, that is certified to be (epsilon, delta)-DP.

        The neighbouring relation is zeroing out one individual's record. Raises ValueError, naming the argument, unless
        0 < epsilon <= EPSILON_MAX and 0 < delta < 1. Raises OrderTooLow where no amount is enough.
        """

    @abstractmethod
    def units_replace_one(self, units: int) -> int | None:
        """The total that promises for blanking a record what `units` promise for replacing one; None if none does."""

    @abstractmethod
    def epsilon_time_uniform(self, spent_units: int, *, budget_units: int, delta: Decimal) -> float:
        """The epsilon below which the loss stayed at every moment up to a spent total, except with probability delta.

        `budget_units` is the largest possible spent total, fixed before the first answer. The epsilon rises with the
        spent total and is 0 where nothing is spent. Raises ValueError unless 0 <= spent_units <= budget_units and 0 <
        delta < 1.
        """

    def epsilon_of_units(self, units: int, delta: Decimal) -> float:
        """The epsilon that a total promises at this delta: certified, and above the least one by a 1e-12th at most.

        `units` may exceed LIMIT_UNITS_MAX, for statements about groups. Raises ValueError for negative units or a delta
        outside (0, 1).
        """
        if units < 0:
            raise ValueError(f"units must not be negative, got {units}")
        refuse_delta(delta)
        return _least(lambda epsilon: self.is_certified(epsilon, units, delta))

    def epsilon_replace_one(self, units: int, delta: Decimal) -> float | None:
        """The epsilon of a total at this delta when a record is replaced by any other; None where none follows."""
        replaced = self.units_replace_one(units)
        return None if replaced is None else self.epsilon_of_units(replaced, delta)

    def mu_of_units(self, units: int) -> float | None:  # noqa: ARG002 - of GDP alone
        """The mu of GDP that a total stands for, rounded up; None under any other accounting."""
        return None

    def epsilon_of_gaussians(self, units: int, delta: Decimal) -> float:
        """The epsilon of a limit at this delta while every answer has Gaussian noise. The accounting must price that.

        A Gaussian costs the same amount as under GDP. So the limit is a filter of GDP too (Koskela, Tobaben and Honkela
        2023, Theorem 12), until an answer has other noise. Raises ValueError as `epsilon_of_units`.
        """
        return min(self.epsilon_of_units(units, delta), GAUSSIAN.epsilon_of_units(units, delta))


class RhoAccounting(Accounting):
    """An accounting that bounds all orders at once: the amount is the rho of zCDP, and mu^2 of GDP is twice of it."""

    unit: ClassVar[str] = "rho"

    def units_replace_one(self, units: int) -> int:
        """4 rho, which is 2 mu; a query with q(x') = -q(x) attains it."""
        return 4 * units

    def epsilon_time_uniform(self, spent_units: int, *, budget_units: int, delta: Decimal) -> float:
        """The least bound of the levels that a spent total is within (Whitehouse et al. 2023; Lecuyer 2021)."""
        _refuse_spent(spent_units, budget_units, delta)
        if spent_units == 0:
            return 0.0
        finest = (budget_units // spent_units).bit_length() - 1
        return min(_level_bound(budget_units, level, delta) for level in range(finest + 1))


@dataclass(frozen=True)
class GaussianAccounting(RhoAccounting):
    """Gaussian differential privacy: every mechanism is a post-processing of a Gaussian, and the curve is exact."""

    name: ClassVar[str] = "gdp"
    document: ClassVar[str] = name

    def is_certified(self, epsilon: Decimal | float, units: int, delta: Decimal) -> bool:
        """Tell by the exact curve at mu = sqrt(2 rho)."""
        return bool(delta_of_mu(epsilon, mu_of_units_exactly(units)) * MARGIN <= real(delta))

    def budget_units(self, *, epsilon: Decimal, delta: Decimal) -> int:
        """The budget by bisection: delta increases with mu."""
        _refuse_guarantee(epsilon, delta)
        low, high = 0, LIMIT_UNITS_MAX + 1  # low is certified; high is not, or not allowed
        while high - low > 1:
            middle = (low + high) // 2
            if self.is_certified(epsilon, middle, delta):
                low = middle
            else:
                high = middle
        return low

    def mu_of_units(self, units: int) -> float:
        """The mu of this total, sqrt(2 rho), rounded up. Raises ValueError for negative units."""
        if units < 0:
            raise ValueError(f"units must not be negative, got {units}")
        return math.nextafter(float(mu_of_units_exactly(units)), math.inf) if units > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class ConcentratedAccounting(RhoAccounting):
    """Zero-concentrated differential privacy, and a conversion to (epsilon, delta)."""

    conversion: Conversion = "optimal"

    name: ClassVar[str] = "zcdp"
    has_advisory: ClassVar[bool] = True

    @property
    def document(self) -> str | dict[str, str | float]:
        """The document that a registration states."""
        return {"kind": self.name, "conversion": self.conversion}

    def is_certified(self, epsilon: Decimal | float, units: int, delta: Decimal) -> bool:
        """Tell by the largest rho that the conversion gives."""
        return bool(amount_of_units(units) * MARGIN <= amount_of_best_order(epsilon, delta, self.conversion))

    def budget_units(self, *, epsilon: Decimal, delta: Decimal) -> int:
        """The largest rho by the conversion. By the simple one it is B* of Feldman and Zrnic, Theorem 4.8."""
        _refuse_guarantee(epsilon, delta)
        return units_of(amount_of_best_order(epsilon, delta, self.conversion))


@dataclass(frozen=True, kw_only=True)
class RenyiAccounting(Accounting):
    """Rényi differential privacy of one order, and a conversion to (epsilon, delta).

    Raises ValueError for an order that is not above 1 and at most ORDER_MAX.
    """

    order: float
    conversion: Conversion = "optimal"

    def __post_init__(self) -> None:
        """Refuse orders at which nothing is defined or gained."""
        if not 1 < self.order <= ORDER_MAX:
            raise ValueError(f"order must be above 1 and at most {ORDER_MAX}, got {self.order}")
        object.__setattr__(self, "order", float(self.order))  # JSON does not tell 32 from 32.0

    has_advisory: ClassVar[bool] = True

    @property
    def unit(self) -> str:
        """The unit is the divergence over the order, in which a Gaussian costs its rho."""
        return f"rho at order {self.order:.15g}"

    @property
    def document(self) -> str | dict[str, str | float]:
        """The document that a registration states."""
        return {"kind": "rdp", "order": self.order, "conversion": self.conversion}

    @property
    def name(self) -> str:
        """The name that mechanisms have for it."""
        return f"rdp {self.order!r}"

    def is_certified(self, epsilon: Decimal | float, units: int, delta: Decimal) -> bool:
        """Tell by the conversion at the order."""
        return bool(amount_of_units(units) * MARGIN <= amount_of_order(self.order, epsilon, delta, self.conversion))

    def budget_units(self, *, epsilon: Decimal, delta: Decimal) -> int:
        """The budget by the conversion at the order. OrderTooLow states the least order with a budget, and the best."""
        _refuse_guarantee(epsilon, delta)
        amount = amount_of_order(self.order, epsilon, delta, self.conversion)
        if amount <= 0:
            least, best = (find(epsilon, delta, self.conversion) for find in (least_order, best_order))
            raise OrderTooLow(f"must be above {least:.4g}; {best:.4g} gives the largest budget")
        return units_of(amount)

    def units_replace_one(self, units: int) -> None:
        """Return None: no statement of this order follows for replacing a record."""

    def epsilon_replace_one(self, units: int, delta: Decimal) -> float | None:
        """The epsilon by group privacy: 2 e, for the least e at which (1 + e^e) d(e) is at most delta; None if none is.

        The logarithm of (1 + e^e) d(e) is convex in e, with slope e^e / (1 + e^e) - (a - 1). Below order 2 it thus
        rises from some e on.
        """
        amount, wanted = amount_of_units(units) * MARGIN, real(delta.ln())

        def is_within(epsilon: float) -> bool:
            group = epsilon + math.log1p(math.exp(-epsilon))
            return bool(log_delta_of_order(self.order, amount, epsilon) + real(group) * MARGIN <= wanted)

        slope = self.order - 1
        lowest = math.log(slope / (1 - slope)) if slope < 1 else EPSILON_MAX
        if units == 0:
            return 0.0
        if not is_within(max(lowest, 0.0)):
            return None
        return 2 * _least(is_within, highest=max(lowest, 0.0))

    def epsilon_time_uniform(self, spent_units: int, *, budget_units: int, delta: Decimal) -> float:
        """The epsilon order * spent + ln(1 / delta) / (order - 1). It holds at all times: one order needs no levels."""
        _refuse_spent(spent_units, budget_units, delta)
        if spent_units == 0:
            return 0.0
        return (self.order * spent_units / UNITS_PER_RHO - float(delta.ln()) / (self.order - 1)) * _ROUNDING


@dataclass(frozen=True)
class PureAccounting(Accounting):
    """Pure differential privacy. It has no delta: the delta may be None here and is not read."""

    unit: ClassVar[str] = "epsilon"
    name: ClassVar[str] = "pure"
    has_delta: ClassVar[bool] = False

    @property
    def document(self) -> str | dict[str, str | float]:
        """The document that a registration states."""
        return {"kind": self.name}

    @cached_property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The Laplace mechanism alone, since the loss of a Gaussian has no bound."""
        return {Laplace.word: LaplaceMechanism(self.name, self.laplace_prices)}

    def is_certified(self, epsilon: Decimal | float, units: int, delta: Decimal | None) -> bool:  # noqa: ARG002
        """Tell by exact fractions whether the total is at most epsilon."""
        if epsilon < 0 or units < 0:
            raise ValueError(f"epsilon and units must not be negative, got {epsilon} and {units}")
        return Fraction(units, UNITS_PER_RHO) <= Fraction(epsilon)

    def budget_units(self, *, epsilon: Decimal, delta: Decimal | None) -> int:  # noqa: ARG002
        """The epsilon itself in units, rounded down."""
        _refuse_epsilon(epsilon)
        return math.floor(Fraction(epsilon) * UNITS_PER_RHO)

    def units_replace_one(self, units: int) -> int:
        """Twice the total."""
        return 2 * units

    def epsilon_of_units(self, units: int, delta: Decimal | None) -> float:  # noqa: ARG002
        """The total itself, rounded up to a double. Raises ValueError for negative units."""
        if units < 0:
            raise ValueError(f"units must not be negative, got {units}")
        nearest = units / UNITS_PER_RHO
        return nearest if nearest * UNITS_PER_RHO >= units else math.nextafter(nearest, math.inf)

    def epsilon_replace_one(self, units: int, delta: Decimal | None) -> float:
        """The epsilon of twice the total."""
        return self.epsilon_of_units(2 * units, delta)

    def epsilon_time_uniform(self, spent_units: int, *, budget_units: int, delta: Decimal | None) -> float:
        """The spent total itself, since no answer adds more to the loss than its charge."""
        _refuse_total(spent_units, budget_units)
        return self.epsilon_of_units(spent_units, delta)


GAUSSIAN: Final = GaussianAccounting()
PURE: Final = PureAccounting()


def accounting_of(document: object) -> Accounting:
    """The accounting that a registration has stated, from its JSON. Raises ValueError for another document."""
    match document:
        case "gdp":
            return GAUSSIAN
        case {"kind": "zcdp", "conversion": ("optimal" | "simple") as conversion}:
            return ConcentratedAccounting(conversion=conversion)
        case {"kind": "pure"}:
            return PURE
        case {"kind": "rdp", "order": (float() | int()) as order, "conversion": ("optimal" | "simple") as conversion}:
            return RenyiAccounting(order=order, conversion=conversion)
    raise ValueError(f"there is no accounting {document}")


def _least(is_certified: Callable[[float], bool], *, highest: float = math.inf) -> float:
    """The least certified epsilon, or up to _EPSILON_RELATIVE of it more. All from it to `highest` are certified."""
    if is_certified(0.0):
        return 0.0
    low, high = 0.0, min(1.0, highest)
    while high < highest and not is_certified(high):
        low, high = high, min(2 * high, highest)
    while high - low > _EPSILON_RELATIVE * high:
        middle = (low + high) / 2
        if is_certified(middle):
            high = middle
        else:
            low = middle
    return high


def _level_bound(budget_units: int, level: int, delta: Decimal) -> float:
    """The bound on the loss while the spent total is within budget / 2^level, except with the level's part of delta."""
    rho = math.ldexp(budget_units / UNITS_PER_RHO, -level)
    # ln(1 / delta_j) for delta_j = 6 delta / (pi^2 (j + 1)^2); a Decimal's logarithm knows deltas that no float holds.
    share = math.log(math.pi**2 / 6) + 2 * math.log(level + 1) - float(delta.ln())
    return (rho + 2 * math.sqrt(rho * share)) * _ROUNDING


def _refuse_spent(spent_units: int, budget_units: int, delta: Decimal) -> None:
    _refuse_total(spent_units, budget_units)
    refuse_delta(delta)


def _refuse_total(spent_units: int, budget_units: int) -> None:
    if not 0 <= spent_units <= budget_units:
        raise ValueError(f"spent units must be from 0 to {budget_units}, got {spent_units}")


def _refuse_guarantee(epsilon: Decimal, delta: Decimal) -> None:
    _refuse_epsilon(epsilon)
    refuse_delta(delta)


def _refuse_epsilon(epsilon: Decimal) -> None:
    if not (epsilon.is_finite() and 0 < epsilon <= EPSILON_MAX):
        raise ValueError(f"epsilon must be above 0 and at most {EPSILON_MAX}, got {epsilon}")
