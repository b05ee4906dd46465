"""The columns that a query reads: stored ones, the individuals' own in queries of events, and calculated ones.

A calculated column has a public integer coding like a stored one, worked out from declared bounds by interval
arithmetic, so that conditions, groups, sums, charges and costs need not know that it is not stored. A formula is
evaluated by itself on each row, in whole steps; NULL in, NULL out.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from service.query.coding import Coding
from service.query.schema import BooleanColumn, CategoryColumn, DateColumn, DatetimeColumn, IntegerColumn, RealColumn

__all__ = [
    "Calculated",
    "Cyclic",
    "Formula",
    "Intervals",
    "Kind",
    "OwnColumn",
    "Placed",
    "QueryColumn",
    "Term",
    "Weighted",
    "listed",
    "rounded",
]

Kind = Literal["category", "integer", "real", "date", "datetime", "boolean"]
DeclaredColumn = CategoryColumn | IntegerColumn | RealColumn | DateColumn | DatetimeColumn | BooleanColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnColumn:
    """The column in the record of the individual that the event is of; an individual without a record has NULL."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """`code + offset` of a column, shifted left, or if negative right with rounding half up; or a constant."""

    column: str | None
    offset: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """`left operator right` in whole steps; `abs` has one operand; `clip` moves its one into low..high."""

    operator: Literal["add", "sub", "mul", "abs", "clip"]
    left: Term
    right: Term | None = None
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """The number of the interval that a code lies in: code n is of thresholds[n]..thresholds[n + 1] - 1, else NULL."""

    column: str
    thresholds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cyclic:
    """`(code + offset) // divisor + added`, and of that the remainder by `modulus` where there is one."""

    column: str
    offset: int
    divisor: int
    added: int
    modulus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """The steps of the code where it is one of `codes`, which increase, and else zero."""

    column: str
    codes: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The place of the code among `codes`, all of them different; NULL where it is none of them."""

    column: str
    codes: tuple[int, ...]


Formula = OwnColumn | Calculated | Intervals | Cyclic | Weighted | Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryColumn:
    """A column that a query reads, under the name that its plan uses; `declared` if it is stored somewhere."""

    name: str
    kind: Kind
    coding: Coding
    declared: DeclaredColumn | None = None
    formula: Formula | None = None  # None: stored in the table itself

    @property
    def is_ordered(self) -> bool:
        """Whether its values are numbers, dates or times."""
        return self.kind not in {"category", "boolean"}

    @property
    def shape(self) -> Hashable:
        """The facts that the cost of calculating the column depends on."""
        return type(self.formula), listed(self.formula), self.coding.dtype


def listed(formula: Formula | None) -> int:
    """How many codes are listed that a value is sought among."""
    if isinstance(formula, Intervals):
        return len(formula.thresholds)
    return len(formula.codes) if isinstance(formula, (Weighted, Placed)) else 0


def rounded(steps: int, shift: int) -> int:
    """`steps * 2**shift`, rounded half up: as the engine shifts."""
    return steps << shift if shift >= 0 else (steps + (1 << (-shift - 1))) >> -shift
