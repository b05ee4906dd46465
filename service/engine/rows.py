"""The rows of a table as a query reads them, and the rows that it has chosen, in runs of bounded size.

A column is stored with the rows, or belongs to the individuals of the rows, or is calculated when it is first read.
Calculation is by elementwise integer operations, so that a value is a function of its row and of public bounds alone.
NULL in any operand gives NULL.

A run is the unit in which vectors are made, and ends where an individual ends. Large pieces are cut and small pieces
are put together. So the number of rows decides how many runs there are, and memory has a public bound
(`service.query.working_memory`). There is always a run, even without rows: a query that selects nothing takes the same
steps as a query that selects one row.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from service.arrays import Codes, Element, Integers, Mask, take
from service.query.columns import (
    CODE_TABLE_SPAN_MAX,
    DIGEST_CODING,
    Addend,
    Calculated,
    Coding,
    Cyclic,
    Folded,
    Formula,
    Intervals,
    OwnColumn,
    Placed,
    QueryColumn,
    ReaderFormula,
    Weighted,
)
from service.query.working_memory import TABLE_SPAN_MAX

_MIXING: Final = tuple(
    (np.uint64(bits), np.uint64(factor)) for bits, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
)


class ColumnReader(Protocol):
    """Makes the codes of a column that cannot be calculated from the numbers of one row."""

    def codes(self, table: "TableRows", rows: slice | Integers) -> Codes:
        """The codes (k,) of k rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRows:
    """All n rows of a table of individuals, or of one page of a table of events."""

    stored: Mapping[str, Codes]  # (n,) each
    columns: Mapping[str, QueryColumn]  # those that the query reads
    owners: NDArray[np.uint16] | None = None  # (n,) of events: the individual within its page
    individuals: Mapping[str, Codes] = field(default_factory=dict)  # of events: the individuals of the page
    first_slot: int = 0  # of events: the first individual of the page
    tables: Mapping[str, Codes] = field(default_factory=dict)  # of columns in intervals: by the code cut up
    readers: Mapping[str, ColumnReader] = field(default_factory=dict)


class RowView(dict[str, Codes]):
    """The codes (k,) by column of k rows of a table. Columns that have been read are in the dictionary."""

    def __init__(self, table: TableRows, rows: slice | Integers) -> None:
        self._table, self._rows = table, rows

    def __missing__(self, name: str) -> Codes:
        column = self._table.columns.get(name)
        if column is None or column.formula is None:
            codes = take(self._table.stored[name], self._rows)
        else:
            codes = self._made(column, column.formula)
        self[name] = codes
        return codes

    def _made(self, column: QueryColumn, formula: Formula) -> Codes:
        """The codes of a column that is not stored in the table itself."""
        match formula:
            case OwnColumn(column=own):
                return take(self._table.individuals[own], self._owners())
            case Calculated():
                return self._calculated(formula, column.coding)
            case Intervals() | Weighted() | Placed():
                codes = self[formula.column]
                if column.name in self._table.tables:
                    return take(self._table.tables[column.name], codes)
                return sought_codes(formula, column.coding, self._table.columns[formula.column].coding, codes)
            case Folded():
                return _folds(self[formula.column], formula, column.coding)
            case Cyclic():
                return self._cyclic(formula, column.coding)
            case ReaderFormula():
                return self._table.readers[column.name].codes(self._table, self._rows)

    def _owners(self) -> Integers:
        if self._table.owners is None:
            raise KeyError("rows of individuals have no owner")
        return take(self._table.owners, self._rows).astype(np.int64)

    def _calculated(self, formula: Calculated, coding: Coding) -> Codes:
        steps, is_null = self._steps(formula.left)
        if formula.right is not None:
            other, other_null = self._steps(formula.right)
            is_null = other_null if is_null is None else is_null if other_null is None else is_null | other_null
            steps = _combined(formula.operator, steps, other)
        elif formula.operator == "abs":
            steps = np.abs(steps)
        else:
            steps = np.clip(steps, formula.low, formula.high)
        return _coded(np.broadcast_to(steps - coding.offset, self._shape()), is_null, coding)

    def _cyclic(self, formula: Cyclic, coding: Coding) -> Codes:
        codes = self[formula.column]
        numbers = (codes.astype(np.int64) + formula.offset) // formula.divisor + formula.added
        if formula.modulus is not None:
            numbers %= formula.modulus
        return _coded(numbers, codes == self._table.columns[formula.column].coding.null_code, coding)

    def _steps(self, term: Addend) -> tuple[Integers, Mask | None]:
        """An operand in whole steps, and where it is NULL; for a constant one number and None."""
        if term.column is None:
            return np.array(term.offset, dtype=np.int64), None
        codes, coding = self[term.column], self._table.columns[term.column].coding
        is_null = codes == coding.null_code
        steps = np.where(is_null, 0, codes).astype(np.int64) + term.offset
        if term.shift >= 0:
            return np.left_shift(steps, term.shift), is_null
        return _shifted_right(steps, -term.shift), is_null

    def _shape(self) -> tuple[int]:
        return (self._rows.stop - self._rows.start if isinstance(self._rows, slice) else self._rows.size,)


