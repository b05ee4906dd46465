"""The rows of a fake dataset, and the counted sum of a query over them: every individual's vector, clipped and added.

No individual is left out: the fake has no accounts.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isqrt
from typing import Any

from sparing._expressions import plain
from sparing._testing_plan import Plan
from sparing._testing_scale import steps_of
from sparing._testing_schema import Declared, Schema, Table, days_of, seconds_of
from sparing._testing_values import Row

__all__ = ["DatasetRows", "counted_steps"]

_TYPES: Mapping[str, str] = {
    "boolean": "true or false",
    "integer": "an integer",
    "real": "a number",
    "date": "a date",
    "datetime": "a date or a time",
    "category": "a category",
}


class DatasetRows:
    """The rows of one dataset by table and individual, as an upload would store them."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rows: dict[str, dict[str, list[dict[str, int | None]]]] = {name: {} for name in schema.tables}

    def add(self, table: str, rows: object) -> None:
        """Add rows: mappings from column to value, or a data frame; a column that is left out is NULL.

        A number outside its bounds is clipped, and a category that is not declared is NULL. Raises ValueError naming
        the table, the row and the column.
        """
        if table not in self._schema.tables:
            raise ValueError(f"there is no table {table!r}; the dataset has {', '.join(self._schema.tables)}")
        declared = self._schema.tables[table]
        for number, row in enumerate(_records(rows), start=1):
            place = f"{table}, row {number}"
            key = row.get(declared.key)
            if plain(key) is None:
                raise ValueError(f"{place}: the key {declared.key} is missing")
            self._add(declared, str(plain(key)), _stored(declared, row, place), place)

    def __bool__(self) -> bool:
        """Whether any table has a row."""
        return any(self._rows.values())

    def of_individuals(self, table: Table) -> Iterator[Sequence[Row]]:
        """The rows of each individual; those of events with the individual's own columns."""
        if not table.is_events:
            yield from self._rows[table.name].values()
            return
        people = self._schema.tables[self._schema.individuals]
        unknown: dict[str, int | None] = dict.fromkeys(people.columns)
        for key, events in self._rows[table.name].items():
            [record] = self._rows[people.name].get(key, [unknown])
            own = {f"{people.name}.{name}": value for name, value in record.items()}
            yield [event | own for event in events]

    def _add(self, table: Table, key: str, row: dict[str, int | None], place: str) -> None:
        mine = self._rows[table.name].setdefault(key, [])
        if not table.is_events and mine:
            raise ValueError(f"{place}: {key!r} has a row already")
        if table.is_events:
            people = self._rows[self._schema.individuals]
            if key not in people and not table.creates_individuals:
                raise ValueError(f"{place}: there is no individual {key!r}; add the table of individuals first")
            if len(mine) == table.rows_per_individual:
                raise ValueError(f"{place}: {key!r} has more than {table.rows_per_individual} rows")
        mine.append(row)


def counted_steps(plan: Plan, rows: DatasetRows) -> list[int]:
    """The sum over all individuals, (dimension,), in grid steps: the numbers that the service adds noise to."""
    total = [0] * plan.dimension
    for mine in rows.of_individuals(plan.table):
        for place, steps in _clipped(_vector(plan, mine), plan.scale.clip_squared_steps).items():
            total[place] += steps
    return total


def _vector(plan: Plan, rows: Sequence[Row]) -> dict[int, int]:
    chosen = [row for row in rows if plan.test is None or plan.test(row) is True]
    if plan.rows_kept is not None:
        names = sorted(plan.table.columns)
        chosen = sorted(chosen, key=lambda row: [_in_order(row[name]) for name in names])[: plan.rows_kept]
    vector: dict[int, int] = {}
    for row in chosen:
        group = _group(plan, row)
        if group is None:
            continue
        offset = group * plan.block
        for item in plan.items:
            for place, number in item.entries(row):
                steps = steps_of(number, plan.scale.grid_log2)
                vector[offset + place] = steps if item.extent.is_once else vector.get(offset + place, 0) + steps
            offset += item.size
    return vector


def _in_order(value: int | None) -> tuple[bool, int]:
    """NULL is last."""
    return value is None, value or 0


def _group(plan: Plan, row: Row) -> int | None:
    """Row-major in the order of the keys; None if one of the values is not there."""
    found = 0
    for group in plan.groups:
        place = group.place(row)
        if place is None or place < 0:
            return None
        found = found * group.size + place
    return found


def _clipped(vector: dict[int, int], norm_squared_max: int) -> dict[int, int]:
    """A vector beyond the clip, times clip / norm, truncated toward zero."""
    norm_squared = sum(steps**2 for steps in vector.values())
    if norm_squared <= norm_squared_max:
        return vector
    return {
        place: isqrt(steps**2 * norm_squared_max // norm_squared) * (1 if steps > 0 else -1)
        for place, steps in vector.items()
    }


def _records(rows: object) -> Iterable[Mapping[str, Any]]:
    """Rows as mappings: of a frame of pandas, polars or pyarrow, or as they are."""
    for method, arguments in (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",))):
        convert = getattr(rows, method, None)
        if convert is not None:
            return _mappings(convert(*arguments))
    return _mappings(rows)


def _mappings(rows: object) -> Iterable[Mapping[str, Any]]:
    found = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, Mapping | str | bytes) else None
    if found is None or not all(isinstance(row, Mapping) for row in found):
        raise TypeError("rows are a list of mappings from column to value, or a data frame")
    return found


def _stored(table: Table, row: Mapping[str, Any], place: str) -> dict[str, int | None]:
    for name in row:
        if name not in table.columns and name not in {table.key, table.budget}:
            raise ValueError(f"{place}: the column {name} is not declared")
    stored = {}
    for name, column in table.columns.items():
        try:
            stored[name] = _steps(column, plain(row.get(name)))
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"{place}: {name} must be {_TYPES[column.kind]}, not {row[name]!r}") from None
    return stored


def _steps(column: Declared, value: Any) -> int | None:  # noqa: ANN401 - any value of a row
    """The step of a value, clipped; None for NULL. Raises ValueError, TypeError for a value of another type."""
    if value is None or value != value:  # noqa: PLR0124 - NaN and NaT
        return None
    match column.kind:
        case "category":
            return _category(column, value)
        case "boolean":
            if value not in (0, 1):
                raise ValueError
            return int(value)
        case "date" | "datetime":
            steps = (days_of if column.kind == "date" else seconds_of)(_iso(value))
            if steps is None:
                raise ValueError
        case _:
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise TypeError
            if column.kind == "integer" and value != int(value):
                raise ValueError
            steps = column.step_of(float(value)) if column.kind == "real" else int(value)
    return min(max(steps, column.low), column.high)


def _category(column: Declared, value: object) -> int | None:
    """Its place among those declared, by its text; None where it is none of them."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not column.is_listed:
        number = int(str(value)) if isinstance(value, int | str) else None
        if number is None or isinstance(value, bool):
            raise TypeError
        return number if 0 <= number < column.size else None
    found = (code for code, category in enumerate(column.categories) if str(category) == str(value))
    return next(found, None)


def _iso(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if not isinstance(value, str):
        raise TypeError
    return value
