"""Version 1 of the query language, as the JSON on the wire reads it.

The language is closed: what is not declared here is refused, so that a query can only ever be a linear query of
declared columns. These models know nothing of a schema; `service.query.plan` checks a query against one. A tag of a
union is the one key of its object in parentheses, so that in pydantic's error locations it is not taken for a key.
"""

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, FailFast, Field, Strict, Tag
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

__all__ = [
    "And",
    "ColumnRef",
    "Comparison",
    "Condition",
    "CountItem",
    "HalfWidth",
    "HistogramItem",
    "In",
    "Item",
    "Noise",
    "Not",
    "Or",
    "PerIndividual",
    "Query",
    "Rho",
    "Sigma",
    "SumItem",
    "Value",
]

INTEGER_MAX = 2**53 - 1  # the integers that every JSON reader agrees on (RFC 7493, section 2.2)
PARTS_MAX = 4096
SELECT_MAX = 64
GROUP_BY_MAX = 32
MAGNITUDE_MAX = 1e100  # of a noise parameter: powers of two within reach of it scale without overflow
CLIP_MIN, CLIP_MAX = 1e-30, 1e30

Part = TypeVar("Part")
Name = Annotated[str, Field(min_length=1, max_length=63)]
Number = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)] | Annotated[float, Field(allow_inf_nan=False)]
Value = bool | Number | Annotated[str, Field(max_length=1000)]
Positive = Annotated[float, Field(gt=0, le=MAGNITUDE_MAX)]


def _not_empty(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise PydanticCustomError("too_short", "must not be empty")
    return parts


# Not `min_length`, which counts only the parts that were valid and then complains about that as well.
_NOT_EMPTY = AfterValidator(_not_empty)
_SOME: JsonDict = {"minItems": 1}


class _Closed(BaseModel):
    """What is not declared is refused, and `true` is not 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _only_key(node: object) -> str | None:
    """The tag of a node: its one key in JSON, its class's `KIND` once read."""
    if isinstance(node, dict):
        return f"({next(iter(node))})" if len(node) == 1 else None
    return f"({getattr(node, 'KIND', None)})"


# What to compute


class Empty(_Closed):
    """`{}`."""


class OfColumn(_Closed):
    """`{"column": name}`."""

    column: Name


class CountItem(_Closed):
    """One coordinate: 1 for each selected row."""

    KIND: ClassVar = "count"
    count: Empty


class SumItem(_Closed):
    """One coordinate: the column's value of each selected row."""

    KIND: ClassVar = "sum"
    sum: OfColumn


class HistogramItem(_Closed):
    """One coordinate for each value of the column's declared domain."""

    KIND: ClassVar = "histogram"
    histogram: OfColumn


Item = Annotated[
    Annotated[CountItem, Tag("(count)")]
    | Annotated[SumItem, Tag("(sum)")]
    | Annotated[HistogramItem, Tag("(histogram)")],
    Discriminator(
        _only_key,
        custom_error_type="item_kind",
        custom_error_message="must be an object with exactly one of the keys count, sum, histogram",
    ),
]


# Which rows


class ColumnRef(_Closed):
    """`{"col": name}`: the column's value in the row at hand."""

    col: Name


Pair = Annotated[tuple[ColumnRef, Value], Strict(strict=False)]


class Comparison(_Closed):
    """A column beside a literal; the class's `KIND` is the operator."""

    KIND: ClassVar[str]

    @property
    def pair(self) -> tuple[ColumnRef, Value]:
        """The column and the literal."""
        found: tuple[ColumnRef, Value] = getattr(self, self.KIND)
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
    tuple[Value, ...],
    Strict(strict=False),
    FailFast(),
    Field(max_length=PARTS_MAX, json_schema_extra=_SOME),
    _NOT_EMPTY,
]


class In(_Closed):
    """Equal to one of a list of literals."""

    KIND: ClassVar = "in"
    in_: Annotated[tuple[ColumnRef, Values], Strict(strict=False)] = Field(alias="in")


class And(_Closed):
    """All of the parts."""

    KIND: ClassVar = "and"
    and_: "Parts" = Field(alias="and")


class Or(_Closed):
    """At least one of the parts."""

    KIND: ClassVar = "or"
    or_: "Parts" = Field(alias="or")


class Not(_Closed):
    """Not the part; unknown stays unknown, as in SQL."""

    KIND: ClassVar = "not"
    not_: "Condition" = Field(alias="not")


Condition = Annotated[
    Annotated[Eq, Tag("(eq)")]
    | Annotated[Ne, Tag("(ne)")]
    | Annotated[Lt, Tag("(lt)")]
    | Annotated[Le, Tag("(le)")]
    | Annotated[Gt, Tag("(gt)")]
    | Annotated[Ge, Tag("(ge)")]
    | Annotated[In, Tag("(in)")]
    | Annotated[And, Tag("(and)")]
    | Annotated[Or, Tag("(or)")]
    | Annotated[Not, Tag("(not)")],
    Discriminator(
        _only_key,
        custom_error_type="condition_kind",
        custom_error_message="must be an object with exactly one of the keys eq, ne, lt, le, gt, ge, in, and, or, not",
    ),
]
Parts = Annotated[
    tuple[Condition, ...],
    Strict(strict=False),
    FailFast(),
    Field(max_length=PARTS_MAX, json_schema_extra=_SOME),
    _NOT_EMPTY,
]


# How precisely


class PerIndividual(_Closed):
    """What one individual may add: a vector of L2 norm at most `l2_clip`, by default the natural bound of the query."""

    l2_clip: Annotated[float, Field(ge=CLIP_MIN, le=CLIP_MAX)] | None = None


class Sigma(_Closed):
    """The standard deviation of the noise on each coordinate, in the query's unit."""

    KIND: ClassVar = "sigma"
    sigma: Positive


class Rho(_Closed):
    """The most that any individual may be charged; sigma is the smallest that keeps to it."""

    KIND: ClassVar = "rho"
    rho: Positive


class HalfWidth(_Closed):
    """Half the width of a two-sided normal interval that holds the noise on a coordinate with this confidence."""

    KIND: ClassVar = "half_width"
    half_width: Positive
    confidence: Annotated[float, Field(gt=0, lt=1)]


def _noise_kind(noise: object) -> str | None:
    if isinstance(noise, dict):
        for kind in ("sigma", "rho", "half_width"):
            if kind in noise:
                return f"({kind})"
        return None
    return f"({getattr(noise, 'KIND', None)})"


Noise = Annotated[
    Annotated[Sigma, Tag("(sigma)")] | Annotated[Rho, Tag("(rho)")] | Annotated[HalfWidth, Tag("(half_width)")],
    Discriminator(
        _noise_kind,
        custom_error_type="noise_kind",
        custom_error_message="must be an object with sigma, or rho, or half_width and confidence",
    ),
]


class Query(_Closed):
    """One query of version 1. `null` stands for an absent `from`, `where`, `per_individual` or `l2_clip`."""

    version: Annotated[int, Field(ge=1, le=1, json_schema_extra={"const": 1})]
    from_: Name | None = Field(default=None, alias="from")
    select: Annotated[
        tuple[Item, ...], Strict(strict=False), Field(max_length=SELECT_MAX, json_schema_extra=_SOME), _NOT_EMPTY
    ]
    where: Condition | None = None
    group_by: Annotated[tuple[Name, ...], Strict(strict=False), Field(max_length=GROUP_BY_MAX)] = ()
    per_individual: PerIndividual | None = None
    noise: Noise
    rule: Literal["skip"] = "skip"
    reuse: bool = True
