"""From a plan and a dataset to each individual's integer vector and its squared norm, in blocks of increasing slots.

Every step is elementwise or exact integer addition over one individual's own entries, in slots that are never
compacted. So removing an individual changes no other individual's vector, norm or charge by a bit (theory: invariant A;
tests/laws/test_separability.py). Where one block ends and the next begins depends on the individuals that are chosen,
and affects memory alone. Floats occur only in `service.engine.sparse_vectors`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isqrt

import numpy as np

from service.arrays import Codes, Integers, Mask, take, uniform
from service.core.release import Block, Contributions
from service.core.renyi_filter import Touched
from service.engine.events import EventPage
from service.engine.features import FeatureReader, vectors_read
from service.engine.memory import DatasetMemory
from service.engine.prepared import PreparedPlan, prepared
from service.engine.products import products
from service.engine.reduction import priced
from service.engine.rows import ChosenRows, RowView, Run, TableRows, cuts, runs
from service.engine.selection import candidates, listings_of, selects_nulls, shortest
from service.engine.sparse_vectors import BrokenInvariant, Entries, folded
from service.engine.tallies import blocks_of
from service.engine.terms import SingleTerm, Unit
from service.query.columns import ReaderFormula
from service.query.conditions import All
from service.query.division import PAGE_SLOTS
from service.query.plan import Plan
from service.query.product_plan import rows_in_products
from service.query.reduction import REDUCTIONS
from service.query.runs import BLOCK_ROWS, rows_in_run
from service.query.working_memory import STRETCH_ROWS


def contributions(
    plan: Plan, memory: DatasetMemory, *, touches_paused: bool = True, is_reduced: bool = True
) -> Iterator[Block]:
    """The touched individuals with their vectors in grid steps, in at least one block.

    An event table's rows are summed per individual before the norm is taken. Without `touches_paused`, no paused
    individual is touched: under the drop rule it would be left out for good. With `is_reduced`, a plan that reduces the
    sum to one number has norms that are charged for that number (`service.engine.reduction`). Otherwise norms are those
    of the vectors.

    Raises BrokenInvariant before the first block, if the plan's public bounds do not keep everything within int64.
    Raises BrokenInvariant at any block that exceeds these bounds.
    """
    accounts = memory.accounts
    if not touches_paused:
        return _only(contributions(plan, memory), lambda index: ~accounts.paused[index])
    first = plan.layout.items[0]
    if (room_units := first.room_units) is not None:
        blocks = contributions(plan.of_all(), memory)
        return _only(blocks, lambda index: np.greater_equal(accounts.room[index], room_units))
    if plan.reduce is not None and is_reduced:
        return priced(contributions(plan, memory, is_reduced=False), plan.reduce)
    query = prepared(plan, memory)
    if query.is_of_events:
        count = _tallied_count(query)
        if count is not None and memory.events[plan.rows.table].admit_tally(count[1]):
            return _tallied(query, memory, *count)
        return _in_runs(query, _of_events(query, memory))
    table = TableRows(
        stored=memory.people.columns, columns=plan.rows.columns, tables=query.tables, readers=query.readers
    )
    if first.product is not None:
        features, rows_max = first.product.features, rows_in_products(first.product.width)
        reader = FeatureReader(features, plan.rows.columns, query.tables, vectors_read(features, memory))
        return products(plan, first.product, reader, _scanned(query, memory, table, rows_max=rows_max))
    listed, term = _looked_up(query, memory, table), query.alone
    if term is None:
        chosen = [listed] if listed is not None else (touched.slots() for _, touched in _scanned(query, memory, table))
        return _in_runs(query, (ChosenRows(table=table, rows=slots, slots=slots) for slots in chosen))
    if listed is None:
        return (_of_one_row(query, term, view, touched) for view, touched in _scanned(query, memory, table))
    parts = (listed[start : start + BLOCK_ROWS] for start in range(0, max(listed.size, 1), BLOCK_ROWS))
    return (_of_one_row(query, term, RowView(table, slots), Touched(slots)) for slots in parts)


def _only(blocks: Iterable[Block], chosen: Callable[[Integers | slice], Mask]) -> Iterator[Block]:
    """The blocks, with only those individuals touched that `chosen` marks: a mask (p,) of the p places of an index.

    `chosen` reads the account of each slot before the block is debited: the account is a function of that individual's
    record and of earlier answers. `chosen` looks at all individuals of a block, exhausted and paused ones too.
    """
    for block in blocks:
        index = block.touched.index
        yield replace(block, touched=Touched(index, block.touched.among(chosen(index))))


def _tallied_count(query: PreparedPlan) -> tuple[Unit, frozenset[str]] | None:
    """The term of a query that is one count of all events, and the columns it counts by; None for other queries.

    Such a query has stored columns only, and no clip that binds.
    """
    plan, (item, *others) = query.plan, query.plan.layout.items
    if others or not item.is_unit or item.is_once:
        return None
    names = frozenset(query.added)
    if not names or any(plan.rows.columns[name].formula is not None for name in names):
        return None
    counts_all = (
        isinstance(plan.rows.predicate, All)
        and plan.rows.rows_kept is None
        and not (plan.scale.clip_binds or plan.shortens)
    )
    counts_all = counts_all and not (plan.reduce and REDUCTIONS[plan.reduce].is_of_entries)
    term = query.terms[0]
    return (term, names) if counts_all and isinstance(term, Unit) else None


def _tallied(query: PreparedPlan, memory: DatasetMemory, term: Unit, names: frozenset[str]) -> Iterator[Contributions]:
    """The individuals of a query whose norms are kept by page."""
    for number, page in memory.events[query.plan.rows.table].pages():
        yield from blocks_of(
            page.tally(names, query.codings),
            {name: page.columns[name] for name in names},
            first_slot=number * PAGE_SLOTS,
            groups=query.groups,
            term=term,
            dimension=query.plan.layout.dimension,
            norm_squared_max=query.plan.scale.clip_squared_steps,
        )


def _in_runs(query: PreparedPlan, pieces: Iterable[ChosenRows]) -> Iterator[Contributions]:
    """The individuals whose rows are chosen, in runs; each block lists the individuals in it."""
    rows_max = rows_in_run(entries=query.plan.layout.entries_of_row, is_of_events=query.is_of_events)
    return (_vectors(query, run, rows_max) for run in runs(pieces, rows_max))


def _vectors(query: PreparedPlan, run: Run, rows_max: int) -> Contributions:
    """The vectors of the individuals of one run."""
    if query.is_of_events:
        return _summed(query, run, rows_max)
    entries = _entries(query, run)
    entries = entries.kept(entries.values != 0)
    return _single(query, entries) if query.plan.layout.entries_of_row == 1 else _together(query, entries)


def _looked_up(query: PreparedPlan, memory: DatasetMemory, table: TableRows) -> Integers | None:
    """The chosen slots by way of the inverted indexes; None where they suggest so many slots that a scan is quicker."""
    if not query.covers or memory.slots_used == 0:
        return None
    indexes = memory.people.indexes.whole
    cover = shortest(query.covers, indexes, rows=memory.people.present.size)
    if cover is None:
        return None
    return query.among(table, candidates(cover, indexes, page_rows=PAGE_SLOTS), cover)


def _scanned(
    query: PreparedPlan, memory: DatasetMemory, table: TableRows, *, rows_max: int | None = None
) -> Iterator[tuple[RowView, Touched]]:
    """All individuals in stretches of slots, at least one: each stretch's columns, and the individuals chosen in it."""
    rows_max = rows_max or BLOCK_ROWS
    # An empty slot looks like a record of NULLs; only where such a record counts does it matter that the slot is empty.
    reads_slots = any(isinstance(column.formula, ReaderFormula) for column in query.plan.rows.columns.values())
    tests_presence = reads_slots or (selects_nulls(query.plan.rows.predicate) and not query.required)
    for start in range(0, max(memory.slots_used, 1), rows_max):
        stretch = slice(start, min(start + rows_max, memory.slots_used))
        view, chosen = RowView(table, stretch), np.empty(stretch.stop - start, dtype=np.bool_)
        query.choose(view, chosen)
        if tests_presence:
            np.logical_and(chosen, memory.people.present[stretch], out=chosen)
        yield view, Touched(stretch, chosen)


