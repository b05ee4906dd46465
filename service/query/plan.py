"""A query checked against the public schema: everything the engine, the noise and the reply need to know about it.

The plans of short queries are kept, each by its query object: `service.query.parse.kept_query` gives one object for one
text of one asker, so that a text that is asked again is neither read nor compiled again, and nobody can tell by a
duration what another has asked. Queries that compare equal are not the same: to Python, 1 is True.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from service.query.canonical import canonical_bytes
from service.query.columns import Placed, QueryColumn, Weighted
from service.query.conditions import Among, Predicate, conjunction, leaves_of, predicate_of
from service.query.functionals import functionals_of, listed_histogram, weighed
from service.query.group_keys import Group, countable, group_of
from service.query.language import (
    SELECT_MAX,
    CountIndividualsItem,
    CountItem,
    HistogramItem,
    Item,
    LinearItem,
    Query,
    SumItem,
)
from service.query.layout import (
    Axis,
    Count,
    CountIndividuals,
    Domain,
    Functionals,
    Histogram,
    Label,
    Layout,
    PlanItem,
    Sum,
    domain_of,
    entries_of_row,
)
from service.query.parse import BODY_BYTES_MAX, KEPT_MAX
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import DataTable, RowColumns
from service.query.scale import Extent, Precision, Scale, ScaleRequest, half_width_95, precision_of, scale_of
from service.query.schema import EventsTable, Schema

__all__ = [
    "DIMENSION_MAX",
    "Count",
    "CountIndividuals",
    "Functionals",
    "Histogram",
    "KeptPlans",
    "Plan",
    "PlanItem",
    "Sum",
    "compile_query",
]

DIMENSION_MAX = 2**20
KEPT_CANONICAL_BYTES_MAX: Final = 2048
KEPT_CODES_MAX: Final = 2**10
"""Codes in lists of a plan that is kept: they may be longer than the text that they are of."""

Registration = TypeVar("Registration")
_ONE = Extent(low=1, high=1, step_log2=0, integral=True)
_ONCE = Extent(low=1, high=1, step_log2=0, integral=True, is_once=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled query. All of it is public."""

    table: str
    predicate: Predicate
    group_by: tuple[str, ...]
    items: tuple[PlanItem, ...]
    dimension: int
    layout: Layout  # names the coordinates
    grid_log2: int  # the grid is 2**grid_log2
    clip_squared_steps: int  # no individual's vector may exceed this squared norm, in grid steps
    clip_binds: bool  # False: no vector within the declared bounds can exceed it, and none needs scaling
    l2_clip: float  # query units; what was asked for, or the natural bound if that is smaller
    sigma: float  # query units
    sigma_steps: float  # sigma / grid, exactly
    has_one_norm: bool  # each individual's row is counted at one coordinate: its norm and charge are those of any other
    worst_case_units: int  # no individual is charged more, in units of 2^-40 rho
    canonical: bytes
    query_hash: str  # the SHA-256 of the canonical form
    columns: Mapping[str, QueryColumn]  # those that are read, by the name that predicate, groups and items use
    rows_kept: int | None  # the most selected rows of an individual that count; None: all do
    entries_of_row: int  # the most entries that one row adds, to all items together
    reuse: bool
    rule: str

    @property
    def labels(self) -> list[Label]:
        """One object for each coordinate, such as {"country": "NO", "select": "count"}; none above 10,000."""
        return self.layout.labels()

    @property
    def half_width_95(self) -> float:
        """Query units; a multiple of the grid that the noise keeps to with probability 0.95 or more."""
        return half_width_95(sigma=self.sigma, grid_log2=self.grid_log2)

    def is_met_by(self, *, sigma: float, grid_log2: int) -> bool:
        """Whether a released answer to this query has no more noise than is asked for, on the same grid."""
        return grid_log2 == self.grid_log2 and sigma <= self.sigma

    @property
    def axes(self) -> list[Axis]:
        """The order of the coordinates in a few lines, whatever the dimension."""
        return self.layout.axes()


