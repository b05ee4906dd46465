"""The vector of one individual, from a query's JSON and the uploaded values, in fractions and dictionaries.

Slow and obvious, and independent of the service's codes, predicates and plans: of a plan it takes nothing but the grid.
"""

from bisect import bisect
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from math import ceil, floor, trunc
from typing import Any

import numpy as np

Row = dict[str, Any]
Columns = dict[str, dict[str, Any]]


def stored(row: Row, columns: Columns) -> Row:
    """The row as the service stores it: numbers clipped, real ones to the column's step, unknown categories NULL."""
    return {name: _stored(row[name], column) for name, column in columns.items() if column["type"] != "budget"}


def vector(
    rows: list[Row],
    query: dict[str, Any],
    columns: Columns,
    grid_log2: int,
    own: tuple[Row, Columns] | None = None,
    sizes: Sequence[float] = (),
) -> dict[int, int]:
    """The sum over an individual's rows, unclipped, as {coordinate: steps}, without zeros.

    `own` is the individual's own record, which events see under `people.`; `sizes` are the steps of each select item,
    where it is counted in steps of its own and truncated toward zero.
    """
    total: dict[int, int] = {}
    if own is not None:
        columns = columns | {f"people.{name}": column for name, column in own[1].items()}
        known_own = {f"people.{name}": value for name, value in stored(*own).items()}
    chosen = []
    for row in rows:
        known = stored(row, {name: column for name, column in columns.items() if name in row})
        if own is not None:
            known |= known_own
        if "where" not in query or truth(query["where"], known) is True:
            chosen.append(known)
    most = query.get("per_individual", {}).get("rows", len(chosen))
    *starts, size = accumulate((_size(item, columns) for item in query["select"]), initial=0)
    once = {start for start, item in zip(starts, query["select"], strict=True) if "count_individuals" in item}
    for known in sorted(chosen, key=lambda row: _contents(row, columns))[:most]:
        group = _group(query.get("group_by", []), known, columns)
        if group is None:
            continue
        for coordinate, value in _items(query["select"], known, columns):
            place = group * size + coordinate
            if coordinate in once:
                total[place] = 0
            steps = floor(value / Fraction(2) ** grid_log2 + Fraction(1, 2))
            if sizes:
                steps = trunc(value / Fraction(sizes[bisect(starts, coordinate) - 1]))
            total[place] = total.get(place, 0) + steps
    return {place: value for place, value in total.items() if value != 0}


def has_enough_left(query: dict[str, Any], left: Fraction) -> bool:
    """Whether an individual with a part of the dataset's budget left is counted at all."""
    first = query["select"][0]
    return "active" not in first or left >= Fraction(first["active"]["share"])


def _contents(row: Row, columns: Columns) -> list[tuple[bool, Any]]:
    """A row's own contents in the order of its columns' names; the order of categories is that of the declaration."""
    return [
        (
            value is None,
            0 if value is None else domain(columns[name]).index(value) if is_listed(columns[name]) else value,
        )
        for name, value in sorted(row.items())
        if "." not in name
    ]


def is_listed(column: dict[str, Any]) -> bool:
    """Whether the values are in the order of a list."""
    return bool(column["type"] == "category")


def truth(condition: dict[str, Any], row: Row) -> bool | None:
    """Kleene's three values; None is unknown."""
    ((operator, operand),) = condition.items()
    if operator == "not":
        inner = truth(operand, row)
        return None if inner is None else not inner
    if operator in {"and", "or"}:
        parts = [truth(part, row) for part in operand]
        decisive = operator == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    if operator == "is_null":
        return value_of(operand, row) is None
    value = value_of(operand[0], row)
    literal = operand[1] if operator == "in" else value_of(operand[1], row)
    if value is None or literal is None:
        return None
    if operator == "between":
        return bool(literal <= value <= operand[2])
    if operator == "in":
        return value in literal
    outcome: bool = {
        "eq": value == literal,
        "ne": value != literal,
        "lt": value < literal,
        "le": value <= literal,
        "gt": value > literal,
        "ge": value >= literal,
    }[operator]
    return outcome


def value_of(node: Any, row: Row) -> Any:
    """A value of the language, in exact numbers; None for NULL."""
    if not isinstance(node, dict):
        return node
    ((kind, operand),) = node.items()
    if kind == "col":
        return row[operand]
    if kind == "abs":
        inner = value_of(operand, row)
        return None if inner is None else abs(inner)
    inner, second = value_of(operand[0], row), value_of(operand[1], row)
    if inner is None or second is None:
        return None
    if kind == "clip":
        return min(max(inner, second), Fraction(operand[2]))
    if isinstance(inner, str):
        earlier, later = (np.datetime64(text.removesuffix("Z")) for text in (second, inner))
        return int((later - earlier).astype(int))
    first, last = Fraction(inner), Fraction(second)
    return {"add": first + last, "sub": first - last, "mul": first * last}[kind]


