"""A query checked against the public schema: everything the engine, the noise and the reply need to know about it.

The plans of short queries are kept, each by its query object. `service.query.parse.kept_query` gives one object for one
text of one asker. So a text that is asked again is neither read nor compiled again, and nobody can tell by a duration
what another asker has asked. Queries that compare equal may still be different, because to Python 1 is True.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Generic, TypeVar

from service.core.release import QueryTerms
from service.query.canonical import canonical_bytes
from service.query.columns import OwnColumn, Placed, QueryColumn, Weighted, with_sources
from service.query.conditions import Among, Predicate, conjunction, leaves_of, predicate_of
from service.query.dataset_terms import DatasetTerms, Priced, Ticking
from service.query.domains import domain_of
from service.query.envelope import refuse_beside, refuse_unreducible
from service.query.group_keys import Group, group_of
from service.query.item import AskedPrecision, Item, ItemPlace, PlanItem, is_composite
from service.query.item_scale import ScaleFacts, natural_bounds, scale_by_item
from service.query.joint_extents import joint
from service.query.language import Query
from service.query.layout import DIMENSION_MAX, Layout
from service.query.linear_query import linear_query
from service.query.listed_values import weighed
from service.query.mechanism import UNPRICED, mechanism_of
from service.query.model_parameters import each_once
from service.query.noise_ast import SELECT_MAX
from service.query.parameters_ast import HashedParameters
from service.query.parse import BODY_BYTES_MAX, KEPT_MAX
from service.query.precision import precision_of
from service.query.problems import QueryProblem, quoted
from service.query.product_plan import ProductPlan
from service.query.query_columns import QueryColumns
from service.query.reduction import REDUCTIONS, Reduce
from service.query.row_columns import DataTable, RowColumns
from service.query.scale import Scale, ScaleRequest, scale_of
from service.query.schema import EventsTable, Schema
from service.query.stated_noise import StatedNoise, stated_noise

KEPT_CANONICAL_BYTES_MAX: Final = 2048
KEPT_CODES_MAX: Final = 2**10
"""The most codes in the lists of a plan that is kept. Such lists may be longer than the query's text."""

Registration = TypeVar("Registration")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRows:
    """The rows that a query selects, and the columns that it reads of these rows."""

    table: str
    predicate: Predicate
    columns: Mapping[str, QueryColumn]  # by the name that predicate, groups and items use
    group_by: tuple[str, ...]
    rows_kept: int | None  # an individual with more selected rows counts as one with so many; None: all rows count


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled query. All of it is public."""

    rows: SelectedRows
    layout: Layout  # names the coordinates of the vectors
    scale: Scale
    dimension: int  # how many numbers the answer has
    has_one_norm: bool  # each individual's row is counted at one coordinate: its norm and charge are those of any other
    canonical: bytes
    query_hash: str  # the SHA-256 of the canonical form, or of that of the linear query behind it
    reuse: bool
    shortens: bool = False  # the clip rule: a vector that costs more than is left is shortened to that
    reduce: Reduce | None = None  # the number of the sum that is asked for; None: the sum
    parameters: tuple[HashedParameters, ...] = ()  # those of models that the canonical form has by their hash alone

    @property
    def product(self) -> ProductPlan | None:
        """The product that an individual adds, for items that sum products; None for others."""
        return self.layout.items[0].product

    @property
    def answered(self) -> Layout:
        """The coordinates of the answer: those of the vectors, or the one coordinate of a reduced sum."""
        return self.layout if self.reduce is None else self.layout.reduced(self.reduce)

    @property
    def terms(self) -> QueryTerms:
        """The terms on which the core answers the query."""
        return QueryTerms(
            dimension=self.layout.dimension,
            law=self.scale.law,
            norm_squared_max=self.scale.charged_squared_steps,
            shortens=self.shortens,
        )

    @property
    def noise(self) -> StatedNoise:
        """The noise as an answer states it."""
        return stated_noise(self.scale.law, grid_log2=self.scale.grid_log2, sigmas=self.scale.sigmas)

    def is_met_by(self, *, size: float, grid_log2: int, dimension: int, sigmas: tuple[float, ...]) -> bool:
        """Tell whether a released answer has this query's numbers, on its grid, with no more noise than asked for."""
        is_counted_alike = (grid_log2, dimension, sigmas) == (self.scale.grid_log2, self.dimension, self.scale.sigmas)
        return is_counted_alike and size <= self.scale.size

    def of_all(self) -> "Plan":
        """Return the plan for all individuals, whatever they have left."""
        items = tuple(item.of_all() for item in self.layout.items)
        return replace(self, layout=replace(self.layout, items=items))

    def lightened(self) -> "Plan":
        """The part of the plan that answers show, without the numbers of models, which may be megabytes."""
        items = tuple(replace(item, product=None) for item in self.layout.items)
        layout, rows = replace(self.layout, items=items), replace(self.rows, columns={})
        return replace(self, layout=layout, rows=rows, parameters=())