def _of_events(query: PreparedPlan, memory: DatasetMemory) -> Iterator[ChosenRows]:
    for number, page in memory.events[query.plan.rows.table].pages():
        slots_of_page = slice(number * PAGE_SLOTS, (number + 1) * PAGE_SLOTS)
        table = TableRows(
            stored=page.columns,
            columns=query.plan.rows.columns,
            owners=page.owners,
            first_slot=number * PAGE_SLOTS,
            individuals={name: memory.people.columns[name][slots_of_page] for name in query.own_columns},
            tables=query.tables,
            readers=query.readers,
        )
        for selected_rows in _event_rows(query, page, table):
            rows, selected = query.counted(table, selected_rows)
            slots = _moved(take(page.owners, rows).astype(np.int64), number * PAGE_SLOTS)
            yield ChosenRows(table=table, rows=rows, slots=slots, selected=selected)


def _event_rows(query: PreparedPlan, page: EventPage, table: TableRows) -> Iterator[Integers]:
    """The selected rows of a page, in order, in several arrays; all rows of an individual are in the same array."""
    if query.covers:
        indexes = page.inverted(listings_of(query.covers), query.codings)
        cover = shortest(query.covers, indexes, rows=page.owners.size)
        if cover is not None:
            yield query.among(table, candidates(cover, indexes, page_rows=PAGE_SLOTS), cover)
            return
    for stretch in cuts(page.owners, STRETCH_ROWS):
        chosen = np.empty(stretch.stop - stretch.start, dtype=np.bool_)
        query.choose(RowView(table, stretch), chosen)
        yield _moved(np.flatnonzero(chosen), stretch.start)


