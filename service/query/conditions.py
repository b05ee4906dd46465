"""The meaning of a condition in one table: a predicate over integer codes, in negation normal form.

A leaf is false for a NULL, except the leaf that asks for NULL. There is no negation: negations are pushed down to the
leaves. SQL's three-valued logic selects a row if and only if its condition is TRUE, so that no distinction between "not
true" and "unknown" is needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, floor

from service.query.columns import QueryColumn
from service.query.expressions_ast import (
    LISTED_MAX,
    And,
    Between,
    ColumnRef,
    Comparison,
    Condition,
    Fold,
    FoldOf,
    In,
    IsNull,
    Not,
    Or,
    Row,
)
from service.query.literals_ast import Value
from service.query.parts import in_parts
from service.query.problems import QueryProblem
from service.query.row_columns import RowColumns, position_of

DEPTH_MAX = 16
CONDITIONS_MAX = 4096
GAPS_MAX = 16  # up to so many ranges are cheaper to test than a list of codes
CODES_MAX = 2**16
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_ORDERED = frozenset({"lt", "le", "gt", "ge"})


@dataclass(frozen=True, slots=True)
class Within:
    """The column's code is at least `low` and at most `high`."""

    column: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Among:
    """The column's code is one of `codes`, which increase."""

    column: str
    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Null:
    """The column has no value."""

    column: str


