"""The keys of `group_by`: whole columns, bins, and buckets of the calendar; each with its labels and its axis."""

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

from sparing._testing_problems import invalid, quoted
from sparing._testing_schema import Declared
from sparing._testing_shapes import entries_of, literal_of, members_of, number_of, one_of, text_of
from sparing._testing_values import Columns, Number, Row, Value, position_of

__all__ = ["GROUP_KINDS", "Group", "countable", "group_of", "of_column"]

PARTS_MAX = 2**16
EDGES_MAX = 10_001
CATEGORIES_SHOWN_MAX = 1000
DAY_S, HOUR_S = 86_400, 3600
GROUP_KINDS = ("bin", "bucket")
UNITS = ("day", "week", "month", "quarter", "year", "hour", "weekday")
_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The values of one key in order: `place` gives that of a row, None where it has none."""

    name: str
    size: int
    place: Callable[[Row], int | None]
    label: Callable[[int], str | int | bool]
    said: Mapping[str, object] = field(default_factory=dict)  # the rest of its axis

    @property
    def axis(self) -> dict[str, object]:
        """As answers describe it."""
        return {"column": self.name, "size": self.size, **self.said}


def group_of(key: object, columns: Columns, place: int) -> Group:
    """The group of a key. Raises Refused naming the field."""
    where = f"group_by[{place}]"
    if isinstance(key, str):
        return of_column(key, countable(columns.named(key, where), where))
    said = "must be the name of a column, or an object with exactly one of the keys bin, bucket"
    kind, body = one_of(key, GROUP_KINDS, where, said=said)
    return _binned(body, columns, f"{where}.bin") if kind == "bin" else _bucketed(body, columns, f"{where}.bucket")


def countable(value: Value, where: str) -> Declared:
    """The declaration of a column whose values can be counted. Raises Refused."""
    if value.column is None or value.column.kind == "real":
        raise invalid(
            where, f"{quoted(value.text)} is a real column; count a category, boolean or integer column, or a bin of it"
        )
    return value.column


def of_column(name: str, column: Declared) -> Group:
    """All values of a column; `name` may be that of an individual's column."""

    def place(row: Row) -> int | None:
        found = row[name]
        return None if found is None else found - column.low

    said: dict[str, object] = {}
    if column.bounds is not None:
        said = dict(zip(("lower", "upper"), column.bounds, strict=True))
    elif column.kind == "boolean" or (column.is_listed and column.size <= CATEGORIES_SHOWN_MAX):
        said = {"categories": [column.label(code) for code in range(column.size)]}
    return Group(name=name, size=column.size, place=place, label=column.label, said=said)


def _binned(body: object, columns: Columns, where: str) -> Group:
    asked = members_of(body, where, required=["column"], optional=["edges", "width"])
    if (asked.get("edges") is None) == (asked.get("width") is None):
        raise invalid(where, "must have either edges or width")
    value = columns.named(asked["column"], f"{where}.column")
    if not value.is_ordered:
        raise invalid(f"{where}.column", "has no order; a bin takes a number, a date or a time")
    edges = _edges(asked, value, where)
    positions = [position_of(edge, value, f"{where}.edges[{place}]") for place, edge in enumerate(edges)]
    for place in range(1, len(positions)):
        if positions[place] <= positions[place - 1]:
            raise invalid(f"{where}.edges[{place}]", "must be above the edge before")
    said = {"edges": edges} if asked.get("width") is None else {"width": float(asked["width"])}
    texts = [edge if isinstance(edge, str) else f"{edge:.12g}" for edge in edges]
    return Group(
        name=asked["column"],
        size=len(edges) - 1,
        place=_interval_of(value, positions),
        label=lambda place: f"[{texts[place]}, {texts[place + 1]}{']' if place + 2 == len(texts) else ')'}",
        said=said,
    )


def _interval_of(value: Value, positions: Sequence[Number]) -> Callable[[Row], int | None]:
    def place(row: Row) -> int | None:
        found = value.read(row)
        if found is None or not positions[0] <= found <= positions[-1]:
            return None
        return min(bisect_right(positions, found), len(positions) - 1) - 1

    return place


