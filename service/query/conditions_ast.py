"""Which rows: the conditions of version 1 of the query language, as the JSON on the wire reads them.

`service.query.compile_conditions` gives a condition its meaning in a table.
"""

from typing import Annotated, ClassVar

from pydantic import Discriminator, FailFast, Field, Strict, Tag

from service.query.base_model import NOT_EMPTY, SOME, Closed, only_key
from service.query.schema import doc
from service.query.values_ast import Operand, Row, Value

__all__ = ["And", "Between", "Comparison", "Condition", "Eq", "Ge", "Gt", "In", "IsNull", "Le", "Lt", "Ne", "Not", "Or"]

PARTS_MAX = 4096  # of a conjunction or disjunction
LISTED_MAX = 2**15  # literals of `in`

Pair = Annotated[
    tuple[Row, Operand], Strict(strict=False), doc("The value of the row, and a literal or another value.")
]


class Comparison(Closed):
    """A value of the row beside a literal or another one; the class's `KIND` is the operator."""

    KIND: ClassVar[str]

    @property
    def pair(self) -> tuple[Row, Operand]:
        """Both sides."""
        found: tuple[Row, Operand] = getattr(self, self.KIND)
        return found


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
