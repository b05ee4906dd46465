"""The guarantee of a dataset and its accounting, as a registration states them."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from service.accounting.accountings import Accounting
from service.accounting.conversions import ORDER_MAX
from service.core.charge import units_down
from service.query.schema import doc

_STRICT = ConfigDict(extra="forbid", frozen=True)
PositiveDecimal = Annotated[Decimal, Field(gt=0, allow_inf_nan=False, max_digits=60)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The guarantee as it was stated: (epsilon, delta), or null where rho was stated."""

    epsilon: Annotated[str | None, doc("The stated epsilon, a decimal; null where rho was stated.")]
    delta: Annotated[str | None, doc("The stated delta, a decimal; null where rho was stated.")]


class StatedGuarantee(BaseModel):
    """Either (epsilon, delta)-differential privacy or rho-zCDP, for each individual, over everything ever released."""

    model_config = _STRICT
    epsilon: Annotated[
        Annotated[PositiveDecimal, Field(le=1000)] | None,
        doc("Epsilon, above 0 and at most 1,000: a number, or a decimal as text; stated with `delta`."),
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
        if (self.epsilon is None) != (self.delta is None) or (self.epsilon is None) == (self.rho is None):
            raise ValueError("state either epsilon and delta, or rho")
        return self

    def budget_units(self, accounting: Accounting) -> int:
        """The budget in units, rounded down; by the accounting's conversion for (epsilon, delta).

        Raises OrderTooLow.
        """
        if self.epsilon is not None and self.delta is not None:
            return accounting.budget_units(epsilon=self.epsilon, delta=self.delta)
        return units_down(Fraction(self.rho or 0))


StatedConversion = Annotated[
    Literal["optimal", "simple"],
    doc(
        "The conversion to (epsilon, delta): `optimal` (Canonne, Kamath and Steinke), or `simple`, which promises less."
    ),
]


class StatedConcentrated(BaseModel):
    """Zero-concentrated differential privacy."""

    model_config = _STRICT
    kind: Annotated[Literal["zcdp"], doc("`zcdp`.")]
    conversion: StatedConversion = "optimal"


class StatedRenyi(BaseModel):
    """Rényi differential privacy of one order."""

    model_config = _STRICT
    kind: Annotated[Literal["rdp"], doc("`rdp`.")]
    order: Annotated[
        float,
        Field(gt=1, le=ORDER_MAX, allow_inf_nan=False),
        doc("The order, above 1 and at most 1,000,000. A guarantee of epsilon and delta has one order that is best."),
    ]
    conversion: StatedConversion = "optimal"


StatedAccounting = Annotated[
    Literal["gdp"] | Annotated[StatedConcentrated | StatedRenyi, Field(discriminator="kind")],
    doc(
        "The rule by which charges add up, and by which their total is a guarantee: `gdp` (Gaussian differential"
        " privacy, which allows most), zero-concentrated or Rényi differential privacy of one order."
    ),
]
STATED_ACCOUNTING: Final[TypeAdapter[StatedAccounting]] = TypeAdapter(StatedAccounting)


def stated_accounting(accounting: Accounting) -> StatedAccounting:
    """An accounting as its registration has stated it."""
    return STATED_ACCOUNTING.validate_python(accounting.document)