def code_tables(columns: Mapping[str, QueryColumn]) -> dict[str, Codes]:
    """The tables from code to code, NULL too, of columns in intervals, with weights or of places over small domains."""
    tables = {}
    for name, column in columns.items():
        if not isinstance(column.formula, (Intervals, Weighted, Placed)):
            continue
        own = columns[column.formula.column].coding
        if isinstance(column.formula, Placed) and own.span <= TABLE_SPAN_MAX:
            table = np.full(own.null_code + 1, column.coding.null_code, dtype=column.coding.dtype)
            table[np.array(column.formula.codes)] = np.arange(len(column.formula.codes), dtype=column.coding.dtype)
            tables[name] = table
        elif own.span <= CODE_TABLE_SPAN_MAX:
            tables[name] = sought_codes(
                column.formula, column.coding, own, np.arange(own.null_code + 1, dtype=np.uint64)
            )
    return tables


def sought_codes(formula: Intervals | Weighted | Placed, coding: Coding, own: Coding, codes: Codes) -> Codes:
    """The codes (k,), or NULL, that the formula gives for `codes` (k,) of a column with the coding `own`; by search."""
    sought = codes.astype(np.int64)
    if isinstance(formula, Intervals):
        places = np.searchsorted(np.array(formula.thresholds, dtype=np.int64), sought, side="right") - 1
        return _coded(places, (places < 0) | (places > coding.span), coding)
    listed = np.array(formula.codes, dtype=np.int64)
    order = np.argsort(listed) if isinstance(formula, Placed) else np.arange(listed.size)  # weighted codes increase
    listed = listed[order]
    places = np.minimum(np.searchsorted(listed, sought), listed.size - 1)
    is_listed = listed[places] == sought
    if isinstance(formula, Placed):
        return _coded(order[places], ~is_listed, coding)
    weights = np.where(is_listed, np.array(formula.steps, dtype=np.int64)[order[places]], 0)
    return _coded(weights - coding.offset, codes == own.null_code, coding)


def _folds(digests: Codes, formula: Folded, coding: Coding) -> Codes:
    """The fold (k,) of each digest (k,), mixed with the seed as SplitMix64 mixes (Steele, Lea and Flood 2014)."""
    mixed = digests + np.uint64(formula.seed)
    for bits, factor in _MIXING:
        mixed ^= mixed >> bits
        mixed *= factor
    mixed ^= mixed >> np.uint64(31)
    mixed >>= np.uint64(32)
    mixed *= np.uint64(formula.count)
    return _coded((mixed >> np.uint64(32)).astype(np.int64), digests == DIGEST_CODING.null_code, coding)


