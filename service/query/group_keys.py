"""The keys of `group_by`: whole columns, bins of numbers and times, buckets of the calendar."""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor

from service.query.columns import QueryColumn, label_of, meant_by, number_of
from service.query.declared_bounds import column_bounds
from service.query.domains import Countable, Domain
from service.query.expressions_ast import Bin, BinKey, BucketKey, GroupKey
from service.query.parts import PARTS_MAX, Parts, bucketed, edge_text, in_intervals, interval_labels
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, position_of, text_of
from service.query.schema import RealColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A key of `group_by`, a whole column or its parts: the name in labels, the plan's column, the values in order."""

    label: str
    column: QueryColumn
    domain: Domain


def group_of(key: GroupKey, columns: RowColumns, field: str) -> Group:
    """The group of a key at the place `field` of the query. Raises QueryProblem naming that place."""
    match key:
        case BinKey(bin=asked):
            column, parts = _binned(asked, columns, f"{field}.bin")
            label = asked.column or ("" if asked.of is None else label_of(text_of(asked.of)))
            return Group(label=label, column=columns.add(column), domain=parts)
        case BucketKey(bucket=asked):
            of = columns.named(asked.column, f"{field}.bucket.column")
            column, parts = bucketed(of, f"{asked.column} by {asked.by}", asked.by, f"{field}.bucket")
            return Group(label=asked.column, column=columns.add(column), domain=parts)
        case _:
            column = columns.named(key, field)
            return Group(label=key, column=column, domain=countable(column, field))


def countable(column: QueryColumn, field: str) -> Countable:
    """The declaration of a column whose values can be counted. Raises QueryProblem for any other column."""
    declared = column.declared
    if declared is None or isinstance(declared, RealColumn):
        raise QueryProblem.of(
            field,
            f"{quoted(column.name)} is a real column; count a category, boolean or integer column, or a bin of it",
        )
    return declared


def _binned(asked: Bin, columns: RowColumns, field: str) -> tuple[QueryColumn, Parts]:
    column, named = columns.of_value(asked, field)
    if not column.is_ordered:
        raise QueryProblem.of(named, "has no order; a bin takes a number, a date or a time")
    edges = asked.edges if asked.edges is not None else _edges(asked, column, field)
    positions = [position_of(edge, column, f"{field}.edges[{n}]") for n, edge in enumerate(edges)]
    for n, (low, high) in enumerate(pairwise(positions), start=1):
        if low >= high:
            raise QueryProblem.of(f"{field}.edges[{n}]", "must be above the edge before")
    texts = [edge if isinstance(edge, str) else edge_text(edge) for edge in edges]
    said = ("edges", tuple(edges)) if asked.width is None else ("width", asked.width)
    parts = Parts(labels=interval_labels(texts), said=(said,))
    return in_intervals(column, f"{column.name} in bins of {field}", positions), parts


def _edges(asked: Bin, column: QueryColumn, field: str) -> list[int | float]:
    """The multiples of the width, from the last at or below the lower bound to the first at or above the upper bound.

    Width and bounds are the decimals that they are written as, and an edge is the double nearest to its decimal. Data
    are read by the same rule, so that a value is at an edge exactly where their decimals are equal.
    """
    if column.kind not in {"integer", "real"} or asked.width is None:
        raise QueryProblem.of(
            f"{field}.width", "must not be given for dates and times; give edges, or ask for a bucket"
        )
    width = meant_by(asked.width)
    low, high = (bound / width for bound in column_bounds(column))
    first, last = floor(low), ceil(high)
    if last - first > PARTS_MAX:
        raise QueryProblem.of(f"{field}.width", f"makes more than {PARTS_MAX} groups")
    last += last == first
    return [number_of(number * width) for number in range(first, last + 1)]
