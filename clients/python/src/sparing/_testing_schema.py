"""The public schema as the fake service reads it: columns whose values are whole steps between two bounds."""

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["Declared", "Schema", "Table", "date_text", "days_of", "schema_of", "seconds_of", "time_text"]

REAL_BITS = 52  # the larger bound of a real column has more than 2^51 and at most 2^52 steps
ROWS_PER_INDIVIDUAL = 4096
RESERVED_NAME = "select"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared column: its values are the integers `low` to `high`, each a step of `2**step_log2`."""

    name: str
    kind: str  # category, integer, real, date, datetime or boolean
    low: int
    high: int
    step_log2: int = 0
    categories: Sequence[str | int] = ()  # of a category: its value n is the n-th of these
    bounds: tuple[object, object] | None = None  # of a number, date or time: as declared
    is_listed: bool = False  # categories by name, and not by their number alone

    @property
    def size(self) -> int:
        """The number of values."""
        return self.high - self.low + 1

    def label(self, place: int) -> str | int | bool:
        """The value at a place, as labels write it."""
        match self.kind:
            case "category":
                return self.categories[place]
            case "boolean":
                return bool(place)
            case "date":
                return date_text(self.low + place)
            case "datetime":
                return time_text(self.low + place)
            case _:
                return self.low + place

    def step_of(self, number: float) -> int:
        """The step nearest to a number, ties to even."""
        return round(Fraction(number) / Fraction(2) ** self.step_log2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A declared table; `budget` names the column of limits, which no query can mention."""

    name: str
    key: str
    is_events: bool
    columns: Mapping[str, Declared]
    budget: str | None
    rows_per_individual: int
    creates_individuals: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables by name, and `stated`, the tables as the service shows them, with its defaults."""

    tables: Mapping[str, Table]
    individuals: str
    stated: Mapping[str, Any]

    @property
    def has_limits(self) -> bool:
        """Whether individuals may bring limits of their own."""
        return self.tables[self.individuals].budget is not None


def schema_of(tables: Mapping[str, Any]) -> Schema:
    """The schema of a registration's `tables`. Raises ValueError naming the table and column."""
    stated = {name: _stated(name, table) for name, table in tables.items()}
    individuals = [name for name, table in stated.items() if table["kind"] == "individuals"]
    if len(individuals) != 1:
        raise ValueError("exactly one table must be of kind individuals")
    read = {name: _table(name, table) for name, table in stated.items()}
    return Schema(tables=read, individuals=individuals[0], stated=stated)


def _stated(name: str, table: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    if not isinstance(table, Mapping) or table.get("kind") not in {"individuals", "events"}:
        raise ValueError(f"tables.{name}: kind must be individuals or events")
    if not isinstance(table.get("columns"), Mapping) or not isinstance(table.get("key"), str):
        raise ValueError(f"tables.{name}: key and columns are required")  # noqa: TRY004 - as for any other fault
    columns = {each: _stated_column(column) for each, column in table["columns"].items()}
    if {table["key"], RESERVED_NAME} & columns.keys():
        raise ValueError(f"tables.{name}: neither the key nor {RESERVED_NAME!r} can be a column")
    if table["kind"] == "individuals":
        return {"kind": "individuals", "key": table["key"], "columns": columns}
    stated = {"unknown_individuals": "reject", "rows_per_individual": ROWS_PER_INDIVIDUAL, **table, "columns": columns}
    return {each: value for each, value in stated.items() if value is not None}


def _stated_column(column: Mapping[str, Any]) -> dict[str, Any]:
    if column.get("type") == "category":
        return {"type": "category", "categories": None, "size": None, **column}
    if column.get("type") == "real":
        return {**column, **{name: float(column[name]) for name in ("lower", "upper") if name in column}}
    return dict(column)


def _table(name: str, stated: Mapping[str, Any]) -> Table:
    budgets = [each for each, column in stated["columns"].items() if column.get("type") == "budget"]
    columns = {
        each: _declared(each, column, f"tables.{name}.columns.{each}")
        for each, column in stated["columns"].items()
        if each not in budgets
    }
    return Table(
        name=name,
        key=stated["key"],
        is_events=stated["kind"] == "events",
        columns=columns,
        budget=budgets[0] if budgets else None,
        rows_per_individual=stated.get("rows_per_individual", 1),
        creates_individuals=stated.get("unknown_individuals") == "create",
    )


def _declared(name: str, column: Mapping[str, Any], field: str) -> Declared:
    kind = column.get("type")
    if kind == "boolean":
        return Declared(name=name, kind=kind, low=0, high=1)
    if kind == "category":
        listed = column["categories"]
        if (listed is None) == (column["size"] is None):
            raise ValueError(f"{field}: declare either categories or size")
        categories = range(column["size"]) if listed is None else tuple(listed)
        return Declared(
            name=name, kind=kind, low=0, high=len(categories) - 1, categories=categories, is_listed=listed is not None
        )
    if kind not in {"integer", "real", "date", "datetime"} or not {"lower", "upper"} <= column.keys():
        raise ValueError(f"{field}: the type must be known, and have its lower and upper bound")
    return _bounded(name, kind, column["lower"], column["upper"], field)


def _bounded(name: str, kind: str, lower: Any, upper: Any, field: str) -> Declared:  # noqa: ANN401 - a bound's JSON
    step_log2 = 0
    low: int | None
    high: int | None
    if kind == "real":
        mantissa, exponent = math.frexp(max(abs(lower), abs(upper)))
        step_log2 = exponent - REAL_BITS - (mantissa == 0.5)
        low, high = (round(Fraction(bound) / Fraction(2) ** step_log2) for bound in (lower, upper))
    elif kind == "integer":
        low, high = lower, upper
    else:
        read = days_of if kind == "date" else seconds_of
        low, high = read(lower), read(upper)
    if low is None or high is None or low > high:
        raise ValueError(f"{field}: lower and upper must be bounds of a {kind}, in order")
    return Declared(name=name, kind=kind, low=low, high=high, step_log2=step_log2, bounds=(lower, upper))


def days_of(text: str) -> int | None:
    """The days since 1970-01-01 of an ISO date, or None for other text."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return (dt.date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:
        return None


def seconds_of(text: str) -> int | None:
    """The seconds since 1970-01-01T00:00:00Z of an ISO date or time, rounded down, or None for other text."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        at = dt.datetime.fromisoformat(text.replace(found.group(3) or "", "", 1) if found.group(3) else text)
        return ((at if at.tzinfo else at.replace(tzinfo=dt.UTC)) - _EPOCH) // dt.timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


def date_text(days: int) -> str:
    """The ISO date of days."""
    return (_EPOCH.date() + dt.timedelta(days=days)).isoformat()


def time_text(seconds: int) -> str:
    """The ISO time of seconds, in UTC."""
    return f"{(_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"
