"""A query checked against the public schema: everything the engine, the noise and the reply need to know about it."""

from collections.abc import Iterator
from dataclasses import dataclass

from service.query.canonical import canonical_bytes, query_hash, table_of
from service.query.coding import coding_of
from service.query.compile_conditions import ComparedColumn, DataTable, data_column, predicate_of
from service.query.grid import Extent, Scale, ScaleRequest, scale_of
from service.query.language import CountItem, HistogramItem, Item, Query, SumItem
from service.query.layout import Axis, Count, Countable, Histogram, Label, Layout, PlanItem, Sum, domain_of
from service.query.precision import Precision, half_width_95, precision_of
from service.query.predicate import Predicate
from service.query.problems import QueryProblem, quoted
from service.query.schema import IntegerColumn, RealColumn, Schema

__all__ = ["DIMENSION_MAX", "Count", "Histogram", "Plan", "PlanItem", "Sum", "compile_query"]

DIMENSION_MAX = 2**20
_ONE = Extent(low=1, high=1, step_log2=0, integral=True)


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
    table = schema.tables.get(name)
    if table is None:
        raise QueryProblem.of("from", f"there is no table {quoted(name)}")
    predicate = predicate_of(query.where, table)
    layout = _layout(query, table)
    scale = _scale(query, table, capacity, precision_of(query.noise, budget_units=budget_units))
    canonical = canonical_bytes(query, table=name)
    return Plan(
        table=name,
        predicate=predicate,
        group_by=query.group_by,
        items=tuple(item for item, _ in layout.items),
        dimension=layout.dimension,
        layout=layout,
        grid_log2=scale.grid_log2,
        clip_squared_steps=scale.clip_squared_steps,
        clip_binds=scale.clip_binds,
        l2_clip=scale.l2_clip,
        sigma=scale.sigma,
        sigma_steps=scale.sigma_steps,
        has_one_norm=_has_one_norm(query, table),
        worst_case_units=scale.worst_case_units,
        half_width_95=half_width_95(sigma=scale.sigma, grid_log2=scale.grid_log2),
        canonical=canonical,
        query_hash=query_hash(canonical),
        reuse=query.reuse,
        rule=query.rule,
    )


def _layout(query: Query, table: DataTable) -> Layout:
    groups: list[tuple[str, Countable]] = []
    dimension = 1
    for place, name in enumerate(query.group_by):
        field = f"group_by[{place}]"
        if name in query.group_by[:place]:
            raise QueryProblem.of(field, f"names {quoted(name)} a second time")
        column = _countable(name, table, field)
        groups.append((name, column))
        dimension *= len(domain_of(column))
        if dimension > DIMENSION_MAX:
            raise QueryProblem.of(field, f"makes more than {DIMENSION_MAX} coordinates")
    layout = Layout(groups=tuple(groups), items=tuple(_items(query, table)))
    if layout.dimension > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")
    return layout


def _countable(name: str, table: DataTable, field: str) -> Countable:
    column = data_column(name, table, field)
    if isinstance(column, RealColumn):
        raise QueryProblem.of(field, f"{quoted(name)} is a real column; count a category, boolean or integer column")
    return column


def _items(query: Query, table: DataTable) -> Iterator[tuple[PlanItem, Countable | None]]:
    """Each item once: the same numbers with noise of their own cost work and tell what less noise would tell."""
    places: dict[Item, int] = {}
    for place, item in enumerate(query.select):
        field = f"select[{place}]"
        if item in places:
            raise QueryProblem.of(field, f"repeats select[{places[item]}]")
        places[item] = place
        yield _item(item, query, table, field)


def _item(item: Item, query: Query, table: DataTable, field: str) -> tuple[PlanItem, Countable | None]:
    match item:
        case CountItem():
            return Count(), None
        case SumItem():
            _summable(item.sum.column, table, f"{field}.sum.column")
            return Sum(column=item.sum.column), None
        case HistogramItem():
            return _histogram(item.histogram.column, query, table, f"{field}.histogram.column")


def _summable(name: str, table: DataTable, field: str) -> IntegerColumn | RealColumn:
    column: ComparedColumn = data_column(name, table, field)
    if not isinstance(column, (IntegerColumn, RealColumn)):
        raise QueryProblem.of(
            field, f"{quoted(name)} is not numeric; count the rows where it has the value of interest"
        )
    return column


def _histogram(name: str, query: Query, table: DataTable, field: str) -> tuple[Histogram, Countable]:
    column = _countable(name, table, field)
    if name in query.group_by:
        raise QueryProblem.of(field, f"{quoted(name)} is in group_by already; a count gives its histogram")
    return Histogram(column=name, size=len(domain_of(column))), column


def _scale(query: Query, table: DataTable, capacity: int, precision: Precision) -> Scale:
    return scale_of(
        ScaleRequest(
            extents=tuple(_extent(item, table) for item in query.select),
            rows=1 if table.kind == "individuals" else table.rows_per_individual,
            capacity=capacity,
            l2_clip=None if query.per_individual is None else query.per_individual.l2_clip,
            precision=precision,
        )
    )


def _has_one_norm(query: Query, table: DataTable) -> bool:
    """Each individual has one row, and a row is counted at one coordinate."""
    return table.kind == "individuals" and len(query.select) == 1 and not isinstance(query.select[0], SumItem)


def _extent(item: Item, table: DataTable) -> Extent:
    if not isinstance(item, SumItem):
        return _ONE
    column = table.columns[item.sum.column]
    coding = coding_of(column)
    return Extent(
        low=coding.offset,
        high=coding.offset + coding.span,
        step_log2=coding.step_log2,
        integral=isinstance(column, IntegerColumn),
    )
