"""Conditions in three-valued logic, as closures over rows: True, False, or None for unknown."""

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from sparing._testing_problems import invalid
from sparing._testing_shapes import entries_of, one_of
from sparing._testing_values import Columns, Number, Row, Value, position_of

__all__ = ["CONDITION_KINDS", "Test", "condition_of"]

PARTS_MAX = 4096
Test = Callable[[Row], bool | None]
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}
_ORDERED = frozenset({"lt", "le", "gt", "ge"})
CONDITION_KINDS = (*_COMPARISONS, "in", "between", "is_null", "and", "or", "not")
_NO_ORDER = "has no order; lt, le, gt, ge and between take numbers, dates and times"


def condition_of(node: object, columns: Columns, field: str = "where") -> Test:
    """Whether a row meets the condition. Raises Refused naming the field."""
    kind, body = one_of(node, CONDITION_KINDS, field)
    inner = f"{field}.{kind}"
    match kind:
        case "and" | "or":
            parts = entries_of(body, inner, most=PARTS_MAX)
            tests = [condition_of(part, columns, f"{inner}[{place}]") for place, part in enumerate(parts)]
            return _junction(tests, decisive=kind == "or")
        case "not":
            return _negated(condition_of(body, columns, inner))
        case "is_null":
            value = columns.value(body, inner)
            return lambda row: value.read(row) is None
        case "in":
            return _membership(body, columns, inner)
        case "between":
            return _range(body, columns, inner)
        case _:
            return _comparison(kind, body, columns, inner)


def _junction(tests: Sequence[Test], *, decisive: bool) -> Test:
    def test(row: Row) -> bool | None:
        found = [each(row) for each in tests]
        return decisive if decisive in found else None if None in found else not decisive

    return test


def _negated(test: Test) -> Test:
    def negated(row: Row) -> bool | None:
        found = test(row)
        return None if found is None else not found

    return negated


def _membership(body: object, columns: Columns, field: str) -> Test:
    node, listed = entries_of(body, field, most=2, exactly=2)
    literals = entries_of(listed, f"{field}[1]", most=PARTS_MAX)
    value = columns.value(node, f"{field}[0]")
    wanted = {position_of(literal, value, f"{field}[1][{place}]") for place, literal in enumerate(literals)}
    return _tested(value, lambda number: number in wanted)


def _range(body: object, columns: Columns, field: str) -> Test:
    node, lowest, highest = entries_of(body, field, most=3, exactly=3)
    value = columns.value(node, f"{field}[0]")
    _refuse_unordered(value, field)
    low, high = position_of(lowest, value, f"{field}[1]"), position_of(highest, value, f"{field}[2]")
    return _tested(value, lambda number: low <= number <= high)


def _comparison(kind: str, body: object, columns: Columns, field: str) -> Test:
    left, right = entries_of(body, field, most=2, exactly=2)
    value = columns.value(left, f"{field}[0]")
    compare = _COMPARISONS[kind]
    if isinstance(right, Mapping):
        return _of_two(value, columns.value(right, f"{field}[1]"), kind, field)
    if kind in _ORDERED:
        _refuse_unordered(value, field)
    position = position_of(right, value, f"{field}[1]")
    return _tested(value, lambda number: compare(number, position))


def _of_two(first: Value, second: Value, kind: str, field: str) -> Test:
    are_alike = (first.is_number and second.is_number) or (first.kind == second.kind and _same_domain(first, second))
    if not are_alike:
        raise invalid(f"{field}[1]", f"is {second.said} and cannot be compared with {first.said}")
    if kind in _ORDERED and not first.is_ordered:
        raise invalid(f"{field}[0]", _NO_ORDER)
    compare = _COMPARISONS[kind]

    def test(row: Row) -> bool | None:
        left, right = first.read(row), second.read(row)
        return None if left is None or right is None else compare(left, right)

    return test


def _same_domain(first: Value, second: Value) -> bool:
    if first.kind != "category" or first.column is None or second.column is None:
        return True
    return tuple(map(repr, first.column.categories)) == tuple(map(repr, second.column.categories))


def _tested(value: Value, holds: Callable[[Number], bool]) -> Test:
    def test(row: Row) -> bool | None:
        found = value.read(row)
        return None if found is None else holds(found)

    return test


def _refuse_unordered(value: Value, field: str) -> None:
    if not value.is_ordered:
        raise invalid(f"{field}[0].col", _NO_ORDER)
