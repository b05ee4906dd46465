"""From a condition of the language to a predicate over the codes of one table."""

from fractions import Fraction
from math import ceil, floor

from service.query.calendar import days_of, seconds_of
from service.query.coding import Coding, coding_of
from service.query.conditions_ast import And, Between, ColumnRef, Comparison, Condition, In, IsNull, Not, Or, Value
from service.query.predicate import All, Null, Predicate, among, conjunction, disjunction, within
from service.query.problems import QueryProblem, quoted
from service.query.schema import (
    BooleanColumn,
    BudgetColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    EventsTable,
    IndividualsTable,
    IntegerColumn,
    RealColumn,
)

__all__ = ["data_column", "predicate_of"]

DEPTH_MAX = 16
PARTS_MAX = 4096
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}

DataTable = IndividualsTable | EventsTable
ComparedColumn = CategoryColumn | IntegerColumn | RealColumn | DateColumn | DatetimeColumn | BooleanColumn


def predicate_of(where: Condition | None, table: DataTable) -> Predicate:
    """The rows for which the condition is TRUE, with literals as codes. Raises QueryProblem naming the field."""
    if where is None:
        return All()
    if _size(where, depth=1) > PARTS_MAX:
        raise QueryProblem.of("where", f"has more than {PARTS_MAX} conditions and literals together")
    return _reduced(where, table, negated=False, field="where")


def data_column(name: str, table: DataTable, field: str) -> ComparedColumn:
    """The declared column of that name. Raises QueryProblem if there is none, or if it is not data."""
    column: Column | None = table.columns.get(name)
    if column is None:
        raise QueryProblem.of(field, f"there is no column {quoted(name)} in this table")
    if isinstance(column, BudgetColumn):
        raise QueryProblem.of(
            field, f"{quoted(name)} holds the individuals' limits; it is not data and cannot be queried"
        )
    return column


def _size(node: Condition, *, depth: int) -> int:
    """Conditions and literals together. Raises QueryProblem before recursing too deep."""
    if depth > DEPTH_MAX:
        raise QueryProblem.of("where", f"is nested more than {DEPTH_MAX} deep")
    match node:
        case And(and_=parts) | Or(or_=parts):
            return 1 + sum(_size(part, depth=depth + 1) for part in parts)
        case Not(not_=part):
            return 1 + _size(part, depth=depth + 1)
        case In(in_=(_, literals)):
            return 1 + len(literals)
        case IsNull():
            return 1
        case _:
            return 2


def _reduced(node: Condition, table: DataTable, *, negated: bool, field: str) -> Predicate:
    match node:
        case And(and_=parts) | Or(or_=parts):
            join = conjunction if isinstance(node, And) is not negated else disjunction
            return join(
                [
                    _reduced(part, table, negated=negated, field=f"{field}.{node.KIND}[{place}]")
                    for place, part in enumerate(parts)
                ]
            )
        case Not(not_=part):
            return _reduced(part, table, negated=not negated, field=f"{field}.not")
        case In(in_=(ref, literals)):
            return _membership(ref, literals, table, negated=negated, field=f"{field}.in")
        case Between():
            return _between(node, table, negated=negated, field=f"{field}.between")
        case IsNull():
            return _is_null(node.is_null, table, negated=negated, field=f"{field}.is_null")
        case _:
            return _comparison(node, table, negated=negated, field=f"{field}.{node.KIND}")


def _between(node: Between, table: DataTable, *, negated: bool, field: str) -> Predicate:
    """Both bounds belong to the range; one with its lower bound above its upper one is empty."""
    ref, lower, upper = node.between
    column = data_column(ref.col, table, f"{field}[0].col")
    coding = coding_of(column)
    _refuse_unordered(column, field)
    low = ceil(_position(lower, column, coding, f"{field}[1]"))
    high = floor(_position(upper, column, coding, f"{field}[2]"))
    if not negated:
        return within(ref.col, low, high, span=coding.span)
    if low > high:
        return within(ref.col, 0, coding.span, span=coding.span)
    below, above = (
        within(ref.col, 0, low - 1, span=coding.span),
        within(ref.col, high + 1, coding.span, span=coding.span),
    )
    return disjunction([below, above])


