"""Conditions and items of a query, written as Python: `col("age") >= 40`, `count()`.

They only build the service's JSON; the service checks them against the dataset's public schema and names the field
that is wrong.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final, Protocol, TypeAlias

Number = int | float
Exact = Number | Decimal
"""A number as it is written: 0.1 is one tenth either way."""

Literal = str | Exact | bool | dt.date
"""A date or a `datetime` stands for its ISO text; a `datetime` without a zone is in UTC."""


SEVERAL_MAX: Final = 64
"""The most functionals that have a form of their own; more are sent as a matrix."""


class SparseMatrix(Protocol):
    """A sparse matrix or array of scipy, in any format."""

    def tocsr(self, copy: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - of scipy
        """The matrix in compressed sparse rows."""


Weights: TypeAlias = Mapping[Literal, float] | Sequence[Mapping[Literal, float]] | SparseMatrix
"""Functionals of a column: weights by value, several of them, or a row for each in a sparse matrix."""


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


class Value:
    """A value of a row: a column, or what is calculated from columns and numbers by `+`, `-`, `*` and `abs`.

    Comparing it with a literal or another value gives a `Condition`.
    """

    __slots__ = ("json",)
    __array_ufunc__ = None  # so that numpy leaves `np.float64(2) * col("x")` to us
    __hash__ = None  # type: ignore[assignment]  # `==` builds a condition, so equality cannot find it in a set

    def __init__(self, json: Mapping[str, object]) -> None:
        """The value in the query language."""
        self.json = json

    def __repr__(self) -> str:
        return f"Value({self.json!r})"

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("ne", other)

    def __lt__(self, other: "Literal | Value") -> Condition:
        return self._compared("lt", other)

    def __le__(self, other: "Literal | Value") -> Condition:
        return self._compared("le", other)

    def __gt__(self, other: "Literal | Value") -> Condition:
        return self._compared("gt", other)

    def __ge__(self, other: "Literal | Value") -> Condition:
        return self._compared("ge", other)

    def __add__(self, other: "Exact | Value") -> "Value":
        return Value({"add": [self.json, _operand(other)]})

    def __radd__(self, other: "Exact") -> "Value":
        return Value({"add": [_operand(other), self.json]})

    def __sub__(self, other: "Exact | Value") -> "Value":
        return Value({"sub": [self.json, _operand(other)]})

    def __rsub__(self, other: "Exact") -> "Value":
        return Value({"sub": [_operand(other), self.json]})

    def __mul__(self, other: "Exact | Value") -> "Value":
        return Value({"mul": [self.json, _operand(other)]})

    def __rmul__(self, other: "Exact") -> "Value":
        return Value({"mul": [_operand(other), self.json]})

    def __abs__(self) -> "Value":
        return Value({"abs": self.json})

    def clip(self, low: "Exact", high: "Exact") -> "Value":
        """The value, moved to the nearer bound if it is outside."""
        return Value({"clip": [self.json, _operand(low), _operand(high)]})

    def is_in(self, literals: Iterable[Literal]) -> Condition:
        """Tell whether the value equals one of `literals`."""
        return Condition({"in": [self.json, [literal_json(item) for item in literals]]})

    def between(self, low: Literal, high: Literal) -> Condition:
        """Tell whether the value is at least `low` and at most `high`."""
        return Condition({"between": [self.json, literal_json(low), literal_json(high)]})

    def is_null(self) -> Condition:
        """Tell whether there is no value, or a category that is not declared."""
        return Condition({"is_null": self.json})

    def bins(self, edges: "Iterable[Exact | dt.date | str] | None" = None, *, width: "Exact | None" = None) -> "Group":
        """Groups by intervals of a column or a calculated value: between `edges`, or at the multiples of `width`."""
        if (edges is None) == (width is None):
            raise ValueError("give either edges or width")
        cut = {"width": plain(width)} if edges is None else {"edges": [literal_json(edge) for edge in edges]}
        return Group({"bin": {**self._binned, **cut}})

    @property
    def _binned(self) -> "Mapping[str, object]":
        return {"of": self.json}

    def _compared(self, word: str, other: object) -> Condition:
        return Condition({word: [self.json, other.json if isinstance(other, Value) else literal_json(other)]})


class Column(Value):
    """A column of the table; of an event table also `people.town`, a column of the individual that the row is of."""

    __slots__ = ("name",)
    __hash__ = None  # as for a value

    def __init__(self, name: str) -> None:
        """The column's name in the schema."""
        super().__init__({"col": name})
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    @property
    def _binned(self) -> "Mapping[str, object]":
        return {"column": self.name}

    def by(self, unit: str) -> "Group":
        """Groups of a date or time: day, week, month, quarter, year or weekday, and of a time hour."""
        return Group({"bucket": {"column": self.name, "by": unit}})


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of a column or value to group by or to count; made by `bins` and `Column.by`."""

    json: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to select; made by `count`, `sum_`, `histogram` and the like."""

    json: Mapping[str, object]


