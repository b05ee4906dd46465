"""One row's addition to an individual's vector: for each select item, coordinates and values in whole grid steps.

Everything here is int64 and elementwise, so that a row's entries are a function of that row and the plan alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.arrays import Codes, Integers, Mask, first, is_uniform, take, uniform
from service.engine.sparse_vectors import BrokenInvariant, RowEntries
from service.query.columns import Coding, rounded
from service.query.extents import shifted
from service.query.item import PlanItem
from service.query.item_steps import STEPS_MAX, Quotient, Quotients, quotient_for, quotients
from service.query.plan import Plan
from service.query.sparse_matrix import SparseMatrix

_SAME = Quotient(shift=0, divisor=1)
TOTAL_MAX = 2**61  # what an individual's rows may add up to at one coordinate
NORM_SQUARED_MAX = 2**61
_SHIFT_MAX = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The coordinate at which a row's group begins. Groups are row-major in the order of group_by."""

    strides: tuple[tuple[str, int], ...]  # column, coordinates from one of its codes to the next

    def bases(self, columns: Mapping[str, Codes], count: int) -> Integers:
        """The coordinates (count,) at which the groups of `count` chosen rows begin, from their `columns` (count,)."""
        if not self.strides:
            return uniform(0, count)
        bases = np.zeros(count, dtype=np.int64)
        for name, stride in self.strides:
            bases += columns[name] * np.int64(stride)
        return bases


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A count or a histogram: the same value for each row."""

    offset: int  # the item's first coordinate within a group
    column: str | None  # the histogram's column, whose code leads on from there
    value: int  # grid steps

    def coordinates(self, columns: Mapping[str, Codes], bases: Integers) -> Integers:
        """Coordinates (k,) of chosen rows with these `columns` (k,), whose groups begin at `bases` (k,)."""
        places = _moved(bases, self.offset)
        return places if self.column is None else places + columns[self.column].astype(np.int64)

    def values(self, _columns: Mapping[str, Codes], count: int) -> Integers:
        """The values (count,) of `count` chosen rows, in grid steps: a zero-stride view."""
        return uniform(self.value, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A sum: each row adds its value of the column."""

    offset: int  # the item's coordinate within a group
    column: str
    coding_offset: int
    shift: int  # from the column's steps to grid steps: left, or if negative right with rounding half up
    quotient: Quotient | None = None  # instead of `shift`, where the item has steps of its own

    def coordinates(self, _columns: Mapping[str, Codes], bases: Integers) -> Integers:
        """The coordinates (k,) of chosen rows whose groups begin at `bases` (k,)."""
        return _moved(bases, self.offset)

    def values(self, columns: Mapping[str, Codes], _count: int) -> Integers:
        """The values (k,) that chosen rows with these `columns` (k,) have in the column, in grid steps."""
        steps = columns[self.column].astype(np.int64)
        steps += self.coding_offset
        if self.quotient is not None:
            return self.quotient.of_all(steps)
        if self.shift == 0:
            return steps
        if self.shift > 0:
            return np.left_shift(steps, self.shift, out=steps)
        steps += 1 << (-self.shift - 1)
        return np.right_shift(steps, -self.shift, out=steps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """The functionals of a matrix: each row has the entries of its value, and no entries if the value has none."""

    column: str  # the place of the value among those that have entries, or NULL
    most: int  # entries of one row
    starts: Integers  # (p,) by place, the last one that of NULL
    counts: Integers  # (p,)
    entry_coordinates: Integers  # (n,) within a group
    entry_values: Integers  # (n,) grid steps, none zero

    def entries(self, columns: Mapping[str, Codes], bases: Integers) -> RowEntries:
        """The entries of k chosen rows with these `columns` (k,), whose groups begin at `bases` (k,)."""
        codes = columns[self.column]
        counts = take(self.counts, codes)
        ends = np.cumsum(counts)
        places = np.repeat(take(self.starts, codes) - ends + counts, counts)
        places += np.arange(places.size)
        coordinates = take(self.entry_coordinates, places)
        if not is_uniform(bases):
            coordinates += np.repeat(bases, counts)
        return RowEntries(counts=counts, coordinates=coordinates, values=take(self.entry_values, places))


SingleTerm = Unit | Value
"""A term with one entry for each row."""
Term = SingleTerm | Spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stack:
    """Several terms (j of them) as one: one call for all takes as long as a call for one. All arrays are (j, 1)."""

    columns: tuple[str | None, ...]
    spans: Integers  # the largest code of the column
    offsets: Integers
    leads: (
        Integers | None
    )  # by how many coordinates a code leads on: 1 for a histogram, 0 for others; None: no histogram
    added: Integers  # what is added to the code of a sum, and to zero for others
    lefts: Integers | None  # by how many bits the sum of both is shifted then; None: by none
    rights: Integers | None
    quotients: Quotients | None  # instead of shifts, where each item has steps of its own

    def codes(self, columns: Mapping[str, Codes], count: int) -> Integers:
        """The codes (j, count) of `count` chosen rows with these `columns` (count,); 0 for a term without a column."""
        codes = np.empty((len(self.columns), count), dtype=np.int64)
        for place, name in enumerate(self.columns):
            codes[place] = 0 if name is None else columns[name]
        return codes

    def known(self, codes: Integers) -> Mask:
        """The mask of codes (j, k) that are not NULL."""
        return np.less_equal(codes, self.spans)

    def coordinates(self, codes: Integers, bases: Integers) -> Integers:
        """The coordinates (j, k) that each term gives for `codes` (j, k), with groups that begin at `bases` (k,)."""
        coordinates = bases + self.offsets
        if self.leads is not None:
            coordinates += codes * self.leads
        return coordinates

    def values(self, codes: Integers) -> Integers:
        """The values (j, k) that each term gives for `codes` (j, k)."""
        steps = codes + self.added if self.leads is None else codes * (1 - self.leads) + self.added
        if self.lefts is not None:
            np.left_shift(steps, self.lefts, out=steps)
        if self.rights is not None:
            np.right_shift(steps, self.rights, out=steps)
        return steps if self.quotients is None else self.quotients(steps)


def stacked(terms: Sequence[SingleTerm], codings: Mapping[str, Coding]) -> Stack:
    """Terms of a plan as one."""
    leads = _upright([int(isinstance(term, Unit) and term.column is not None) for term in terms])
    shifts = _upright([term.shift if isinstance(term, Value) else 0 for term in terms])
    lefts, rights = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    own = [term.quotient or _SAME if isinstance(term, Value) else _SAME for term in terms]
    added = _upright([term.value if isinstance(term, Unit) else term.coding_offset for term in terms])
    return Stack(
        columns=tuple(term.column for term in terms),
        spans=_upright([0 if term.column is None else codings[term.column].span for term in terms]),
        offsets=_upright([term.offset for term in terms]),
        leads=leads if leads.any() else None,
        added=added + (np.left_shift(1, rights) >> 1),  # a half for rounding, where it is shifted right
        lefts=lefts if lefts.any() else None,
        rights=rights if rights.any() else None,
        quotients=None if all(quotient is _SAME for quotient in own) else quotients(own),
    )


def _upright(numbers: Sequence[int]) -> Integers:
    return np.array(numbers, dtype=np.int64)[:, np.newaxis]


def groups_of(plan: Plan, codings: Mapping[str, Coding]) -> Groups:
    """The plan's groups. Raises BrokenInvariant if groups and items do not add up to the plan's dimension."""
    stride = sum(item.size for item in plan.layout.items)
    strides = []
    for name in reversed(plan.rows.group_by):
        strides.append((name, stride))
        stride *= codings[name].span + 1
    if stride != plan.layout.dimension:
        raise BrokenInvariant("the coordinates do not add up to the dimension")
    return Groups(strides=tuple(reversed(strides)))


def terms_of(plan: Plan, codings: Mapping[str, Coding], *, rows_max: int) -> tuple[Term, ...]:
    """The terms of the plan's select items, for at most `rows_max` rows of an individual.

    Raises BrokenInvariant unless the plan's public bounds keep every sum and every squared norm within int64.
    """
    if not 1 <= plan.scale.clip_squared_steps <= NORM_SQUARED_MAX:
        raise BrokenInvariant("the clip is out of range")
    terms: list[Term] = []
    offset = 0
    for place, item in enumerate(plan.layout.items):
        size = plan.scale.sigmas[plan.layout.places[place]] / plan.scale.law.size_steps if plan.scale.sigmas else None
        counted = Counted(rows_max=rows_max, grid_log2=plan.scale.grid_log2, size=size)
        term = _term(item, codings, offset, counted)
        terms += [] if term is None else [term]
        offset += item.size
    return tuple(terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The steps in which an item is counted: those of the grid, or the item's own steps, of a given `size`."""

    rows_max: int
    grid_log2: int
    size: float | None

    def shift(self, step_log2: int, *, of: str) -> int:
        """The shift from steps of 2**step_log2 to grid steps. Raises BrokenInvariant for a grid far too coarse."""
        shift = step_log2 - self.grid_log2
        if shift < -_SHIFT_MAX:
            raise BrokenInvariant(f"the grid is too coarse for the {of}")
        return shift

    def quotient(self, step_log2: int) -> Quotient | None:
        """The quotient from steps of 2**step_log2 to the item's own steps; None if the item has none."""
        return None if self.size is None else quotient_for(step_log2=step_log2, size=self.size)

    def checked(self, value: int, step_log2: int) -> int:
        """A value in steps of 2**step_log2 as it is counted. Raises BrokenInvariant if rows may add up to too much."""
        counted, most = rounded(value, step_log2 - self.grid_log2), TOTAL_MAX
        if self.size is not None:
            counted, most = quotient_for(step_log2=step_log2, size=self.size).of(value), STEPS_MAX
        if abs(counted) * self.rows_max > most:
            raise BrokenInvariant(f"an individual's rows could add up to more than 2^{most.bit_length() - 1} steps")
        return counted


def _term(item: PlanItem, codings: Mapping[str, Coding], offset: int, counted: Counted) -> Term | None:
    """The term of an item; None for a tick, and for products, which have factors instead."""
    if item.is_unit:
        if item.column is not None and codings[item.column].span + 1 != item.size:
            raise BrokenInvariant("a histogram is not as wide as its column")
        if (unit := counted.checked(1, 0)) == 0:
            raise BrokenInvariant("the steps are too coarse to count rows")
        return Unit(offset=offset, column=item.column, value=unit)
    if item.column is None:
        return None
    if item.matrix is not None:
        return _spread(item.column, item.matrix, item.size, codings[item.column], offset, counted)
    return _value(item.column, codings[item.column], offset, counted)


def _value(column: str, coding: Coding, offset: int, counted: Counted) -> Value:
    # Zero times anything is zero in steps of any size, however small those of the product are.
    is_zero = coding.offset == coding.span == 0
    step_log2 = counted.grid_log2 if is_zero else coding.step_log2
    for bound in (coding.offset, coding.offset + coding.span):
        counted.checked(bound, step_log2)
    return Value(
        offset=offset,
        column=column,
        coding_offset=coding.offset,
        shift=0 if counted.size is not None else counted.shift(step_log2, of="column"),
        quotient=_SAME if is_zero and counted.size is not None else counted.quotient(step_log2),
    )


def _spread(column: str, matrix: SparseMatrix, size: int, coding: Coding, offset: int, counted: Counted) -> Spread:
    """The term of a matrix. Weights that are zero in the item's steps have no entry."""
    for bound in (min(matrix.steps), max(matrix.steps)):
        counted.checked(bound, matrix.step_log2)
    functionals, steps = np.array(matrix.functionals, dtype=np.int64), np.array(matrix.steps, dtype=np.int64)
    quotient = counted.quotient(matrix.step_log2)
    values = (
        shifted(steps, counted.shift(matrix.step_log2, of="weights")) if quotient is None else quotient.of_all(steps)
    )
    owners = np.repeat(np.arange(len(matrix.starts) - 1), np.diff(matrix.starts))
    if owners.size != values.size or functionals.max() >= size or len(matrix.starts) - 2 != coding.span:
        raise BrokenInvariant("a matrix is not as large as it says")
    counts = np.bincount(owners[values != 0], minlength=coding.span + 2)
    return Spread(
        column=column,
        most=matrix.most,
        starts=np.cumsum(counts) - counts,
        counts=counts,
        entry_coordinates=functionals[values != 0] + offset,
        entry_values=values[values != 0],
    )


def _moved(bases: Integers, offset: int) -> Integers:
    """`bases + offset`, still a zero-stride view if `bases` is one."""
    if offset == 0:
        return bases
    return uniform(first(bases) + offset, bases.size) if is_uniform(bases) else bases + offset
