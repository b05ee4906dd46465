"""Replies of the api's own, and the parts of replies that are stored bytes: models that are never built."""

from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from service.ledger.model.views import AuditedRow, LedgerRow
from service.numerals import DECIMAL
from service.query.schema import ClosedModel, doc

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


class GroupAxis(ClosedModel):
    """A column by which the numbers of an answer are grouped, or whose domain a histogram counts.

    A column of numbers or times has `lower` and `upper`; a category or a boolean its `categories`, but for categories
    that are numbers below `size` and for more than 1,000; a bin or a bucket of the column has its `edges`, its `width`
    or its unit `by`.
    """

    column: Annotated[str, doc("The column.")]
    size: Annotated[int, doc("How many values or parts there are.")]
    lower: Bound | SkipJsonSchema[None] = _absent("The least value of the column's domain.")
    upper: Bound | SkipJsonSchema[None] = _absent("The greatest value of the column's domain.")
    categories: list[bool | Bound] | SkipJsonSchema[None] = _absent("The values in the order of the numbers.")
    edges: list[float | str] | SkipJsonSchema[None] = _absent("The edges of bins, one more than there are bins.")
    width: float | SkipJsonSchema[None] = _absent("The width of bins.")
    by: str | SkipJsonSchema[None] = _absent("The unit of a bucket, such as `month`.")


class SelectedItem(ClosedModel):
    """The numbers of one select item within each group; those of a histogram are named by `values`."""

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


class SelectAxis(ClosedModel):
    """The innermost axis: the select items in their order."""

    select: Annotated[list[SelectedItem], doc("The select items in their order.")]


class EstimateRow(ClosedModel):
    """An estimate in one group: the number, and the ends of an interval that holds what was counted."""

    label: Annotated[CoordinateLabel, doc("The group, and under `select` the title of the item.")]
    value: Annotated[float | None, doc("The number; null where 0 would be divided by.")]
    low: Annotated[float | None, doc("The lower end; null where it has none.")]
    high: Annotated[float | None, doc("The upper end; null where it has none.")]
    is_reliable: Annotated[bool, doc("False where a count that is divided by is within five standard deviations of 0.")]
    is_interpolated: bool | SkipJsonSchema[None] = _absent(
        "True for a quantile within a bin that has more than a tenth of the rows."
    )


class EstimateGroups(ClosedModel):
    """The two groups of a difference."""

    by: Annotated[str, doc("The column that the groups are of.")]
    from_: Annotated[bool | int | str, doc("The value of the group that is subtracted.")] = Field(alias="from")
    to: Annotated[bool | int | str, doc("The value of the group that it is subtracted from.")]


class EstimateItem(ClosedModel):
    """An item that was asked for, and the public numbers by which it is worked out from the items of `parts`.

    One of `number`, `mean`, `variance`, `stddev`, `quantile` and `ratio` is there.
    """

    title: Annotated[str, doc("The item as the labels of the estimates have it.")]
    parts: Annotated[list[int], doc("The places of its linear items in the last of `axes`.")]
    number: dict[str, float] | SkipJsonSchema[None] = _absent("Nothing: it is a number of the answer.")
    mean: dict[str, float] | SkipJsonSchema[None] = _absent("The bounds of the value and their middle.")
    variance: dict[str, float] | SkipJsonSchema[None] = _absent("The distance from the middle of the bounds to either.")
    stddev: dict[str, float] | SkipJsonSchema[None] = _absent("The same of a standard deviation.")
    quantile: dict[str, float | bool] | SkipJsonSchema[None] = _absent(
        "The probability, the bounds, and whether each bin is of one whole number."
    )
    ratio: dict[str, float] | SkipJsonSchema[None] = _absent("Nothing: the first part is divided by the second.")
    difference: EstimateGroups | SkipJsonSchema[None] = _absent("The two groups whose estimates are subtracted.")


class Estimates(BaseModel):
    """The items that were asked for, worked out from the numbers of an answer."""

    confidence: Annotated[float, doc("The probability of each interval: 0.95.")]
    items: Annotated[list[EstimateItem], doc("The items, and how each is worked out.")]
    rows: Annotated[
        list[EstimateRow],
        doc("One for each group and item, groups in the order of the answer; a difference stands at its second group."),
    ]


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
