"""Which rows a predicate selects, on the codes themselves.

`low <= code <= high` is one subtraction and one comparison: unsigned arithmetic wraps, so a code below `low` comes out
large. NULL is the code above the domain, so it comes out large too, and every
range is false for it by itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from service.core.arrays import Codes, Mask
from service.query.coding import Coding
from service.query.predicate import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within
from service.query.working_memory import RUNS_MAX, TABLE_SPAN_MAX

Select = Callable[[Mapping[str, Codes], Mask], None]
"""Writes to its second argument (n,) whether each row of the columns (n,) is selected."""


def selection(predicate: Predicate, codings: Mapping[str, Coding]) -> Select:
    """The predicate made ready for many blocks of a table. Raises ValueError for codes outside a column's domain."""
    match predicate:
        case All():
            return _constant(value=True)
        case Nothing():
            return _constant(value=False)
        case Within(column, low, high):
            return _range(column, low, high, codings[column])
        case Null(column):
            return _null(column, codings[column])
        case Among(column, codes):
            return _list(column, codes, codings[column])
        case Conjunction(parts):
            return every([selection(part, codings) for part in parts])
        case Disjunction(parts):
            return _combined(np.logical_or, [selection(part, codings) for part in parts])


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts of which every one has to hold; a predicate that is no conjunction is its own only part."""
    return predicate.parts if isinstance(predicate, Conjunction) else (predicate,)


def every(selects: Sequence[Select]) -> Select:
    """Selects what all of them select; there is at least one."""
    return _combined(np.logical_and, selects)


def selects_nulls(predicate: Predicate) -> bool:
    """Whether a row of nothing but NULL is selected; an empty slot looks like one."""
    match predicate:
        case Conjunction(parts):
            return all(selects_nulls(part) for part in parts)
        case Disjunction(parts):
            return any(selects_nulls(part) for part in parts)
        case _:
            return isinstance(predicate, (All, Null))


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate reads."""
    match predicate:
        case Within(column, _, _) | Among(column, _) | Null(column):
            return frozenset({column})
        case Conjunction(parts) | Disjunction(parts):
            return frozenset[str]().union(*(columns_of(part) for part in parts))
        case _:
            return frozenset()


def _constant(*, value: bool) -> Select:
    def select(_: Mapping[str, Codes], out: Mask) -> None:
        out[:] = value

    return select


def _null(column: str, coding: Coding) -> Select:
    null = coding.dtype.type(coding.null_code)

    def select(columns: Mapping[str, Codes], out: Mask) -> None:
        np.equal(columns[column], null, out=out)

    return select


@lru_cache(maxsize=4096)
def _range(column: str, low: int, high: int, coding: Coding) -> Select:
    if not 0 <= low <= high <= coding.span:
        raise ValueError(f"{low}..{high} is no range of codes of {column}")
    first, width = coding.dtype.type(low), coding.dtype.type(high - low)

    def select_equal(columns: Mapping[str, Codes], out: Mask) -> None:
        np.equal(columns[column], first, out=out)

    def select_below(columns: Mapping[str, Codes], out: Mask) -> None:
        np.less_equal(columns[column], width, out=out)

    def select_between(columns: Mapping[str, Codes], out: Mask) -> None:
        np.less_equal(columns[column] - first, width, out=out)

    if width == 0:
        return select_equal
    return select_below if first == 0 else select_between


def _list(column: str, codes: Iterable[int], coding: Coding) -> Select:
    """Few runs of codes as ranges, a small domain as a table, a large one as a sorted list."""
    listed = np.unique(np.array(list(codes), dtype=coding.dtype))
    if listed.size == 0 or int(listed[-1]) > coding.span:
        raise ValueError(f"the codes listed must be codes of {column}")
    gaps = np.flatnonzero(np.diff(listed) > 1)
    if gaps.size < RUNS_MAX:
        lows, highs = listed[[0, *(gaps + 1)]].tolist(), listed[[*gaps, -1]].tolist()
        ranges = [_range(column, low, high, coding) for low, high in zip(lows, highs, strict=True)]
        return _combined(np.logical_or, ranges)
    if coding.span <= TABLE_SPAN_MAX:
        table = np.zeros(coding.null_code + 1, dtype=np.bool_)
        table[listed] = True
        return lambda columns, out: _copy(table.take(columns[column]), out)
    return lambda columns, out: _copy(_found(listed, columns[column]), out)


def _found(listed: Codes, codes: Codes) -> Mask:
    places = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
    return np.equal(listed[places], codes)


def _copy(mask: Mask, out: Mask) -> None:
    out[:] = mask


def _combined(operation: np.ufunc, parts: Sequence[Select]) -> Select:
    first, *others = parts

    def select(columns: Mapping[str, Codes], out: Mask) -> None:
        first(columns, out)
        part_out = np.empty_like(out) if others else out
        for part in others:
            part(columns, part_out)
            operation(out, part_out, out=out)

    return select