def col(name: str) -> Column:
    """The column called `name`."""
    return Column(name)


def count() -> Item:
    """The number of individuals (or, from an event table, of events)."""
    return Item({"count": {}})


def count_individuals() -> Item:
    """The number of individuals with at least one such row; in groups, of each group."""
    return Item({"count_individuals": {}})


def active(share: Exact) -> Item:
    """The number of individuals that have at least this share of the dataset's budget left, each of whom pays for it.

    It is selected alone, of the table of individuals. The number changes with every charge, so that no earlier answer
    is returned for it.
    """
    return Item({"active": {"share": _operand(share)}})


def exhausted() -> Item:
    """The next tick of the dataset's monitor, which costs nobody anything; it is asked alone, without a noise.

    `client.dataset(name).exhausted_curve()` makes the running counts of all ticks so far.
    """
    return Item({"exhausted": {}})


def sum_(column: str | Value) -> Item:
    """The sum of a numeric column, or of a calculated value."""
    return Item({"sum": of_value(column)})


def of_value(column: str | Value) -> dict[str, object]:
    """A column by its name, or a calculated value, as an item has it."""
    if isinstance(column, Column):
        column = column.name
    return {"of": column.json} if isinstance(column, Value) else {"column": column}


def histogram(column: str | Group, *, values: Iterable[Literal] | None = None) -> Item:
    """A count for each declared value of a column as one vector, or for each of `values`, or for each part of one.

    Raises TypeError for values beside parts.
    """
    if isinstance(column, Group):
        if values is not None:
            raise TypeError("values are of a whole column; bins and parts of the calendar have their own")
        return Item({"histogram": column.json})
    listed = {} if values is None else {"values": [literal_json(value) for value in values]}
    return Item({"histogram": {"column": column, **listed}})


def plain(value: object) -> object:
    """A scalar of numpy or pandas, and a decimal, as Python's own; any other value as it is."""
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    item = getattr(value, "item", None)
    if not callable(item) or getattr(value, "ndim", None) != 0:
        return value
    if getattr(value, "dtype", None) in ("float32", "float16"):
        return float(str(value))  # the decimal that it is printed as
    if getattr(value, "dtype", None) == "datetime64[ns]":  # of which Python's own is a number of nanoseconds
        return plain(value.astype("datetime64[us]"))  # type: ignore[attr-defined]
    return item()


def iso(value: dt.date) -> str:
    """A date or a time as text; midnight without a zone is its date, which stands for it."""
    text = value.isoformat()
    return text.removesuffix("T00:00:00") if isinstance(value, dt.datetime) else text


def linear(column: str, weights: Weights, *, values: Sequence[Literal] | None = None) -> Item:
    """The sum of a weight for each value of a column, values without a weight adding nothing; several make a vector.

    Args:
        column: its name.
        weights: a mapping from values to weights, several of them, or a sparse matrix of scipy with a row for each
            functional and a column for each value.
        values: the values that the columns of a matrix stand for; by default their numbers, 0, 1, ...
    """
    if isinstance(weights, Mapping):
        return Item({"linear": {"column": column, "weights": _weights(weights)}})
    if not isinstance(weights, Sequence) and hasattr(weights, "tocsr"):
        return Item({"linear": {"column": column, "matrix": _matrix_of(weights.tocsr(copy=True), values)}})
    if not isinstance(weights, Sequence):
        raise TypeError(f"linear takes mappings from values to weights, or a sparse matrix, not {weights!r}")
    several = [_weights(each) for each in weights]
    if len(several) <= SEVERAL_MAX:
        return Item({"linear": {"column": column, "weights": several}})
    matrix = {
        "starts": [0, *accumulate(len(each["indices"]) for each in several)],
        "indices": [value for each in several for value in each["indices"]],
        "values": [weight for each in several for weight in each["values"]],
    }
    return Item({"linear": {"column": column, "matrix": matrix}})


def _matrix_of(matrix: Any, values: Sequence[Literal] | None) -> dict[str, list[object]]:  # noqa: ANN401 - of scipy
    """A matrix in compressed sparse rows, without zeros and with each entry once."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    places = matrix.indices.tolist()
    return {
        "starts": matrix.indptr.tolist(),
        "indices": places if values is None else [literal_json(values[place]) for place in places],
        "values": matrix.data.tolist(),
    }


def _weights(weights: Mapping[Literal, float]) -> dict[str, list[object]]:
    return {
        "indices": [literal_json(value) for value in weights],
        "values": [_operand(weight) for weight in weights.values()],
    }


def _operand(value: object) -> object:
    if isinstance(value, Value):
        return value.json
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a value is calculated from columns and numbers, not from {value!r}")
    return value


def literal_json(value: object) -> Literal:
    """A literal as it is sent. Raises TypeError for what is none."""
    value = plain(value)
    if isinstance(value, dt.date):
        return iso(value)
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"a column is compared with a value, a string, a number, a boolean, a date or a time, not with {value!r}"
        )
    return value