def _edges(asked: Mapping[str, Any], value: Value, where: str) -> Sequence[Any]:
    """The edges asked for, or the multiples of the width around the bounds."""
    if asked.get("edges") is not None:
        edges = entries_of(asked["edges"], f"{where}.edges", most=EDGES_MAX)
        if len(edges) == 1:
            raise invalid(f"{where}.edges", "must have at least 2 entries")
        return [literal_of(edge, f"{where}.edges[{place}]") for place, edge in enumerate(edges)]
    width = Fraction(number_of(asked["width"], f"{where}.width", above=0, most=1e30))
    if not value.is_number:
        raise invalid(f"{where}.width", "must not be given for dates and times; give edges, or ask for a bucket")
    first, last = floor(value.low / width), ceil(value.high / width)
    if last - first > PARTS_MAX:
        raise invalid(f"{where}.width", f"makes more than {PARTS_MAX} groups")
    edges = [number * width for number in range(first, last + 1 + (last == first))]
    return [int(edge) if edge.denominator == 1 else float(edge) for edge in edges]


def _bucketed(body: object, columns: Columns, where: str) -> Group:
    asked = members_of(body, where, required=["column", "by"])
    unit = text_of(asked["by"], f"{where}.by")
    if unit not in UNITS:
        raise invalid(f"{where}.by", f"must be one of {', '.join(UNITS)}")
    value = columns.named(asked["column"], f"{where}.column")
    if value.kind not in {"date", "datetime"} or value.column is None:
        raise invalid(f"{where}.column", "must be a date or a time; bin takes numbers")
    day_length = DAY_S if value.kind == "datetime" else 1
    name, said = asked["column"], {"by": unit}
    if unit == "hour":
        if value.kind == "date":
            raise invalid(f"{where}.by", "must be day, week, month, quarter, year or weekday, as a date has no hours")
        hours = _read_as(name, lambda second: second // HOUR_S % 24)
        return Group(name=name, size=24, place=hours, label=lambda place: place, said=said)
    if unit == "weekday":
        weekdays = _read_as(name, lambda step: _day(step // day_length).weekday())
        return Group(name=name, size=7, place=weekdays, label=lambda place: place + 1, said=said)
    starts = _starts(value.column.low // day_length, value.column.high // day_length, unit, where)
    label = _LABELS[unit]
    return Group(
        name=name,
        size=len(starts),
        place=_read_as(name, lambda step: bisect_right(starts, step // day_length) - 1),
        label=lambda place: label(_day(starts[place])),
        said=said,
    )


def _read_as(name: str, place: Callable[[int], int]) -> Callable[[Row], int | None]:
    def read(row: Row) -> int | None:
        found = row[name]
        return None if found is None else place(found)

    return read


def _starts(first: int, last: int, unit: str, where: str) -> Sequence[int]:
    """The first days of the parts that the days first..last lie in."""
    starts = range(first, last + 1) if unit == "day" else list(_parts(first, last, unit))
    if len(starts) > PARTS_MAX:
        raise invalid(where, f"makes more than {PARTS_MAX} groups")
    return starts


def _parts(first: int, last: int, unit: str) -> Iterator[int]:
    day = _day(first)
    monday = _day(first - min(day.weekday(), (day - dt.date.min).days)) if unit == "week" else day
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit, 0)
    start: dt.date | None = monday if months == 0 else day.replace(month=(day.month - 1) // months * months + 1, day=1)
    while start is not None and (days := (start - _EPOCH).days) <= last:
        yield days
        start = _month_after(start, months) if months else _week_after(start)


def _month_after(day: dt.date, months: int) -> dt.date | None:
    years, month = divmod(day.month - 1 + months, 12)
    return None if day.year + years > dt.date.max.year else dt.date(day.year + years, month + 1, 1)


def _week_after(day: dt.date) -> dt.date | None:
    return None if dt.date.max - day < dt.timedelta(days=7) else day + dt.timedelta(days=7)


def _day(days: int) -> dt.date:
    return _EPOCH + dt.timedelta(days=days)


_LABELS: Mapping[str, Callable[[dt.date], str]] = {
    "day": lambda day: day.isoformat(),
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}
