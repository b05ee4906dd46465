"""The rows that a predicate selects, by the codes themselves, and the lists of an inverted index that hold these rows.

`low <= code <= high` is one subtraction and one comparison: unsigned arithmetic wraps, so a code below `low` becomes
large. NULL is the code above the domain. So it is large after the subtraction too, and no range selects it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np

from service.arrays import Codes, Integers, Mask
from service.engine.inverted import InvertedPages, Listing
from service.query.columns import Coding
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within, leaves_of
from service.query.working_memory import LISTED_MAX, RUNS_MAX, SCAN_WORTH, TABLE_SPAN_MAX

Select = Callable[[Mapping[str, Codes], Mask], object]
"""Writes to its second argument (n,) whether each row of the columns (n,) is selected."""
Rows = Codes
Indexes = Mapping[Listing, InvertedPages]
_LISTS_MAX: Final = 64  # a list of more values is looked up in a table: each would be read page by page
_CHOICE_MAX: Final = 4  # of so many conditions with the most values a pair is chosen


@dataclass(frozen=True, slots=True)
class CodeRange:
    """The codes from `low` to `high` of one listing."""

    listing: Listing
    low: int
    high: int


Cover = tuple[CodeRange, ...]
"""Code ranges that together list every row of a predicate, and may list other rows."""


def selection(predicate: Predicate, codings: Mapping[str, Coding]) -> Select:
    """The predicate made ready for many blocks of a table. Raises ValueError for codes outside a column's domain."""
    match predicate:
        case All():
            return lambda _, out: out.fill(1)
        case Nothing():
            return lambda _, out: out.fill(0)
        case Within(column, low, high):
            return _range(column, low, high, codings[column])
        case Null(column):
            null = codings[column].dtype.type(codings[column].null_code)
            return lambda columns, out: np.equal(columns[column], null, out=out)
        case Among(column, codes):
            return _list(column, codes, codings[column])
        case Conjunction(parts):
            return every([selection(part, codings) for part in parts])
        case Disjunction(parts):
            return _combined(np.logical_or, [selection(part, codings) for part in parts])


def every(selects: Sequence[Select]) -> Select:
    """Selects the rows that all of `selects`, at least one, select."""
    return _combined(np.logical_and, selects)


