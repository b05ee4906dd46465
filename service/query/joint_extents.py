"""The longest vector that one row adds to several items over one column, in which the row has one value.

Functionals, matrices and listed histograms weigh listed values. A row adds to several such items the entries of its one
value in each. So the bound is the longest of these joint vectors. It is not the root of the sum of squares of each
item's longest vector. Items over several columns are bounded by the sum of each column's largest square.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from service.arrays import Integers
from service.query.columns import Placed, QueryColumn, Weighted
from service.query.extents import Extent, Vectors
from service.query.item import PlanItem
from service.query.sparse_matrix import SparseMatrix


class _OfColumn(NamedTuple):
    """An item over one column: the column that holds its values, and the matrix with the entries of each value."""

    column: QueryColumn
    matrix: SparseMatrix | None


class _Entries(NamedTuple):
    """The entries of an item: codes (n,) and the steps (n,) of 2**step_log2 that they add. Other codes add zero.

    A sum of the column itself adds something for every code. The largest number that it adds for a code listed by no
    item is its `rest`.
    """

    codes: Integers
    steps: Integers
    step_log2: int
    rest: int = 0


def joint(
    items: Sequence[PlanItem], extents: Sequence[Extent], columns: Mapping[str, QueryColumn]
) -> tuple[Extent, ...]:
    """The extents whose squares add up to a bound on what one row adds. Items over one column share an extent.

    An item without listed values keeps its own of `extents`, and so does an item that is alone in its column. The bound
    is never above the one from each item by itself.
    """
    over: dict[str, dict[int, _OfColumn]] = {}
    for place, item in enumerate(items):
        if item.column is not None:
            column = columns[item.column]
            if column.formula is not None and isinstance(column.formula, (Weighted, Placed)):
                over.setdefault(column.formula.column, {})[place] = _OfColumn(column, item.matrix)
            elif item.is_scalar:
                over.setdefault(item.column, {})[place] = _OfColumn(column, None)
    found = dict(enumerate(extents))
    for name, own in over.items():
        together = None if len(own) == 1 else _together([*own.values()], columns[name])
        if together is not None:
            first, *others = own
            found[first] = together
            for place in others:
                del found[place]
    return tuple(found.values())


def _together(items: Sequence[_OfColumn], of: QueryColumn) -> Extent | None:
    """The vectors that one value of a column adds to some items; None where none of them lists a value."""
    listed = [_listed(item) for item in items]
    codes = np.unique(np.concatenate([each.codes for each in listed if each is not None] or [np.zeros(0, np.int64)]))
    if codes.size == 0:
        return None
    every = [each or _of_all(of, codes) for each in listed]
    base = min(each.step_log2 for each in every)
    owners = np.concatenate([each.codes for each in every])
    order = np.argsort(owners, kind="stable")
    starts, rest = np.flatnonzero(np.diff(owners[order], prepend=-1)), [each for each in every if each.rest]
    steps = np.concatenate([each.steps for each in every])[order]
    shifts = np.concatenate([np.full(each.steps.size, each.step_log2 - base) for each in every])[order]
    if rest:  # one vector more, of a value that nothing lists
        starts = np.append(starts, steps.size)
        steps = np.append(steps, [each.rest for each in rest])
        shifts = np.append(shifts, [each.step_log2 - base for each in rest])
    return Extent(
        low=min(0, *(int(each.steps.min(initial=0)) << (each.step_log2 - base) for each in every)),
        high=max(0, *(max(int(each.steps.max(initial=0)), each.rest) << (each.step_log2 - base) for each in every)),
        step_log2=base,
        integral=all(item.column.kind != "real" for item in items),
        vectors=Vectors(starts=starts, entries=steps, shifts=shifts),
    )


def _listed(item: _OfColumn) -> _Entries | None:
    """The entries of an item that lists values; None for a sum of the column itself."""
    formula = item.column.formula
    if not isinstance(formula, (Weighted, Placed)):
        return None
    codes = np.array(formula.codes, dtype=np.int64)
    if isinstance(formula, Weighted):
        return _Entries(codes, np.array(formula.steps, dtype=np.int64), item.column.coding.step_log2)
    if item.matrix is not None:
        counts = np.diff(np.array(item.matrix.starts))
        return _Entries(np.repeat(codes, counts), np.array(item.matrix.steps, dtype=np.int64), item.matrix.step_log2)
    return _Entries(codes, np.ones(codes.size, dtype=np.int64), 0)


def _of_all(of: QueryColumn, listed: Integers) -> _Entries:
    """The entries that a sum of the column itself has for the listed codes, and the largest for any other code."""
    coding, codes = of.coding, {*listed.tolist()}
    ends = (
        next((code for code in ordered if code not in codes), None)
        for ordered in (range(coding.span + 1), range(coding.span, -1, -1))
    )
    rest = max((abs(code + coding.offset) for code in ends if code is not None), default=0)
    return _Entries(listed, listed + coding.offset, coding.step_log2, rest)
