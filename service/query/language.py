"""Version 1 of the query language, as the JSON on the wire reads it.

The language is closed: what is not declared here is refused, so that a query can only ever be a linear query of
declared columns. These models know nothing of a schema; `service.query.plan` checks a query against one.
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, FailFast, Field, Strict, Tag, model_validator
from pydantic_core import PydanticCustomError

from service.query.base_model import NOT_EMPTY, SOME, Closed, Name, only_key
from service.query.conditions_ast import Condition
from service.query.schema import REAL_MAX, ROWS_PER_INDIVIDUAL_MAX
from service.query.values_ast import ColumnName, GroupKey, Row, Value

__all__ = [
    "CountIndividualsItem",
    "CountItem",
    "HalfWidth",
    "HistogramItem",
    "Item",
    "LinearItem",
    "Noise",
    "PerIndividual",
    "Query",
    "Rho",
    "Share",
    "Sigma",
    "SumItem",
]

SELECT_MAX = 64
GROUP_BY_MAX = 32
WEIGHTS_MAX = 2**15
ENTRIES_MAX = 2**16
STARTS_MAX = 2**20 + 1
MAGNITUDE_MAX = 1e100  # of a noise parameter: powers of two within reach of it scale without overflow
CLIP_MIN, CLIP_MAX = 1e-30, 1e30

Weight = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=MAGNITUDE_MAX)]


# What to compute


class Empty(Closed):
    """`{}`."""


class OfColumn(Closed):
    """`{"column": name}`, or with `values` those alone, in their order."""

    column: ColumnName
    values: Annotated[tuple[Value, ...], Strict(strict=False), Field(max_length=WEIGHTS_MAX), NOT_EMPTY] | None = Field(
        default=None, exclude_if=lambda values: values is None
    )


class OfValue(Closed):
    """`{"column": name}`, or `{"of": value}` for one that is calculated."""

    column: ColumnName | None = Field(default=None, exclude_if=lambda name: name is None)
    of: Row | None = Field(default=None, exclude_if=lambda node: node is None)

    @model_validator(mode="after")
    def _one_of_both(self) -> "OfValue":
        if (self.column is None) == (self.of is None):
            raise PydanticCustomError("sum_kind", "must have either column or of")
        return self


class CountItem(Closed):
    """One coordinate: 1 for each selected row."""

    KIND: ClassVar = "count"
    count: Empty


class CountIndividualsItem(Closed):
    """One coordinate: 1 for each individual that has at least one selected row there."""

    KIND: ClassVar = "count_individuals"
    count_individuals: Empty


class SumItem(Closed):
    """One coordinate: the value of each selected row."""

    KIND: ClassVar = "sum"
    sum: OfValue


class HistogramItem(Closed):
    """One coordinate for each value of the column's declared domain, or for each value that is listed."""

    KIND: ClassVar = "histogram"
    histogram: OfColumn


class Weights(Closed):
    """The weight of each listed value of a column; any other value weighs nothing."""

    indices: Annotated[tuple[Value, ...], Strict(strict=False), Field(max_length=WEIGHTS_MAX), NOT_EMPTY]
    values: Annotated[tuple[Weight, ...], Strict(strict=False), Field(max_length=WEIGHTS_MAX), NOT_EMPTY]

    @model_validator(mode="after")
    def _pairs(self) -> "Weights":
        if len(self.indices) != len(self.values):
            raise PydanticCustomError("weights_length", "must have as many values as indices")
        return self


def _weights_kind(weights: object) -> str:
    return "(several)" if isinstance(weights, list | tuple) else "(one)"


class Matrix(Closed):
    """Many functionals as one sparse matrix: number n is at the places `starts[n]` up to `starts[n + 1]` of the others.

    These are `indptr`, `indices` and `data` of a matrix in compressed sparse rows, its columns named by the values.
    """

    starts: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...], Strict(strict=False), FailFast(), Field(max_length=STARTS_MAX)
    ]
    indices: Annotated[tuple[Value, ...], Strict(strict=False), FailFast(), Field(max_length=ENTRIES_MAX), NOT_EMPTY]
    values: Annotated[tuple[Weight, ...], Strict(strict=False), FailFast(), Field(max_length=ENTRIES_MAX), NOT_EMPTY]

    @model_validator(mode="after")
    def _fits(self) -> "Matrix":
        if len(self.indices) != len(self.values):
            raise PydanticCustomError("weights_length", "must have as many values as indices")
        if self.starts[:1] != (0,) or self.starts[-1] != len(self.indices):
            raise PydanticCustomError("matrix_starts", "must have starts from 0 to the number of indices")
        if any(start > end for start, end in pairwise(self.starts)):
            raise PydanticCustomError("matrix_starts", "must have starts that never decrease")
        return self


