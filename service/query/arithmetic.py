"""Interval arithmetic over codings: the formula, bounds and step of a calculated column, from those of its operands.

Every result has at most 2^60 steps within its bounds, so that the engine's int64 never overflows. Where a result would
have more steps, its step is coarser and the operands are rounded half up to it. Whole numbers stay exact.

Decimals are rounded to steps of powers of two before they are calculated with. `error` bounds how far this rounding may
move a result from the exact result of the decimals. It follows from the declared bounds alone, and comparisons allow
for it.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from service.query.columns import REAL_BITS, Addend, Calculated, Coding, Kind, QueryColumn, meant_by, rounded

BITS_MAX = 60
FACTOR_BITS_MAX = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An operand: steps from `low` to `high` of 2**step_log2 each; `column` is None for a constant."""

    column: str | None
    offset: int  # of a column's code; a constant's value
    low: int
    high: int
    step_log2: int
    is_whole: bool
    error: Fraction = Fraction(0)  # in its unit, as that of a column

    @classmethod
    def of_column(cls, column: QueryColumn) -> "Amount":
        """The values of a column as an operand."""
        coding = column.coding
        return cls(
            column=column.name,
            offset=coding.offset,
            low=coding.offset,
            high=coding.offset + coding.span,
            step_log2=coding.step_log2,
            is_whole=column.kind != "real",
            error=column.error,
        )

    @classmethod
    def of_codes(cls, column: QueryColumn) -> "Amount":
        """The codes of a column as an operand, for telling categories apart."""
        coding = column.coding
        return cls(column=column.name, offset=0, low=0, high=coding.span, step_log2=0, is_whole=True)

    @classmethod
    def of_number(cls, number: float) -> "Amount":
        """A constant. Where no double holds the literal, it is the nearest double."""
        numerator, denominator = number.as_integer_ratio()
        return cls(
            column=None,
            offset=numerator,
            low=numerator,
            high=numerator,
            step_log2=1 - denominator.bit_length(),
            is_whole=denominator == 1,
            error=abs(meant_by(number) - Fraction(numerator, denominator)),
        )

    @property
    def bits(self) -> int:
        """The number of bits of the largest absolute value."""
        return max(abs(self.low), abs(self.high)).bit_length()

    @property
    def largest(self) -> Fraction:
        """Its largest absolute value, in its unit."""
        return max(abs(self.low), abs(self.high)) * Fraction(2) ** self.step_log2

    def shifted(self, shift: int) -> "tuple[Addend, int, int]":
        """The operand with another step: the addend, and its bounds."""
        low, high = rounded(self.low, shift), rounded(self.high, shift)
        if self.column is None:
            return Addend(column=None, offset=low, shift=0), low, high
        return Addend(column=self.column, offset=self.offset, shift=shift), low, high

    def error_shifted(self, shift: int) -> Fraction:
        """The operand's `error` with another step. Rounding the operand to that step adds up to half of the step."""
        if shift >= 0 or self.low == self.high == rounded(self.low, shift) << -shift:
            return self.error
        return self.error + Fraction(2) ** (self.step_log2 - shift - 1)


def total(name: str, left: Amount, right: Amount) -> QueryColumn:
    """The column `left + right`."""
    return _joined(name, "add", left, right)


def difference(name: str, left: Amount, right: Amount) -> QueryColumn:
    """The column `left - right`."""
    return _joined(name, "sub", left, right)


def product(name: str, left: Amount, right: Amount) -> QueryColumn:
    """The column `left * right`."""
    shifts = _factor_shifts(left.bits, right.bits)
    (first, *a), (second, *b) = left.shifted(shifts[0]), right.shifted(shifts[1])
    corners = [x * y for x in a for y in b]
    step_log2 = left.step_log2 - shifts[0] + right.step_log2 - shifts[1]
    is_whole = left.is_whole and right.is_whole and shifts == (0, 0)
    x, y = left.error_shifted(shifts[0]), right.error_shifted(shifts[1])
    error = left.largest * y + right.largest * x + x * y
    formula = Calculated(operator="mul", left=first, right=second)
    return _calculated(name, formula, (min(corners), max(corners)), step_log2, is_whole=is_whole, error=error)


