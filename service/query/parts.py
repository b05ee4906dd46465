"""Bins of a number and buckets of the calendar: the intervals of a column's codes, and their labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Final

from service.query.calendar import DAY_S, Labels, date_text
from service.query.columns import Coding, Cyclic, Formula, Intervals, QueryColumn
from service.query.expressions_ast import Unit
from service.query.problems import QueryProblem

PARTS_MAX: Final = 2**16
LABEL_BYTES: Final = 64
_EPOCH: Final = date(1970, 1, 1)
_THURSDAY: Final = 3  # the weekday of 1970-01-01, from Monday as 0
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts by which a column's rows are grouped: their labels, in order, and how they were asked for."""

    labels: Sequence[str | int]
    said: tuple[tuple[str, object], ...]  # a member of the axis: ("by", "month")


def in_intervals(column: QueryColumn, name: str, positions: Sequence[int | Fraction]) -> QueryColumn:
    """The column of the intervals between increasing positions on the scale of codes. The last one includes its end.

    A code within the column's slack of a position counts as equal to that position.
    """
    last, slack = column.coding.null_code, column.slack
    thresholds = [ceil(position - slack) for position in positions[:-1]] + [floor(positions[-1] + slack) + 1]
    return in_parts(column, name, [min(max(threshold, 0), last) for threshold in thresholds])


def in_parts(column: QueryColumn, name: str, thresholds: Sequence[int]) -> QueryColumn:
    """The column of the intervals between codes that do not decrease."""
    formula = Intervals(column=column.name, thresholds=tuple(thresholds))
    return _part(name, formula, len(thresholds) - 1)


def edge_text(edge: float) -> str:
    """The shortest decimal that reads as an edge: different edges have different texts."""
    return repr(edge).removesuffix(".0")


def interval_labels(texts: Sequence[str]) -> Labels:
    """The labels of intervals, such as `[0, 10)`, and `[110, 120]` for the last."""
    return Labels(partial(_interval, tuple(texts)), 0, len(texts) - 1)


def _interval(texts: Sequence[str], place: int) -> str:
    return f"[{texts[place]}, {texts[place + 1]}{']' if place + 2 == len(texts) else ')'}"


def bucketed(column: QueryColumn, name: str, unit: Unit, field: str) -> tuple[QueryColumn, Parts]:
    """The column of a date's or time's parts of the calendar, and these parts. Raises QueryProblem naming `field`."""
    if column.kind not in {"date", "datetime"}:
        raise QueryProblem.of(f"{field}.column", "must be a date or a time; bin takes numbers")
    unit_steps = DAY_S if column.kind == "datetime" else 1
    low, high = column.coding.offset, column.coding.offset + column.coding.span
    first, last = low // unit_steps, high // unit_steps
    formula: Formula
    labels: Sequence[str | int]
    match unit:
        case "hour":
            if column.kind == "date":
                raise QueryProblem.of(
                    f"{field}.by", "must be day, week, month, quarter, year or weekday, as a date has no hours"
                )
            formula, labels = Cyclic(column=column.name, offset=low, divisor=_HOUR_S, added=0, modulus=24), range(24)
        case "weekday":
            formula = Cyclic(column=column.name, offset=low, divisor=unit_steps, added=_THURSDAY, modulus=7)
            labels = range(1, 8)
        case "day":
            _check_count(last - first + 1, field)
            formula = Cyclic(column=column.name, offset=low, divisor=unit_steps, added=-first, modulus=None)
            labels = Labels(date_text, first, last - first + 1)
        case _:
            starts = tuple(_starts(first, last, unit))
            _check_count(len(starts), field)
            thresholds = (*(max(start * unit_steps - low, 0) for start in starts), high - low + 1)
            formula = Intervals(column=column.name, thresholds=thresholds)
            labels = Labels(partial(_label, starts, unit), 0, len(starts))
    return _part(name, formula, len(labels)), Parts(labels=labels, said=(("by", unit),))


def _part(name: str, formula: Formula, count: int) -> QueryColumn:
    return QueryColumn(name=name, kind="integer", coding=Coding(offset=0, span=count - 1, step_log2=0), formula=formula)


def _check_count(count: int, field: str) -> None:
    if count > PARTS_MAX:
        raise QueryProblem.of(field, f"makes more than {PARTS_MAX} groups")


def _day(days: int) -> date:
    return _EPOCH + timedelta(days=days)


def _starts(first: int, last: int, unit: Unit) -> Iterator[int]:
    """The first days of the parts in which the days first..last lie."""
    start: date | None = _BEGINNINGS[unit](_day(first))
    while start is not None and (days := (start - _EPOCH).days) <= last:
        yield days
        start = _NEXT[unit](start)


def _month_after(day: date, months: int) -> date | None:
    years, month = divmod(day.month - 1 + months, 12)
    return None if day.year + years > date.max.year else date(day.year + years, month + 1, 1)


def _week_after(day: date) -> date | None:
    return None if day > date.max - timedelta(days=7) else day + timedelta(days=7)


def _monday(day: date) -> date:
    return day - timedelta(days=min(day.weekday(), (day - date.min).days))


_BEGINNINGS: Final[dict[str, Callable[[date], date]]] = {
    "week": _monday,
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
}
_NEXT: Final[dict[str, Callable[[date], date | None]]] = {
    "week": _week_after,
    "month": lambda day: _month_after(day, 1),
    "quarter": lambda day: _month_after(day, 3),
    "year": lambda day: _month_after(day, 12),
}
_LABELS: Final[dict[str, Callable[[date], str]]] = {
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}


def _label(starts: Sequence[int], unit: Unit, place: int) -> str:
    return _LABELS[unit](_day(starts[place]))
