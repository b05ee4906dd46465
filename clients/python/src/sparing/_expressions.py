"""Conditions and items of a query, written as Python: `col("age") >= 40`, `count()`.

They only build JSON. The service checks it against the dataset's public schema, and names a wrong field.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final, Protocol, TypeAlias

Number = int | float
Exact = Number | Decimal
"""A number that means the decimal it is written as: 0.1 is exactly one tenth, as a float and as a Decimal."""

Literal = str | Exact | bool | dt.date
"""A date or a `datetime` stands for its ISO text; a `datetime` without a zone is in UTC."""


SEVERAL_MAX: Final = 64
"""The most functionals that are sent as mappings; more are sent as a matrix."""


class SparseMatrix(Protocol):
    """A sparse matrix or array of scipy, in any format."""

    def tocsr(self, copy: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - of scipy
        """The matrix in compressed sparse rows."""


Weights: TypeAlias = Mapping[Literal, float] | Sequence[Mapping[Literal, float]] | SparseMatrix
"""Weights for a column's values: one mapping from value to weight, several mappings, or a sparse matrix of rows."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the columns of an individual or an event; combine conditions with `&`, `|` and `~`."""

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
    """A value of a row: a column, or a result calculated from columns and numbers by `+`, `-`, `*` and `abs`.

    Comparing a value with a literal or another value makes a `Condition`.
    """

    __slots__ = ("json",)
    __array_ufunc__ = None  # so that numpy leaves `np.float64(2) * col("x")` to us
    __hash__ = None  # type: ignore[assignment]  # `==` builds a condition, so equality cannot find it in a set

    def __init__(self, json: Mapping[str, object]) -> None:
        """A value, given as its JSON in the query language."""
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
        """The value, replaced by the nearer bound if it is outside of the two."""
        return Value({"clip": [self.json, _operand(low), _operand(high)]})

    def is_in(self, literals: Iterable[Literal]) -> Condition:
        """The condition that the value equals one of `literals`."""
        return Condition({"in": [self.json, [literal_json(item) for item in literals]]})

    def between(self, low: Literal, high: Literal) -> Condition:
        """The condition that the value is at least `low` and at most `high`."""
        return Condition({"between": [self.json, literal_json(low), literal_json(high)]})

    def is_null(self) -> Condition:
        """The condition that the row has no value, or a category that is not declared."""
        return Condition({"is_null": self.json})

    def bins(self, edges: "Iterable[Exact | dt.date | str] | None" = None, *, width: "Exact | None" = None) -> "Group":
        """Groups by intervals of the value, cut at `edges` or at the multiples of `width`."""
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
    """A column of the table. A query of events may also name a column of the event's individual: `people.town`."""

    __slots__ = ("name",)
    __hash__ = None  # as for a value

    def __init__(self, name: str) -> None:
        """The column that has this name in the schema."""
        super().__init__({"col": name})
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    @property
    def _binned(self) -> "Mapping[str, object]":
        return {"column": self.name}

    def by(self, unit: str) -> "Group":
        """Groups by day, week, month, quarter, year or weekday of a date or time, or by hour of a time."""
        return Group({"bucket": {"column": self.name, "by": unit}})


@dataclass(frozen=True, slots=True)
class Group:
    """The bins or calendar parts of a column or value, to group by or to count; made by `bins` and `Column.by`."""

    json: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Item:
    """One select item of a query; made by `count`, `sum_`, `histogram` and the like."""

    json: Mapping[str, object]


def col(name: str) -> Column:
    """The column called `name`."""
    return Column(name)


def count() -> Item:
    """The number of individuals (or, from an event table, of events)."""
    return Item({"count": {}})


def count_individuals() -> Item:
    """The number of individuals with at least one selected row, in each group."""
    return Item({"count_individuals": {}})


def active(share: Exact) -> Item:
    """The number of individuals with at least this share of the dataset's budget left; each of these is charged.

    It must be the only item, in a query of the table of individuals. The number changes with every charge, so that no
    earlier answer is reused.
    """
    return Item({"active": {"share": _operand(share)}})


def exhausted() -> Item:
    """The next tick of the dataset's monitor, which costs nothing. It must be the only item, without a noise.

    `client.dataset(name).exhausted_curve()` returns the running counts of all ticks so far.
    """
    return Item({"exhausted": {}})


def sum_(column: str | Value) -> Item:
    """The sum of a numeric column, or of a calculated value."""
    return Item({"sum": of_value(column)})


def of_value(column: str | Value) -> dict[str, object]:
    """The JSON of a column, given by its name, or of a calculated value, as select items contain it."""
    if isinstance(column, Column):
        column = column.name
    return {"of": column.json} if isinstance(column, Value) else {"column": column}


def histogram(column: str | Group, *, values: Iterable[Literal] | None = None) -> Item:
    """A count for each declared value of a column, for each of `values`, or for each bin or calendar part.

    Raises TypeError for `values` beside bins or calendar parts.
    """
    if isinstance(column, Group):
        if values is not None:
            raise TypeError("values are of a whole column; bins and parts of the calendar have their own")
        return Item({"histogram": column.json})
    listed = {} if values is None else {"values": [literal_json(value) for value in values]}
    return Item({"histogram": {"column": column, **listed}})


def plain(value: object) -> object:
    """A scalar of numpy or pandas, or a decimal, as Python's own number; any other value unchanged."""
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
    """A date or a time as ISO text; midnight without a zone becomes the date alone, which means the same."""
    text = value.isoformat()
    return text.removesuffix("T00:00:00") if isinstance(value, dt.datetime) else text


def linear(column: str, weights: Weights, *, values: Sequence[Literal] | None = None) -> Item:
    """The sum over all rows of the weight of the row's value in a column; a value without a weight adds nothing.

    Args:
        column: the name of the column.
        weights: a mapping from values to weights, or for a vector of sums several mappings, or a sparse matrix of scipy
            with a row for each sum and a column for each value.
        values: the values that the columns of a matrix stand for; by default 0, 1, ...
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
    """The JSON of a matrix in compressed sparse rows, without zeros and with each entry once."""
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
    """A literal as it is sent. Raises TypeError for any other value."""
    value = plain(value)
    if isinstance(value, dt.date):
        return iso(value)
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"a column is compared with a value, a string, a number, a boolean, a date or a time, not with {value!r}"
        )
    return value
