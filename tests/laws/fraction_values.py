"""The values and conditions of a query, row by row in fractions, from its JSON and docs/query-language.md alone.

Nothing of the service is imported: no codes, predicates or plans. Calculated reals have steps of their own: where a
number has to be rounded to them (a product of two long reals, a literal between two steps), it says how far `off` the
service's may be, and a comparison that this decides raises Unsure. So does one of sides that are not equal and so near
that the service may take them for equal: `blur` bounds that. Rules are methods, so that a test can plant a mistake in
each.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any, NamedTuple

Row = dict[str, Any]
"""A stored row: `Near` for numbers, dates and times, the category or truth value itself, None for NULL."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZERO, ONE = Fraction(0), Fraction(1)
DAY_S = 86_400
COMPARISONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda sign: sign == 0,
    "ne": lambda sign: sign != 0,
    "lt": lambda sign: sign < 0,
    "le": lambda sign: sign <= 0,
    "gt": lambda sign: sign > 0,
    "ge": lambda sign: sign >= 0,
}


class Near(NamedTuple):
    """A number, in days for a date and in seconds for a time; the service's is at most `off` away."""

    value: Fraction
    off: Fraction = ZERO


class Unsure(Exception):
    """The page does not decide a comparison: its sides are nearer to each other than the service may round."""


class Extent(NamedTuple):
    """The bounds of a value, which follow from those of its columns, and the steps that it has at least."""

    low: Fraction
    high: Fraction
    step: Fraction
    is_whole: bool

    @property
    def largest(self) -> Fraction:
        """The larger bound."""
        return max(abs(self.low), abs(self.high))

    @property
    def bits(self) -> int:
        """The bits of the larger bound."""
        return int(self.largest / self.step).bit_length()

    def in_bits(self, bits: int) -> Fraction:
        """The step with which the larger bound has so many bits at most."""
        return max(self.step, power_above(self.largest) / 2**bits) if self.largest else self.step


def power_above(number: Fraction) -> Fraction:
    """The smallest power of two that is not below a number above zero."""
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length() - 1)
    while power < number:
        power *= 2
    return power


