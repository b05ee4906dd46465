"""Values of a row: columns, literals and what is calculated from them, as the JSON on the wire reads them.

Every value is total: where a column has none the result has none, and no operation can fail on any data, because all
bounds follow from the declared ones.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Strict, Tag, model_validator
from pydantic_core import PydanticCustomError

from service.query.base_model import INTEGER_MAX, Closed, only_key
from service.query.schema import doc, optional

__all__ = [
    "Abs",
    "Add",
    "Bin",
    "BinKey",
    "Bucket",
    "BucketKey",
    "Clip",
    "ColumnName",
    "ColumnRef",
    "GroupKey",
    "Mul",
    "Operand",
    "Row",
    "Sub",
    "Unit",
    "Value",
]

EDGES_MAX = 10_001

Number = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)] | Annotated[float, Field(allow_inf_nan=False)]
Value = bool | Number | Annotated[str, Field(max_length=1000)]
ColumnName = Annotated[str, Field(min_length=1, max_length=127)]
"""A column of the table, or `people.town`: the column of the individual that the event is of."""


class ColumnRef(Closed):
    """`{"col": name}`: the column's value in the row at hand."""

    KIND: ClassVar = "col"
    col: Annotated[ColumnName, doc("The column, or `people.town` for that of the individual that an event is of.")]


class Add(Closed):
    """The sum of two numbers."""

    KIND: ClassVar = "add"
    add: Annotated["Two", doc("The two numbers.")]


class Sub(Closed):
    """The first less the second: of two numbers, or of two dates in days, or of two times in seconds."""

    KIND: ClassVar = "sub"
    sub: Annotated["Two", doc("The first, and the one taken from it.")]


class Mul(Closed):
    """The product of two numbers."""

    KIND: ClassVar = "mul"
    mul: Annotated["Two", doc("The two numbers.")]


class Abs(Closed):
    """The absolute value of a number."""

    KIND: ClassVar = "abs"
    abs: Annotated["Row", doc("The number.")]


class Clip(Closed):
    """A number moved to the nearer bound if it is outside of the two."""

    KIND: ClassVar = "clip"
    clip: Annotated[
        tuple["Row", Number, Number],
        Strict(strict=False),
        doc("The number, the least and the greatest that it may be."),
    ]


Row = Annotated[
    Annotated[ColumnRef, Tag("(col)")]
    | Annotated[Add, Tag("(add)")]
    | Annotated[Sub, Tag("(sub)")]
    | Annotated[Mul, Tag("(mul)")]
    | Annotated[Abs, Tag("(abs)")]
    | Annotated[Clip, Tag("(clip)")],
    Discriminator(
        only_key,
        custom_error_type="value_kind",
        custom_error_message="must be an object with exactly one of the keys col, add, sub, mul, abs, clip",
    ),
]
"""A value that depends on the row."""


def _operand_kind(node: object) -> str:
    return "(row)" if isinstance(node, dict | Closed) else "(literal)"


Operand = Annotated[Annotated[Row, Tag("(row)")] | Annotated[Value, Tag("(literal)")], Discriminator(_operand_kind)]
"""The same, or a literal."""
Two = Annotated[tuple[Operand, Operand], Strict(strict=False)]

# Parts of a column, to group by


class Bin(Closed):
    """Intervals of a number, date or time, between `edges` or of equal `width`; the last one includes its end."""

    column: Annotated[ColumnName, doc("The column of numbers, dates or times.")]
    edges: (
        Annotated[
            tuple[Number | Annotated[str, Field(max_length=40)], ...],
            Strict(strict=False),
            Field(min_length=2, max_length=EDGES_MAX),
        ]
        | None
    ) = optional("The edges, increasing; or `width`.")
    width: Annotated[float, Field(gt=0, le=1e30)] | None = optional(
        "The width of each bin, of numbers alone; or `edges`."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "Bin":
        if (self.edges is None) == (self.width is None):
            raise PydanticCustomError("bin_kind", "must have either edges or width")
        return self


Unit = Literal["day", "week", "month", "quarter", "year", "hour", "weekday"]


class Bucket(Closed):
    """Parts of the calendar: of a date or a time its day, week, month, quarter, year or weekday, of a time its hour."""

    column: Annotated[ColumnName, doc("The column of dates or times.")]
    by: Annotated[Unit, doc("The part of the calendar.")]


class BinKey(Closed):
    """Group by intervals."""

    KIND: ClassVar = "bin"
    bin: Annotated[Bin, doc("The column and its intervals.")]


class BucketKey(Closed):
    """Group by parts of the calendar."""

    KIND: ClassVar = "bucket"
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
