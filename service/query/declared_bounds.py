"""The bounds of a value by the declared bounds of its columns: interval arithmetic in exact fractions."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import add, mul, sub
from typing import Final

from service.query.columns import QueryColumn, meant_by
from service.query.expressions_ast import Abs, Add, Clip, ColumnRef, Mul, Operand, Own, Predict, Sub
from service.query.row_columns import RowColumns
from service.query.schema import IntegerColumn, RealColumn

Bounds = tuple[Fraction, Fraction]
_RESULTS: Final[Mapping[type, Callable[[Fraction, Fraction], Fraction]]] = {Add: add, Sub: sub, Mul: mul}


def column_bounds(column: QueryColumn) -> Bounds:
    """The least and the greatest number of a column: the declared ones, or those of a calculated column's codes."""
    declared, coding = column.declared, column.coding
    if isinstance(declared, IntegerColumn | RealColumn):
        return meant_by(declared.lower), meant_by(declared.upper)
    step = Fraction(2) ** coding.step_log2
    return coding.offset * step, (coding.offset + coding.span) * step


def bounds_of(node: Operand, columns: RowColumns) -> Bounds | None:
    """The least and the greatest number that a value of these columns may be; None where it may be any number.

    A prediction that is no probability may be any number. A clip gives it bounds.
    """
    match node:
        case ColumnRef(col=name):
            return column_bounds(columns.named(name, name))
        case Own(own=asked):
            return meant_by(asked.clip[0]), meant_by(asked.clip[1])
        case Predict(predict=asked):
            return (Fraction(0), Fraction(1)) if asked.link == "logistic" else None
        case Abs(abs=inner):
            bounds = bounds_of(inner, columns)
            return None if bounds is None else _without_sign(bounds)
        case Clip(clip=(inner, lowest, highest)):
            low, high = meant_by(lowest), meant_by(highest)
            ends = bounds_of(inner, columns) or (low, high)
            return min(max(ends[0], low), high), min(max(ends[1], low), high)
        case Add(add=operands) | Sub(sub=operands) | Mul(mul=operands):
            first, second = (bounds_of(each, columns) for each in operands)
            if first is None or second is None:
                return None
            results = [_RESULTS[type(node)](one, other) for one in first for other in second]
            return min(results), max(results)
        case int() | float():
            return meant_by(node), meant_by(node)
        case str():
            raise TypeError("a text has no bounds")


def _without_sign(bounds: Bounds) -> Bounds:
    low, high = bounds
    return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
