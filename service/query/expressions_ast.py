"""Values and conditions of the query language, version 1, as the JSON on the wire reads them.

A part of a query is closed, and most are told by their one key. A tag of a union is that key in parentheses, so that in
pydantic's error locations it is not taken for a key. Every value is total: where a column has none the result has none,
and no operation can fail on any data, because all bounds follow from the declared ones. `service.query.conditions`
gives a condition its meaning in a table.
"""

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, FailFast, Field, Strict, Tag, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from service.query.schema import doc, optional

INTEGER_MAX = 2**53 - 1  # the integers that every JSON reader agrees on (RFC 7493, section 2.2)
EDGES_MAX = 10_001
PARTS_MAX = 4096  # of a conjunction or disjunction
LISTED_MAX = 2**15  # literals of `in`
Part = TypeVar("Part")
Name = Annotated[str, Field(min_length=1, max_length=63)]


def _not_empty(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise PydanticCustomError("too_short", "must not be empty")
    return parts


# Not `min_length`, which counts only the parts that were valid and then complains about that as well.
NOT_EMPTY = AfterValidator(_not_empty)
SOME: JsonDict = {"minItems": 1}  # the same, said in the JSON schema


class Closed(BaseModel):
    """A model that refuses what is not declared, and does not take `true` for 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def only_key(node: object) -> str | None:
    """The tag of a node: its one key in JSON, its class's `KIND` once read."""
    if isinstance(node, dict):
        return f"({next(iter(node))})" if len(node) == 1 else None
    return f"({getattr(node, 'KIND', None)})"


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
"""A value that depends on the row, or a literal."""
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
Pair = Annotated[
    tuple[Row, Operand], Strict(strict=False), doc("The value of the row, and a literal or another value.")
]


class Comparison(Closed):
    """A value of the row beside a literal or another one; the class's `KIND` is the operator."""

    KIND: ClassVar[str]


class Eq(Comparison):
    """Equal."""

    KIND = "eq"
    eq: Pair


class Ne(Comparison):
    """Not equal; a row without a value is neither equal nor unequal."""

    KIND = "ne"
    ne: Pair


class Lt(Comparison):
    """Less than."""

    KIND = "lt"
    lt: Pair


class Le(Comparison):
    """Less than or equal."""

    KIND = "le"
    le: Pair


class Gt(Comparison):
    """Greater than."""

    KIND = "gt"
    gt: Pair


class Ge(Comparison):
    """Greater than or equal."""

    KIND = "ge"
    ge: Pair


Values = Annotated[
    tuple[Value, ...], Strict(strict=False), FailFast(), Field(max_length=LISTED_MAX, json_schema_extra=SOME), NOT_EMPTY
]


class In(Closed):
    """Equal to one of a list of literals."""

    KIND: ClassVar = "in"
    in_: Annotated[tuple[Row, Values], Strict(strict=False)] = Field(
        alias="in", description="The value of the row, and the list of literals."
    )


class Between(Closed):
    """At least the first literal and at most the second."""

    KIND: ClassVar = "between"
    between: Annotated[
        tuple[Row, Value, Value],
        Strict(strict=False),
        doc("The value of the row, the lowest and the highest literal, both included."),
    ]


class IsNull(Closed):
    """The column has no value: NULL, or a category that is not declared. Never unknown."""

    KIND: ClassVar = "is_null"
    is_null: Annotated[Row, doc("The value of the row.")]


class And(Closed):
    """All of the parts."""

    KIND: ClassVar = "and"
    and_: "Parts" = Field(alias="and")


class Or(Closed):
    """At least one of the parts."""

    KIND: ClassVar = "or"
    or_: "Parts" = Field(alias="or")


class Not(Closed):
    """Not the part; unknown stays unknown, as in SQL."""

    KIND: ClassVar = "not"
    not_: "Condition" = Field(alias="not", description="The condition.")


Condition = Annotated[
    Annotated[Eq, Tag("(eq)")]
    | Annotated[Ne, Tag("(ne)")]
    | Annotated[Lt, Tag("(lt)")]
    | Annotated[Le, Tag("(le)")]
    | Annotated[Gt, Tag("(gt)")]
    | Annotated[Ge, Tag("(ge)")]
    | Annotated[In, Tag("(in)")]
    | Annotated[Between, Tag("(between)")]
    | Annotated[IsNull, Tag("(is_null)")]
    | Annotated[And, Tag("(and)")]
    | Annotated[Or, Tag("(or)")]
    | Annotated[Not, Tag("(not)")],
    Discriminator(
        only_key,
        custom_error_type="condition_kind",
        custom_error_message=(
            "must be an object with exactly one of the keys eq, ne, lt, le, gt, ge, in, between, is_null, and, or, not"
        ),
    ),
]
Parts = Annotated[
    tuple[Condition, ...],
    Strict(strict=False),
    FailFast(),
    Field(max_length=PARTS_MAX, json_schema_extra=SOME),
    NOT_EMPTY,
    doc("The conditions."),
]
