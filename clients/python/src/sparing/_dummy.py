"""Made-up data for a public schema: uniform over the declared domains, and about no real individual."""

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from sparing._models import Dataset

EVENTS_PER_INDIVIDUAL: Final = 10
ROWS_PER_INDIVIDUAL: Final = 4096  # of a table that declares no bound
ROWS_FOR_EACH: Final = 32  # the same of its rows, for each individual
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Row = dict[str, Any]
Draw = Callable[[], float]
"""A source of uniform numbers on [0, 1): `random.Random.random`, whose numbers are equal in all versions of Python."""


def dummy_data(
    dataset: Dataset | Mapping[str, object],
    *,
    individuals: int = 1000,
    seed: int = 0,
    events_per_individual: int = EVENTS_PER_INDIVIDUAL,
) -> dict[str, list[Row]]:
    """Rows for every table, from the public schema alone; the individuals' table comes first.

    Each value is uniform over its declared domain, independent of all others, and not NULL. In each event table, the
    number of an individual's rows is uniform from 0 to `events_per_individual`, or to the schema's bound if this is
    smaller; a full table gets no more rows. Keys are `dummy-000001` and so on, dates and times are ISO 8601 text, and a
    column of limits is None, which means the dataset's budget. The same arguments give the same rows in every version
    of Python.

    Args:
        dataset: a dataset as `client.datasets.get` describes it, or its `tables`.
        individuals: the number of individuals.
        seed: the seed of the random values.
        events_per_individual: the most rows of one individual in an event table.

    Raises:
        ValueError: a number is negative or above the dataset's capacity, or a table or column cannot be read.
    """
    tables = dataset.tables if isinstance(dataset, Dataset) else dataset
    for name, number in (("individuals", individuals), ("events_per_individual", events_per_individual)):
        if number < 0:
            raise ValueError(f"{name} must not be negative, got {number}")
    if isinstance(dataset, Dataset) and individuals > dataset.capacity:
        raise ValueError(f"individuals must be at most the dataset's capacity of {dataset.capacity}, got {individuals}")
    draw = random.Random(seed).random  # noqa: S311 - repeatable, not secret
    keys = [f"dummy-{number:06}" for number in range(1, individuals + 1)]
    ordered = sorted(tables.items(), key=lambda item: _kind(item[0], item[1]) != "individuals")
    return {name: _rows(name, table, keys, draw, events_per_individual) for name, table in ordered}


def _kind(name: str, table: Any) -> str:  # noqa: ANN401 - JSON
    if not isinstance(table, Mapping) or not {"kind", "key", "columns"} <= table.keys():
        raise ValueError(f"tables.{name}: kind, key and columns are required")
    return str(table["kind"])


def _rows(name: str, table: Any, keys: list[str], draw: Draw, events_per_individual: int) -> list[Row]:  # noqa: ANN401 - JSON
    makers = {each: _maker(column, draw, f"tables.{name}.columns.{each}") for each, column in table["columns"].items()}
    if table["kind"] == "individuals":
        counted = [(key, 1) for key in keys]
    else:
        counted = _counted(table, keys, draw, events_per_individual)
    return [
        {table["key"]: key} | {each: make() for each, make in makers.items()}
        for key, count in counted
        for _ in range(count)
    ]


def _counted(table: Mapping[str, Any], keys: list[str], draw: Draw, most: int) -> list[tuple[str, int]]:
    """Each individual's key and number of rows, within the table's bounds per individual and in all."""
    most = min(most, table.get("rows_per_individual") or ROWS_PER_INDIVIDUAL)
    left = table.get("rows_capacity") or ROWS_FOR_EACH * len(keys)
    counted = []
    for key in keys:
        count = min(_integer(draw, 0, most), left)
        left -= count
        counted.append((key, count))
    return counted


def _maker(column: Any, draw: Draw, place: str) -> Callable[[], object]:  # noqa: ANN401 - JSON
    """A function that makes up a value of the column."""
    kind = column.get("type") if isinstance(column, Mapping) else None
    try:
        match kind:
            case "boolean":
                return lambda: draw() < 0.5
            case "budget":
                return lambda: None
            case "category":
                listed = column.get("categories") or range(column["size"])
                return lambda: listed[_integer(draw, 0, len(listed) - 1)]
            case "real":
                lower, upper = float(column["lower"]), float(column["upper"])
                return lambda: _real(draw, lower, upper)
            case "vector":
                length, least, most = column["length"], column["lower"], column["upper"]
                return lambda: [_integer(draw, least, most) for _ in range(length)]
            case "integer":
                low, high = column["lower"], column["upper"]
                return lambda: _integer(draw, low, high)
            case "date" | "datetime":
                first, last = (_seconds(column[bound]) for bound in ("lower", "upper"))
                return _times(draw, first, last, is_date=kind == "date")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: its domain cannot be read") from error
    raise ValueError(f"{place}: the type {kind!r} is not known")


def _integer(draw: Draw, low: int, high: int) -> int:
    """An integer from low to high, both included, uniform to within 2^-53."""
    return min(low + int(draw() * (high - low + 1)), high)


def _real(draw: Draw, lower: float, upper: float) -> float:
    """A uniform number between two bounds; rounding may make it equal to a bound, but not exceed one."""
    share = draw()
    return min(max(math.fsum((lower * (1 - share), upper * share)), lower), upper)


def _times(draw: Draw, first: int, last: int, *, is_date: bool) -> Callable[[], str]:
    step = 86_400 if is_date else 1

    def make() -> str:
        at = _EPOCH + dt.timedelta(seconds=_integer(draw, first // step, last // step) * step)
        return at.date().isoformat() if is_date else f"{at.replace(tzinfo=None).isoformat()}Z"

    return make


def _seconds(text: str) -> int:
    """The seconds since 1970 of a date or time, rounded down; a time without a zone is in UTC."""
    at = dt.datetime.fromisoformat(text)
    return ((at if at.tzinfo else at.replace(tzinfo=dt.UTC)) - _EPOCH) // dt.timedelta(seconds=1)