def decimal(number: float | Fraction) -> Fraction:
    """The shortest decimal that a number is written as."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def real_step(largest: Fraction) -> Fraction:
    """The step of a real column: the power of two of which the larger bound has more than 2^51."""
    return power_above(largest) / 2**52


def nearest(number: float | Fraction, largest: Fraction) -> Fraction:
    """A number in the steps of a real column."""
    return round(Fraction(number) / real_step(largest)) * real_step(largest)


def lost(near: Near, step: Fraction) -> Fraction:
    """The most that rounding to a step moves a number: nothing if it is a multiple."""
    return step if near.off or near.value % step else ZERO


def point(text: str, kind: str) -> Fraction:
    """Days or seconds since 1970-01-01; a time without a zone is in UTC, and a date is its first moment."""
    at = datetime.fromisoformat(text)
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH
    return Fraction(since // timedelta(microseconds=1), 10**6) / (DAY_S if kind == "date" else 1)


def domain(column: dict[str, Any]) -> Sequence[Any]:
    """The values of a column that can be counted, in order."""
    if column["type"] == "boolean":
        return [False, True]
    if column["type"] == "category":
        return list(column.get("categories") or range(column["size"]))
    low, high = bounds(column)
    return range(int(low), int(high) + 1)


def as_number(value: Any) -> Any:
    """A value that is added up or calculated with: a boolean is 0 or 1."""
    return Near(Fraction(value)) if isinstance(value, bool) else value


def place_of(value: Any, column: dict[str, Any]) -> int:
    """The place of a value in the domain of its column."""
    return domain(column).index(int(value.value) if isinstance(value, Near) else value)


def bounds(column: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """The bounds of a column of numbers, booleans, dates or times, as stored."""
    if column["type"] == "boolean":
        return ZERO, ONE
    return _bounds(column["type"], column["lower"], column["upper"])


@cache
def _bounds(kind: str, *ends: Any) -> tuple[Fraction, Fraction]:
    if kind in {"date", "datetime"}:
        low, high = (point(end, kind) for end in ends)
        return low, high
    larger = max(abs(Fraction(end)) for end in ends)
    low, high = (nearest(end, larger) if kind == "real" else Fraction(end) for end in ends)
    return low, high


class FractionValues:
    """A query as JSON, and the tables of its dataset."""

    def __init__(self, document: dict[str, Any], tables: dict[str, Any]) -> None:
        self.document, self.tables = document, tables
        (people,) = (name for name, table in tables.items() if table["kind"] == "individuals")
        self.table = document.get("from", people)
        self.columns = dict(tables[self.table]["columns"])
        if self.table != people:
            self.columns |= {f"{people}.{name}": column for name, column in tables[people]["columns"].items()}

    # An upload

    def stored(self, row: dict[str, Any], prefix: str = "") -> Row:
        """A row as uploaded: numbers outside the bounds moved to the nearer one, unknown categories NULL."""
        return {prefix + name: self.held(value, self.columns[prefix + name]) for name, value in row.items()}

    def held(self, value: Any, column: dict[str, Any]) -> Any:
        """A value of a column."""
        if value is None or column["type"] == "boolean":
            return value
        if column["type"] == "category":
            return value if value in domain(column) else None
        low, high = bounds(column)
        number = Fraction(floor(point(value, column["type"]))) if isinstance(value, str) else Fraction(value)
        inside = min(max(number, low), high)
        return Near(self.real(inside, max(abs(low), abs(high))) if column["type"] == "real" else inside)

    def real(self, number: float | Fraction, largest: Fraction) -> Fraction:
        """A number of a real column, data or literal."""
        return nearest(number, largest)

    # Values

    def extent(self, node: Any) -> Extent:
        """The bounds of a number, date or time."""
        if not isinstance(node, dict):  # held as a double
            number = Fraction(node)
            return Extent(number, number, Fraction(1, number.denominator), number.denominator == 1)
        ((kind, body),) = node.items()
        if kind == "col":
            column = self.columns[body]
            whole = Extent(*bounds(column), ONE, is_whole=True)
            return whole if column["type"] != "real" else whole._replace(step=real_step(whole.largest), is_whole=False)
        first = self.extent(body if kind == "abs" else body[0])
        if kind == "abs":
            low = ZERO if first.low <= 0 <= first.high else min(abs(first.low), abs(first.high))
            return first._replace(low=low, high=first.largest)
        if kind == "clip":
            low, high = (min(max(end, decimal(body[1])), decimal(body[2])) for end in first[:2])
            clipped = first._replace(low=low, high=high)
            is_held = all(end % first.step == 0 for end in (low, high))
            finer = power_above(max(first.largest, clipped.largest)) / 2**51
            return clipped if is_held else clipped._replace(step=min(first.step, finer))
        second = self.extent(body[1])
        corners = [self.calculated(kind, x, y) for x in first[:2] for y in second[:2]]
        a, b = self.factors(first, second)
        step = a * b if kind == "mul" else self.common(first, second)
        return Extent(min(corners), max(corners), step, first.is_whole and second.is_whole)

    def common(self, one: Extent, other: Extent) -> Fraction:
        """The step of a sum: the finer of both, unless the bounds would have more than 60 bits of it."""
        bound = one.largest + other.largest
        return Extent(-bound, bound, min(one.step, other.step), is_whole=False).in_bits(58)

    def factors(self, one: Extent, other: Extent) -> tuple[Fraction, Fraction]:
        """The steps of two factors: beyond 60 bits together, both long ones have 30, or the one beside a short."""
        if one.bits + other.bits <= 60:
            return one.step, other.step
        return one.in_bits(max(29, 59 - other.bits)), other.in_bits(max(29, 59 - one.bits))

    def value(self, node: Any, row: Row) -> Any:
        """A value of the row: NULL if there is a NULL in it."""
        if not isinstance(node, dict):
            return Near(decimal(node), abs(decimal(node) - Fraction(node)))
        ((kind, body),) = node.items()
        if kind == "col":
            return row[body]
        parts = [as_number(self.value(each, row)) for each in ([body] if kind == "abs" else body)]
        if None in parts:
            return self.without(parts)
        if kind == "abs":
            return Near(abs(parts[0].value), parts[0].off)
        if kind == "clip":
            off = sum((lost(Near(end.value), self.extent(node).step) for end in parts[1:]), parts[0].off)
            return Near(min(max(parts[0].value, parts[1].value), parts[2].value), off)
        left, right = parts
        return Near(self.calculated(kind, left.value, right.value), self.off(kind, body, left, right))

    def without(self, _parts: list[Near | None]) -> Near | None:
        """A value calculated from a NULL."""
        return None

    def calculated(self, kind: str, left: Fraction, right: Fraction) -> Fraction:
        """Two numbers, or two dates or times."""
        return {"add": left + right, "sub": left - right, "mul": left * right}[kind]

    def off(self, kind: str, nodes: Sequence[Any], left: Near, right: Near) -> Fraction:
        """How far the service's may be, where numbers are rounded to steps first."""
        one, other = map(self.extent, nodes)
        if kind == "mul":
            a, b = self.factors(one, other)
            a, b = left.off + lost(left, a), right.off + lost(right, b)
            return abs(left.value) * b + abs(right.value) * a + a * b
        step = self.common(one, other)
        return left.off + right.off + lost(left, step) + lost(right, step)

    def blur(self, node: Any) -> Fraction:
        """How far a value of the decimals that rows and literals are written as may be from the calculated one."""
        if not isinstance(node, dict):
            return abs(decimal(node) - Fraction(node))
        ((kind, body),) = node.items()
        if kind == "col":
            extent = self.extent(node)
            return ZERO if extent.is_whole else extent.step
        if kind in {"abs", "clip"}:
            return self.blur(body if kind == "abs" else body[0]) + (self.extent(node).step if kind == "clip" else ZERO)
        one, other = map(self.extent, body)
        steps = self.factors(one, other) if kind == "mul" else [self.common(one, other)] * 2
        a, b = (
            self.blur(part) + (step if step > extent.step else ZERO)
            for part, extent, step in zip(body, (one, other), steps, strict=True)
        )
        return one.largest * b + other.largest * a + a * b if kind == "mul" else a + b

    # Conditions

    def truth(self, condition: dict[str, Any], row: Row) -> bool | None:
        """True, false, or unknown."""
        ((kind, body),) = condition.items()
        if kind == "not":
            return self.negated(self.truth(body, row))
        if kind in {"and", "or"}:
            return self.joined([self.truth(part, row) for part in body], decisive=kind == "or")
        if kind == "is_null":
            return self.value(body, row) is None
        value = self.value(body[0], row)
        blur = self.blurred(body[0])
        if kind == "in":
            return self.either([self.compared("eq", value, self.literal(each, body[0]), blur) for each in body[1]])
        if kind == "between":
            low, high = (self.literal(each, body[0]) for each in body[1:])
            return self.between(value, low, high, blur)
        if not isinstance(body[1], dict):
            return self.compared(kind, value, self.literal(body[1], body[0]), blur)
        other = self.value(body[1], row)
        if isinstance(value, Near) and isinstance(other, Near):
            value = value._replace(off=self.off("sub", body, value, other))
            blur = self.blur({"sub": body})
        return self.compared(kind, value, other, blur)

    def negated(self, inner: bool | None) -> bool | None:
        """NOT."""
        return None if inner is None else not inner

    def joined(self, parts: list[bool | None], *, decisive: bool) -> bool | None:
        """AND, which a false part decides, and OR, which a true one does."""
        return decisive if decisive in parts else None if None in parts else not decisive

    def either(self, parts: list[bool | None]) -> bool | None:
        """IN."""
        return self.joined(parts, decisive=True)

    def between(self, value: Any, low: Any, high: Any, blur: Fraction) -> bool | None:
        """BETWEEN, both ends included."""
        ends = [self.compared("ge", value, low, blur), self.compared("le", value, high, blur)]
        return self.joined(ends, decisive=False)

    def blurred(self, node: Any) -> Fraction:
        """The blur beside a literal: a column's own literals are rounded as its rows were."""
        return ZERO if "col" in node else self.blur(node)

    def literal(self, literal: Any, node: dict[str, Any]) -> Any:
        """A literal of the type of the value beside it."""
        column = self.columns[node["col"]] if "col" in node else {"type": "real"}
        if column["type"] in {"category", "boolean"}:
            return literal
        if isinstance(literal, str):
            return Near(point(literal, column["type"]))
        extent = self.extent(node)
        if "col" in node and not extent.is_whole:
            return Near(self.real(literal, extent.largest))
        return Near(decimal(literal))

    def compared(self, kind: str, left: Any, right: Any, blur: Fraction) -> bool | None:
        """Unknown if one of them is NULL; `blur` is how far from each other equal numbers may be calculated."""
        if left is None or right is None:
            return None
        if not isinstance(left, Near):
            return COMPARISONS[kind](0 if left == right else 1)
        apart, off = left.value - right.value, left.off + right.off
        if off + abs(apart) and abs(apart) <= off + 2 * blur:
            raise Unsure
        return COMPARISONS[kind]((apart > 0) - (apart < 0))