class Linear(Closed):
    """A column and one functional of it, or several, or a matrix of many."""

    column: ColumnName
    weights: (
        Annotated[
            Annotated[Weights, Tag("(one)")]
            | Annotated[
                tuple[Weights, ...], Strict(strict=False), Field(max_length=SELECT_MAX), NOT_EMPTY, Tag("(several)")
            ],
            Discriminator(_weights_kind),
        ]
        | None
    ) = Field(default=None, exclude_if=lambda weights: weights is None)
    matrix: Matrix | None = Field(default=None, exclude_if=lambda matrix: matrix is None)

    @model_validator(mode="after")
    def _one_of_both(self) -> "Linear":
        if (self.weights is None) == (self.matrix is None):
            raise PydanticCustomError("linear_kind", "must have either weights or matrix")
        return self

    @property
    def functionals(self) -> tuple[Weights, ...]:
        """One for each coordinate; none of a matrix."""
        if self.weights is None:
            return ()
        return self.weights if isinstance(self.weights, tuple) else (self.weights,)


class LinearItem(Closed):
    """One coordinate for each functional: the weight of the column's value of each selected row."""

    KIND: ClassVar = "linear"
    linear: Linear


Item = Annotated[
    Annotated[CountItem, Tag("(count)")]
    | Annotated[CountIndividualsItem, Tag("(count_individuals)")]
    | Annotated[SumItem, Tag("(sum)")]
    | Annotated[HistogramItem, Tag("(histogram)")]
    | Annotated[LinearItem, Tag("(linear)")],
    Discriminator(
        only_key,
        custom_error_type="item_kind",
        custom_error_message=(
            "must be an object with exactly one of the keys count, count_individuals, sum, histogram, linear"
        ),
    ),
]


# How precisely


class PerIndividual(Closed):
    """One individual's vector: of L2 norm at most `l2_clip`, by default the natural bound of the query.

    With `rows`, only so many selected rows of an individual count: the first in the order of their own contents.
    """

    l2_clip: Annotated[float, Field(ge=CLIP_MIN, le=CLIP_MAX)] | None = None
    rows: Annotated[int, Field(ge=1, le=ROWS_PER_INDIVIDUAL_MAX)] | None = Field(
        default=None, exclude_if=lambda rows: rows is None
    )


class Sigma(Closed):
    """The standard deviation of the noise on each coordinate, in the query's unit."""

    KIND: ClassVar = "sigma"
    sigma: Positive


class Rho(Closed):
    """The most that any individual may be charged; sigma is the smallest that keeps to it."""

    KIND: ClassVar = "rho"
    rho: Positive


class Share(Closed):
    """The most that any individual may be charged, as a share of the dataset's budget; sigma is as for `rho`."""

    KIND: ClassVar = "share"
    share: Annotated[float, Field(gt=0, le=1)]


class HalfWidth(Closed):
    """A distance within which each number is of what was counted, with at least this confidence; grid included."""

    KIND: ClassVar = "half_width"
    half_width: Positive
    confidence: Annotated[float, Field(gt=0, lt=1)]


def _noise_kind(noise: object) -> str | None:
    if isinstance(noise, dict):
        for kind in ("sigma", "rho", "share", "half_width"):
            if kind in noise:
                return f"({kind})"
        return None
    return f"({getattr(noise, 'KIND', None)})"


Noise = Annotated[
    Annotated[Sigma, Tag("(sigma)")]
    | Annotated[Rho, Tag("(rho)")]
    | Annotated[Share, Tag("(share)")]
    | Annotated[HalfWidth, Tag("(half_width)")],
    Discriminator(
        _noise_kind,
        custom_error_type="noise_kind",
        custom_error_message="must be an object with sigma, or rho, or share, or half_width and confidence",
    ),
]


class Query(Closed):
    """One query of version 1. `null` stands for an absent `from`, `where`, `per_individual` or `l2_clip`."""

    version: Annotated[int, Field(ge=1, le=1, json_schema_extra={"const": 1})]
    from_: Name | None = Field(default=None, alias="from")
    select: Annotated[
        tuple[Item, ...], Strict(strict=False), Field(max_length=SELECT_MAX, json_schema_extra=SOME), NOT_EMPTY
    ]
    where: Condition | None = None
    group_by: Annotated[tuple[GroupKey, ...], Strict(strict=False), Field(max_length=GROUP_BY_MAX)] = ()
    per_individual: PerIndividual | None = None
    noise: Noise
    rule: Literal["skip"] = "skip"
    reuse: bool = True
