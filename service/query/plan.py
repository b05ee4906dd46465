"""A query checked against the public schema: everything the engine, the noise and the reply need to know about it.

The plans of short queries are kept, each by its query object: `service.query.parse.kept_query` gives one object for one
text of one asker, so that a text that is asked again is neither read nor compiled again, and nobody can tell by a
duration what another has asked. Queries that compare equal are not the same: to Python, 1 is True.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ldexp, sqrt
from typing import Final, Generic, TypeVar

from service.core.laws import Gaussian, Law
from service.core.release import Terms
from service.query.canonical import canonical_bytes
from service.query.columns import OwnColumn, Placed, QueryColumn, Weighted, with_sources
from service.query.conditions import Among, Predicate, conjunction, leaves_of, predicate_of
from service.query.dataset_terms import DatasetTerms, Priced, Ticking
from service.query.domains import Axis, Label, domain_of
from service.query.envelope import refuse_beside, refuse_unreducible
from service.query.group_keys import Group, group_of
from service.query.item import Item, ItemPlace, PlanItem, Precision
from service.query.item_scale import ScaleFacts, natural_bounds, scale_by_item
from service.query.joint_extents import joint
from service.query.language import Query
from service.query.layout import DIMENSION_MAX, Layout
from service.query.listed_values import weighed
from service.query.mechanism import laplace_of
from service.query.model_parameters import each_once
from service.query.noise_ast import SELECT_MAX
from service.query.parameters_ast import HashedParameters
from service.query.parse import BODY_BYTES_MAX, KEPT_MAX
from service.query.problems import QueryProblem, quoted
from service.query.product_plan import ProductPlan
from service.query.query_columns import QueryColumns
from service.query.reduction import Reduce
from service.query.row_columns import DataTable, RowColumns
from service.query.scale import Scale, ScaleRequest, precision_of, scale_of
from service.query.schema import EventsTable, Schema
from service.query.stated_noise import StatedNoise, stated_noise

KEPT_CANONICAL_BYTES_MAX: Final = 2048
KEPT_CODES_MAX: Final = 2**10
"""Codes in lists of a plan that is kept: they may be longer than the text that they are of."""

Registration = TypeVar("Registration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled query. All of it is public."""

    table: str
    predicate: Predicate
    group_by: tuple[str, ...]
    items: tuple[PlanItem, ...]
    dimension: int
    layout: Layout  # names the coordinates
    grid_log2: int  # the grid is 2**grid_log2; 0, and all in steps, where each item has steps of its own
    clip_squared_steps: int  # no individual's vector may exceed this squared norm, in grid steps
    clip_binds: bool  # False: no vector within the declared bounds can exceed it, and none needs scaling
    l2_clip: float  # query units; what was asked for, or the natural bound if that is smaller
    law: Law  # of the noise, in grid steps
    has_one_norm: bool  # each individual's row is counted at one coordinate: its norm and charge are those of any other
    worst_case_units: int  # no individual is charged more, in units of 2^-40 rho
    canonical: bytes
    query_hash: str  # the SHA-256 of the canonical form
    columns: Mapping[str, QueryColumn]  # those that are read, by the name that predicate, groups and items use
    rows_kept: int | None  # an individual with more selected rows counts as one with so many; None: all rows count
    entries_of_row: int  # the most entries that one row adds, to all items together
    reuse: bool
    shortens: bool = False  # the clip rule: a vector that costs more than is left is shortened to that
    bounds: tuple[float, ...] = ()  # of several select items: the longest part of a vector, in its query units
    item_sigmas: tuple[float, ...] = ()  # of each select item, where each has steps of its own
    clips_squared: tuple[int, ...] = ()  # of each select item, in its steps, where each has a clip of its own
    product: ProductPlan | None = None  # what an item of products sums; None of others
    parameters: tuple[HashedParameters, ...] = ()  # those of models that the canonical form has by their hash alone
    room_units: int | None = None  # what an individual must have left to be counted; None where that is no condition
    reduce: Reduce | None = None  # the number of the sum that is asked for: the answer's coordinate; None: the sum
    notes: tuple[str, ...] = ()  # a sentence on each bound by which an individual may count for less
    vectors: "Plan | None" = None  # of a reduced query: the plan of its vectors, with their coordinates and their clip

    @property
    def labels(self) -> list[Label]:
        """One object for each coordinate, such as {"country": "NO", "select": "count"}; none above 10,000."""
        return self.layout.labels()

    @property
    def size(self) -> float:
        """The size of the noise in query units; in steps, where each item has steps of its own."""
        return ldexp(self.law.size_steps, self.grid_log2)

    @property
    def terms(self) -> Terms:
        """The terms on which the core answers it."""
        return Terms(
            dimension=self.dimension if self.vectors is None else self.vectors.dimension,
            law=self.law,
            norm_squared_max=self.clip_squared_steps,
            shortens=self.shortens,
        )

    @property
    def noise(self) -> StatedNoise:
        """The noise as an answer states it."""
        return stated_noise(self.law, grid_log2=self.grid_log2, sigmas=self.item_sigmas)

    def is_met_by(self, *, size: float, grid_log2: int, dimension: int, sigmas: tuple[float, ...]) -> bool:
        """Tell whether a released answer to this query has its numbers and no more noise than asked, on its grid."""
        is_counted_alike = (grid_log2, dimension, sigmas) == (self.grid_log2, self.dimension, self.item_sigmas)
        return is_counted_alike and size <= self.size

    @property
    def axes(self) -> list[Axis]:
        """The order of the coordinates in a few lines, whatever the dimension."""
        return self.layout.axes(has_places=bool(self.item_sigmas))


