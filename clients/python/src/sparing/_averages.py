"""Averages as linear queries: what a mean, a variance or a quantile is worked out from, and how that shares a cost.

A mean is a sum over a count. Its error is the least for its cost where the sum is taken of x - c, for the middle c of
the declared bounds: nobody then adds more than half of their distance, h. With noise of sigma_n on the count n and of
sigma_s on the sum, the error's square is (sigma_s^2 + u^2 h^2 sigma_n^2) / n^2 where the mean is u h from c (the delta
method). A part w of the worst case buys sigma_n^2 = 1 / (2 w rho) and sigma_s^2 = h^2 / (2 w rho), so that
w_s : w_n = 1 : |u| is best; u is not known before. Over all u between -1 and 1 the square is 1 / 3 on average, and
1 : sqrt(1 / 3), near 7 : 4, makes the square of the error least on average. It is 8 % more than with the best
division where the mean is at a bound, and 57 % more where it is c itself.

A variance needs the sum of (x - c)^2 - h^2 / 2 too, which is between -h^2 / 2 and h^2 / 2. By the same method, on
average over means u h and then over the variances that such a mean allows, 12 : 7 : 5 for sum, count and squares is
best.

The count is the sum of clip(x, 1, 1): 1 for each row with a value, and nothing where x is NULL.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from sparing._expressions import Column, Group, Item, Number, Value, col, count, plain, sum_
from sparing._query import GroupKey, QueryRequest

Json = Mapping[str, Any]
Parts = tuple[tuple[Item, int], ...]
"""Items, each with its part of the cost."""

BINS_MAX: Final = 64
"""Of a quantile whose edges are not given."""
_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*"}
_WEIGHTS_MAX: Final = 2**31


@dataclass(frozen=True, slots=True)
class AverageItem:
    """Something to select that is worked out from linear items; made by the steps of a query, or from SQL."""

    kind: str  # mean, variance, stddev or quantile
    value: Json
    probability: float | None = None  # of a quantile
    edges: tuple[Number, ...] | None = None  # of a quantile's bins

    @property
    def title(self) -> str:
        """As the labels of an answer have it."""
        more = "" if self.probability is None else f", {self.probability:.12g}"
        return f"{self.kind}({_text(self.value)}{more})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The bounds of a value, in its unit."""

    low: float
    high: float
    is_whole: bool = False  # of a column of whole numbers

    @property
    def middle(self) -> Number:
        """Half way between the bounds."""
        return _whole(self.low + (self.high - self.low) / 2)

    @property
    def half(self) -> float:
        """The distance from the middle to either bound."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearQuery:
    """The linear query behind a query with averages."""

    request: QueryRequest
    selected: tuple[tuple[Item | AverageItem, Span | None, tuple[int, ...]], ...]
    """Each item that was asked for, the bounds of its value, and the places of its parts in the linear query."""


def mean(value: str | Value) -> AverageItem:
    """The mean of a column or of a calculated value, over the rows that have one."""
    return AverageItem("mean", _value(value))


def variance(value: str | Value) -> AverageItem:
    """The population variance, over the rows that have a value."""
    return AverageItem("variance", _value(value))


def stddev(value: str | Value) -> AverageItem:
    """The population standard deviation, over the rows that have a value."""
    return AverageItem("stddev", _value(value))


def quantile(column: str | Column, probability: float, edges: Iterable[Number] | None = None) -> AverageItem:
    """The point below which this share of the rows with a value lies; 0.5 for the median.

    Raises ValueError for a probability that is not above 0 and below 1.
    """
    share = plain(probability)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise ValueError(f"the probability of a quantile must be above 0 and below 1, got {probability}")
    cuts = None if edges is None else tuple(plain(edge) for edge in edges)
    return AverageItem("quantile", _value(column), float(share), cuts)  # type: ignore[arg-type]  # bins check edges


def linear_query(items: Sequence[Item | AverageItem], asked: QueryRequest, tables: Mapping[str, object]) -> LinearQuery:
    """The linear query of `items` for a dataset with these tables.

    `weights` of `asked` divide the cost among the items as they are listed, and an average's part is divided among what
    it is worked out from; what serves two averages gets the parts of both.

    Raises:
        ValueError: the noise is not stated by rho or share, an average is not of numbers, an l2_clip is given, or a
            quantile stands beside something else.
    """
    if not asked.keys() & {"share", "rho"} or asked.keys() & {"sigma", "half_width"}:
        raise ValueError("the precision of a query with averages is stated by share or rho, with weights by item")
    if asked.get("l2_clip") is not None:
        raise ValueError("a query with averages takes rows and no l2_clip, which would shorten counts and not sums")
    columns = _Columns(asked.get("from_"), tables)
    if any(isinstance(item, AverageItem) and item.kind == "quantile" for item in items):
        return _of_quantiles(items, asked, columns)
    stated = asked.get("weights")
    shares = [Fraction(str(plain(each))) for each in ([1] * len(items) if stated is None else stated)]
    if len(shares) != len(items):
        raise ValueError(f"weights must be one for each of {len(items)} items, not {len(shares)}")
    weights: dict[str, Fraction] = {}
    parts: dict[str, Item] = {}
    selected = []
    for item, share in zip(items, shares, strict=True):
        span = columns.span(item.value, item.title) if isinstance(item, AverageItem) else None
        needed: Parts = ((item, 1),) if isinstance(item, Item) else _parts(item, span)
        whole = sum(part for _, part in needed)
        names = [json.dumps(each.json, sort_keys=True) for each, _ in needed]
        for name, (each, part) in zip(names, needed, strict=True):
            parts.setdefault(name, each)
            weights[name] = weights.get(name, Fraction(0)) + share * part / whole
        selected.append((item, span, tuple(list(parts).index(name) for name in names)))
    request: QueryRequest = {**asked, "select": list(parts.values()), "weights": _integers(list(weights.values()))}
    return LinearQuery(request=request, selected=tuple(selected))


def _of_quantiles(items: Sequence[Item | AverageItem], asked: QueryRequest, columns: "_Columns") -> LinearQuery:
    """Quantiles of one column: counts in its bins, which all of them share."""
    first = items[0]
    alike = {(json.dumps(item.value), item.edges) if isinstance(item, AverageItem) else None for item in items}
    kinds = {item.kind for item in items if isinstance(item, AverageItem)}
    if not isinstance(first, AverageItem) or len(alike) != 1 or kinds != {"quantile"}:
        raise ValueError("quantiles are counts in bins: ask them in a query of their own, all of one column")
    if first.value.keys() != {"col"}:
        raise ValueError(f"{first.title} must be of a column, not of a calculated value")
    span = columns.span(first.value, first.title)
    if columns.is_boolean(first.value):
        raise ValueError(f"{first.title} is of true and false: ask for the mean, which is the rate of true")
    edges = first.edges or columns.edges(span)
    before = asked.get("group_by", ())
    keys: list[GroupKey] = [before] if isinstance(before, str | Column | Group) else list(before)
    request: QueryRequest = {
        **{name: value for name, value in asked.items() if name != "weights"},  # type: ignore[typeddict-item]
        "select": [count()],
        "group_by": [*keys, col(str(first.value["col"])).bins(edges)],
    }
    return LinearQuery(request=request, selected=tuple((item, span, (0,)) for item in items))


def _parts(item: AverageItem, span: "Span | None") -> Parts:
    if span is None or span.half == 0:
        raise ValueError(f"{item.title} is of a value that its bounds allow one number for")
    value = Value(item.value)
    from_middle = value if span.middle == 0 else value - span.middle
    ones, total = sum_(value.clip(1, 1)), _sum(from_middle)
    if item.kind == "mean":
        return (total, 7), (ones, 4)
    squares = sum_(abs(from_middle) * abs(from_middle) - _whole(span.half**2 / 2))
    return (total, 12), (ones, 7), (squares, 5)


def _sum(value: Value) -> Item:
    return sum_(str(value.json["col"]) if "col" in value.json else value)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The declared columns that a query may mention."""

    table: str | None
    tables: Mapping[str, Any]

    def span(self, value: Json, title: str) -> Span:
        """The bounds of a value, by interval arithmetic. Raises ValueError unless it is of numbers."""
        try:
            low, high = self._bounds(value)
        except (LookupError, TypeError) as error:
            raise ValueError(f"{title}: {error.args[0]}") from None
        if not math.isfinite(high - low):
            raise ValueError(f"{title}: a prediction has no declared bounds; give it some by clip(low, high)")
        name = value.get("col")
        return Span(low=low, high=high, is_whole=name is not None and self._column(name)["type"] == "integer")

    def is_boolean(self, value: Json) -> bool:
        """Tell whether a value is a column of booleans."""
        return "col" in value and self._column(value["col"])["type"] == "boolean"

    def edges(self, span: Span) -> tuple[Number, ...]:
        """At most BINS_MAX bins of one width. Of whole numbers each has its own, or bins end between two of them."""
        low, high = _whole(span.low), _whole(span.high)
        if span.is_whole:
            values = int(high) - int(low) + 1
            width = -(-values // BINS_MAX)
            ends = range(int(low), int(high) + width + 1, width)
            return tuple(ends) if width == 1 else tuple(end - 0.5 for end in ends)
        return tuple(low + (high - low) * place / BINS_MAX for place in range(BINS_MAX + 1))

    def _bounds(self, value: object) -> tuple[float, float]:
        if not isinstance(value, Mapping):
            number = float(value)  # type: ignore[arg-type]  # a TypeError is reported
            return number, number
        ((word, inner),) = value.items()
        if word == "col":
            column = self._column(inner)
            if column["type"] not in {"integer", "real", "boolean"}:
                raise TypeError(f"{inner} must be a number; it is of type {column['type']}")
            return (0.0, 1.0) if column["type"] == "boolean" else (float(column["lower"]), float(column["upper"]))
        if word == "own":
            low, high = map(float, inner["clip"])
            return low, high
        if word == "predict":
            return (0.0, 1.0) if inner["link"] == "logistic" else (-math.inf, math.inf)
        if word == "abs":
            low, high = self._bounds(inner)
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        ends = [self._bounds(each) for each in inner]
        if word == "clip":
            (low, high), (lowest, _), (highest, _) = ends
            return min(max(low, lowest), highest), min(max(high, lowest), highest)
        (a, b), (c, d) = ends
        corners = {"add": (a + c, b + d), "sub": (a - d, b - c)}.get(word) or (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)

    def _column(self, name: str) -> Mapping[str, Any]:
        people = next(each for each, table in self.tables.items() if table["kind"] == "individuals")
        table, _, own = name.rpartition(".")
        columns = self.tables.get(table or self.table or people, {}).get("columns", {})
        if (own or name) not in columns:
            raise LookupError(f"there is no column {name}")
        found: Mapping[str, Any] = columns[own or name]
        return found


def _value(value: str | Value) -> Json:
    return col(value).json if isinstance(value, str) else value.json


def _whole(number: float) -> Number:
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _integers(weights: Sequence[Fraction]) -> list[float]:
    """Weights in the same proportions: whole numbers, where they are of moderate size."""
    scale = math.lcm(*(each.denominator for each in weights))
    numbers = [int(each * scale) for each in weights]
    shared = math.gcd(*numbers)
    return [each // shared for each in numbers] if max(numbers) <= _WEIGHTS_MAX else [float(each) for each in weights]


def _text(value: object) -> str:
    """A value as the service words it in labels."""
    if not isinstance(value, Mapping):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    ((word, inner),) = value.items()
    if word == "col":
        return str(inner)
    if word == "abs":
        return f"abs({_text(inner)})"
    if word == "clip":
        return f"clip({', '.join(map(_text, inner))})"
    if word in {"own", "predict"}:
        return f"own events of {inner['from']}" if word == "own" else "prediction"
    return f"({_text(inner[0])} {_SIGNS[word]} {_text(inner[1])})"
