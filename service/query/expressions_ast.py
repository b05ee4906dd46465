"""Values and conditions of the query language, version 1, as the JSON on the wire reads them.

A part of a query is closed, and most are told by their one key. Every value is total: where a column has none the
result has none, and no operation can fail on any data, because all bounds follow from the declared ones.
`service.query.conditions` gives a condition its meaning in a table.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Strict, Tag
from pydantic_core import PydanticKnownError

from service.query.literals_ast import (
    NOT_EMPTY,
    SOME,
    ByKey,
    Closed,
    ColumnName,
    Empty,
    Keyed,
    Name,
    Number,
    Value,
    either,
    only_key,
    operand_kind,
)
from service.query.parameters_ast import Parameters
from service.query.schema import REAL_MAX, doc, optional

EDGES_MIN, EDGES_MAX = 2, 10_001
PARTS_MAX = 4096  # of a conjunction or disjunction
LISTED_MAX = 2**15  # literals of `in`
FOLDS_MAX = 1000
FEATURES_MAX = 2**10  # entries of the list: a vector or a one_hot is many numbers


class ColumnRef(Keyed):
    """`{"col": name}`: the column's value in the row at hand."""

    col: Annotated[ColumnName, doc("The column, or `people.town` for that of the individual that an event is of.")]


class Add(Keyed):
    """The sum of two numbers."""

    add: Annotated["Two", doc("The two numbers.")]


class Sub(Keyed):
    """The first less the second: of two numbers, or of two dates in days, or of two times in seconds."""

    sub: Annotated["Two", doc("The first, and the one taken from it.")]


class Mul(Keyed):
    """The product of two numbers."""

    mul: Annotated["Two", doc("The two numbers.")]


class Abs(Keyed):
    """The absolute value of a number."""

    abs: Annotated["Row", doc("The number.")]


class Clip(Keyed):
    """A number moved to the nearer bound if it is outside of the two."""

    clip: Annotated[
        tuple["Row", Number, Number],
        Strict(strict=False),
        doc("The number, the least and the greatest that it may be."),
    ]


class Predict(Keyed):
    """The prediction of a linear model at public parameters; no value where a feature without `fill` has none."""

    predict: Annotated["Prediction", doc("The model.")]


class Own(Keyed):
    """A count or sum over an individual's own events, within two bounds."""

    own: Annotated["OwnEvents", doc("The events.")]


Row = Annotated[ColumnRef | Add | Sub | Mul | Abs | Clip | Predict | Own, ByKey("value_kind")]
"""A value that depends on the row."""


Operand = Annotated[Annotated[Row, Tag("(row)")] | Annotated[Value, Tag("(literal)")], Discriminator(operand_kind)]
"""A value that depends on the row, or a literal."""
Two = Annotated[tuple[Operand, Operand], Strict(strict=False), Field(fail_fast=True)]


# Parts of a column, to group by


def enough_edges(edges: tuple[object, ...]) -> tuple[object, ...]:
    """Refuse a list of one edge or none.

    `min_length` would not do: it counts only the valid edges, and complains of too few when one of them is invalid.
    """
    if len(edges) < EDGES_MIN:
        lengths = {"min_length": EDGES_MIN, "actual_length": len(edges)}
        raise PydanticKnownError("too_short", {"field_type": "Tuple", **lengths})
    return edges


class OfValue(Closed):
    """A column by its name, or a value that is calculated."""

    column: ColumnName | None = optional("The column of numbers; or `of`.")
    of: Row | None = optional("The calculated value; or `column`.")

    _has_value = either("column", "of")


class Bin(OfValue):
    """Intervals of a number, date or time, between `edges` or of equal `width`; the last one includes its end."""

    column: ColumnName | None = optional("The column of numbers, dates or times; or `of`.")
    edges: (
        Annotated[
            tuple[Number | Annotated[str, Field(max_length=40)], ...],
            Strict(strict=False),
            Field(fail_fast=True, max_length=EDGES_MAX, json_schema_extra={"minItems": EDGES_MIN}),
            AfterValidator(enough_edges),
        ]
        | None
    ) = optional("The edges, increasing; or `width`.")
    width: Annotated[float, Field(gt=0, le=1e30)] | None = optional(
        "The width of each bin, of numbers alone; or `edges`."
    )

    _has_intervals = either("edges", "width")


Unit = Literal["day", "week", "month", "quarter", "year", "hour", "weekday"]


class Bucket(Closed):
    """Parts of the calendar: of a date or a time its day, week, month, quarter, year or weekday, of a time its hour."""

    column: Annotated[ColumnName, doc("The column of dates or times.")]
    by: Annotated[Unit, doc("The part of the calendar.")]


class BinKey(Keyed):
    """Group by intervals."""

    bin: Annotated[Bin, doc("The column or value and its intervals.")]


class BucketKey(Keyed):
    """Group by parts of the calendar."""

    bucket: Annotated[Bucket, doc("The column and the part of the calendar.")]


def _group_kind(node: object) -> str | None:
    return "(name)" if isinstance(node, str) else only_key(node)


GroupKey = Annotated[
    Annotated[ColumnName, Tag("(name)")] | Annotated[BinKey, Tag("(bin)")] | Annotated[BucketKey, Tag("(bucket)")],
    Discriminator(
        _group_kind,
        custom_error_type="group_kind",
        custom_error_message="must be the name of a column, or an object with exactly one of the keys bin, bucket",
    ),
]
# Features and predictions