def _entries(query: PreparedPlan, run: Run) -> Entries:
    return query.entries(run.codes(query.added), run.slots)


def _summed(query: PreparedPlan, run: Run, rows_max: int) -> Contributions:
    """Contributions of individuals with any number of rows each."""
    dimension = query.plan.layout.dimension
    if run.rows <= rows_max:
        entries = _entries(query, run).merged(dimension)
    else:
        (alone,) = run.pieces  # one individual with more rows than are worked on at a time
        parts = (_entries(query, Run(pieces=[part])).merged(dimension) for part in alone.slices(rows_max))
        entries = folded(parts, dimension)
    entries = _weighed(query, run, _counted_once(query, entries))
    return _single(query, entries) if dimension == 1 else _together(query, entries)


def _counted_once(query: PreparedPlan, entries: Entries) -> Entries:
    """The entries summed by individual. Where one counts once, the sum is replaced by one row's value."""
    if query.counted_once is None:
        return entries
    values = np.where(query.is_counted_once(entries.coordinates), query.counted_once.value, entries.values)
    return Entries(owners=entries.owners, coordinates=entries.coordinates, values=values)


def _weighed(query: PreparedPlan, run: Run, entries: Entries) -> Entries:
    """The entries, times k/n for an individual with more selected rows (n) than a query counts of one (k).

    An entry is trunc(k * sum / n), in whole numbers: the mean over a random choice of k rows. For an entry that counts
    an individual once in a group, n is the number of the individual's groups. Every entry is multiplied and divided,
    even if its weight is one.
    """
    most = query.plan.rows.rows_kept
    if most is None or entries.values.size == 0:
        return entries
    shared_by = run.selected(entries.owners)
    if query.counted_once is not None:
        is_once = query.is_counted_once(entries.coordinates)
        begins = np.flatnonzero(np.diff(entries.owners, prepend=-1))
        groups = np.add.reduceat(is_once.astype(np.int64), begins)
        shared_by = np.where(is_once, np.repeat(groups, np.diff(begins, append=is_once.size)), shared_by)
    weighed = np.abs(entries.values) * most // np.maximum(shared_by, most) * np.sign(entries.values)
    return Entries(owners=entries.owners, coordinates=entries.coordinates, values=weighed).kept(weighed != 0)


def _of_one_row(query: PreparedPlan, term: SingleTerm, columns: Mapping[str, Codes], touched: Touched) -> Contributions:
    """The contributions of individuals with one row each, and one entry for each row.

    A count or a histogram adds the same number for every individual. All norms are then known to be equal from the
    plan.
    """
    coordinates = term.coordinates(columns, query.groups.bases(columns, touched.size))
    if isinstance(term, Unit):
        size = int(_within_clip(query, np.array([term.value]))[0])
        return Contributions(
            touched=touched,
            norms_squared=uniform(size**2, touched.size),
            dimension=query.plan.layout.dimension,
            owners=None,
            coordinates=coordinates,
            values=uniform(size, touched.size),
            one_norm=True,
        )
    values = term.values(columns, touched.size)
    if touched.marks is not None:
        values *= touched.marks.astype(np.int64)  # a NULL is a code beyond the column's bounds
    values = _within_clip(query, values)
    return Contributions(
        touched=Touched(touched.index, touched.among(values != 0)),
        norms_squared=np.square(values),
        dimension=query.plan.layout.dimension,
        owners=None,
        coordinates=coordinates,
        values=values,
    )


def _single(query: PreparedPlan, entries: Entries) -> Contributions:
    """The contributions of individuals with one entry each, none zero; so each norm is the size of the entry."""
    values = _within_clip(query, entries.values)
    return Contributions(
        touched=Touched(entries.owners),
        norms_squared=np.square(values),
        dimension=query.plan.layout.dimension,
        owners=None,
        coordinates=entries.coordinates,
        values=values,
    )


def _within_clip(query: PreparedPlan, values: Integers) -> Integers:
    """Entries (k,), one an individual, clipped. Raises BrokenInvariant for an entry beyond a clip that cannot bind."""
    size_max = isqrt(query.plan.scale.clip_squared_steps)
    if query.plan.scale.clip_binds:
        return np.clip(values, -size_max, size_max)
    if int(values.max(initial=0)) > size_max or int(values.min(initial=0)) < -size_max:
        raise BrokenInvariant("a vector is longer than the declared bounds allow")
    return values


def _together(query: PreparedPlan, entries: Entries) -> Contributions:
    """The contributions of individuals with several entries each, none zero."""
    return entries.contributions(
        dimension=query.plan.layout.dimension,
        norm_squared_max=query.plan.scale.clip_squared_steps,
        clip_binds=query.plan.scale.clip_binds,
        item_clips=query.item_clips,
    )


def _moved(places: Integers, by: int) -> Integers:
    """`places + by`, written into `places`: a large array that nobody else uses."""
    if by != 0:
        np.add(places, by, out=places)
    return places
