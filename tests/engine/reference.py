"""The vector of one individual, from a query's JSON and the uploaded values, in fractions and dictionaries.

Slow and obvious, and independent of the service's codes, predicates and plans: of a plan it takes nothing but the grid.
"""

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

Row = dict[str, Any]
Columns = dict[str, dict[str, Any]]


def stored(row: Row, columns: Columns) -> Row:
    """The row as the service stores it: numbers clipped, real ones to the column's step, unknown categories NULL."""
    return {name: _stored(row[name], column) for name, column in columns.items() if column["type"] != "budget"}


def vector(rows: list[Row], query: dict[str, Any], columns: Columns, grid_log2: int) -> dict[int, int]:
    """The sum over an individual's rows, unclipped, as {coordinate: grid steps}, without zeros."""
    total: dict[int, int] = {}
    for row in rows:
        known = stored(row, columns)
        if "where" in query and truth(query["where"], known) is not True:
            continue
        group = _group(query.get("group_by", []), known, columns)
        if group is None:
            continue
        for coordinate, value in _items(query["select"], known, columns):
            place = group * sum(_size(item, columns) for item in query["select"]) + coordinate
            total[place] = total.get(place, 0) + floor(value / Fraction(2) ** grid_log2 + Fraction(1, 2))
    return {place: value for place, value in total.items() if value != 0}


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
        return row[operand["col"]] is None
    value, literal = row[operand[0]["col"]], operand[1]
    if value is None:
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
    value = min(max(value, column["lower"]), column["upper"])
    if column["type"] in {"integer", "date", "datetime"}:
        return value  # ISO text is in the order of time
    larger = max(abs(Fraction(column["lower"])), abs(Fraction(column["upper"])))
    step = Fraction(1)
    while larger / step > 2**52:
        step *= 2
    while larger / step <= 2**51:
        step /= 2
    return round(Fraction(value) / step) * step


def _group(names: list[str], row: Row, columns: Columns) -> int | None:
    """Row-major in the order of the names; None if one of the values is not there."""
    group = 0
    for name in names:
        values = domain(columns[name])
        if row[name] is None:
            return None
        group = group * len(values) + values.index(row[name])
    return group


def _items(select: list[dict[str, Any]], row: Row, columns: Columns) -> list[tuple[int, Fraction]]:
    entries, offset = [], 0
    for item in select:
        ((kind, body),) = item.items()
        value = row[body["column"]] if kind != "count" else 1
        if value is not None and kind == "histogram":
            entries.append((offset + domain(columns[body["column"]]).index(value), Fraction(1)))
        elif value is not None:
            entries.append((offset, Fraction(value)))
        offset += _size(item, columns)
    return entries


def _size(item: dict[str, Any], columns: Columns) -> int:
    return len(domain(columns[item["histogram"]["column"]])) if "histogram" in item else 1
