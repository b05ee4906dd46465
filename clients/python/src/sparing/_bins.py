"""Levels of bins for a hierarchical histogram, and the bins of an answer."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from sparing._combine import Released
from sparing._expressions import Column, Group, Number, plain


def bin_levels(column: str | Column, edges: Iterable[Number], *, branching: int = 4) -> tuple[Group, ...]:
    """The bins of a hierarchical histogram as keys to group by, from the finest level to the coarsest.

    Ask a query for each key, all with the same sigma, and give the answers to `consistent_histogram`. An individual is
    in one bin of each level and is charged for each level: k levels cost k / (2 sigma^2). The coarsest level has at
    most 2 * branching bins; a further level with only the total would cost more and make no quantile more precise.

    Args:
        column: a column of numbers.
        edges: the increasing edges of the finest bins, at most 10,001, from the column's lower to its upper bound, so
            that no row is outside of them.
        branching: the most bins of a level that the next level merges into one. From a dozen bins to thousands, 4 gives
            nearly the most precise quantiles at a given cost.

    Raises:
        TypeError: an edge is not a finite number.
        ValueError: the edges do not increase or are fewer than two, or the branching is below 2.
    """
    if branching < 2:
        raise ValueError(f"branching must be at least 2, got {branching}")
    levels = [_increasing([plain(edge) for edge in edges], "edges")]
    while (bins := len(levels[-1]) - 1) > 2 * branching:
        merged = -(-bins // branching)
        levels.append([levels[-1][place * bins // merged] for place in range(merged + 1)])
    binned = column if isinstance(column, Column) else Column(column)
    return tuple(binned.bins(level) for level in levels)


def bins_of(released: Released, item: str, fixed: Collection[str], name: str) -> tuple[str, tuple[float, ...]]:
    """The column whose bins an item is counted by, and the edges of the bins; `fixed` columns are ignored.

    If the column is of integers without bins, each integer is a bin up to the next one. Raises ValueError or TypeError
    unless exactly one column is left and it has bins of numbers; the message calls the answer `name`.
    """
    axes = {str(axis["column"]): axis for axis in _axes(released, item)}
    if unknown := [column for column in fixed if column not in axes]:
        raise ValueError(f"{name} is not by {', '.join(unknown)}; it is by {', '.join(axes) or 'no column'}")
    free = [column for column in axes if column not in fixed]
    if len(free) != 1:
        raise ValueError(
            f"{name} must be by one column, others fixed by `within`; it is by {', '.join(free) or 'none'}"
        )
    return free[0], _edges(axes[free[0]], released, f"{free[0]} in {name}")


def _axes(released: Released, item: str) -> list[Mapping[str, object]]:
    """The axes of the groups, and for a histogram the axis of its values."""
    found = [axis for axis in released.axes if "column" in axis]
    for axis in released.axes:
        items = axis.get("select", ())
        for each in items if isinstance(items, Sequence) else ():
            match each:
                case {"select": title, "values": dict(values)} if title == item:
                    found.append(values)
    return found


def _edges(axis: Mapping[str, object], released: Released, name: str) -> tuple[float, ...]:
    match axis:
        case {"edges": [*edges]}:
            return tuple(float(edge) for edge in _increasing(edges, name))
        case {"column": str(column), "width": int() | float() as width, "size": int(size)} if released.labels:
            # Edges are decimal multiples of the width; the first label begins with the first one.
            first = re.match(r"\[([^,]+), ", str(released.labels[0][column]))
            if first is not None:
                number = round(float(first[1]) / width)
                return tuple(float((number + place) * Fraction(str(width))) for place in range(size + 1))
        case {"lower": int(lower), "upper": int(upper)}:
            return tuple(float(edge) for edge in range(lower, upper + 2))
    hint = "bins of a width above 10,000 numbers need answer.named(dataset)"
    raise ValueError(f"{name} must have bins or integers, not {dict(axis)}; {hint}")


def _increasing(edges: Sequence[object], name: str) -> list[Number]:
    numbers = [edge for edge in edges if isinstance(edge, int | float) and math.isfinite(edge)]
    if len(numbers) < len(edges):
        raise TypeError(f"{name} must have edges that are finite numbers, got {list(edges)}")
    if len(numbers) < 2 or any(low >= high for low, high in pairwise(numbers)):
        raise ValueError(f"{name} must have at least two edges, each above the one before, got {numbers}")
    return numbers