@dataclass(frozen=True, slots=True)
class All:
    """Every row."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A condition that holds where every part does; of two parts or more, none a `Conjunction`, `All` or `Nothing`."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """A condition that holds where a part does; of two parts or more, none a `Disjunction`, `All` or `Nothing`."""

    parts: tuple["Predicate", ...]


Leaf = Within | Among | Null | All | Nothing
Predicate = Leaf | Conjunction | Disjunction


def predicate_of(where: Condition | None, columns: RowColumns, *, field: str = "where") -> Predicate:
    """The rows for which the condition is TRUE, with literals as codes. Raises QueryProblem naming the field."""
    if where is None:
        return All()
    nodes = _nodes(where)
    literals = sum(2 if isinstance(node, Between) else isinstance(node, Comparison) for node in nodes)
    if len(nodes) + literals > CONDITIONS_MAX:
        raise QueryProblem.of(field, f"has more than {CONDITIONS_MAX} conditions and literals outside of lists")
    if sum(len(node.in_[1]) for node in nodes if isinstance(node, In)) > LISTED_MAX:
        raise QueryProblem.of(field, f"has more than {LISTED_MAX} literals in lists")
    return _reduced(where, columns, negated=False, field=field)


def leaves_of(predicate: Predicate) -> list[Leaf]:
    """All leaves of a predicate, in order."""
    if isinstance(predicate, Conjunction | Disjunction):
        return [leaf for part in predicate.parts for leaf in leaves_of(part)]
    return [predicate]


def within(column: str, low: int, high: int, *, span: int) -> Predicate:
    """The rows whose code lies in a range, cut to the domain `0..span`. The whole domain still excludes NULL."""
    low, high = max(low, 0), min(high, span)
    return Within(column, low, high) if low <= high else Nothing()


def among(column: str, codes: Iterable[int | Fraction], *, span: int, negated: bool = False) -> Predicate:
    """The rows whose code is one of `codes`. With `negated`, those with any other code of the domain `0..span`.

    Numbers between two codes or outside the domain match no row.
    """
    chosen = sorted({int(code) for code in codes if 0 <= code <= span and code == int(code)})
    if negated:
        return _others(column, chosen, span)
    if not chosen:
        return Nothing()
    if chosen[-1] - chosen[0] + 1 == len(chosen):
        return Within(column, chosen[0], chosen[-1])
    return Among(column, tuple(chosen))


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """All of the parts: flat, without `All`, and `Nothing` as soon as one part is."""
    return _joined(parts, Conjunction, neutral=All(), deciding=Nothing())


def disjunction(parts: Iterable[Predicate]) -> Predicate:
    """The disjunction of the parts: flat, without `Nothing`, and `All` as soon as one part is."""
    return _joined(parts, Disjunction, neutral=Nothing(), deciding=All())


def _others(column: str, excluded: Sequence[int], span: int) -> Predicate:
    """The rows with any code of the domain but the excluded: as ranges, or as a list where a small domain has many."""
    edges = (-1, *excluded, span + 1)
    gaps = [(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]
    if len(gaps) > GAPS_MAX and span < CODES_MAX:
        return Among(column, tuple(code for low, high in gaps for code in range(low, high + 1)))
    return disjunction(Within(column, low, high) for low, high in gaps)


def _joined(
    parts: Iterable[Predicate], kind: type[Conjunction | Disjunction], *, neutral: Predicate, deciding: Predicate
) -> Predicate:
    flat = (each for part in parts for each in (part.parts if isinstance(part, kind) else (part,)))
    kept = tuple(part for part in flat if part != neutral)
    if deciding in kept:
        return deciding
    return kind(kept) if len(kept) > 1 else (kept[0] if kept else neutral)


def _nodes(where: Condition) -> list[Condition]:
    """The condition and all conditions within it. Raises QueryProblem for one nested too deep, before any recursion."""
    nodes: list[Condition] = []
    level = [where]
    for _ in range(DEPTH_MAX):
        nodes += level
        below: list[Condition] = []
        for node in level:
            match node:
                case And(and_=parts) | Or(or_=parts):
                    below += parts
                case Not(not_=part):
                    below.append(part)
        level = below
    if level:
        raise QueryProblem.of("where", f"is nested more than {DEPTH_MAX} deep")
    return nodes


def _reduced(node: Condition, columns: RowColumns, *, negated: bool, field: str) -> Predicate:
    match node:
        case And(and_=parts) | Or(or_=parts):
            join = conjunction if isinstance(node, And) is not negated else disjunction
            return join(
                [
                    _reduced(part, columns, negated=negated, field=f"{field}.{node.KIND}[{place}]")
                    for place, part in enumerate(parts)
                ]
            )
        case Not(not_=part):
            return _reduced(part, columns, negated=not negated, field=f"{field}.not")
        case In(in_=(value, literals)):
            return _membership(value, literals, columns, negated=negated, field=f"{field}.in")
        case Between():
            return _between(node, columns, negated=negated, field=f"{field}.between")
        case Fold(fold=asked):
            return _fold(asked, columns, negated=negated, field=f"{field}.fold")
        case IsNull():
            return _is_null(node.is_null, columns, negated=negated, field=f"{field}.is_null")
        case _:
            return _comparison(node, columns, negated=negated, field=f"{field}.{node.KIND}")


def _between(node: Between, columns: RowColumns, *, negated: bool, field: str) -> Predicate:
    """The rows whose value is in a range that includes both bounds. No rows if the lower one is above the upper one."""
    value, lower, upper = node.between
    column = columns.value(value, f"{field}[0]")
    _refuse_unordered(column, value, field)
    name, span = column.name, column.coding.span
    low = ceil(position_of(lower, column, f"{field}[1]") - column.slack)
    high = floor(position_of(upper, column, f"{field}[2]") + column.slack)
    if not negated:
        return within(name, low, high, span=span)
    if low > high:
        return within(name, 0, span, span=span)
    return disjunction([within(name, 0, low - 1, span=span), within(name, high + 1, span, span=span)])


def _is_null(value: Row, columns: RowColumns, *, negated: bool, field: str) -> Predicate:
    column = columns.value(value, field)
    span = column.coding.span
    return within(column.name, 0, span, span=span) if negated else Null(column.name)


def _fold(asked: FoldOf, columns: RowColumns, *, negated: bool, field: str) -> Predicate:
    for place, part in enumerate(asked.in_):
        if part >= asked.of:
            raise QueryProblem.of(f"{field}.in[{place}]", f"must be below {asked.of}, the number of parts")
    column = columns.fold(asked)
    return among(column.name, asked.in_, span=column.coding.span, negated=negated)


def _refuse_unordered(column: QueryColumn, value: Row, field: str) -> None:
    if not column.is_ordered:
        place = f"{field}[0].col" if isinstance(value, ColumnRef) else f"{field}[0]"
        raise QueryProblem.of(place, "has no order; lt, le, gt, ge and between take numbers, dates and times")


def _membership(
    value: Row, literals: tuple[Value, ...], columns: RowColumns, *, negated: bool, field: str
) -> Predicate:
    column = columns.value(value, f"{field}[0]")
    positions = [position_of(literal, column, f"{field}[1][{place}]") for place, literal in enumerate(literals)]
    if column.slack == 0:
        return among(column.name, positions, span=column.coding.span, negated=negated)
    cut, members = _near(positions, column, f"{column.name} by {field}")
    return among(columns.add(cut).name, members, span=cut.coding.span, negated=negated)


def _near(positions: Iterable[int | Fraction], column: QueryColumn, name: str) -> tuple[QueryColumn, list[int]]:
    """The column cut into parts at the edges of the positions' slack, and the parts within the slack of a position."""
    cuts = {0: 0, column.coding.null_code: 0}
    for position in positions:
        low, high = (
            min(max(end, 0), column.coding.null_code)
            for end in (ceil(position - column.slack), floor(position + column.slack) + 1)
        )
        cuts[low] = cuts.get(low, 0) + 1
        cuts[high] = cuts.get(high, 0) - 1  # the same code for a position beyond the domain, which is no row's
    edges = sorted(cuts)
    inside = list(accumulate(cuts[edge] for edge in edges[:-1]))
    return in_parts(column, name, edges), [place for place, count in enumerate(inside) if count > 0]


def _comparison(node: Comparison, columns: RowColumns, *, negated: bool, field: str) -> Predicate:
    """The rows whose code equals a position, or is on one side of it. Codes within the slack of a position equal it."""
    left, right = getattr(node, node.KIND)
    is_ordered = node.KIND in _ORDERED
    if isinstance(right, (bool, int, float, str)):
        column = columns.value(left, f"{field}[0]")
        if is_ordered:
            _refuse_unordered(column, left, field)
        position = position_of(right, column, f"{field}[1]")
    else:
        column = columns.compared(left, right, field, is_ordered=is_ordered)
        position = -column.coding.offset
    name, span, slack = column.name, column.coding.span, 0 if column.declared is not None else column.slack
    first, last = ceil(position - slack), floor(position + slack)
    match _OPPOSITE[node.KIND] if negated else node.KIND:
        case "ge":
            return within(name, first, span, span=span)
        case "gt":
            return within(name, last + 1, span, span=span)
        case "le":
            return within(name, 0, last, span=span)
        case "lt":
            return within(name, 0, first - 1, span=span)
        case "eq":
            return within(name, first, last, span=span)
        case _:
            others = [(0, first - 1), (last + 1, span)] if first <= last else [(0, span)]
            return disjunction(within(name, *each, span=span) for each in others)
