"""From a plan and a dataset to each individual's integer vector and its squared norm, block by block of slots.

Every step is elementwise or exact integer addition over one individual's own entries, in fixed blocks of slots that are
never compacted, so that removing somebody changes nobody else's vector, norm or charge by a bit (theory: invariant A;
tests/laws/test_separability.py). Floats occur only in `service.engine.clipping`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.core.contribution import Contributions
from service.core.few import picked
from service.core.uniform import is_uniform, uniform
from service.engine.access import Cover, candidates, covers, listings_of, shortest
from service.engine.entries import Entries
from service.engine.events import EventPage
from service.engine.invariants import BrokenInvariant
from service.engine.memory import DatasetMemory
from service.engine.pages import PAGE_SLOTS
from service.engine.selection import Select, columns_of, conjuncts, every, selection, selects_nulls
from service.engine.terms import Groups, Term, Value, groups_of, terms_of
from service.query.coding import Coding
from service.query.plan import Plan
from service.query.schema import EventsTable

Codes = NDArray[np.unsignedinteger]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

BLOCK_SLOTS = 8 * PAGE_SLOTS  # of individuals, for one select item: few calls for a million people, in a few megabytes


def contributions(plan: Plan, memory: DatasetMemory) -> Iterator[Contributions]:
    """The individuals whom the query touches, with their vectors in grid steps, in blocks of increasing slots.

    An event table's rows are summed per individual before the norm is taken. Raises BrokenInvariant, before the first
    block, if the plan's public bounds do not keep everything within int64, and at any block that does not keep to them.
    """
    table = memory.schema.table(plan.table)
    codings = memory.codings(plan.table)
    rows_max = table.rows_per_individual if isinstance(table, EventsTable) else 1
    query = _Query(
        plan=plan,
        codings=codings,
        sieves=tuple(Sieve(columns_of(part), selection(part, codings)) for part in conjuncts(plan.predicate)),
        covers=covers(plan.predicate, codings, lambda listing: memory.admits(plan.table, listing)),
        groups=groups_of(plan, codings),
        terms=terms_of(plan, codings, rows_max=rows_max),
    )
    return _of_events(query, memory) if isinstance(table, EventsTable) else _of_individuals(query, memory)


class Sieve(NamedTuple):
    """One condition of all that have to hold, and the columns that it reads."""

    columns: frozenset[str]
    select: Select


@dataclass(frozen=True, kw_only=True)
class _Query:
    """A plan made ready for the blocks of one table."""

    plan: Plan
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
    def required(self) -> tuple[str, ...]:
        """The columns in which a NULL takes a row out of the whole query."""
        if len(self.terms) == 1 and self.terms[0].column is not None:
            return *self.plan.group_by, self.terms[0].column
        return self.plan.group_by

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the query reads."""
        items = {term.column for term in self.terms if term.column is not None}
        return columns_of(self.plan.predicate) | items | set(self.plan.group_by)

    def choose(self, columns: Mapping[str, Codes], out: Mask) -> None:
        """Write to `out` (n,) which rows of `columns` (n,) have an entry, as far as that is the same for all items."""
        self.select(columns, out)
        for name in self.required:
            np.logical_and(out, columns[name] <= self.codings[name].span, out=out)

    def among(self, columns: Mapping[str, Codes], candidates: Integers, cover: Cover) -> Integers:
        """Which of the `candidates` (c,), increasing rows of `columns` (n,), have an entry: as `choose` would say.

        One sieve after the other, each on what the last has left; those that the `cover` has been through go last.
        """
        rows, sifted = candidates, frozenset(chain.from_iterable(listings_of([cover])))
        for read, select in sorted(self.sieves, key=lambda sieve: sieve.columns <= sifted):
            chosen = np.empty(rows.size, dtype=np.bool_)
            select({name: picked(columns[name], rows) for name in read}, chosen)
            rows = rows[chosen]
        for name in self.required:
            rows = rows[picked(columns[name], rows) <= self.codings[name].span]
        return rows

    def entries(self, columns: Mapping[str, Codes], rows: Integers) -> Entries:
        """The entries of the chosen `rows` (k,), row by row and item by item; their owners are the rows."""
        bases = self.groups.bases(columns, rows)
        coordinates = [term.coordinates(columns, rows, bases) for term in self.terms]
        values = [term.values(columns, rows) for term in self.terms]
        if len(self.terms) == 1:
            return Entries(owners=rows, coordinates=coordinates[0], values=values[0])
        return Entries(
            owners=np.repeat(rows, len(self.terms)),
            coordinates=np.stack(coordinates, axis=1).reshape(-1),
            values=np.stack(values, axis=1).reshape(-1),
        ).kept(np.stack([self._is_known(term, columns, rows) for term in self.terms], axis=1).reshape(-1))

    def _is_known(self, term: Term, columns: Mapping[str, Codes], rows: Integers) -> Mask:
        if term.column is None:
            return np.broadcast_to(np.True_, rows.shape)
        return columns[term.column][rows] <= self.codings[term.column].span


