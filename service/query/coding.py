"""The public integer coding of a column.

A column is held as small unsigned integers, so that comparisons and sums are exact in any order of evaluation.
The coding depends on the declared domain alone. One code above the domain, `null_code`, stands for NULL and for what
is counted nowhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import frexp

import numpy as np

from service.query.schema import (
    BooleanColumn,
    BudgetColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
)

__all__ = ["Coding", "coding_of"]

REAL_BITS = 52  # the larger bound of a real column is at most 2^52 steps, so a decoded value is exactly a double


_DTYPES = [np.dtype(f"uint{bits}") for bits in (8, 8, 16, 32, 32, 64, 64, 64, 64)]  # by the bytes that a code takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """`value = (code + offset) * 2**step_log2` for `0 <= code <= span`."""

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
        return _DTYPES[(self.null_code.bit_length() + 7) // 8]

    def code_of(self, value: float) -> int:
        """The code of a number rounded to the nearest step, ties to even; outside the domain below 0 or above `span`.

        Exact for every int and finite float. For an array it is `rint(ldexp(values, -step_log2)) - offset`, exact too:
        scaling by a power of two and `rint` lose nothing. Data and literals are rounded by this same rule, so a value
        equals the literal it was written as, even where neither is a multiple of the step.
        """
        return round(_steps(value, self.step_log2)) - self.offset


def coding_of(column: Column) -> Coding:
    """The coding of a declared column. Raises ValueError for a budget column, which is not data."""
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


def _real_coding(column: RealColumn) -> Coding:
    """The step is the power of two of which the larger bound holds more than 2^51 and at most 2^52."""
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