def compile_query(
    query: Query, schema: Schema, *, capacity: int, budget_units: int, pricing: Priced = None, monitor: Ticking = None
) -> Plan:
    """The plan for at most `capacity` individuals with limits of `budget_units`. Raises no error but QueryProblem."""
    terms = DatasetTerms(capacity, budget_units, pricing, monitor)
    if any(map(is_composite, query.select)):
        return _composite(query, schema, terms)
    columns = QueryColumns(schema, name := query.from_ or schema.individuals_name)
    parameters = each_once(named) if (named := query.hashed) else ()
    where, groups = predicate_of(query.where, columns), groups_of(query, columns)
    rows_kept = None if query.per_individual is None else _rows_kept(query.per_individual.rows, columns.table)
    layout, scale = _counted(query, columns, groups, rows_kept, terms)
    first = layout.items[0]
    if first.room_units is not None:
        first.refuse_unpayable(scale.worst_case_units, budget_units)
    if query.reduce is not None and layout.dimension == 1:
        raise QueryProblem.of("reduce", "is for several coordinates, and this query has one")
    formulas = [column.formula for column in columns.used.values() if column.formula is not None]
    if rows_kept is None and any(isinstance(formula, (Weighted, Placed)) for formula in formulas):
        where = conjunction([where, weighed(layout.items, columns.used)])
    is_alone = len(layout.items) == 1 and not isinstance(columns.table, EventsTable) and query.rule == "skip"
    canonical = _canonical(query, name)
    return Plan(
        rows=SelectedRows(
            table=name,
            predicate=where,
            columns=columns.used,
            group_by=tuple(group.column.name for group in groups),
            rows_kept=rows_kept,
        ),
        layout=layout,
        scale=scale,
        dimension=layout.dimension if query.reduce is None else 1,
        has_one_norm=is_alone and first.has_one_norm,
        canonical=canonical,
        query_hash=hashlib.sha256(canonical).hexdigest(),
        reuse=query.may_reuse,
        shortens=query.rule == "clip",
        reduce=query.reduce,
        parameters=parameters,
    )


def _composite(query: Query, schema: Schema, terms: DatasetTerms) -> Plan:
    """The plan of the linear query behind a composite one, under the canonical form of the query that was asked."""
    columns = QueryColumns(schema, name := query.from_ or schema.individuals_name)
    linear = linear_query(query, columns, groups_of(query, columns), terms)
    try:
        plan = compile_query(linear.query, schema, **terms._asdict())
    except QueryProblem as problem:
        raise linear.as_asked(problem) from problem
    layout = replace(plan.layout, estimated=linear.estimated(plan.layout))
    return replace(plan, layout=layout, canonical=_canonical(query, name))


def _canonical(query: Query, table: str) -> bytes:
    """The canonical form. Raises QueryProblem for one that is too large: its numbers may be longer than those sent."""
    canonical = canonical_bytes(query, table=table)
    if len(canonical) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes in its canonical form")
    return canonical


class KeptPlans(Generic[Registration]):
    """A cache of at most KEPT_MAX plans of short queries. It is thread-safe."""

    def __init__(self, compiled: Callable[[Query, Registration], Plan]) -> None:
        """Keep the plans that `compiled` gives for a query and a registration, which is an immutable object."""
        self._compiled = compiled
        self._kept: dict[int, tuple[Query, Registration, Plan]] = {}  # by the identity of the query, which is held

    def __contains__(self, query: Query) -> bool:
        """Tell whether the plan of this very query object is kept, under any registration."""
        return id(query) in self._kept

    def of(self, query: Query, registration: Registration) -> Plan:
        """The plan of a query under a registration. Raises the errors of `compiled`."""
        kept = self._kept.get(id(query))
        if kept is not None and kept[0] is query and kept[1] is registration:
            return kept[2]
        plan = self._compiled(query, registration)
        has_matrix = any(item.matrix is not None for item in plan.layout.items)
        listed = sum(len(leaf.codes) for leaf in leaves_of(plan.rows.predicate) if isinstance(leaf, Among))
        is_long = len(plan.canonical) > KEPT_CANONICAL_BYTES_MAX or listed > KEPT_CODES_MAX
        if not (has_matrix or plan.parameters or is_long):
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[id(query)] = query, registration, plan
        return plan


