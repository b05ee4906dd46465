"""The features of rows, whole numbers in doubles: looked up in tables where a column has few values, else calculated.

A table is made by the same arithmetic on every code of the column, so that the table changes no feature. Where one line
goes through all values of a table, features are calculated from the codes by that line. Declared bounds alone decide
between table, line and calculation. Vectors come from blocks. With vectors, the features of one individual lie side by
side in memory, as they do in a block.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np

from service.arrays import Codes, Integers, Mask, Reals
from service.engine.memory import DatasetMemory
from service.engine.rows import RowView, TableRows
from service.engine.vectors import VectorView
from service.query.columns import QueryColumn
from service.query.features import FeatureMap, Number, OneHot, Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """A number feature by the code of a stored column."""

    column: str
    values: Reals  # (codes,) feature steps, NULL last
    line: tuple[float, float] | None  # slope and start, where floor(slope * code + start) is each value


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Features in consecutive rows of a matrix that are all lines in their codes, and are calculated together."""

    first: int
    spans: Reals  # (k, 1) the largest code of a value
    slopes: Reals  # (k, 1)
    starts: Reals  # (k, 1)
    fills: Reals  # (k, 1) of NULL
    needing: Integers  # the lines of which NULL leaves a row out

    def make(self, matrix: Reals, known: Mask) -> None:
        """Replace codes (n, p) in the matrix by features; mark rows that lack a needed value as not `known` (p,)."""
        own = matrix[self.first : self.first + self.spans.size]
        is_null = own > self.spans
        own *= self.slopes
        own += self.starts
        np.floor(own, out=own)
        np.copyto(own, self.fills, where=is_null)
        known &= ~is_null[self.needing].any(axis=0)


class FeatureReader:
    """The features of a query, made ready for many blocks of a table; `vectors` has its columns of vectors."""

    def __init__(
        self,
        features: FeatureMap,
        columns: Mapping[str, QueryColumn],
        tables: Mapping[str, Codes],
        vectors: Mapping[str, VectorView] | None = None,
    ) -> None:
        self._features, self._vectors = features, vectors or {}
        self.lookups = {part: _lookup(part, root.column, columns, tables) for part, root in features.tables.items()}
        self._parts = [(part, self.lookups.get(part) if isinstance(part, Number) else None) for part in features.parts]
        self._lines = list(_lines(self._parts))

    def read(self, view: RowView, rows: slice | Integers) -> tuple[Reals, Mask]:
        """The features (n, p) of the view's rows, and which of the rows (p,) have all values that the features need.

        If there are vectors among the features, `rows` are slots.
        """
        count = rows.stop - rows.start if isinstance(rows, slice) else rows.size
        size, known = self._features.size, np.ones(count, dtype=np.bool_)
        matrix = np.empty((count, size)).T if self._features.vectors else np.empty((size, count))
        place = 0
        for part, lookup in self._parts:
            if lookup is not None and lookup.line is not None:
                matrix[place] = view[lookup.column]
            elif isinstance(part, Number):
                _read_number(part, lookup, view, matrix[place], known)
            elif isinstance(part, OneHot):
                _mark(part, view[part.column], matrix[place : place + part.size])
            else:
                own = matrix[place : place + part.size]
                _read_vectors(part, self._vectors[part.column].parts(rows), own.T, known)
            place += part.size
        if self._features.one is not None:
            matrix[place] = self._features.one
        for lines in self._lines:
            lines.make(matrix, known)
        return matrix, known


def vectors_read(features: FeatureMap, memory: DatasetMemory) -> dict[str, VectorView]:
    """The present vectors of a dataset's individuals, for the columns of vectors among the features."""
    return {part.column: memory.people.vectors[part.column].view() for part in features.vectors}