def compile_query(
    query: Query, schema: Schema, *, capacity: int, budget_units: int, pricing: Priced = None, monitor: Ticking = None
) -> Plan:
    """The plan for at most `capacity` individuals with limits of `budget_units`. Raises QueryProblem, nothing else."""
    columns = QueryColumns(schema, name := query.from_ or schema.individuals_name)
    parameters = each_once(named) if (named := query.hashed) else ()
    where, groups, rows = predicate_of(query.where, columns), _groups(query, columns), _rows_kept(query, columns.table)
    layout, scale = _counted(query, columns, groups, rows, DatasetTerms(capacity, budget_units, pricing, monitor))
    first = layout.items[0]
    if first.room_units is not None:
        first.refuse_unpayable(scale.worst_case_units, budget_units)
    is_alone = len(layout.items) == 1 and columns.table.kind == "individuals" and query.rule == "skip"
    plan = Plan(
        table=name,
        predicate=where if rows is not None else _with_weights(where, columns, layout),
        group_by=tuple(group.column.name for group in groups),
        items=layout.items,
        dimension=layout.dimension,
        layout=layout,
        grid_log2=scale.grid_log2,
        clip_squared_steps=scale.clip_squared_steps,
        clip_binds=scale.clip_binds,
        l2_clip=scale.l2_clip,
        law=scale.law,
        has_one_norm=is_alone and first.has_one_norm,
        worst_case_units=scale.worst_case_units,
        canonical=(canonical := _canonical(query, name)),
        query_hash=hashlib.sha256(canonical).hexdigest(),
        reuse=query.may_reuse,
        shortens=query.rule == "clip",
        columns=columns.used,
        rows_kept=rows,
        entries_of_row=sum(item.entries_of_row for item in layout.items),
        bounds=scale.bounds,
        item_sigmas=scale.sigmas,
        clips_squared=scale.clips_squared,
        product=first.product,
        parameters=parameters,
        room_units=first.room_units,
        notes=_notes(layout, rows, scale) if scale.clip_binds or rows is not None else (),
    )
    return plan if query.reduce is None else _reduced(plan, query.reduce, scale.charged_squared_steps)