class NumberFeature(Keyed):
    """One feature: a number of the individual's, or a boolean as 0 or 1."""

    of: Annotated[Row, doc("The value.")]
    fill: Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)] | None = optional(
        "The number that stands for a missing value; left out, an individual without a value adds nothing."
    )


class OneHotFeature(Keyed):
    """One feature for each value of a column, bin or bucket: 1 at the individual's own, 0 at the others."""

    one_hot: Annotated[GroupKey, doc("The column, or intervals or parts of the calendar.")]


class VectorFeature(Keyed):
    """A feature for each number of a column of vectors, as stored; an individual without a vector adds nothing."""

    vector: Annotated[ColumnName, doc("The column.")]


Feature = Annotated[
    NumberFeature | OneHotFeature | VectorFeature,
    ByKey("feature_kind", error_message="must be an object with of, and perhaps fill, with one_hot or with vector"),
]
Features = Annotated[
    tuple[Feature, ...],
    Strict(strict=False),
    Field(fail_fast=True, max_length=FEATURES_MAX),
    NOT_EMPTY,
    doc("The features, in the order of the answer."),
]
Intercept = Annotated[
    bool,
    Field(
        exclude_if=lambda value: not value, description="Whether the number 1 is the last feature of every individual."
    ),
]


class Prediction(Closed):
    """A linear model of features, and its link."""

    link: Annotated[
        Literal["logistic", "softmax", "identity"],
        doc("`logistic`: a probability. `softmax`: the likeliest value of the target. `identity`: a number."),
    ]
    target: ColumnName | None = optional("Of `softmax`: the column whose values are predicted.")
    features: Features
    intercept: Intercept = False
    parameters: Parameters


class OwnEvents(Closed):
    """Events of the individual that the row is of, counted or summed."""

    from_: Annotated[Name, doc("The table of events.")] = Field(alias="from")
    where: "Condition | None" = optional("The events that count; left out, all.")
    count: Empty | None = optional("The number of events: `{}`; or `sum`.")
    sum: Row | None = optional("The value that is added up; an event without one adds nothing. Or `count`.")
    clip: Annotated[
        tuple[Number, Number],
        Strict(strict=False),
        doc("The least and the greatest that the result may be; one beyond is moved to the nearer."),
    ]

    _has_total = either("count", "sum")


# Conditions

Pair = Annotated[
    tuple[Row, Operand], Strict(strict=False), doc("The value of the row, and a literal or another value.")
]


class Comparison(Keyed):
    """A value of the row beside a literal or another one; the class's `KIND` is the operator."""


class Eq(Comparison):
    """Equal."""

    eq: Pair


class Ne(Comparison):
    """Not equal; a row without a value is neither equal nor unequal."""

    ne: Pair


class Lt(Comparison):
    """Less than."""

    lt: Pair


class Le(Comparison):
    """Less than or equal."""

    le: Pair


class Gt(Comparison):
    """Greater than."""

    gt: Pair


class Ge(Comparison):
    """Greater than or equal."""

    ge: Pair


Values = Annotated[
    tuple[Value, ...],
    Strict(strict=False),
    Field(fail_fast=True, max_length=LISTED_MAX, json_schema_extra=SOME),
    NOT_EMPTY,
]


class In(Keyed):
    """Equal to one of a list of literals."""

    in_: Annotated[tuple[Row, Values], Strict(strict=False)] = Field(
        alias="in", description="The value of the row, and the list of literals."
    )


class Between(Keyed):
    """At least the first literal and at most the second."""

    between: Annotated[
        tuple[Row, Value, Value],
        Strict(strict=False),
        doc("The value of the row, the lowest and the highest literal, both included."),
    ]


class IsNull(Keyed):
    """The column has no value: NULL, or a category that is not declared. Never unknown."""

    is_null: Annotated[Row, doc("The value of the row.")]


class FoldOf(Closed):
    """Some of the equal parts into which individuals are divided at random, each for good."""

    seed: Annotated[str, Field(min_length=1, max_length=100), doc("The name of the division: another, another one.")]
    of: Annotated[int, Field(ge=2, le=FOLDS_MAX), doc("The number of parts.")]
    in_: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=FOLDS_MAX)], ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=FOLDS_MAX),
        NOT_EMPTY,
    ] = Field(alias="in", description="The parts that are selected, from 0 on.")


class Fold(Keyed):
    """The individual is in one of some parts, by a hash of the seed and its key. Never unknown."""

    fold: Annotated[FoldOf, doc("The division and its parts.")]


class And(Keyed):
    """All of the parts."""

    and_: "Parts" = Field(alias="and")


class Or(Keyed):
    """At least one of the parts."""

    or_: "Parts" = Field(alias="or")


class Not(Keyed):
    """Not the part; unknown stays unknown, as in SQL."""

    not_: "Condition" = Field(alias="not", description="The condition.")


Condition = Annotated[
    Eq | Ne | Lt | Le | Gt | Ge | In | Between | IsNull | Fold | And | Or | Not, ByKey("condition_kind")
]
Parts = Annotated[
    tuple[Condition, ...],
    Strict(strict=False),
    Field(fail_fast=True, max_length=PARTS_MAX, json_schema_extra=SOME),
    NOT_EMPTY,
    doc("The conditions."),
]
