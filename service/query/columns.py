"""The columns that a query reads, stored or calculated, and their public integer codings.

A column is held as small unsigned integers, so that comparisons and sums are exact in any order of evaluation. The
coding depends on the declared domain alone. One code above the domain, `null_code`, stands for NULL and for values that
are counted nowhere.

A calculated column has a coding like a stored one. Interval arithmetic derives this coding from declared bounds. So
conditions, groups, sums, charges and costs need not know that the column is not stored. A formula is evaluated on each
row by itself, in whole steps. Its result is NULL where an operand is NULL.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, ldexp
from typing import ClassVar, Final, Literal

import numpy as np

from service.query.literals_ast import INTEGER_MAX
from service.query.schema import (
    BooleanColumn,
    BudgetColumn,
    CategoryColumn,
    Column,
    DataColumn,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
    Schema,
    VectorColumn,
)

CODE_TABLE_SPAN_MAX: Final = 2**16
"""The largest column for which a table gives the interval, weight or feature of each code, in eight bytes a code."""
_DIGESTS: Final = re.compile(r"((?:predict|own) [0-9a-f]{8})[0-9a-f]{24}")
REAL_BITS = 52  # the larger bound of a real column is at most 2^52 steps, so a decoded value is exactly a double
REAL_ERROR = Fraction(3, 4)  # steps: from a decimal to its double at most 1/4, from that to its code at most 1/2


_DTYPES = [np.dtype(f"uint{bits}") for bits in (8, 8, 16, 32, 32, 64, 64, 64, 64)]  # by the bytes that a code takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """The rule `value = (code + offset) * 2**step_log2` for `0 <= code <= span`."""

    offset: int  # steps; the place of code 0
    span: int  # the largest code of a value
    step_log2: int  # of one step, in the column's unit

    @property
    def null_code(self) -> int:
        """The code of NULL and of a category that is not declared."""
        return self.span + 1

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest of uint8, uint16, uint32 and uint64 that holds `null_code`."""
        return _DTYPES[((self.span + 1).bit_length() + 7) // 8]

    def code_of(self, value: float) -> int:
        """The code of a number rounded to the nearest step, ties to even; outside the domain below 0 or above `span`.

        The code is exact for every int and finite float. For an array it is `rint(ldexp(values, -step_log2)) - offset`.
        That is exact too, because scaling by a power of two and `rint` lose nothing. Data and literals are rounded by
        this same rule, so that a value equals the literal it was written as, even where neither is a multiple of the
        step.
        """
        return round(_steps(value, self.step_log2)) - self.offset

    def decimal_of(self, code: int) -> float:
        """The number with the fewest decimal places that has this code: 19.61 for the code of 19.61 in a real column.

        Where a unit in the last place is more than ten steps, only the decimal nearest to the code can have that code.
        Three more places are enough for any code.
        """
        value = ldexp(code + self.offset, self.step_log2)
        places = len(str(1 << -self.step_log2)) - 2 if self.step_log2 < 0 else -len(str(1 << self.step_log2)) - 1
        shorter = (round(value, places + more) for more in range(4))
        return next(each for each in shorter if round(ldexp(each, -self.step_log2)) - self.offset == code)


def meant_by(number: float) -> Fraction:
    """The number that a literal is written as. For the double 0.1 it is 1/10, as 0.1 is its shortest decimal."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def number_of(number: Fraction) -> int | float:
    """A whole number where every JSON reader agrees on it, or else the nearest double."""
    return int(number) if number.denominator == 1 and abs(number) <= INTEGER_MAX else float(number)


def coding_of(column: Column) -> Coding:
    """The coding of a declared column. Raises ValueError for a budget column, which is not data, and for a vector."""
    match column:
        case CategoryColumn():
            return Coding(offset=0, span=len(column.domain) - 1, step_log2=0)
        case BooleanColumn():
            return Coding(offset=0, span=1, step_log2=0)
        case IntegerColumn():
            return Coding(offset=column.lower, span=column.upper - column.lower, step_log2=0)
        case DateColumn() | DatetimeColumn():
            low, high = column.bounds
            return Coding(offset=low, span=high - low, step_log2=0)
        case RealColumn():
            return _real_coding(column)
        case BudgetColumn():
            raise ValueError("a budget column holds limits, not data, and has no coding")
        case VectorColumn():
            raise ValueError("a vector has many numbers, and no single code")


def scalars_of(columns: Mapping[str, Column] | Mapping[str, DataColumn]) -> "dict[str, DeclaredColumn]":
    """The columns that hold one value for each row: all but limits and vectors."""
    return {name: column for name, column in columns.items() if not isinstance(column, BudgetColumn | VectorColumn)}


def codings_of(columns: Mapping[str, Column] | Mapping[str, DataColumn]) -> dict[str, Coding]:
    """The codings of the columns that hold one value for each row."""
    return {name: coding_of(column) for name, column in scalars_of(columns).items()}


DIGEST: Final = "_digest"
"""The column of individuals that holds a keyed digest of each key. No declared name begins with an underscore."""
DIGEST_CODING: Final = Coding(offset=-(2**63), span=2**64 - 2, step_log2=0)
"""The coding of digests: a digest is a code, below 2^64 - 1."""


def stored_codings(schema: Schema) -> dict[str, dict[str, Coding]]:
    """The codings, by table, of the stored columns that hold one value: the declared ones and the digest."""
    codings = {name: codings_of(table.columns) for name, table in schema.tables.items()}
    codings[schema.individuals_name][DIGEST] = DIGEST_CODING
    return codings


def _real_coding(column: RealColumn) -> Coding:
    """The coding of a real column. The larger bound has more than 2^51 and at most 2^52 steps of a power of two."""
    mantissa, exponent = frexp(max(abs(column.lower), abs(column.upper)))
    step_log2 = exponent - REAL_BITS - (mantissa == 0.5)
    low = round(_steps(column.lower, step_log2))
    return Coding(offset=low, span=round(_steps(column.upper, step_log2)) - low, step_log2=step_log2)


def _steps(value: float, step_log2: int) -> int | Fraction:
    if step_log2 == 0 and isinstance(value, int):
        return value
    numerator, denominator = value.as_integer_ratio()
    if step_log2 < 0:
        return Fraction(numerator << -step_log2, denominator)
    return Fraction(numerator, denominator << step_log2)


Kind = Literal["category", "integer", "real", "date", "datetime", "boolean"]
DeclaredColumn = CategoryColumn | IntegerColumn | RealColumn | DateColumn | DatetimeColumn | BooleanColumn


LOOKED_UP: Final = 16
"""The price of a value that is looked up by the row. The unit is a condition on a row of one byte."""
CALCULATED: Final = 64
"""The price of a calculation in whole numbers, in the same unit."""


class RowFormula:
    """The formula of a column's value in one row, for a value that is not stored in the row itself."""

    __slots__ = ()

    conditions: ClassVar[int] = CALCULATED
    """The price of one value; 0 where it is priced elsewhere. The unit is a condition on a row of one byte."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the query that it is calculated of, in the same row; none where it reads another table."""
        return ()

    @property
    def listed(self) -> int:
        """The number of listed codes among which a value is sought."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOneColumn(RowFormula):
    """A formula whose value depends on the code of one column."""

    column: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnColumn(RowFormula):
    """A column in the record of the event's individual. The value is NULL for an individual without a record."""

    conditions: ClassVar[int] = LOOKED_UP
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Addend:
    """The term `code + offset` of a column, shifted left, or right with rounding half up if negative; or a constant."""

    column: str | None
    offset: int
    shift: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated(RowFormula):
    """The value `left operator right` in whole steps. `abs` has one operand, and so has `clip`, into low..high."""

    operator: Literal["add", "sub", "mul", "abs", "clip"]
    left: Addend
    right: Addend | None = None
    low: int = 0
    high: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of both terms."""
        return tuple(term.column for term in (self.left, self.right) if term is not None and term.column is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(OfOneColumn):
    """The number n of the interval thresholds[n]..thresholds[n + 1] - 1 with the code; NULL if it is in none."""

    thresholds: tuple[int, ...]

    @property
    def listed(self) -> int:
        """The number of thresholds."""
        return len(self.thresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cyclic(OfOneColumn):
    """The value `(code + offset) // divisor + added`, or the remainder of that by `modulus` if there is one."""

    offset: int
    divisor: int
    added: int
    modulus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded(OfOneColumn):
    """The individual's part, one of `count` equal parts, by a hash of its digest and the `seed`."""

    seed: int  # 64 bits
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfListedCodes(OfOneColumn):
    """A formula that treats listed codes differently from all others."""

    codes: tuple[int, ...]

    @property
    def listed(self) -> int:
        """The number of codes."""
        return len(self.codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted(OfListedCodes):
    """The `steps` of the code where it is one of `codes`, which increase, and zero otherwise."""

    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(OfListedCodes):
    """The place of the code among `codes`, which are all different; NULL for any other code."""


class ReaderFormula(RowFormula):
    """A formula for which the engine makes a reader before it looks at the first row."""

    __slots__ = ()


Formula = OwnColumn | Calculated | Intervals | Cyclic | Folded | Weighted | Placed | ReaderFormula


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryColumn:
    """A column that a query reads, under the name that its plan uses. It is `declared` if it is stored somewhere."""

    name: str
    kind: Kind
    coding: Coding
    declared: DeclaredColumn | None = None
    formula: Formula | None = None  # None: stored in the table itself
    error: Fraction = Fraction(0)  # in its unit: how far a value may be from that of the decimals it is made of

    @property
    def is_ordered(self) -> bool:
        """Tell whether its values are numbers, dates or times."""
        return self.kind not in {"category", "boolean"}

    @property
    def is_number(self) -> bool:
        """Tell whether it can be added up and calculated with; a boolean is 1 where it is true, and 0 where not."""
        return self.kind in {"integer", "real", "boolean"}

    @property
    def slack(self) -> Fraction:
        """The largest distance, in steps, at which a code still counts as equal to a literal's place.

        A declared column has no slack, since a literal is coded there as the data were.
        """
        return Fraction(0) if self.declared is not None else self.error / Fraction(2) ** self.coding.step_log2

    @property
    def shape(self) -> Hashable:
        """The facts that the cost of calculating the column depends on."""
        return type(self.formula), 0 if self.formula is None else self.formula.listed, self.coding.dtype


def with_sources(names: Iterable[str], columns: Mapping[str, QueryColumn]) -> set[str]:
    """The columns with all columns that they are calculated from, directly or through others."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            formula = columns[name].formula
            waiting += () if formula is None else formula.sources
    return found


def label_of(name: str) -> str:
    """A column's name in labels. Eight digits of a digest tell the models and own events of one query apart."""
    return _DIGESTS.sub(r"\1", name)


def rounded(steps: int, shift: int) -> int:
    """The number `steps * 2**shift`, rounded half up, as the engine rounds when it shifts."""
    return steps << shift if shift >= 0 else (steps + (1 << (-shift - 1))) >> -shift