def _notes(layout: Layout, rows: int | None, scale: Scale) -> tuple[str, ...]:
    """A sentence on each bound by which an individual may count for less than their rows say.

    They follow from the query and the declared bounds, so they are the same whatever the data are.
    """
    notes = []
    if rows is not None:
        notes.append(f"An individual with more than {rows} row{'s' * (rows > 1)} counts as {rows} with their mean.")
    if scale.clip_binds and len(scale.clips_squared) > 1:
        notes.append("An individual whose part in an item is longer than the clip of that item counts for less.")
    elif scale.clip_binds and scale.sigmas:
        notes.append("An individual whose vector is longer than the clip counts for less.")
    elif scale.clip_binds and layout.dimension == 1 and layout.items[0].is_unit and not layout.items[0].is_once:
        notes.append(f"An individual with more than {scale.l2_clip:.6g} counts as {scale.l2_clip:.6g}.")
    elif scale.clip_binds:
        notes.append(f"An individual whose vector is longer than {scale.l2_clip:.6g} counts for less.")
    return tuple(notes)


def _reduced(vectors: Plan, reduce: Reduce, charged_squared_steps: int) -> Plan:
    """The plan of one number of a vector sum: its clip is that of what an individual is charged for.

    Raises QueryProblem for vectors of one number.
    """
    if vectors.dimension == 1:
        raise QueryProblem.of("reduce", "is for several coordinates, and this query has one")
    vectors = replace(vectors, reduce=reduce)
    return replace(
        vectors,
        dimension=1,
        layout=vectors.layout.reduced(reduce),
        clip_squared_steps=charged_squared_steps,
        l2_clip=ldexp(sqrt(charged_squared_steps), vectors.grid_log2),
        vectors=vectors,
    )


def _canonical(query: Query, table: str) -> bytes:
    """The canonical form, itself a query: numbers may be longer in it than they were sent."""
    canonical = canonical_bytes(query, table=table)
    if len(canonical) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes in its canonical form")
    return canonical


class KeptPlans(Generic[Registration]):
    """At most KEPT_MAX plans of short queries. Thread-safe."""

    def __init__(self, compiled: Callable[[Query, Registration], Plan]) -> None:
        """`compiled` gives the plan of a query under a registration, which is an object that never changes."""
        self._compiled = compiled
        self._kept: dict[int, tuple[Query, Registration, Plan]] = {}  # by the identity of the query, which is held

    def __contains__(self, query: Query) -> bool:
        """Tell whether the plan of this very query is kept, under any registration."""
        return id(query) in self._kept

    def of(self, query: Query, registration: Registration) -> Plan:
        """The plan. Raises what `compiled` raises."""
        kept = self._kept.get(id(query))
        if kept is not None and kept[0] is query and kept[1] is registration:
            return kept[2]
        plan = self._compiled(query, registration)
        has_matrix = any(item.matrix is not None for item in plan.items)
        listed = sum(len(leaf.codes) for leaf in leaves_of(plan.predicate) if isinstance(leaf, Among))
        is_long = len(plan.canonical) > KEPT_CANONICAL_BYTES_MAX or listed > KEPT_CODES_MAX
        if not (has_matrix or plan.parameters or is_long):
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[id(query)] = query, registration, plan
        return plan


def _groups(query: Query, columns: RowColumns) -> list[Group]:
    groups: list[Group] = []
    dimension = 1
    for place, key in enumerate(query.group_by):
        group = group_of(key, columns, f"group_by[{place}]")
        if group.label in {each.label for each in groups}:
            raise QueryProblem.of(f"group_by[{place}]", f"names {quoted(group.label)} a second time")
        groups.append(group)
        dimension *= len(domain_of(group.domain))
        if dimension > DIMENSION_MAX:
            raise QueryProblem.of(f"group_by[{place}]", f"makes more than {DIMENSION_MAX} coordinates")
    return groups


def _layout(groups: Sequence[Group], items: Sequence[tuple[int, PlanItem]]) -> Layout:
    layout = Layout(
        groups=tuple((group.label, group.domain) for group in groups),
        items=tuple(item for _, item in items),
        places=tuple(place for place, _ in items),
    )
    if layout.dimension > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")
    if len(items) > SELECT_MAX:
        raise QueryProblem.of("select", f"has more than {SELECT_MAX} items and functionals")
    return layout


