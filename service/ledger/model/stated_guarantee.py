"""The guarantee of a dataset and its accounting, as a registration states them."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, model_validator

from service.accounting.accountings import Accounting
from service.accounting.conversions import ORDER_MAX
from service.core.charge import units_down
from service.numerals import DECIMAL
from service.query.schema import doc

PositiveDecimal = Annotated[Decimal, DECIMAL, Field(gt=0, allow_inf_nan=False, max_digits=60)]


class Stated(BaseModel, extra="forbid", frozen=True):
    """A part of a registration as it is stated, with no other members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The guarantee as it was stated: (epsilon, delta), epsilon alone under `pure`, or null where rho was stated."""

    epsilon: Annotated[str | None, doc("The stated epsilon, a decimal; null where rho was stated.")]
    delta: Annotated[str | None, doc("The stated delta, a decimal; null where rho was stated, and under `pure`.")]


class GuaranteeMismatch(ValueError):
    """A guarantee that the accounting cannot give."""


class StatedGuarantee(Stated):
    """(epsilon, delta)-differential privacy, or rho of the accounting, or epsilon alone where that is `pure`.

    For each individual, over everything ever released.
    """

    epsilon: Annotated[
        Annotated[PositiveDecimal, Field(le=1000)] | None,
        doc("Epsilon, above 0 and at most 1,000: a number, or a decimal as text; with `delta`, but under `pure`."),
    ] = None
    delta: Annotated[
        Annotated[PositiveDecimal, Field(lt=1)] | None,
        doc("Delta, above 0 and below 1: a number, or a decimal as text, which is exact."),
    ] = None
    rho: Annotated[
        Annotated[PositiveDecimal, Field(le=1_000_000)] | None,
        doc("The budget in the unit of the accounting, rho, instead: a number, or a decimal as text."),
    ] = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "StatedGuarantee":
        if (self.epsilon is None) == (self.rho is None) or (self.epsilon is None and self.delta is not None):
            raise ValueError("state either epsilon and delta, or rho")
        return self

    def budget_units(self, accounting: Accounting) -> int:
        """The budget in units, rounded down; by the accounting's conversion for (epsilon, delta).

        Raises OrderTooLow, GuaranteeMismatch.
        """
        if accounting.has_delta and self.epsilon is not None and self.delta is None:
            raise GuaranteeMismatch("state either epsilon and delta, or rho")
        if not accounting.has_delta and (self.epsilon is None or self.delta is not None):
            raise GuaranteeMismatch("of pure differential privacy is epsilon alone")
        if self.epsilon is None:
            return units_down(Fraction(self.rho or 0))
        return accounting.budget_units(epsilon=self.epsilon, delta=self.delta or Decimal(0))


StatedConversion = Annotated[
    Literal["optimal", "simple"],
    doc(
        "The conversion to (epsilon, delta): `optimal` (Canonne, Kamath and Steinke), or `simple`, which promises less."
    ),
]


class StatedConcentrated(Stated):
    """Zero-concentrated differential privacy."""

    kind: Annotated[Literal["zcdp"], doc("`zcdp`.")]
    conversion: StatedConversion = "optimal"


class StatedRenyi(Stated):
    """Rényi differential privacy of one order."""

    kind: Annotated[Literal["rdp"], doc("`rdp`.")]
    order: Annotated[
        float,
        Field(gt=1, le=ORDER_MAX, allow_inf_nan=False),
        doc("The order, above 1 and at most 1,000,000. A guarantee of epsilon and delta has one order that is best."),
    ]
    conversion: StatedConversion = "optimal"


class StatedPure(Stated):
    """Pure differential privacy, for queries with Laplace noise alone."""

    kind: Annotated[Literal["pure"], doc("`pure`.")]


StatedAccounting = Annotated[
    Literal["gdp"] | Annotated[StatedConcentrated | StatedRenyi | StatedPure, Field(discriminator="kind")],
    doc(
        "The rule by which charges add up, and by which their total is a guarantee: `gdp` (Gaussian differential"
        " privacy, which allows most), zero-concentrated, Rényi of one order, or pure."
    ),
]
STATED_ACCOUNTING: Final[TypeAdapter[StatedAccounting]] = TypeAdapter(StatedAccounting)


def stated_accounting(accounting: Accounting) -> StatedAccounting:
    """An accounting as its registration has stated it."""
    return STATED_ACCOUNTING.validate_python(accounting.document)