def _read_number(part: Number, lookup: Lookup | None, view: RowView, out: Reals, known: Mask) -> None:
    """Write one feature to `out` (p,), and mark rows that lack a needed value as not `known` (p,)."""
    if lookup is None:
        codes, span = view[part.column], part.span
        out[:] = _numbers(part, codes)
    else:
        codes, span = view[lookup.column], lookup.values.size - 2
        np.take(lookup.values, codes, out=out, mode="clip")
    if part.fill is None:
        np.logical_and(known, codes <= span, out=known)


def _mark(part: OneHot, codes: Codes, out: Reals) -> None:
    """Write one, in feature steps, to `out` (n, p) at each row's own code (p,), and zeros elsewhere."""
    out[:] = 0
    rows = np.flatnonzero(codes <= part.span)
    out[codes[rows].astype(np.int64), rows] = part.largest


def _read_vectors(part: Vector, blocks: Iterable[tuple[int, Codes | None]], out: Reals, known: Mask) -> None:
    """Write each row's vector to `out` (p, n), in feature steps; rows without a vector are not `known` (p,)."""
    start = 0
    for count, rows in blocks:
        stretch = slice(start, start + count)
        if rows is None:
            out[stretch], known[stretch] = 0, False
        else:
            out[stretch] = rows[:, 1:]
            np.logical_and(known[stretch], rows[:, 0], out=known[stretch])
        start += count
    if part.offset:
        out += part.offset
    if part.shift:
        out *= 2.0**part.shift


def _numbers(part: Number, codes: Codes) -> Reals:
    """The values (p,) in feature steps, rounded half up; for NULL the fill, or zero."""
    steps = codes.astype(np.int64)
    steps += part.offset
    if part.shift < 0:
        steps += 1 << (-part.shift - 1)
        np.right_shift(steps, -part.shift, out=steps)
    else:
        np.left_shift(steps, part.shift, out=steps)
    return np.where(codes <= part.span, steps, part.fill or 0).astype(np.float64)


def _lookup(part: Number, root: str, columns: Mapping[str, QueryColumn], tables: Mapping[str, Codes]) -> Lookup:
    """The feature for every code, NULL too, of the column `root` that the feature is calculated from."""
    coding = columns[root].coding
    codes = np.arange(coding.null_code + 1).astype(coding.dtype)
    table = TableRows(stored={root: codes}, columns=columns, tables=tables)
    found = RowView(table, slice(0, codes.size))[part.column]
    values = _numbers(part, found)
    line = _line(part, found.astype(np.int64), values) if codes.size > 1 else None
    return Lookup(column=root, values=values, line=line)


def _line(part: Number, found: Integers, values: Reals) -> tuple[float, float] | None:
    """The slope and the start of a line that gives the feature for every code of the root; None if no line does.

    The line is tried on all codes with the arithmetic that blocks use. This arithmetic on many columns at once takes a
    third of the time of looking numbers up in tables.
    """
    unit, half = 2.0**part.shift, 0.5 if part.shift < 0 else 0.0
    slope = float(found[1] - found[0]) * unit if found.size > 2 else 0.0
    start = float(found[0] + part.offset) * unit + half
    tried = np.arange(values.size - 1, dtype=np.float64)
    tried *= slope
    tried += start
    np.floor(tried, out=tried)
    return (slope, start) if np.array_equal(tried, values[:-1]) else None


def _lines(parts: Sequence[tuple[Number | OneHot | Vector, Lookup | None]]) -> Iterator[_Lines]:
    """The features that are lines, those in consecutive rows together."""
    places = accumulate((part.size for part, _ in parts), initial=0)
    found = [
        (place, (lookup.values.size - 2, *lookup.line, part.fill or 0, part.fill is None))
        for place, (part, lookup) in zip(places, parts, strict=False)
        if isinstance(part, Number) and lookup is not None and lookup.line is not None
    ]
    for _, run in groupby(enumerate(found), lambda each: each[1][0] - each[0]):
        rows = [row for _, row in run]
        spans, slopes, starts, fills, needs = np.array([row for _, row in rows], dtype=np.float64).T[:, :, np.newaxis]
        yield _Lines(rows[0][0], spans, slopes, starts, fills, np.flatnonzero(needs))
