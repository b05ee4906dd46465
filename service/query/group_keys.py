"""The keys of `group_by`: whole columns, bins of numbers and times, buckets of the calendar."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

from service.query.columns import QueryColumn
from service.query.expressions_ast import Bin, BinKey, BucketKey, GroupKey
from service.query.layout import Countable
from service.query.parts import PARTS_MAX, Parts, bucketed, in_intervals, interval_labels
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, position_of
from service.query.schema import RealColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One key of `group_by`: the name in labels, the column of the plan, and its values in order."""

    label: str
    column: QueryColumn
    domain: Countable | Parts


def group_of(key: GroupKey, columns: RowColumns, place: int) -> Group:
    """The group of a key. Raises QueryProblem naming the field."""
    field = f"group_by[{place}]"
    match key:
        case BinKey(bin=asked):
            column, parts = _binned(asked, columns, place, f"{field}.bin")
            return Group(label=asked.column, column=columns.add(column), domain=parts)
        case BucketKey(bucket=asked):
            of = columns.named(asked.column, f"{field}.bucket.column")
            column, parts = bucketed(of, f"{asked.column} by {asked.by}", asked.by, f"{field}.bucket")
            return Group(label=asked.column, column=columns.add(column), domain=parts)
        case _:
            column = columns.named(key, field)
            return Group(label=key, column=column, domain=countable(column, field))


def countable(column: QueryColumn, field: str) -> Countable:
    """The declaration of a column whose values can be counted. Raises QueryProblem."""
    declared = column.declared
    if declared is None or isinstance(declared, RealColumn):
        raise QueryProblem.of(
            field,
            f"{quoted(column.name)} is a real column; count a category, boolean or integer column, or a bin of it",
        )
    return declared


def _binned(asked: Bin, columns: RowColumns, place: int, field: str) -> tuple[QueryColumn, Parts]:
    column = columns.named(asked.column, f"{field}.column")
    if not column.is_ordered:
        raise QueryProblem.of(f"{field}.column", "has no order; a bin takes a number, a date or a time")
    edges = asked.edges if asked.edges is not None else _edges(asked, column, field)
    positions = [position_of(edge, column, f"{field}.edges[{n}]") for n, edge in enumerate(edges)]
    for n, (low, high) in enumerate(pairwise(positions), start=1):
        if low >= high:
            raise QueryProblem.of(f"{field}.edges[{n}]", "must be above the edge before")
    texts = [edge if isinstance(edge, str) else f"{edge:.12g}" for edge in edges]
    said = ("edges", tuple(edges)) if asked.width is None else ("width", asked.width)
    parts = Parts(labels=interval_labels(texts), said=(said,))
    return in_intervals(column, f"{asked.column} in bins {place}", positions), parts


def _edges(asked: Bin, column: QueryColumn, field: str) -> list[int | float]:
    """The multiples of the width, from the last one at or below the lower bound to the first above the upper one."""
    if column.kind not in {"integer", "real"} or asked.width is None:
        raise QueryProblem.of(
            f"{field}.width", "must not be given for dates and times; give edges, or ask for a bucket"
        )
    coding, width = column.coding, Fraction(asked.width)
    low, high = (
        Fraction(steps) * Fraction(2) ** coding.step_log2 for steps in (coding.offset, coding.offset + coding.span)
    )
    first, last = floor(low / width), ceil(high / width)
    if last - first > PARTS_MAX:
        raise QueryProblem.of(f"{field}.width", f"makes more than {PARTS_MAX} groups")
    last += last == first
    edges = [number * width for number in range(first, last + 1)]
    return [int(edge) if edge.denominator == 1 else float(edge) for edge in edges]