def part_of(key: Any, value: Any, column: dict[str, Any]) -> tuple[int, int | None]:
    """How many groups a key makes, and the place of a value's group; None where it has none."""
    if isinstance(key, str):
        values = domain(column)
        return len(values), None if value is None else values.index(value)
    ((kind, body),) = key.items()
    if kind == "bin":
        edges = body["edges"] if "edges" in body else _multiples(Fraction(body["width"]), column)
        places = [place for place, (a, b) in enumerate(pairwise(edges)) if value is not None and a <= value < b]
        if value is not None and value == edges[-1]:
            places = [len(edges) - 2]
        return len(edges) - 1, places[0] if places else None
    names = [part_name(body["by"], each) for each in _hours_of(column)]
    parts = {"hour": list(range(24)), "weekday": list(range(1, 8))}.get(body["by"], list(dict.fromkeys(names)))
    return len(parts), None if value is None else parts.index(part_name(body["by"], value))


def part_name(by: str, text: str) -> Any:
    """The part of the calendar that a date or time is in."""
    at = datetime.fromisoformat(text)
    week = at.isocalendar()
    return {
        "day": text[:10],
        "week": (week.year, week.week),
        "month": text[:7],
        "quarter": (at.year, (at.month - 1) // 3),
        "year": at.year,
        "hour": at.hour,
        "weekday": at.isoweekday(),
    }[by]


def _hours_of(column: dict[str, Any]) -> list[str]:
    """Every value of a small domain."""
    return [str(value) for value in domain(column)]


def _multiples(width: Fraction, column: dict[str, Any]) -> list[Fraction]:
    first, last = floor(Fraction(column["lower"]) / width), ceil(Fraction(column["upper"]) / width)
    return [number * width for number in range(first, last + 1)]


def domain(column: dict[str, Any]) -> list[Any]:
    """The values of a column that can be counted, in order."""
    match column["type"]:
        case "boolean":
            return [False, True]
        case "integer":
            return list(range(column["lower"], column["upper"] + 1))
        case "date":
            days = np.arange(column["lower"], np.datetime64(column["upper"]) + 1, dtype="datetime64[D]")
            return [str(day) for day in days]
        case "datetime":
            first, last = (np.datetime64(column[name].removesuffix("Z")) for name in ("lower", "upper"))
            return [f"{second}Z" for second in np.arange(first, last + 1, dtype="datetime64[s]")]
        case _:
            return list(column.get("categories") or range(column["size"]))


def _stored(value: Any, column: dict[str, Any]) -> Any:
    if value is None or column["type"] == "boolean":
        return value
    if column["type"] == "category":
        return value if value in domain(column) else None
    if column["type"] == "vector":
        return [min(max(number, column["lower"]), column["upper"]) for number in value]
    value = min(max(value, column["lower"]), column["upper"])
    if column["type"] in {"integer", "date", "datetime"}:
        return value  # ISO text is in the order of time
    step = _step(max(abs(Fraction(column["lower"])), abs(Fraction(column["upper"]))))
    return round(Fraction(value) / step) * step


@cache
def _step(larger: Fraction) -> Fraction:
    step = Fraction(1)
    while larger / step > 2**52:
        step *= 2
    while larger / step <= 2**51:
        step /= 2
    return step


def _group(keys: list[Any], row: Row, columns: Columns) -> int | None:
    """Row-major in the order of the keys; None if one of the values is not there."""
    group = 0
    for key in keys:
        name = key if isinstance(key, str) else next(iter(key.values()))["column"]
        count, place = part_of(key, row[name], columns[name])
        if place is None:
            return None
        group = group * count + place
    return group


def _items(select: list[dict[str, Any]], row: Row, columns: Columns) -> list[tuple[int, Fraction]]:
    entries, offset = [], 0
    for item in select:
        ((kind, body),) = item.items()
        if kind == "linear":
            for place, weights in enumerate(_functionals(body)):
                weight = dict(zip(weights["indices"], weights["values"], strict=True)).get(row[body["column"]], 0)
                entries.append((offset + place, Fraction(weight)))
            offset += _size(item, columns)
            continue
        value = (
            1
            if kind in {"count", "count_individuals", "active"}
            else value_of(body["of"], row)
            if "of" in body
            else row[body["column"]]
        )
        if value is not None and kind == "histogram":
            listed = body.get("values", domain(columns[body["column"]]))
            entries += [(offset + listed.index(value), Fraction(1))] if value in listed else []
        elif value is not None:
            entries.append((offset, Fraction(value)))
        offset += _size(item, columns)
    return entries


def _size(item: dict[str, Any], columns: Columns) -> int:
    if "linear" in item:
        return len(_functionals(item["linear"]))
    if "histogram" in item:
        return len(item["histogram"].get("values", domain(columns[item["histogram"]["column"]])))
    return 1


def _functionals(body: dict[str, Any]) -> list[dict[str, Any]]:
    if "matrix" in body:
        matrix = body["matrix"]
        parts = [slice(start, end) for start, end in pairwise(matrix["starts"])]
        return [{"indices": matrix["indices"][part], "values": matrix["values"][part]} for part in parts]
    return body["weights"] if isinstance(body["weights"], list) else [body["weights"]]