def compile_query(query: Query, schema: Schema, *, capacity: int, budget_units: int) -> Plan:
    """The plan of a query for a dataset with at most `capacity` individuals, each with a limit of `budget_units`.

    Raises QueryProblem naming the field; nothing else for any Query. Touches no record.
    """
    name = query.from_ or schema.individuals_name
    columns = RowColumns(schema, name)
    where = predicate_of(query.where, columns)
    groups = _groups(query, columns)
    layout = _layout(groups, tuple(_items(query, columns)))
    items = tuple(item for item, _ in layout.items)
    rows_kept = _rows_kept(query, columns.table)
    if rows_kept is None and any(isinstance(each.formula, (Weighted, Placed)) for each in columns.used.values()):
        where = conjunction([where, weighed(items, columns.used)])
    is_alone = columns.table.kind == "individuals" and len(items) == 1
    scale = _scale(query, layout, columns, capacity, precision_of(query.noise, budget_units=budget_units), rows_kept)
    canonical = _canonical(query, name)
    return Plan(
        table=name,
        predicate=where,
        group_by=tuple(group.column.name for group in groups),
        items=items,
        dimension=layout.dimension,
        layout=layout,
        grid_log2=scale.grid_log2,
        clip_squared_steps=scale.clip_squared_steps,
        clip_binds=scale.clip_binds,
        l2_clip=scale.l2_clip,
        sigma=scale.sigma,
        sigma_steps=scale.sigma_steps,
        has_one_norm=is_alone and not isinstance(items[0], Sum | Functionals),
        worst_case_units=scale.worst_case_units,
        canonical=canonical,
        query_hash=hashlib.sha256(canonical).hexdigest(),
        reuse=query.reuse,
        rule=query.rule,
        columns=columns.used,
        rows_kept=rows_kept,
        entries_of_row=entries_of_row(items),
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

    def of(self, query: Query, registration: Registration) -> Plan:
        """The plan. Raises what `compiled` raises."""
        kept = self._kept.get(id(query))
        if kept is not None and kept[0] is query and kept[1] is registration:
            return kept[2]
        plan = self._compiled(query, registration)
        has_matrix = any(isinstance(item, Functionals) for item in plan.items)
        listed = sum(len(leaf.codes) for leaf in leaves_of(plan.predicate) if isinstance(leaf, Among))
        if not has_matrix and len(plan.canonical) <= KEPT_CANONICAL_BYTES_MAX and listed <= KEPT_CODES_MAX:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[id(query)] = query, registration, plan
        return plan


def _groups(query: Query, columns: RowColumns) -> list[Group]:
    groups: list[Group] = []
    dimension = 1
    for place, key in enumerate(query.group_by):
        group = group_of(key, columns, place)
        if group.label in {each.label for each in groups}:
            raise QueryProblem.of(f"group_by[{place}]", f"names {quoted(group.label)} a second time")
        groups.append(group)
        dimension *= len(domain_of(group.domain))
        if dimension > DIMENSION_MAX:
            raise QueryProblem.of(f"group_by[{place}]", f"makes more than {DIMENSION_MAX} coordinates")
    return groups


def _layout(groups: Sequence[Group], items: Sequence[tuple[PlanItem, Domain | None]]) -> Layout:
    layout = Layout(groups=tuple((group.label, group.domain) for group in groups), items=tuple(items))
    if layout.dimension > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")
    if len(items) > SELECT_MAX:
        raise QueryProblem.of("select", f"has more than {SELECT_MAX} items and functionals")
    return layout


def _items(query: Query, columns: RowColumns) -> Iterator[tuple[PlanItem, Domain | None]]:
    """Each item once: the same numbers with noise of their own cost work and tell what less noise would tell."""
    places: dict[Item, int] = {}
    for place, item in enumerate(query.select):
        field = f"select[{place}]"
        if item in places:
            raise QueryProblem.of(field, f"repeats select[{places[item]}]")
        places[item] = place
        match item:
            case CountItem():
                yield Count(), None
            case CountIndividualsItem():
                yield CountIndividuals(), None
            case SumItem():
                yield Sum(column=_summable(item, columns, f"{field}.sum").name), None
            case HistogramItem():
                yield _histogram(item, query, columns, place)
            case LinearItem():
                yield from ((each, None) for each in functionals_of(item.linear, columns, place))


def _summable(item: SumItem, columns: RowColumns, field: str) -> QueryColumn:
    if item.sum.of is not None:
        column, place = columns.value(item.sum.of, f"{field}.of"), f"{field}.of"
    else:
        place = f"{field}.column"
        column = columns.named(item.sum.column or "", place)
    if column.kind not in {"integer", "real"}:
        raise QueryProblem.of(
            place, f"{quoted(column.name)} is not numeric; count the rows where it has the value of interest"
        )
    return column


def _histogram(item: HistogramItem, query: Query, columns: RowColumns, place: int) -> tuple[Histogram, Domain]:
    name, field = item.histogram.column, f"select[{place}].histogram.column"
    column = countable(columns.named(name, field), field)
    if name in query.group_by:
        raise QueryProblem.of(field, f"{quoted(name)} is in group_by already; a count gives its histogram")
    if item.histogram.values is not None:
        return listed_histogram(name, item.histogram.values, columns, place)
    return Histogram(column=name, size=len(domain_of(column))), column


def _scale(
    query: Query, layout: Layout, columns: RowColumns, capacity: int, precision: Precision, rows_kept: int | None
) -> Scale:
    rows_max = columns.table.rows_per_individual if isinstance(columns.table, EventsTable) else 1
    return scale_of(
        ScaleRequest(
            extents=tuple(_extent(item, columns) for item, _ in layout.items),
            rows=rows_max if rows_kept is None else rows_kept,
            groups=layout.dimension // layout.block,
            capacity=capacity,
            l2_clip=None if query.per_individual is None else query.per_individual.l2_clip,
            precision=precision,
        )
    )


def _rows_kept(query: Query, table: DataTable) -> int | None:
    rows = None if query.per_individual is None else query.per_individual.rows
    if rows is None:
        return None
    if not isinstance(table, EventsTable):
        raise QueryProblem.of("per_individual.rows", "is for event tables; an individual has one row in this one")
    return rows if rows < table.rows_per_individual else None


def _extent(item: PlanItem, columns: RowColumns) -> Extent:
    if isinstance(item, CountIndividuals):
        return _ONCE
    if isinstance(item, Functionals):
        return item.matrix.extent
    if not isinstance(item, Sum):
        return _ONE
    column = columns.used[item.column]
    coding = column.coding
    return Extent(
        low=coding.offset,
        high=coding.offset + coding.span,
        step_log2=coding.step_log2,
        integral=column.kind == "integer",
    )
