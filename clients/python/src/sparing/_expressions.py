"""Conditions and items of a query, written as Python: `col("age") >= 40`, `count()`.

They only build the service's JSON; the service checks them against the dataset's public schema and names the field
that is wrong.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Column", "Condition", "Item", "col", "count", "histogram", "sum_"]

Literal = str | int | float | bool | dt.date
"""A date or a `datetime` stands for its ISO text; a `datetime` without a zone is in UTC."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an individual's (or an event's) columns; combine with `&`, `|` and `~`."""

    json: Mapping[str, object]

    def __and__(self, other: "Condition") -> "Condition":
        return self._joined("and", other)

    def __or__(self, other: "Condition") -> "Condition":
        return self._joined("or", other)

    def __invert__(self) -> "Condition":
        return Condition({"not": self.json})

    def __bool__(self) -> bool:
        # `a and b` and `18 <= col("age") <= 65` would silently keep one half.
        raise TypeError(
            "a condition has no truth value here: write & for and, | for or, ~ for not, each side in parentheses"
        )

    def _joined(self, word: str, other: "Condition") -> "Condition":
        mine = self.json.get(word)  # `a & b & c` is one list, not a tower
        return Condition({word: [*(mine if isinstance(mine, list) else [self.json]), other.json]})


class Column:
    """A column of the table; comparing it with a literal gives a `Condition`."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]  # `==` builds a condition, so equality cannot find it in a set

    def __init__(self, name: str) -> None:
        """The column's name in the schema."""
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def __eq__(self, literal: object) -> Condition:  # type: ignore[override]
        return self._compared("eq", literal)

    def __ne__(self, literal: object) -> Condition:  # type: ignore[override]
        return self._compared("ne", literal)

    def __lt__(self, literal: Literal) -> Condition:
        return self._compared("lt", literal)

    def __le__(self, literal: Literal) -> Condition:
        return self._compared("le", literal)

    def __gt__(self, literal: Literal) -> Condition:
        return self._compared("gt", literal)

    def __ge__(self, literal: Literal) -> Condition:
        return self._compared("ge", literal)

    def is_in(self, literals: Iterable[Literal]) -> Condition:
        """Whether the column equals one of `literals`."""
        return Condition({"in": [{"col": self.name}, [_literal(item) for item in literals]]})

    def between(self, low: Literal, high: Literal) -> Condition:
        """Whether the column is at least `low` and at most `high`."""
        return Condition({"between": [{"col": self.name}, _literal(low), _literal(high)]})

    def is_null(self) -> Condition:
        """Whether the column has no value, or a category that is not declared."""
        return Condition({"is_null": {"col": self.name}})

    def _compared(self, word: str, literal: object) -> Condition:
        return Condition({word: [{"col": self.name}, _literal(literal)]})


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to select; made by `count`, `sum_` and `histogram`."""

    json: Mapping[str, object]


def col(name: str) -> Column:
    """The column called `name`."""
    return Column(name)


def count() -> Item:
    """The number of individuals (or, from an event table, of events)."""
    return Item({"count": {}})


def sum_(column: str) -> Item:
    """The sum of a numeric column."""
    return Item({"sum": {"column": column}})


def histogram(column: str) -> Item:
    """A count for each declared category of a column, as one vector."""
    return Item({"histogram": {"column": column}})


def _literal(value: object) -> Literal:
    if isinstance(value, dt.date):
        return value.isoformat()
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"a column is compared with a string, a number, a boolean, a date or a time, not with {value!r}"
        )
    return value
