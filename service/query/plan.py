"""A query checked against the public schema: everything the engine, the noise and the reply need to know about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.query.canonical import canonical_bytes, query_hash, table_of
from service.query.columns import QueryColumn
from service.query.conditions import Predicate, conjunction, predicate_of
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
)
from service.query.parse import BODY_BYTES_MAX
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
    "Plan",
    "PlanItem",
    "Sum",
    "compile_query",
]

DIMENSION_MAX = 2**20
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
    has_one_norm: bool  # every touched individual has the same norm, and so the same charge, whatever the data
    worst_case_units: int  # no individual is charged more, in units of 2^-40 rho
    half_width_95: float  # query units; a multiple of the grid that the noise keeps to with probability 0.95 or more
    canonical: bytes
    query_hash: str
    columns: Mapping[str, QueryColumn]  # those that are read, by the name that predicate, groups and items use
    rows_kept: int | None  # of the selected rows of an individual, so many count; None: all
    reuse: bool
    rule: str

    @property
    def labels(self) -> list[Label]:
        """One object for each coordinate, such as {"country": "NO", "select": "count"}; none above 10,000."""
        return self.layout.labels()

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
    name = table_of(query, schema)
    if name not in schema.tables:
        raise QueryProblem.of("from", f"there is no table {quoted(name)}")
    columns = RowColumns(schema, name)
    where = predicate_of(query.where, columns)
    groups = _groups(query, columns)
    layout = _layout(groups, tuple(_items(query, columns)))
    rows_kept = _rows_kept(query, columns.table)
    precision = precision_of(query.noise, budget_units=budget_units)
    scale = _scale(query, layout, columns, capacity, precision)
    canonical = _canonical(query, name)
    return Plan(
        table=name,
        predicate=where if rows_kept else conjunction([where, weighed(layout.items, columns.used)]),
        group_by=tuple(group.column.name for group in groups),
        items=tuple(item for item, _ in layout.items),
        dimension=layout.dimension,
        layout=layout,
        grid_log2=scale.grid_log2,
        clip_squared_steps=scale.clip_squared_steps,
        clip_binds=scale.clip_binds,
        l2_clip=scale.l2_clip,
        sigma=scale.sigma,
        sigma_steps=scale.sigma_steps,
        has_one_norm=_has_one_norm(query, columns.table),
        worst_case_units=scale.worst_case_units,
        half_width_95=half_width_95(sigma=scale.sigma, grid_log2=scale.grid_log2),
        canonical=canonical,
        query_hash=query_hash(canonical),
        reuse=query.reuse,
        rule=query.rule,
        columns=columns.used,
        rows_kept=rows_kept,
    )


def _canonical(query: Query, table: str) -> bytes:
    """The canonical form, itself a query: numbers may be longer in it than they were sent."""
    canonical = canonical_bytes(query, table=table)
    if len(canonical) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes in its canonical form")
    return canonical


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
        if isinstance(item, LinearItem):
            yield from ((each, None) for each in functionals_of(item.linear, columns, place))
        else:
            yield _item(item, query, columns, place)


def _item(
    item: CountItem | CountIndividualsItem | SumItem | HistogramItem, query: Query, columns: RowColumns, place: int
) -> tuple[PlanItem, Domain | None]:
    match item:
        case CountItem():
            return Count(), None
        case CountIndividualsItem():
            return CountIndividuals(), None
        case SumItem():
            return Sum(column=_summable(item, columns, f"select[{place}].sum").name), None
        case HistogramItem():
            return _histogram(item, query, columns, place)


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


def _scale(query: Query, layout: Layout, columns: RowColumns, capacity: int, precision: Precision) -> Scale:
    rows_kept = _rows_kept(query, columns.table)
    return scale_of(
        ScaleRequest(
            extents=tuple(_extent(item, columns) for item, _ in layout.items),
            rows=_rows_max(columns.table) if rows_kept is None else rows_kept,
            groups=layout.dimension // layout.block,
            capacity=capacity,
            l2_clip=None if query.per_individual is None else query.per_individual.l2_clip,
            precision=precision,
        )
    )


def _rows_max(table: DataTable) -> int:
    return table.rows_per_individual if isinstance(table, EventsTable) else 1


def _rows_kept(query: Query, table: DataTable) -> int | None:
    rows = None if query.per_individual is None else query.per_individual.rows
    if rows is None:
        return None
    if not isinstance(table, EventsTable):
        raise QueryProblem.of("per_individual.rows", "is for event tables; an individual has one row in this one")
    return rows if rows < table.rows_per_individual else None


def _has_one_norm(query: Query, table: DataTable) -> bool:
    """Each individual has one row, and a row is counted at one coordinate."""
    is_sum = isinstance(query.select[0], (SumItem, LinearItem))
    return table.kind == "individuals" and len(query.select) == 1 and not is_sum


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