def _is_null(ref: ColumnRef, table: DataTable, *, negated: bool, field: str) -> Predicate:
    span = coding_of(data_column(ref.col, table, f"{field}.col")).span
    return within(ref.col, 0, span, span=span) if negated else Null(ref.col)


def _refuse_unordered(column: ComparedColumn, field: str) -> None:
    if isinstance(column, (CategoryColumn, BooleanColumn)):
        raise QueryProblem.of(
            f"{field}[0].col", "has no order; lt, le, gt, ge and between take numbers, dates and times"
        )


def _membership(
    ref: ColumnRef, literals: tuple[Value, ...], table: DataTable, *, negated: bool, field: str
) -> Predicate:
    column = data_column(ref.col, table, f"{field}[0].col")
    coding = coding_of(column)
    positions = [_position(literal, column, coding, f"{field}[1][{place}]") for place, literal in enumerate(literals)]
    return among(ref.col, _codes(positions), span=coding.span, negated=negated)


def _comparison(node: Comparison, table: DataTable, *, negated: bool, field: str) -> Predicate:
    ref, literal = node.pair
    column = data_column(ref.col, table, f"{field}[0].col")
    coding = coding_of(column)
    if node.KIND in _OPPOSITE:
        _refuse_unordered(column, field)
        position = _position(literal, column, coding, f"{field}[1]")
        low, high = _range(_OPPOSITE[node.KIND] if negated else node.KIND, position, coding.span)
        return within(ref.col, low, high, span=coding.span)
    position = _position(literal, column, coding, f"{field}[1]")
    return among(ref.col, _codes([position]), span=coding.span, negated=(node.KIND == "ne") is not negated)


def _range(operator: str, position: int | Fraction, span: int) -> tuple[int, int]:
    match operator:
        case "ge":
            return ceil(position), span
        case "gt":
            return floor(position) + 1, span
        case "le":
            return 0, floor(position)
        case _:
            return 0, ceil(position) - 1


def _codes(positions: list[int | Fraction]) -> list[int]:
    """The positions that are codes: a number between two integers equals neither."""
    return [int(position) for position in positions if position == int(position)]


def _position(literal: Value, column: ComparedColumn, coding: Coding, field: str) -> int | Fraction:
    """Where a literal lies on the scale of codes; outside the domain it may be negative or above `span`.

    Exact on an integer column, where 39.5 lies between two codes. On a real column a literal is rounded to the column's
    step as the data were, so that `eq 0.1` finds the rows that were uploaded as 0.1.
    """
    match column:
        case CategoryColumn():
            return _category(literal, column, field)
        case BooleanColumn():
            if not isinstance(literal, bool):
                raise QueryProblem.of(field, f"must be true or false, as the column is boolean; got {quoted(literal)}")
            return int(literal)
        case DateColumn() | DatetimeColumn():
            return _time(literal, column, field) - coding.offset
        case IntegerColumn() | RealColumn():
            if isinstance(literal, (bool, str)):
                raise QueryProblem.of(field, f"must be a number, as the column is numeric; got {quoted(literal)}")
            if isinstance(column, RealColumn):
                return coding.code_of(literal)
            return (literal if isinstance(literal, int) else Fraction(literal)) - coding.offset


def _time(literal: Value, column: DateColumn | DatetimeColumn, field: str) -> int:
    read, form = (
        (days_of, "a date, such as 2026-03-31")
        if isinstance(column, DateColumn)
        else (seconds_of, "a time, such as 2026-03-31T23:59:59Z")
    )
    found = read(literal) if isinstance(literal, str) else None
    if found is None:
        raise QueryProblem.of(field, f"must be {form}; got {quoted(literal)}")
    return found


def _category(literal: Value, column: CategoryColumn, field: str) -> int:
    if isinstance(literal, float) and literal.is_integer():
        literal = int(literal)
    code = None if isinstance(literal, (bool, float)) else column.code_of(literal)
    if code is None:
        domain = (
            f"an integer from 0 to {len(column.domain) - 1}" if column.categories is None else "a declared category"
        )
        raise QueryProblem.of(field, f"must be {domain} of the column; got {quoted(literal)}")
    return code