def without_sign(name: str, amount: Amount) -> QueryColumn:
    """The column of the absolute values of `amount`."""
    term, low, high = amount.shifted(0)
    lowest = 0 if low <= 0 <= high else min(abs(low), abs(high))
    bounds = (lowest, max(abs(low), abs(high)))
    formula = Calculated(operator="abs", left=term)
    return _calculated(name, formula, bounds, amount.step_log2, is_whole=amount.is_whole, error=amount.error)


def clipped(name: str, amount: Amount, low: Fraction, high: Fraction) -> QueryColumn:
    """`amount` moved into low..high, numbers in its unit; in finer steps than its own where those do not hold them."""
    ends = [end / Fraction(2) ** amount.step_log2 for end in (low, high)]
    reached = [min(max(Fraction(bound), ends[0]), ends[1]) for bound in (amount.low, amount.high)]
    bits = max(amount.bits, *(int(abs(bound)).bit_length() for bound in reached))
    is_exact = all(bound.denominator == 1 for bound in reached)
    shift = min(BITS_MAX + 1 - bits, 0 if is_exact else max(REAL_BITS - bits, 0))
    term = amount.shifted(shift)[0]
    moved = [bound * Fraction(2) ** shift for bound in reached]
    least, most = map(round, moved)
    step_log2 = amount.step_log2 - shift
    error = max(abs(bound - round(bound)) for bound in moved) * Fraction(2) ** step_log2
    formula = Calculated(operator="clip", left=term, low=least, high=most)
    return _calculated(
        name,
        formula,
        (least, most),
        step_log2,
        is_whole=amount.is_whole and shift == 0,
        error=max(amount.error_shifted(shift), error),
    )


def _joined(name: str, operator: Literal["add", "sub"], left: Amount, right: Amount) -> QueryColumn:
    step_log2 = min(left.step_log2, right.step_log2)
    # An operand that is always zero is zero in steps of any size, and takes no bits from the other one.
    bits = 1 + max(each.bits + each.step_log2 - step_log2 if each.bits else 0 for each in (left, right))
    step_log2 += max(bits - BITS_MAX, 0)
    shifts = [each.step_log2 - step_log2 if each.bits else 0 for each in (left, right)]
    (first, a, b), (second, c, d) = left.shifted(shifts[0]), right.shifted(shifts[1])
    error = left.error_shifted(shifts[0]) + right.error_shifted(shifts[1])
    bounds = (a + c, b + d) if operator == "add" else (a - d, b - c)
    is_whole = left.is_whole and right.is_whole and step_log2 == 0
    formula = Calculated(operator=operator, left=first, right=second)
    return _calculated(name, formula, bounds, step_log2, is_whole=is_whole, error=error)


def _factor_shifts(left: int, right: int) -> tuple[int, int]:
    """The shifts that shorten two factors of `left` and `right` bits, so that their product fits."""
    if left + right <= BITS_MAX:
        return 0, 0
    if left <= FACTOR_BITS_MAX:
        return 0, BITS_MAX - left - right
    if right <= FACTOR_BITS_MAX:
        return BITS_MAX - left - right, 0
    return FACTOR_BITS_MAX - left, FACTOR_BITS_MAX - right


def _calculated(
    name: str, formula: Calculated, bounds: tuple[int, int], step_log2: int, *, is_whole: bool, error: Fraction
) -> QueryColumn:
    low, high = bounds
    kind: Kind = "integer" if is_whole else "real"
    coding = Coding(offset=low, span=high - low, step_log2=step_log2)
    return QueryColumn(name=name, kind=kind, coding=coding, formula=formula, error=error)
