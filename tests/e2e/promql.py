"""The little of PromQL that our alert rules use, evaluated on real scrapes; the parser is Prometheus' grammar.

An instant vector is a list of label sets with values. Rates are of the first and the last scrape of the window: the
same condition as Prometheus', which extrapolates both sides alike.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import promql_parser as promql

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {">": operator.gt, "==": operator.eq, "<": operator.lt}
_LINE: Final = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, kw_only=True)
class Scrapes:
    """The text of /metrics at instants in seconds, oldest first."""

    texts: list[tuple[float, str]]

    def names(self) -> set[str]:
        """Every name of a sample in the last scrape."""
        return {name for name, _, _ in _samples(self.texts[-1][1])}

    def vector(self, name: str, at: int) -> Vector:
        """The samples of a name in a scrape; each has the label that Prometheus adds."""
        found = _samples(self.texts[at][1])
        return {labels | {("instance", "one")}: value for each, labels, value in found if each == name}


def evaluated(expression: Any, scrapes: Scrapes) -> Vector | float:
    """The value of an expression at the last scrape. Raises NotImplementedError for what no rule of ours has."""
    match expression:
        case promql.NumberLiteral():
            return float(expression.val)
        case promql.ParenExpr():
            return evaluated(expression.expr, scrapes)
        case promql.VectorSelector():
            return scrapes.vector(_plain(expression), -1)
        case promql.Call():
            return _called(expression, scrapes)
        case promql.AggregateExpr() if str(expression.op) == "sum":
            by = set() if expression.modifier is None else set(expression.modifier.labels)
            return _summed(evaluated(expression.expr, scrapes), by)
        case promql.BinaryExpr():
            return _binary(expression, scrapes)
    raise NotImplementedError(type(expression).__name__)


def selectors(expression: Any) -> list[Any]:
    """Every selector of an expression."""
    match expression:
        case promql.VectorSelector():
            return [expression]
        case promql.MatrixSelector():
            return [expression.vector_selector]
        case promql.Call():
            return [each for argument in expression.args for each in selectors(argument)]
        case promql.AggregateExpr() | promql.ParenExpr():
            return selectors(expression.expr)
        case promql.BinaryExpr():
            return selectors(expression.lhs) + selectors(expression.rhs)
    return []


def _called(call: Any, scrapes: Scrapes) -> Vector:
    (matrix,) = call.args
    name, window_s = _plain(matrix.vector_selector), matrix.range.total_seconds()
    last_at = scrapes.texts[-1][0]
    places = [n for n, (at, _) in enumerate(scrapes.texts) if at > last_at - window_s]
    series = {labels: [scrapes.vector(name, n).get(labels) for n in places] for labels in scrapes.vector(name, -1)}
    known = {labels: [value for value in values if value is not None] for labels, values in series.items()}
    if call.func.name == "min_over_time":
        return {labels: min(values) for labels, values in known.items()}
    if call.func.name in {"rate", "increase"}:
        span_s = last_at - scrapes.texts[places[0]][0] if call.func.name == "rate" else 1.0
        return {labels: (values[-1] - values[0]) / span_s for labels, values in known.items() if len(values) > 1}
    raise NotImplementedError(call.func.name)


def _binary(expression: Any, scrapes: Scrapes) -> Vector:
    left, right = evaluated(expression.lhs, scrapes), evaluated(expression.rhs, scrapes)
    if not isinstance(left, dict):
        raise NotImplementedError("a number on the left")
    compared = COMPARED.get(str(expression.op))
    if compared is not None and isinstance(right, float):
        return {labels: value for labels, value in left.items() if compared(value, right)}
    if str(expression.op) == "/" and isinstance(right, dict):
        return {labels: value / right[labels] for labels, value in left.items() if right.get(labels)}
    raise NotImplementedError(str(expression.op))


def _summed(vector: Vector | float, by: set[str]) -> Vector:
    if isinstance(vector, float):
        raise NotImplementedError("the sum of a number")
    found: Vector = {}
    for labels, value in vector.items():
        kept = frozenset(each for each in labels if each[0] in by)
        found[kept] = found.get(kept, 0.0) + value
    return found


def _plain(selector: Any) -> str:
    if selector.matchers.matchers or selector.offset is not None:
        raise NotImplementedError("a matcher")
    return str(selector.name)


def _samples(text: str) -> list[tuple[str, Labels, float]]:
    found = [_LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return [(m["name"], frozenset(_LABEL.findall(m["labels"] or "")), float(m["value"])) for m in found if m]
