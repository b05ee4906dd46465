"""Version 1 of the query language, as the JSON on the wire reads it.

The language is closed: what is not declared here is refused, so that a query can only ever be a linear query of
declared columns. These models know nothing of a schema; `service.query.plan` checks a query against one.
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Strict, Tag, model_validator
from pydantic_core import PydanticCustomError

from service.query.expressions_ast import Condition, GroupKey, Row
from service.query.learning_ast import GradientItem, MomentsItem
from service.query.literals_ast import (
    NOT_EMPTY,
    SOME,
    Closed,
    ColumnName,
    Empty,
    Name,
    Value,
    count_kind,
    not_longer,
    only_key,
)
from service.query.noise_ast import (
    SELECT_MAX,
    HalfWidth,
    LaplaceScale,
    Noise,
    PerIndividual,
    Prepaid,
    Rho,
    Share,
    Sigma,
)
from service.query.parameters_ast import MIXED_MAX, HashedParameters
from service.query.schema import REAL_MAX, doc, optional

GROUP_BY_MAX = 32
WEIGHTS_MAX = 2**15
ENTRIES_MAX = 2**16
STARTS_MAX = 2**20 + 1

Weight = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]


# What to compute


class OfColumn(Closed):
    """A column by its name, or some of its values."""

    column: Annotated[ColumnName, doc("The column, or `people.town` for that of the individual that an event is of.")]
    values: (
        Annotated[tuple[Value, ...], Strict(strict=False), Field(fail_fast=True, max_length=WEIGHTS_MAX), NOT_EMPTY]
        | None
    ) = optional("The values to count, in the order of the answer; left out, the whole declared domain.")


class OfValue(Closed):
    """A column by its name, or a value that is calculated."""

    column: ColumnName | None = optional("The column of numbers; or `of`.")
    of: Row | None = optional("The calculated value; or `column`.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "OfValue":
        if (self.column is None) == (self.of is None):
            raise PydanticCustomError("sum_kind", "must have either column or of")
        return self


class CountItem(Closed):
    """One coordinate: 1 for each selected row."""

    KIND: ClassVar = "count"
    count: Annotated[Empty, doc("Nothing: `{}`.")]


class CountIndividualsItem(Closed):
    """One coordinate: 1 for each individual that has at least one selected row there."""

    KIND: ClassVar = "count_individuals"
    count_individuals: Annotated[Empty, doc("Nothing: `{}`.")]


class SumItem(Closed):
    """One coordinate: the value of each selected row."""

    KIND: ClassVar = "sum"
    sum: Annotated[OfValue, doc("The column, or the value that is calculated.")]


class HistogramItem(Closed):
    """One coordinate for each value of the column's declared domain, or for each value that is listed."""

    KIND: ClassVar = "histogram"
    histogram: Annotated[OfColumn, doc("The column.")]


class Weights(Closed):
    """The weight of each listed value of a column; any other value weighs nothing."""

    indices: Annotated[
        tuple[Value, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=WEIGHTS_MAX),
        NOT_EMPTY,
        doc("The values of the column that weigh something."),
    ]
    values: Annotated[
        tuple[Weight, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=WEIGHTS_MAX),
        NOT_EMPTY,
        doc("Their weights, in the same order."),
    ]

    @model_validator(mode="after")
    def _pairs(self) -> "Weights":
        if len(self.indices) != len(self.values):
            raise PydanticCustomError("weights_length", "must have as many values as indices")
        return self