def selects_nulls(predicate: Predicate) -> bool:
    """Tell whether a row is selected in which every value is NULL; an empty slot looks like such a row."""
    match predicate:
        case Conjunction(parts):
            return all(selects_nulls(part) for part in parts)
        case Disjunction(parts):
            return any(selects_nulls(part) for part in parts)
        case _:
            return isinstance(predicate, (All, Null))


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The columns that a predicate reads."""
    return frozenset(leaf.column for leaf in leaves_of(predicate) if not isinstance(leaf, All | Nothing))


def covers(predicate: Predicate, codings: Mapping[str, Coding], listed: Callable[[Listing], bool]) -> tuple[Cover, ...]:
    """Every cover worth comparing. There is none if what is `listed` cannot answer the predicate."""
    match predicate:
        case Within(column, low, high) if listed((column,)):
            return ((CodeRange((column,), low, high),),)
        case Among(column, codes) if listed((column,)) and len(codes) <= _LISTS_MAX:
            return (tuple(CodeRange((column,), code, code) for code in codes),)
        case Conjunction(parts):
            return _of_any(tuple(_narrowed(parts)), codings, listed)
        case Disjunction(parts):
            return _of_all([covers(part, codings, listed) for part in parts])
        case Nothing():
            return ((),)
        case _:
            return ()


def listings_of(covers: Sequence[Cover]) -> frozenset[Listing]:
    """The listings whose indexes the covers read."""
    return frozenset(stretch.listing for cover in covers for stretch in cover)


def shortest(covers: Sequence[Cover], indexes: Indexes, *, rows: int) -> Cover | None:
    """The cover that lists the fewest rows; None if a scan of all `rows` is faster."""
    counts = [sum(indexes[each.listing].count(each.low, each.high) for each in cover) for cover in covers]
    fewest = min(counts, default=rows)
    is_short = SCAN_WORTH * fewest <= rows and fewest <= LISTED_MAX
    return covers[counts.index(fewest)] if is_short and counts else None


def candidates(cover: Cover, indexes: Indexes, *, page_rows: int) -> Integers:
    """The rows that a cover lists, increasing, each once. The indexes are of pages of `page_rows` rows each."""
    lists = [indexes[stretch.listing].rows(stretch.low, stretch.high) for stretch in cover]
    if len(cover) == 1 and cover[0].low == cover[0].high:
        pages = lists[0]
    else:
        pages = [_merged(listed) for listed in zip(*lists, strict=True)]
    if not pages:
        return np.empty(0, dtype=np.int64)
    rows = np.concatenate(pages, dtype=np.int64)
    if len(pages) > 1:
        rows += _firsts(len(pages), page_rows).repeat([page.size for page in pages])
    return rows


@lru_cache(maxsize=4096)
def _range(column: str, low: int, high: int, coding: Coding) -> Select:
    if not 0 <= low <= high <= coding.span:
        raise ValueError(f"{low}..{high} is no range of codes of {column}")
    first, width = np.array([low, high - low], dtype=coding.dtype)

    if width == 0:
        return lambda columns, out: np.equal(columns[column], first, out=out)
    if first == 0:
        return lambda columns, out: np.less_equal(columns[column], width, out=out)
    return lambda columns, out: np.less_equal(columns[column] - first, width, out=out)


def _list(column: str, codes: Iterable[int], coding: Coding) -> Select:
    """Selects listed codes: few runs of codes as ranges, a small domain by a table, a large domain by a sorted list."""
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
        return lambda columns, out: np.copyto(out, table.take(columns[column]))
    return lambda columns, out: np.copyto(out, _found(listed, columns[column]))


def _found(listed: Codes, codes: Codes) -> Mask:
    places = np.minimum(np.searchsorted(listed, codes), listed.size - 1)
    return np.equal(listed[places], codes)


def _combined(operation: np.ufunc, parts: Sequence[Select]) -> Select:
    first, *others = parts

    def select(columns: Mapping[str, Codes], out: Mask) -> None:
        first(columns, out)
        part_out = np.empty_like(out) if others else out
        for part in others:
            part(columns, part_out)
            operation(out, part_out, out=out)

    return select


def _narrowed(parts: Sequence[Predicate]) -> Iterator[Predicate]:
    """The parts of a conjunction; several ranges of one column are cut to what they have in common."""
    ranges: dict[str, Within] = {}
    for part in parts:
        if isinstance(part, Within):
            kept = ranges.get(part.column, part)
            ranges[part.column] = Within(part.column, max(kept.low, part.low), min(kept.high, part.high))
        else:
            yield part
    for each in ranges.values():
        yield each if each.low <= each.high else Nothing()


def _of_any(
    parts: Sequence[Predicate], codings: Mapping[str, Coding], listed: Callable[[Listing], bool]
) -> tuple[Cover, ...]:
    """The covers of each part of a conjunction; two parts with an index of pairs have one shorter cover for both."""
    pair = _pair([part for part in parts if isinstance(part, (Within, Among))], codings, listed)
    apart = [covers(part, codings, listed) for part in parts if pair is None or part not in pair]
    together = () if pair is None else (_paired(*pair, codings),)
    return (*together, *chain.from_iterable(apart))


def _pair(
    leaves: Sequence[Within | Among], codings: Mapping[str, Coding], listed: Callable[[Listing], bool]
) -> tuple[Within, Within | Among] | None:
    """Two conditions on columns with many values that one index lists together, the first for one value; or None."""
    most = sorted(leaves, key=lambda leaf: -codings[leaf.column].span)
    ones = [leaf for leaf in most if isinstance(leaf, Within) and leaf.low == leaf.high]
    for first in ones[:_CHOICE_MAX]:
        for second in most[:_CHOICE_MAX]:
            if first.column != second.column and listed((first.column, second.column)):
                return first, second
    return None


def _paired(first: Within, second: Within | Among, codings: Mapping[str, Coding]) -> Cover:
    """The cover of two conditions in an index of pairs, in which all pairs with the first's value lie side by side."""
    listing = first.column, second.column
    base = first.low * (codings[second.column].span + 1)
    if isinstance(second, Within):
        return (CodeRange(listing, base + second.low, base + second.high),)
    return tuple(CodeRange(listing, base + code, base + code) for code in second.codes)


def _of_all(parts: Sequence[Sequence[Cover]]) -> tuple[Cover, ...]:
    """A cover of every part of a disjunction. It takes the first cover of each part: comparing all is not worth it."""
    return (tuple(stretch for part in parts for stretch in part[0]),) if all(parts) else ()


def _merged(lists: Sequence[Rows]) -> Rows:
    """The rows of several lists of one page, increasing, each once."""
    listed = np.sort(np.concatenate(lists), kind="stable")  # of two bytes each: a radix sort
    is_first = np.ones(listed.size, dtype=np.bool_)
    np.not_equal(listed[1:], listed[:-1], out=is_first[1:])
    merged: Rows = listed[is_first]
    return merged


@lru_cache(maxsize=64)  # datasets grow by pages, and numpy would give up the GIL to count to sixteen
def _firsts(pages: int, page_rows: int) -> Integers:
    """The number of the first row of each page, counted over all pages."""
    firsts = np.arange(0, pages * page_rows, page_rows)
    firsts.flags.writeable = False
    return firsts