def _combined(operator: str, left: Integers, right: Integers) -> Integers:
    joined: Integers = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[operator](left, right)
    return joined


def _shifted_right(steps: Integers, bits: int) -> Integers:
    """`steps / 2**bits` rounded half up. Every operand has less than 62 bits, so that a shift by more gives zero."""
    if bits > 62:
        return np.zeros_like(steps)
    return np.right_shift(steps + (1 << (bits - 1)), bits)


def _coded(codes: Integers, is_null: Mask | None, coding: Coding) -> Codes:
    coded: Codes = codes.astype(coding.dtype)
    if is_null is not None:
        coded[is_null] = coding.null_code
    return coded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChosenRows:
    """The k rows of a table that a query has chosen."""

    table: TableRows
    rows: Integers  # (k,) increasing
    slots: Integers  # (k,) the individuals that the rows are of, not decreasing
    selected: Integers | None = None  # (k,) how many rows of each one's individual are selected; None: all rows count

    def parts(self, rows_max: int) -> "Iterable[ChosenRows]":
        """The piece cut as `cuts` does."""
        return (self._part(part) for part in cuts(self.slots, rows_max)) if self.rows.size > rows_max else (self,)

    def slices(self, rows_max: int) -> "Iterator[ChosenRows]":
        """The piece cut after every `rows_max` rows, even between two rows of one individual."""
        return (self._part(slice(start, start + rows_max)) for start in range(0, self.rows.size, rows_max))

    def _part(self, part: slice) -> "ChosenRows":
        selected = None if self.selected is None else self.selected[part]
        return ChosenRows(table=self.table, rows=self.rows[part], slots=self.slots[part], selected=selected)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Pieces, at least one, that are worked on together. No individual is in two runs."""

    pieces: Sequence[ChosenRows]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(piece.rows.size for piece in self.pieces)

    @property
    def slots(self) -> Integers:
        """The individuals of the k rows, (k,), not decreasing."""
        return _joined([piece.slots for piece in self.pieces])

    def selected(self, slots: Integers) -> Integers:
        """The number of selected rows (m,) of each individual in `slots` (m,) of the run."""
        selected = _joined([piece.selected for piece in self.pieces if piece.selected is not None])
        return selected[np.searchsorted(self.slots, slots)]

    def codes(self, names: Collection[str]) -> dict[str, Codes]:
        """Some columns (k,) of the k rows."""
        if not names:
            return {}
        views = [RowView(piece.table, piece.rows) for piece in self.pieces]
        return {name: _joined([view[name] for view in views]) for name in names}


def runs(pieces: Iterable[ChosenRows], rows_max: int) -> Iterator[Run]:
    """All rows of the pieces in order, at most `rows_max` in a run, or all rows of one individual if these are more.

    There is at least one piece, and no individual has rows in two pieces.
    """
    held: list[ChosenRows] = []
    rows = 0
    for part in chain.from_iterable(piece.parts(rows_max) for piece in pieces):
        if part.rows.size == 0 and held:
            continue
        if rows > 0 and rows + part.rows.size > rows_max:
            yield Run(pieces=held)
            rows = 0
        held = [*held, part] if rows > 0 else [part]
        rows += part.rows.size
    yield Run(pieces=held)


def cuts(owners: NDArray[np.integer[Any]], rows_max: int) -> Iterator[slice]:
    """Slices of `owners` (k,), which do not decrease; each slice ends where the rows of an owner end.

    A slice has at most `rows_max` rows, or all rows of one owner if these are more. Without rows there is one empty
    slice.
    """
    start = 0
    while start + rows_max < owners.size:
        beyond = owners[start + rows_max]
        stop = int(np.searchsorted(owners, beyond))
        if stop <= start:
            stop = int(np.searchsorted(owners, beyond, side="right"))
        yield slice(start, stop)
        start = stop
    if start < owners.size or start == 0:
        yield slice(start, owners.size)


def _joined(parts: Sequence[NDArray[Element]]) -> NDArray[Element]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