class Matrix(Closed):
    """Many functionals as one matrix in compressed sparse rows: each functional is a row, each value of the column a
    column of it.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    starts: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=STARTS_MAX),
        doc("The place in `indices` at which each functional begins; and at the end, their number."),
    ]
    indices: Annotated[
        tuple[Value, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=ENTRIES_MAX),
        NOT_EMPTY,
        doc("The values of the column that weigh something, of all functionals one after the other."),
    ]
    values: Annotated[
        tuple[Weight, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=ENTRIES_MAX),
        NOT_EMPTY,
        doc("Their weights, in the same order."),
    ]

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

    column: Annotated[ColumnName, doc("The column.")]
    weights: (
        Annotated[
            Annotated[Weights, Tag("(one)")]
            | Annotated[
                tuple[Weights, ...],
                Strict(strict=False),
                Field(fail_fast=True, max_length=SELECT_MAX),
                NOT_EMPTY,
                Tag("(several)"),
            ],
            Discriminator(count_kind),
        ]
        | None
    ) = optional("One functional, or a list of them, each of which makes a number; or `matrix`.")
    matrix: Matrix | None = optional("Many functionals as one sparse matrix; or `weights`.")

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
    linear: Annotated[Linear, doc("The column and its weights.")]


class Left(Closed):
    """A part of the budget that is left."""

    share: Annotated[
        float,
        Field(gt=0, le=1),
        doc(
            "The share of the dataset's budget that an individual has left at least, to be counted. It pays for the"
            " query itself: no smaller than the query's worst case."
        ),
    ]


class ActiveItem(Closed):
    """One coordinate: 1 for each selected individual that has at least a share of the dataset's budget left.

    It stands alone in `select`.
    """

    KIND: ClassVar = "active"
    active: Annotated[Left, doc("How much of the budget is left.")]


class ExhaustedItem(Closed):
    """The next tick of the dataset's monitor: a number from which clients sum how many individuals are exhausted.

    It stands alone in a query that has no noise, condition or group of its own.
    """

    KIND: ClassVar = "exhausted"
    exhausted: Annotated[Empty, doc("Nothing: `{}`.")]


Item = Annotated[
    Annotated[CountItem, Tag("(count)")]
    | Annotated[CountIndividualsItem, Tag("(count_individuals)")]
    | Annotated[SumItem, Tag("(sum)")]
    | Annotated[HistogramItem, Tag("(histogram)")]
    | Annotated[LinearItem, Tag("(linear)")]
    | Annotated[ActiveItem, Tag("(active)")]
    | Annotated[ExhaustedItem, Tag("(exhausted)")]
    | Annotated[MomentsItem, Tag("(moments)")]
    | Annotated[GradientItem, Tag("(gradient)")],
    Discriminator(
        only_key,
        custom_error_type="item_kind",
        custom_error_message=(
            "must be an object with exactly one of the keys count, count_individuals, sum, histogram, linear, active,"
            " exhausted, moments, gradient"
        ),
    ),
]


# How precisely


class Query(Closed):
    """One query of version 1. `null` stands for an absent `from`, `where`, `per_individual` or `l2_clip`."""

    version: Annotated[int, Field(ge=1, le=1, json_schema_extra={"const": 1}), doc("The version of the language: 1.")]
    from_: Name | None = Field(
        default=None, alias="from", description="The table that the rows are of; left out, the table of individuals."
    )
    select: Annotated[
        tuple[Item, ...],
        Strict(strict=False),
        Field(max_length=SELECT_MAX, json_schema_extra=SOME),
        not_longer(SELECT_MAX),
        NOT_EMPTY,
        doc("The numbers to compute, in the order of the answer; no item twice."),
    ]
    where: Annotated[Condition | None, doc("The condition that rows must meet; left out, every row is selected.")] = (
        None
    )
    group_by: Annotated[
        tuple[GroupKey, ...],
        Strict(strict=False),
        Field(max_length=GROUP_BY_MAX),
        not_longer(GROUP_BY_MAX),
        doc("The groups, the first one outermost; they range over the declared domains, empty groups included."),
    ] = ()
    per_individual: Annotated[
        PerIndividual | None,
        doc("The bound on the vector of one individual; left out, the natural bound of the query."),
    ] = None
    noise: Annotated[
        Noise, doc("The precision, in one of five ways; `prepaid`, or left out, of a query for `exhausted` alone.")
    ]
    mechanism: Annotated[
        Literal["gaussian", "laplace"],
        doc(
            "The law of the noise: `gaussian`, the default; or `laplace`, for queries in which an individual has one"
            " number."
        ),
    ] = "gaussian"
    reduce: Literal["max", "norm"] | None = optional(
        "One number of the exact sum, with one noise: its largest coordinate, or its L2 norm; left out, the sum."
    )
    rule: Annotated[
        Literal["skip", "clip"],
        doc(
            "The rule for an individual whose limit cannot pay for its vector: `clip` shortens the vector to what is"
            " left; `skip`, the default, leaves it out, by the rule of the dataset."
        ),
    ] = "skip"
    reuse: Annotated[
        bool,
        doc(
            "Whether a released answer to the same query may be returned, at no charge. Left out, it may, unless"
            " `active` or `exhausted` is selected, whose number changes with every charge."
        ),
    ] = True

    @property
    def may_reuse(self) -> bool:
        """Tell whether a released answer will do: not where it depends on what is left of budgets, as `active` does."""
        return self.reuse and not isinstance(self.select[0], ActiveItem | ExhaustedItem)

    @property
    def hashed(self) -> list[HashedParameters]:
        """The parameters of models that it has by their hash, in its order.

        Every query is looked through, most of them for nothing: in one loop, and past lists of literals.
        """
        found: list[HashedParameters] = []
        waiting: list[object] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, HashedParameters):
                found.append(part)
            elif isinstance(part, Closed):
                waiting.extend(reversed(part.__dict__.values()))
            elif isinstance(part, tuple) and (len(part) <= MIXED_MAX or isinstance(part[0], Closed)):
                waiting.extend(reversed(part))
        return found

    @property
    def is_by_item(self) -> bool:
        """Tell whether each select item is to have a precision of its own."""
        match self.noise:
            case Sigma(sigma=numbers) | HalfWidth(half_width=numbers) | Rho(weights=numbers) | Share(weights=numbers):
                has_several = isinstance(numbers, tuple)
            case LaplaceScale() | Prepaid():
                has_several = False
        return has_several or (self.per_individual is not None and isinstance(self.per_individual.l2_clip, tuple))
