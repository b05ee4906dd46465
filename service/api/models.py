"""Replies of the api's own, and the parts of replies that are stored bytes: models that are never built."""

from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from service.numerals import DECIMAL
from service.query.schema import doc
from service.workflows.model.views import AuditedRow, LedgerRow

KEY_PATTERN = "^[ -~]*[!-~][ -~]*$"
"""The form of an idempotency key: printable ASCII characters, and not spaces alone."""
Rho = Annotated[Decimal, DECIMAL, Field(ge=0, le=1_000_000, allow_inf_nan=False, max_digits=60)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The public epoch that has begun."""

    epoch: Annotated[int, doc("The number of the epoch that has begun.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualsKey:
    """The key of one individual, shown once."""

    individual: Annotated[str, doc("The key of the individual, as it was uploaded.")]
    api_key: Annotated[str, doc("The individual's API key, shown here and never again.")] = field(repr=False)


def _may_be_absent(schema: JsonDict) -> None:
    """A member that is left out has no default."""
    schema.pop("default", None)


def _absent(text: str) -> Any:  # noqa: ANN401 - as Field itself
    """A member that may be absent, with its description."""
    return Field(default=None, json_schema_extra=_may_be_absent, description=text)


Bound = int | str
"""A number, or a date or a time as text."""


class CoordinateLabel(BaseModel):
    """The name of one number of an answer: its select item, and the value of each column that it is grouped by.

    A label of a histogram also has the histogram's column with a value of its domain.
    """

    __pydantic_extra__: dict[str, bool | int | str]
    model_config = ConfigDict(extra="allow")

    select: Annotated[str, doc("The select item: `count`, `sum(spend)` or `histogram(area)`.")]


class GroupAxis(BaseModel):
    """A column by which the numbers of an answer are grouped, or whose domain a histogram counts.

    A column of numbers or times has `lower` and `upper`; a category or a boolean its `categories`, but for categories
    that are numbers below `size` and for more than 1,000; a bin or a bucket of the column has its `edges`, its `width`
    or its unit `by`.
    """

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, doc("The column.")]
    size: Annotated[int, doc("How many values or parts there are.")]
    lower: Bound | SkipJsonSchema[None] = _absent("The least value of the column's domain.")
    upper: Bound | SkipJsonSchema[None] = _absent("The greatest value of the column's domain.")
    categories: list[bool | Bound] | SkipJsonSchema[None] = _absent("The values in the order of the numbers.")
    edges: list[float | str] | SkipJsonSchema[None] = _absent("The edges of bins, one more than there are bins.")
    width: float | SkipJsonSchema[None] = _absent("The width of bins.")
    by: str | SkipJsonSchema[None] = _absent("The unit of a bucket, such as `month`.")


class SelectedItem(BaseModel):
    """The numbers of one select item within each group; those of a histogram are named by `values`."""

    model_config = ConfigDict(extra="forbid")

    select: Annotated[str, doc("The select item: `count`, `sum(spend)` or `histogram(area)`.")]
    offset: Annotated[int, doc("The place of the item's first number within its group.")]
    size: Annotated[int, doc("How many numbers the item has in each group.")]
    values: GroupAxis | SkipJsonSchema[None] = _absent(
        "The values that a histogram counts, in the order of its numbers."
    )
    item: int | SkipJsonSchema[None] = _absent("The place in `select`, where each item has noise of its own.")
    sigma: float | SkipJsonSchema[None] = _absent("The standard deviation of its noise, where each item has its own.")
    grid: float | SkipJsonSchema[None] = _absent("The step of which its numbers are multiples, where each has its own.")
    half_width_95: float | SkipJsonSchema[None] = _absent("`half_width_95` of its numbers, where each has its own.")


class SelectAxis(BaseModel):
    """The innermost axis: the select items in their order."""

    model_config = ConfigDict(extra="forbid")

    select: Annotated[list[SelectedItem], doc("The select items in their order.")]


class BurnFacts(BaseModel):
    """The reason of a burn."""

    why: Annotated[str, doc("The fault that made it necessary, in words.")]
    units: Annotated[str, doc("The most that it charged each individual, in units of 2^-40 rho, a decimal.")]


class BurnReason(BaseModel):
    """The place of a query in a burn: an entry that charges every individual for answers that were forgotten."""

    burn: Annotated[BurnFacts, doc("The reason, and the most that it charged each individual.")]


def without_counts(row: LedgerRow) -> AuditedRow:
    """A ledger row as an auditor sees it."""
    return AuditedRow(**{each.name: getattr(row, each.name) for each in fields(AuditedRow)})