def groups_of(query: Query, columns: RowColumns) -> list[Group]:
    """The groups of a query. Raises QueryProblem naming the field."""
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


def _layout(query: Query, columns: RowColumns, groups: Sequence[Group], terms: DatasetTerms) -> Layout:
    """The coordinates of the items. No item may be asked twice: two noises on one number would amount to less noise."""
    places: dict[Item, int] = {}
    items: list[tuple[int, PlanItem]] = []
    for number, item in enumerate(query.select):
        place = ItemPlace(number, columns, groups, terms)
        if item in places:
            raise QueryProblem.of(place.field, f"repeats select[{places[item]}]")
        places[item] = number
        if item.stands_alone:
            refuse_beside(item, query, columns.table)
        items += [(number, each) for each in item.compiled(place)]
    items = items if len(items) == 1 else _told_apart(items)
    layout = Layout(
        groups=tuple((group.label, group.domain) for group in groups),
        items=tuple(item for _, item in items),
        places=tuple(number for number, _ in items),
    )
    if layout.dimension > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")
    if len(items) > SELECT_MAX:
        raise QueryProblem.of("select", f"has more than {SELECT_MAX} items and functionals")
    return layout


def _told_apart(items: Sequence[tuple[int, PlanItem]]) -> list[tuple[int, PlanItem]]:
    """The items with different titles: where several have one title, their places in `select` are added to it.

    Two lists of weights for one column are an example.
    """
    times = Counter(item.title for _, item in items)
    return [
        (number, replace(item, title=f"select[{number}] {item.title}") if times[item.title] > 1 else item)
        for number, item in items
    ]


def _counted(
    query: Query, columns: RowColumns, groups: Sequence[Group], rows_kept: int | None, terms: DatasetTerms
) -> tuple[Layout, Scale]:
    """The coordinates of the items, with the scale of all items together or of each item."""
    capacity, budget_units, pricing, _ = terms
    if query.reduce is not None:
        refuse_unreducible(query)
    mechanism = (UNPRICED if pricing is None else pricing.mechanisms).get(query.mechanism)
    if mechanism is None or mechanism.of_one_number:
        mechanism = mechanism_of(query, columns.table, pricing)
    layout = _layout(query, columns, groups, terms)
    clip = None if query.per_individual is None else query.per_individual.l2_clip
    squared = None if clip is None or isinstance(clip, tuple) else Fraction(clip) ** 2
    if layout.items[0].has_own_scale:
        item, scale = layout.items[0].scaled(AskedPrecision(query.noise, squared, mechanism), terms)
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
    is_rounded = query.reduce is not None and REDUCTIONS[query.reduce].is_rounded
    request = ScaleRequest(
        extents=extents,
        joint=extents if len(extents) == 1 else joint(items, extents, columns.used),
        rows=rows,
        groups=count,
        capacity=capacity,
        l2_clip=None if isinstance(clip, tuple) else clip,
        precision=precision_of(query.noise, mechanism, budget_units=budget_units),
        mechanism=mechanism,
        is_fine=query.rule == "clip" or is_rounded or rows_kept is not None,
        reduce=query.reduce,
        shared_by=shared_by,
    )
    scale = scale_of(request)
    return layout, scale if facts is None else replace(scale, bounds=natural_bounds(facts))


def _groups_of_one(groups: Sequence[Group], columns: RowColumns) -> int:
    """The most groups that one individual's rows may be in. The individual's own columns put it into one group only."""
    count = 1
    for group in groups:
        read = (columns.used[name].formula for name in with_sources([group.column.name], columns.used))
        roots = [formula for formula in read if formula is None or isinstance(formula, OwnColumn)]
        count *= len(domain_of(group.domain)) if None in roots else 1
    return count


def _rows_kept(rows: int | None, table: DataTable) -> int | None:
    if rows is None:
        return None
    if not isinstance(table, EventsTable):
        raise QueryProblem.of("per_individual.rows", "is for event tables; an individual has one row in this one")
    return rows if rows < table.rows_per_individual else None