def _of_individuals(query: _Query, memory: DatasetMemory) -> Iterator[Contributions]:
    listed = _looked_up(query, memory)
    if listed is not None:
        yield from _of_rows(query, memory.individuals, listed, 0)
        return
    columns_read = {name: codes for name, codes in memory.individuals.items() if name in query.columns}
    slots = max(BLOCK_SLOTS // PAGE_SLOTS // len(query.terms), 1) * PAGE_SLOTS
    chooser = _Chooser(slots)
    for start in range(0, memory.slots_used, slots):
        block = slice(start, min(start + slots, memory.present.size))
        columns = {name: codes[block] for name, codes in columns_read.items()}
        yield from _of_rows(query, columns, _scanned(query, memory, columns, block, chooser), start)


def _of_rows(query: _Query, columns: Mapping[str, Codes], rows: Integers, start: int) -> Iterator[Contributions]:
    """The contributions of chosen rows of a block that begins at slot `start`, if there are any."""
    if rows.size > 0:
        entries = query.entries(columns, rows).moved(start)
        yield _alone(query, entries) if len(query.terms) == 1 else _together(query, entries)


def _looked_up(query: _Query, memory: DatasetMemory) -> Integers | None:
    """The slots by way of the inverted indexes, where these suggest a small part of all; None: a scan is quicker."""
    if not query.covers or memory.slots_used == 0:
        return None
    indexes = memory.inverted(listings_of(query.covers))
    cover = shortest(query.covers, indexes, rows=memory.present.size)
    if cover is None:
        return None
    return query.among(memory.individuals, candidates(cover, indexes, page_rows=PAGE_SLOTS), cover)


def _scanned(
    query: _Query, memory: DatasetMemory, columns: Mapping[str, Codes], block: slice, chooser: "_Chooser"
) -> Integers:
    """The rows of a block of individuals by looking at every one."""
    chosen = chooser.mask(block.stop - block.start)
    query.choose(columns, chosen)
    # An empty slot looks like a record of NULLs; only where such a record counts does it matter that nobody is there.
    if selects_nulls(query.plan.predicate) and not query.required:
        np.logical_and(chosen, memory.present[block], out=chosen)
    return chooser.rows(chosen)


def _of_events(query: _Query, memory: DatasetMemory) -> Iterator[Contributions]:
    for number, page in memory.events(query.plan.table).pages():
        rows = _event_rows(query, page)
        if rows.size > 0:
            entries = query.entries(page.columns, rows).of(page.owners).merged(query.plan.dimension)
            yield _together(query, entries.moved(number * PAGE_SLOTS))


def _event_rows(query: _Query, page: EventPage) -> Integers:
    if query.covers:
        indexes = page.inverted(listings_of(query.covers), query.codings)
        cover = shortest(query.covers, indexes, rows=page.owners.size)
        if cover is not None:
            return query.among(page.columns, candidates(cover, indexes, page_rows=page.owners.size), cover)
    chosen = np.empty(page.owners.size, dtype=np.bool_)
    query.choose(page.columns, chosen)
    return np.flatnonzero(chosen)


def _alone(query: _Query, entries: Entries) -> Contributions:
    """Contributions of one entry each, where the norm is the entry's size and nobody needs to search for it."""
    values = entries.values
    if isinstance(query.terms[0], Value):
        entries = entries.kept(values != 0)
        values = entries.values
    size_max = isqrt(query.plan.clip_squared_steps)
    if query.plan.clip_binds:
        values = _each(lambda sizes: np.clip(sizes, -size_max, size_max), values)
    elif _largest(values) > size_max:
        raise BrokenInvariant("a vector is longer than the declared bounds allow")
    return Contributions(
        slots=entries.owners,
        norms_squared=_each(np.square, values),
        dimension=query.plan.dimension,
        owners=None,
        coordinates=entries.coordinates,
        values=values,
    )


def _together(query: _Query, entries: Entries) -> Contributions:
    """Contributions of several entries each."""
    return entries.kept(entries.values != 0).contributions(
        dimension=query.plan.dimension, norm_squared_max=query.plan.clip_squared_steps, clip_binds=query.plan.clip_binds
    )


def _each(operation: Callable[[Integers], Integers], values: Integers) -> Integers:
    """An elementwise operation, done once where all values are one."""
    if values.size > 0 and is_uniform(values):
        return uniform(int(operation(values[0])), values.size)
    return operation(values)


def _largest(values: Integers) -> int:
    if values.size > 0 and is_uniform(values):
        return abs(int(values[0]))
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


class _Chooser:
    """A mask for one block after another, and the places where it is True.

    numpy looks for the True ones of a sparse mask with a branch for each, and around 5 % that costs three times as much
    as writing every place down and keeping some. An eighth of True ones behind the block makes it do the latter.
    """

    def __init__(self, size_max: int) -> None:
        self._padded = np.empty(size_max + size_max // 8, dtype=np.bool_)

    def mask(self, size: int) -> Mask:
        """A mask (size,) of anything, to be written."""
        return self._padded[:size]

    def rows(self, mask: Mask) -> Integers:
        """Where the mask last given is True, in order."""
        count = int(np.count_nonzero(mask))
        if not mask.size // 128 <= count <= mask.size // 8:
            return np.flatnonzero(mask)
        padded = self._padded[: mask.size + mask.size // 8]
        padded[mask.size :] = True
        return np.flatnonzero(padded)[:count]
