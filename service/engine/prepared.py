"""A plan made ready for the rows of one table: which of them it chooses, and what each chosen row adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from service.arrays import Codes, Integers, Mask, kept, take
from service.engine.features import vectors_read
from service.engine.memory import DatasetMemory
from service.engine.own_events import OwnEventsReader
from service.engine.predictions import PredictionReader
from service.engine.rows import ColumnReader, RowView, TableRows, code_tables
from service.engine.selection import Cover, Select, columns_of, covers, every, selection
from service.engine.sparse_vectors import Entries, ItemClips, RowEntries, side_by_side
from service.engine.terms import Groups, SingleTerm, Spread, Stack, Term, Unit, groups_of, stacked, terms_of
from service.query.columns import Coding, OwnColumn, Placed, Weighted
from service.query.conditions import Conjunction, Predicate
from service.query.own_events import OwnTotal
from service.query.plan import Plan
from service.query.predictions import Predicted
from service.query.schema import EventsTable


def prepared(plan: Plan, memory: DatasetMemory) -> "PreparedPlan":
    """The plan made ready for its table in memory. Raises BrokenInvariant unless its bounds keep all within int64."""
    table = memory.schema.tables[plan.rows.table]
    codings = {**memory.codings[plan.rows.table], **{name: column.coding for name, column in plan.rows.columns.items()}}
    is_of_events = isinstance(table, EventsTable)
    index = memory.events[plan.rows.table] if is_of_events else memory.people.indexes
    parts = plan.rows.predicate.parts if isinstance(plan.rows.predicate, Conjunction) else (plan.rows.predicate,)
    rows_max = (plan.rows.rows_kept or 1) * (table.rows_per_individual if isinstance(table, EventsTable) else 1)
    return PreparedPlan(
        plan=plan,
        is_of_events=is_of_events,
        codings=codings,
        sieves=tuple(Sieve(part, selection(part, codings)) for part in parts),
        covers=covers(plan.rows.predicate, codings, index.admit),
        groups=groups_of(plan, codings),
        terms=terms_of(plan, codings, rows_max=rows_max),
        tables=(tables := code_tables(plan.rows.columns)),
        readers=_readers(plan, memory, tables),
    )


def _readers(plan: Plan, memory: DatasetMemory, tables: Mapping[str, Codes]) -> dict[str, ColumnReader]:
    """The readers of the columns that need one."""
    readers: dict[str, ColumnReader] = {}
    for name, column in plan.rows.columns.items():
        if isinstance(column.formula, Predicted):
            vectors = vectors_read(column.formula.features, memory)
            readers[name] = PredictionReader(column.formula, column.coding, plan.rows.columns, tables, vectors)
        elif isinstance(column.formula, OwnTotal):
            readers[name] = OwnEventsReader(column.formula, column.coding, memory)
    return readers


class Sieve(NamedTuple):
    """One of the conditions that a row has to meet."""

    condition: Predicate
    select: Select


@dataclass(frozen=True, kw_only=True)
class PreparedPlan:
    """A plan made ready for the rows of one table."""

    plan: Plan
    is_of_events: bool  # individuals may have many rows, or one each
    codings: Mapping[str, Coding]
    sieves: tuple[Sieve, ...]
    covers: tuple[Cover, ...]  # ways through the inverted indexes, none where every row has to be looked at
    groups: Groups
    terms: tuple[Term, ...]
    tables: Mapping[str, Codes]  # of columns in intervals and with weights: their codes by the code that they are of
    readers: Mapping[str, ColumnReader]

    @cached_property
    def select(self) -> Select:
        """All conditions at once, for rows of which nothing is known."""
        return every([sieve.select for sieve in self.sieves])

    @cached_property
    def singles(self) -> tuple[SingleTerm, ...]:
        """The terms of one entry for each row."""
        return tuple(term for term in self.terms if not isinstance(term, Spread))

    @cached_property
    def alone(self) -> SingleTerm | None:
        """The only term of a query, if individuals have one row each and the term gives one entry; else None."""
        term, *others = self.terms
        return None if self.is_of_events or others or isinstance(term, Spread) else term

    @cached_property
    def stack(self) -> Stack:
        """The terms of one entry for each row, joined in one."""
        return stacked(self.singles, self.codings)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The columns in which a NULL takes a row out of the whole query."""
        if len(self.terms) == 1 and self.terms[0].column is not None:
            return *self.plan.rows.group_by, self._known_by(self.terms[0].column)
        return self.plan.rows.group_by

    def _known_by(self, name: str) -> str:
        """The column that is NULL where `name` is: for a column of weights, the column whose values have them."""
        column = self.plan.rows.columns.get(name)
        return column.formula.column if column is not None and isinstance(column.formula, Weighted) else name

    @cached_property
    def _tested(self) -> tuple[str, ...]:
        """The required columns in which `choose` looks for NULL. The listed values of an item are a condition already.

        Empty where rows are weighed: an individual's weight depends on all rows that the conditions select.
        """
        if self.plan.rows.rows_kept is not None:
            return ()
        return tuple(name for name in self.required if not isinstance(self.plan.rows.columns[name].formula, Placed))

    @cached_property
    def counted_once(self) -> Unit | None:
        """The term that counts individuals, each once in a group; None without such a term."""
        for item, term in zip(self.plan.layout.items, self.terms, strict=True):
            if item.is_once and isinstance(term, Unit) and self.is_of_events:
                return term
        return None

    def is_counted_once(self, coordinates: Integers) -> Mask:
        """The mask (m,) of the coordinates (m,) that belong to the count of individuals."""
        offset = -1 if self.counted_once is None else self.counted_once.offset
        is_once: Mask = coordinates % self.plan.layout.block == offset
        return is_once

    @cached_property
    def item_clips(self) -> ItemClips | None:
        """The clips of the select items, if each item has one; else None."""
        squares, layout = self.plan.scale.clips_squared, self.plan.layout
        if not squares:
            return None
        sizes = [0] * len(squares)
        for place, item in zip(layout.places, layout.items, strict=True):
            sizes[place] += item.size
        return ItemClips(ends=np.cumsum(sizes), norms_squared_max=np.array(squares, dtype=np.int64))

    @cached_property
    def own_columns(self) -> tuple[str, ...]:
        """The columns of the individuals' own records that a query of events reads."""
        formulas = [column.formula for column in self.plan.rows.columns.values()]
        return tuple(formula.column for formula in formulas if isinstance(formula, OwnColumn))

    @cached_property
    def added(self) -> frozenset[str]:
        """The columns that say what a chosen row adds, and where."""
        return frozenset(self.plan.rows.group_by).union(term.column for term in self.terms if term.column is not None)

    def choose(self, columns: Mapping[str, Codes], out: Mask) -> None:
        """Write to `out` (n,) which rows of `columns` (n,) have an entry, as far as that is the same for all items."""
        self.select(columns, out)
        for name in self._tested:
            np.logical_and(out, columns[name] <= self.codings[name].span, out=out)

    def among(self, table: TableRows, candidates: Integers, cover: Cover) -> Integers:
        """The rows of a table that `choose` would mark, among increasing `candidates` (c,).

        One condition after the other tests the rows that the conditions before have left. Conditions that the `cover`
        has already met go last.
        """
        rows, sieves = candidates, self.sieves
        if len(sieves) > 1:
            sifted = {name for stretch in cover for name in stretch.listing}
            sieves = tuple(sorted(sieves, key=lambda sieve: columns_of(sieve.condition) <= sifted))
        for _, select in sieves:
            chosen = np.empty(rows.size, dtype=np.bool_)
            select(RowView(table, rows), chosen)
            rows = rows[chosen]
        for name in self._tested:
            rows = rows[RowView(table, rows)[name] <= self.codings[name].span]
        return rows

    def counted(self, table: TableRows, rows: Integers) -> tuple[Integers, Integers | None]:
        """The selected rows (k,) of events that have an entry, and for each how many selected rows its individual has.

        These numbers are None where all rows count. They include rows with NULL: `rows` must hold all selected rows of
        an individual.
        """
        if self.plan.rows.rows_kept is None or table.owners is None:
            return rows, None
        owners = take(table.owners, rows)
        selected = np.bincount(owners)[owners] if owners.size else np.empty(0, dtype=np.int64)
        for name in self.required:
            is_known = RowView(table, rows)[name] <= self.codings[name].span
            rows, selected = rows[is_known], selected[is_known]
        return rows, selected

    def entries(self, columns: Mapping[str, Codes], slots: Integers) -> Entries:
        """The entries of k chosen rows, row by row and item by item.

        `columns` (k,) are those of `added`, and `slots` (k,) are the individuals of the rows.
        """
        bases = self.groups.bases(columns, slots.size)
        if len(self.terms) == 1 and self.singles:
            (term,) = self.singles
            return Entries(
                owners=slots,
                coordinates=term.coordinates(columns, bases),
                values=term.values(columns, slots.size),
                one_value=isinstance(term, Unit),
            )
        spreads = [term.entries(columns, bases) for term in self.terms if isinstance(term, Spread)]
        if not self.singles:
            return side_by_side(spreads, slots)
        places, values, known = self._of_singles(columns, bases)
        if not spreads:
            owners = np.repeat(slots, len(self.singles))
            return Entries(owners=owners, coordinates=places, values=values).kept(known)
        counts = np.count_nonzero(known.reshape(-1, len(self.singles)), axis=1)
        singles = RowEntries(counts=counts, coordinates=kept(known, places), values=kept(known, values))
        return side_by_side([singles, *spreads], slots)

    def _of_singles(self, columns: Mapping[str, Codes], bases: Integers) -> tuple[Integers, Integers, Mask]:
        """The coordinates and values of the terms of one entry, row by row, and which of them are not NULL."""
        codes = self.stack.codes(columns, bases.size)
        places, values = self.stack.coordinates(codes, bases), self.stack.values(codes)
        return places.T.reshape(-1), values.T.reshape(-1), self.stack.known(codes).T.reshape(-1)