def _items(query: Query, columns: RowColumns, terms: DatasetTerms) -> Iterator[tuple[int, PlanItem]]:
    """Each item once, by its place in `select`: the same numbers with noise of their own tell what less noise would."""
    places: dict[Item, int] = {}
    for number, item in enumerate(query.select):
        place = ItemPlace(number, columns, query.group_by, terms)
        if item in places:
            raise QueryProblem.of(place.field, f"repeats select[{places[item]}]")
        places[item] = number
        if item.stands_alone:
            refuse_beside(item, query, columns.table)
        yield from ((number, each) for each in item.compiled(place))


def _with_weights(where: Predicate, columns: QueryColumns, layout: Layout) -> Predicate:
    """The condition, and where columns are weighed that a weight is not zero."""
    if not any(isinstance(each.formula, (Weighted, Placed)) for each in columns.used.values()):
        return where
    return conjunction([where, weighed(layout.items, columns.used)])


def _counted(
    query: Query, columns: RowColumns, groups: Sequence[Group], rows_kept: int | None, terms: DatasetTerms
) -> tuple[Layout, Scale]:
    """The coordinates of the items, and the scale of all items together, or of each."""
    capacity, budget_units, pricing, _ = terms
    if query.reduce is not None:
        refuse_unreducible(query)
    is_plain = query.mechanism == Gaussian.word and (pricing is None or pricing.has_gaussian)
    laplace = None if is_plain else laplace_of(query, columns.table, pricing)
    layout = _layout(groups, tuple(_items(query, columns, terms)))
    clip = None if query.per_individual is None else query.per_individual.l2_clip
    squared = None if clip is None or isinstance(clip, tuple) else Fraction(clip) ** 2
    if layout.items[0].has_own_scale:
        item, scale = layout.items[0].scaled(Precision(query.noise, squared), terms)
        return replace(layout, items=(item,)), scale
    rows_most = columns.table.rows_per_individual if isinstance(columns.table, EventsTable) else 1
    rows, shared_by = (rows_most, 1) if rows_kept is None else (rows_kept, rows_most)
    items = layout.items
    extents = tuple(item.extent(columns.used) for item in items)
    count = layout.dimension // layout.block
    if any(extent.is_once for extent in extents):
        count = _groups_of_one(groups, columns)
    facts = None
    if len(query.select) > 1 or query.is_by_item:
        several = [[at for at, of in enumerate(layout.places) if of == place] for place in range(len(query.select))]
        facts = ScaleFacts(
            extents=tuple(tuple(extents[at] for at in each) for each in several),
            joint=tuple(
                joint([items[at] for at in each], [extents[at] for at in each], columns.used) for each in several
            ),
            rows=rows,
            groups=count,
            capacity=capacity,
            shared_by=shared_by,
        )
        if query.is_by_item:
            return layout, scale_by_item(query, facts, budget_units=budget_units)
    request = ScaleRequest(
        extents=extents,
        joint=extents if len(extents) == 1 else joint(items, extents, columns.used),
        rows=rows,
        groups=count,
        capacity=capacity,
        l2_clip=None if isinstance(clip, tuple) else clip,
        precision=precision_of(query.noise, budget_units=budget_units, laplace=laplace),
        laplace=laplace,
        is_fine=query.rule == "clip" or query.reduce == "norm" or rows_kept is not None,
        reduce=query.reduce,
        shared_by=shared_by,
    )
    scale = scale_of(request)
    return layout, scale if facts is None else replace(scale, bounds=natural_bounds(facts))


def _groups_of_one(groups: Sequence[Group], columns: RowColumns) -> int:
    """How many groups the rows of one individual may be in: by its own columns it is in one."""
    count = 1
    for group in groups:
        read = (columns.used[name].formula for name in with_sources([group.column.name], columns.used))
        roots = [formula for formula in read if formula is None or isinstance(formula, OwnColumn)]
        count *= len(domain_of(group.domain)) if None in roots else 1
    return count


def _rows_kept(query: Query, table: DataTable) -> int | None:
    rows = None if query.per_individual is None else query.per_individual.rows
    if rows is None:
        return None
    if not isinstance(table, EventsTable):
        raise QueryProblem.of("per_individual.rows", "is for event tables; an individual has one row in this one")
    return rows if rows < table.rows_per_individual else None
