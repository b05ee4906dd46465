"""Values of a row in exact numbers, as closures over rows, with the bounds and steps that follow from the schema.

The service holds a calculated value in at most 60 bits and rounds a product of two long factors; here it is exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sparing._testing_problems import invalid, quoted
from sparing._testing_schema import Declared, Schema, days_of, seconds_of
from sparing._testing_shapes import entries_of, literal_of, one_of, text_of

__all__ = ["VALUE_KINDS", "Columns", "Row", "Value", "position_of", "written"]

VALUE_KINDS = ("col", "add", "sub", "mul", "abs", "clip")
Row = Mapping[str, int | None]
"""The steps of each column, by name; None is NULL. An event has its individual's columns too, as `people.town`."""
Number = int | Fraction
Operator = Literal["add", "sub", "mul"]
_SIGNS: Mapping[str, str] = {"add": "+", "sub": "-", "mul": "*"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of a row: `read` gives it, between `low` and `high`, a multiple of `2**step_log2`; None is NULL."""

    text: str
    kind: str
    low: Number
    high: Number
    step_log2: int
    read: Callable[[Row], Number | None]
    column: Declared | None = None

    @property
    def is_number(self) -> bool:
        """Whether it can be calculated with."""
        return self.kind in {"integer", "real"}

    @property
    def is_ordered(self) -> bool:
        """Whether its values are numbers, dates or times."""
        return self.kind not in {"category", "boolean"}

    @property
    def said(self) -> str:
        """Its kind as messages say it."""
        return {"integer": "a number", "real": "a number", "datetime": "a time"}.get(self.kind, f"a {self.kind}")


class Columns:
    """The columns that a query of one table may mention."""

    def __init__(self, schema: Schema, table: str) -> None:
        self.table = schema.tables[table]
        self._people = schema.tables[schema.individuals]

    def named(self, name: object, field: str) -> Value:
        """The column of that name. Raises Refused if there is none, or if it is not data."""
        wanted = text_of(name, field)
        prefix, _, own = wanted.partition(".")
        is_own = self.table.is_events and prefix == self._people.name and own != ""
        table, inner = (self._people, own) if is_own else (self.table, wanted)
        if inner == table.budget:
            raise invalid(
                field, f"{quoted(wanted)} holds the individuals' limits; it is not data and cannot be queried"
            )
        if inner not in table.columns:
            raise invalid(field, f"there is no column {quoted(wanted)} in this table")
        return _of_column(wanted, table.columns[inner])

    def value(self, node: object, field: str) -> Value:
        """A value of the row, read or calculated. Raises Refused."""
        kind, body = one_of(node, VALUE_KINDS, field)
        if kind == "col":
            return self.named(body, f"{field}.col")
        if kind == "abs":
            return _without_sign(written(node), self._number(body, f"{field}.abs"))
        if kind == "clip":
            return self._clipped(node, entries_of(body, f"{field}.clip", most=3, exactly=3), f"{field}.clip")
        left, right = entries_of(body, f"{field}.{kind}", most=2, exactly=2)
        if kind == "sub":
            return self._difference(left, right, f"{field}.sub", written(node))
        first, second = self._number(left, f"{field}.{kind}[0]"), self._number(right, f"{field}.{kind}[1]")
        return _joined(written(node), "add" if kind == "add" else "mul", first, second)

    def _number(self, node: object, field: str) -> Value:
        if not isinstance(node, Mapping):
            literal = literal_of(node, field)
            if isinstance(literal, bool | str):
                raise invalid(field, f"must be a number; got {quoted(node)}")
            return _of_number(literal)
        value = self.value(node, field)
        if not value.is_number:
            raise invalid(field, f"must be a number; it is {value.said}")
        return value

    def _difference(self, left: object, right: object, field: str, text: str) -> Value:
        """Of two numbers, or of two dates in days, or of two times in seconds."""
        both = [
            self.value(node, f"{field}[{place}]") if isinstance(node, Mapping) else None
            for place, node in enumerate((left, right))
        ]
        first, second = both
        if first is None or second is None or first.kind != second.kind or first.kind not in {"date", "datetime"}:
            first, second = self._number(left, f"{field}[0]"), self._number(right, f"{field}[1]")
        return _joined(text, "sub", first, second)

    def _clipped(self, node: object, parts: Any, field: str) -> Value:  # noqa: ANN401 - JSON
        value = self._number(parts[0], f"{field}[0]")
        bounds = []
        for place in (1, 2):
            bound = literal_of(parts[place], f"{field}[{place}]")
            if isinstance(bound, bool | str):
                raise invalid(f"{field}[{place}]", "must be a valid number")
            bounds.append(bound)
        if bounds[0] > bounds[1]:
            raise invalid(f"{field}[2]", "must not be below the lower bound")
        for place, bound in enumerate(bounds, start=1):
            if value.kind == "integer" and bound != int(bound):
                raise invalid(f"{field}[{place}]", "must be a whole number, as the value is")
        low, high = (_on_steps(bound, value) for bound in bounds)
        cut = _cut_to(low, high)
        return _calculated(
            written(node), value.kind, (cut(value.low), cut(value.high)), value.step_log2, _of_one(value, cut)
        )


def position_of(node: object, value: Value, field: str) -> Number:
    """A literal on the scale of a value; one of a real value is rounded to its step. Raises Refused."""
    literal = literal_of(node, field)
    match value.kind:
        case "category":
            return _category(literal, value.column, field)
        case "boolean":
            if not isinstance(literal, bool):
                raise invalid(field, f"must be true or false, as the column is boolean; got {quoted(literal)}")
            return int(literal)
        case "date" | "datetime":
            return _time(literal, value.kind, field)
        case _:
            if isinstance(literal, bool | str):
                raise invalid(field, f"must be a number, as the column is numeric; got {quoted(literal)}")
            return _on_steps(literal, value) if value.kind == "real" else Fraction(literal)


def written(node: object) -> str:
    """A value as labels write it."""
    if not isinstance(node, Mapping):
        return repr(node)
    [(kind, body)] = node.items()
    if kind == "col":
        return str(body)
    if kind == "abs":
        return f"abs({written(body)})"
    if kind == "clip":
        return f"clip({written(body[0])}, {body[1]}, {body[2]})"
    return f"({written(body[0])} {_SIGNS[kind]} {written(body[1])})"


def _of_column(name: str, column: Declared) -> Value:
    step = Fraction(2) ** column.step_log2

    def read(row: Row) -> Number | None:
        found = row[name]
        return found if found is None or column.step_log2 == 0 else found * step

    return Value(
        text=name,
        kind=column.kind,
        low=column.low * step,
        high=column.high * step,
        step_log2=column.step_log2,
        read=read,
        column=column,
    )


def _of_number(number: float) -> Value:
    exact = Fraction(number)
    step_log2 = 1 - exact.denominator.bit_length()
    kind = "integer" if exact.denominator == 1 else "real"
    return Value(text=repr(number), kind=kind, low=exact, high=exact, step_log2=step_log2, read=lambda _: exact)


def _joined(text: str, operator: Operator, left: Value, right: Value) -> Value:
    join: Callable[[Number, Number], Number] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
    }[operator]
    corners = [join(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    kind = "real" if "real" in {left.kind, right.kind} else "integer"
    step_log2 = left.step_log2 + right.step_log2 if operator == "mul" else min(left.step_log2, right.step_log2)

    def read(row: Row) -> Number | None:
        first, second = left.read(row), right.read(row)
        return None if first is None or second is None else join(first, second)

    return _calculated(text, kind, (min(corners), max(corners)), step_log2, read)


def _without_sign(text: str, value: Value) -> Value:
    ends = _absolute(value.low), _absolute(value.high)
    lowest = 0 if value.low <= 0 <= value.high else min(ends)
    return _calculated(text, value.kind, (lowest, max(ends)), value.step_log2, _of_one(value, _absolute))


def _absolute(number: Number) -> Number:
    return -number if number < 0 else number


def _calculated(
    text: str, kind: str, bounds: tuple[Number, Number], step_log2: int, read: Callable[[Row], Number | None]
) -> Value:
    low, high = bounds
    return Value(text=text, kind=kind, low=low, high=high, step_log2=step_log2, read=read)


def _of_one(value: Value, change: Callable[[Number], Number]) -> Callable[[Row], Number | None]:
    def read(row: Row) -> Number | None:
        found = value.read(row)
        return None if found is None else change(found)

    return read


def _cut_to(low: Number, high: Number) -> Callable[[Number], Number]:
    return lambda number: min(max(number, low), high)


def _on_steps(number: float, value: Value) -> Fraction:
    step = Fraction(2) ** value.step_log2
    return round(Fraction(number) / step) * step


def _time(literal: object, kind: str, field: str) -> int:
    read, form = (
        (days_of, "a date, such as 2026-03-31")
        if kind == "date"
        else (seconds_of, "a time, such as 2026-03-31T23:59:59Z")
    )
    found = read(literal) if isinstance(literal, str) else None
    if found is None:
        raise invalid(field, f"must be {form}; got {quoted(literal)}")
    return found


def _category(literal: object, column: Declared | None, field: str) -> int:
    if column is None:
        raise TypeError("a category is always declared")
    if isinstance(literal, float) and literal.is_integer():
        literal = int(literal)
    code = None if isinstance(literal, bool) else _code(literal, column)
    if code is None:
        domain = "a declared category" if column.is_listed else f"an integer from 0 to {column.size - 1}"
        raise invalid(field, f"must be {domain} of the column; got {quoted(literal)}")
    return code


def _code(literal: object, column: Declared) -> int | None:
    if not column.is_listed:
        return literal if isinstance(literal, int) and 0 <= literal < column.size else None
    is_text = isinstance(literal, str)
    found = (
        code
        for code, category in enumerate(column.categories)
        if category == literal and isinstance(category, str) == is_text
    )
    return next(found, None)
