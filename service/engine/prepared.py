"""A plan made ready for the rows of one table: which of them it chooses, and what each of those adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.engine.access_paths import Cover, covers, listings_of
from service.engine.memory import DatasetMemory
from service.engine.row_view import TableRows, interval_tables
from service.engine.selection import Select, columns_of, conjuncts, every, selection
from service.engine.sparse_vectors import Entries
from service.engine.terms import Groups, Stack, Term, Unit, groups_of, stacked, terms_of
from service.query.coding import Coding
from service.query.formulas import OwnColumn
from service.query.plan import Plan
from service.query.schema import EventsTable

Codes = NDArray[np.unsignedinteger]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def prepared(plan: Plan, memory: DatasetMemory) -> "PreparedPlan":
    """The plan for its table in memory. Raises BrokenInvariant unless its public bounds keep all within int64."""
    table = memory.schema.table(plan.table)
    codings = {**memory.codings(plan.table), **{name: column.coding for name, column in plan.columns.items()}}
    rows_max = table.rows_per_individual if isinstance(table, EventsTable) else 1
    return PreparedPlan(
        plan=plan,
        is_of_events=isinstance(table, EventsTable),
        codings=codings,
        sieves=tuple(Sieve(columns_of(part), selection(part, codings)) for part in conjuncts(plan.predicate)),
        covers=covers(plan.predicate, codings, lambda listing: memory.admits(plan.table, listing)),
        groups=groups_of(plan, codings),
        terms=terms_of(plan, codings, rows_max=rows_max),
    )


class Sieve(NamedTuple):
    """One condition of all that have to hold, and the columns that it reads."""

    columns: frozenset[str]
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

    @cached_property
    def select(self) -> Select:
        """All sieves at once, for rows of which nothing is known."""
        return every([sieve.select for sieve in self.sieves])

    @cached_property
    def stack(self) -> Stack:
        """The terms as one."""
        return stacked(self.terms, self.codings)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The columns in which a NULL takes a row out of the whole query."""
        if len(self.terms) == 1 and self.terms[0].column is not None:
            return *self.plan.group_by, self.terms[0].column
        return self.plan.group_by

    @cached_property
    def tables(self) -> Mapping[str, Codes]:
        """Of columns in intervals: the interval by the code."""
        return interval_tables(self.plan.columns)

    @cached_property
    def own_columns(self) -> tuple[str, ...]:
        """The columns of the individuals' own records that a query of events reads."""
        formulas = [column.formula for column in self.plan.columns.values()]
        return tuple(formula.column for formula in formulas if isinstance(formula, OwnColumn))

    @cached_property
    def added(self) -> frozenset[str]:
        """The columns that say what a chosen row adds, and where."""
        return frozenset(self.plan.group_by).union(term.column for term in self.terms if term.column is not None)

    def choose(self, columns: Mapping[str, Codes], out: Mask) -> None:
        """Write to `out` (n,) which rows of `columns` (n,) have an entry, as far as that is the same for all items."""
        self.select(columns, out)
        for name in self.required:
            np.logical_and(out, columns[name] <= self.codings[name].span, out=out)

    def among(self, table: TableRows, candidates: Integers, cover: Cover) -> Integers:
        """Which of the `candidates` (c,), increasing rows of a table, have an entry: as `choose` would say.

        One sieve after the other, each on what the last has left; those that the `cover` has been through go last.
        """
        rows, sifted = candidates, frozenset(chain.from_iterable(listings_of([cover])))
        for _, select in sorted(self.sieves, key=lambda sieve: sieve.columns <= sifted):
            chosen = np.empty(rows.size, dtype=np.bool_)
            select(table.at(rows), chosen)
            rows = rows[chosen]
        for name in self.required:
            rows = rows[table.at(rows)[name] <= self.codings[name].span]
        return rows

    def entries(self, columns: Mapping[str, Codes], slots: Integers) -> Entries:
        """The entries of chosen rows (k of them), row by row and item by item.

        `columns` (k,) are those of `added`, and `slots` (k,) the individuals that the rows are of.
        """
        bases = self.groups.bases(columns, slots.size)
        if len(self.terms) == 1:
            (term,) = self.terms
            return Entries(
                owners=slots,
                coordinates=term.coordinates(columns, bases),
                values=term.values(columns, slots.size),
                one_value=isinstance(term, Unit),
            )
        codes = self.stack.codes(columns, slots.size)
        known = self.stack.known(codes)
        coordinates, values = self.stack.coordinates(codes, bases), self.stack.values(codes)
        return Entries(
            owners=np.repeat(slots, len(self.terms)), coordinates=coordinates.T.reshape(-1), values=values.T.reshape(-1)
        ).kept(known.T.reshape(-1))
