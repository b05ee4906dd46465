"""The public cost of a query: the time and memory that it can take at most, whatever the records hold.

The cost is a function of the plan and of declared bounds. So it may be shown to an analyst, may refuse a query, and may
decide when an answer leaves (docs/decisions/0024). The bound assumes the worst case that the public facts admit: every
declared individual and row is there and selected, and charges differ wherever the plan admits different norms.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import ceil
from operator import attrgetter

from service.arrays import narrowest
from service.core.noise import ERROR
from service.query.columns import (
    CALCULATED,
    CODE_TABLE_SPAN_MAX,
    Intervals,
    Placed,
    QueryColumn,
    ReaderFormula,
    Weighted,
)
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within, leaves_of
from service.query.division import people_at_fullest, rows_at_fullest
from service.query.domains import CATEGORIES_SHOWN_MAX, Countable, Domain, ListedValues, domain_of
from service.query.features import FeatureMap
from service.query.layout import LABELS_MAX, Layout
from service.query.own_events import OwnTotal
from service.query.parts import LABEL_BYTES, Parts
from service.query.plan import Plan, SelectedRows
from service.query.predictions import Predicted
from service.query.reduction import REDUCTIONS
from service.query.schema import CategoryColumn, EventsTable, IndividualsTable, Schema
from service.query.working_memory import (
    RUNS_MAX,
    TABLE_SPAN_MAX,
    columns_by_row,
    feature_tables,
    features_of,
    models_of,
    own_events_of,
    weights_of,
    working_bytes,
)

_LABEL_BYTES = 40  # the braces, quotes and names of one label, without its values
_AXIS_BYTES = 256  # one axis of a reply, without its values
_NUMBER_BYTES = 24  # the longest number in JSON, with its comma
_NAME_BYTES = 6  # a character of a name in JSON
_OWN_NOISE_BYTES = 512  # what an answer and an entry say of the noise of an item that has its own
_APART = {"canonical", "query_hash", "rows", "predicate", "columns"}  # what a shape has in a form of its own
_facts = attrgetter(
    *(field.name for field in fields(Plan) if field.name not in _APART),
    *(f"rows.{field.name}" for field in fields(SelectedRows) if field.name not in _APART),
)
_SHAPES_MAX = 256
_SHAPE_BYTES_MAX = 4096  # plans of a longer text are not kept
_PIECES_BYTES = 2**8  # the smallest piece of an entry
_SLOTS_A_BYTE = 2**8  # header, digest, seal and row of each piece
_ROOM = 4.5  # conditions: what an individual has left, in eight bytes
_TABLE_LOOKED_UP = 8  # a list of values, in a table
_CONDITION = 16  # values of a list
_FEATURE = 256  # values of a list: reading one entry of a list of features, with what it is calculated of
_OWN_STEPS = 768  # an item's own steps and clip, in values of a list
_REDUCED = 3  # numbers that a shard sends: a coordinate of a sum, squared
_ESTIMATE = 24  # labels: one estimate in one group
_ESTIMATE_BYTES = 192  # one estimate in one group, without its label
_ESTIMATED_BYTES = 512  # what an answer says of an item that is worked out, without its title
_COPIES = 3  # of committed bytes: encoded, packed for the database, and the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCost:
    """The time and memory that a request takes at most.

    `time_ns` is the server's work. `kept_bytes` of memory are held from the start of the work until the response has
    left, `working_bytes` only during the work.
    """

    time_ns: int
    kept_bytes: int
    working_bytes: int

    @property
    def memory_bytes(self) -> int:
        """The largest amount of memory that the request takes at one instant."""
        return self.kept_bytes + self.working_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The longest times of a server, in ns: `sparing calibrate` measures them, with a margin.

    Each field that ends in `_row`, `_individual`, `_entry`, `_coordinate` or `_byte` is the time for a single one.
    """

    query: float = 1_000_000  # parsing, the entry, the reply, its hash and its rows
    literal: float = 2_000  # one value of a list of values; a condition is made ready in the time of _CONDITION values
    leaf_row: float = 0.5  # one condition on one row, on a column of one byte
    searched_row: float = 12.0  # one step of the search of one row in a sorted list of values
    individual: float = 4.0  # selecting, charging, filtering, adding, encoding and debiting at equal charges
    priced_individual: float = 20.0  # the same where charges may differ
    wide_charge: float = 25.0  # one charge in 128 bits, beside that (`service.core.charge.wide_rounds`)
    shortened_individual: float = 150.0  # shortening and charging again the vector of one, under the clip rule
    listed_individual: float = 75.0  # the same of an individual in a list: of events, or of several select items
    scatter_entry: float = 8.0  # adding at one of several coordinates, and each group that leads to it
    scalar_entry: float = 8.0  # one event row of one count or sum, clipped or not, beside its priced individual
    entry: float = 75.0  # one vector entry of any other event row, or of several select items
    clipped_entry: float = 25.0  # scaling it
    feature: float = 8.0  # one feature of an individual, looked up and measured; a calculation costs conditions beside
    error: float = 25.0  # one error of its prediction: predicted, rounded and measured
    product: float = 0.5  # a feature times an error or another feature
    vector_number: float = 10.0  # one number of a vector as a feature: copied and measured
    coordinate: float = 300.0  # noise and JSON of one number
    refined_coordinate: float = 400_000  # noise of one number, where doubles do not decide it
    label: float = 1_000  # the label of one number, where each has one
    committed_byte: float = 9.0  # hashing, sending and storing it durably
    commit: float = 4_000_000  # one transaction and its witness
    read: float = 3_000_000  # one small read of the database
    shard_round_trip: float = 2_000_000  # a call to all shards of a dataset
    shard_coordinate: float = 20.0  # one number of a sum that a shard sends
    shard_slowdown: float = 2.0  # how many times as long work by row takes while every core is at work
    cores: float = 1.0

    def slower_at_once(self, shards: int) -> float:
        """The factor by which work by row takes longer on a shard while `shards` shards are at work."""
        return self.shard_slowdown * max(shards / self.cores, 1.0)


def cost_of(
    plan: Plan, table: IndividualsTable | EventsTable, *, capacity: int, speed: Speed, shards: int = 1
) -> PublicCost:
    """The public cost of a plan on a table of a dataset of at most `capacity` individuals.

    Over several shards, people and rows cost as much as at the fullest shard while all shards are at work. The time for
    the commit, the noise and the reply is not divided.
    """
    by_row_ns = _rows_ns(plan, table, speed, capacity=capacity, shards=shards)
    time_ns = by_row_ns if shards == 1 else by_row_ns * speed.slower_at_once(shards) + speed.shard_round_trip
    time_ns += speed.query + speed.literal * _OWN_STEPS * len(plan.scale.sigmas)
    time_ns += _conditions_ready_ns(plan.rows.predicate, plan.rows.columns, speed)
    time_ns += speed.literal * _FEATURE * features_of(plan) + _made_ready_ns(plan, speed)
    committed = _committed_bytes(plan, min(table.rows_max(capacity), capacity), capacity)
    time_ns += plan.dimension * _coordinate_ns(plan, speed) + _estimated_ns(plan.layout, speed)
    time_ns += (
        plan.layout.dimension * ((shards > 1) * shards + _REDUCED * (plan.reduce is not None)) * speed.shard_coordinate
    )
    time_ns += committed * speed.committed_byte
    return PublicCost(
        time_ns=ceil(time_ns),
        kept_bytes=_COPIES * (committed + _unstored_bytes(plan)),
        working_bytes=shards * working_bytes(plan, table, capacity=capacity, shards=shards),
    )


def _rows_ns(plan: Plan, table: IndividualsTable | EventsTable, speed: Speed, *, capacity: int, shards: int) -> float:
    """The time of looking at rows, adding them up and charging people. Shards divide it; the fullest one counts."""
    people, rows = people_at_fullest(capacity, shards), rows_at_fullest(table, capacity, shards)
    time_ns = rows * _chosen_ns(plan.rows.predicate, plan.rows.columns, columns_by_row(plan), speed)
    time_ns += 0.0 if plan.layout.items[0].room_units is None else rows * speed.leaf_row * _ROOM
    time_ns += rows * _added_ns(plan, table, speed)
    time_ns += sum(2 * rows * _predicted_ns(model, speed) for model in models_of(plan))
    for events in own_events_of(plan):
        totalled = rows_at_fullest(events.declared, capacity, shards)
        time_ns += _totalled_ns(events, speed, people=people, rows=totalled)
    if plan.rows.rows_kept is not None:
        time_ns += rows * speed.entry  # counting them, and weighing what is added
    return time_ns + min(rows, people) * _individual_ns(plan, table, speed)


class Costs:
    """The public costs of the plans of one dataset. The cost for each shape of plan is computed once and kept."""

    def __init__(self, schema: Schema, *, capacity: int, speed: Speed, shards: int = 1) -> None:
        self.schema, self.shards = schema, shards
        self._capacity, self._speed = capacity, speed
        self._by_shape: dict[Hashable, PublicCost] = {}

    def of(self, plan: Plan) -> PublicCost:
        """The public cost of a plan: `cost_of`, which depends on its shape alone.

        A shape is the plan without its texts and the values that conditions and formulas compare with. For these it has
        their length or their number, which the cost depends on.
        """
        reads = any(isinstance(column.formula, ReaderFormula) for column in plan.rows.columns.values())
        if len(plan.canonical) > _SHAPE_BYTES_MAX or plan.layout.items[0].product is not None or reads:
            return self._worked_out(plan)
        shape: tuple[Hashable, ...] = (_facts(plan), _shape(plan.rows.predicate), len(plan.canonical))
        if any(column.formula is not None for column in plan.rows.columns.values()):
            shape += tuple((name, column.shape) for name, column in plan.rows.columns.items())
        known = self._by_shape.get(shape)
        if known is None:
            if len(self._by_shape) == _SHAPES_MAX:
                self._by_shape.clear()
            known = self._by_shape[shape] = self._worked_out(plan)
        return known

    def _worked_out(self, plan: Plan) -> PublicCost:
        table = self.schema.tables[plan.rows.table]
        return cost_of(plan, table, capacity=self._capacity, speed=self._speed, shards=self.shards)


def total_cost(costs: Sequence[PublicCost]) -> PublicCost:
    """The cost of several queries that are worked on one after the other and answered together."""
    return PublicCost(
        time_ns=sum(cost.time_ns for cost in costs),
        kept_bytes=sum(cost.kept_bytes for cost in costs),
        working_bytes=max((cost.working_bytes for cost in costs), default=0),
    )


def _coordinate_ns(plan: Plan, speed: Speed) -> float:
    """The time for one coordinate: its noise, its number and its label. A draw near a half is refined on any data."""
    labelled = speed.label if plan.dimension <= LABELS_MAX else 0.0
    return speed.coordinate + labelled + speed.refined_coordinate * 4 * plan.scale.law.size_steps * ERROR


def _individual_ns(plan: Plan, table: IndividualsTable | EventsTable, speed: Speed) -> float:
    """The time of charging and debiting one touched individual."""
    if plan.has_one_norm:
        return speed.individual
    is_one = len(plan.layout.items) == 1 and plan.layout.items[0].matrix is None
    is_alone = is_one and isinstance(table, IndividualsTable)
    rounds = plan.scale.law.rounds(plan.scale.charged_squared_steps)
    shortened = speed.shortened_individual + rounds * speed.wide_charge if plan.shortens else 0.0
    shortened += 0.0 if plan.reduce is None else speed.priced_individual  # the square that is charged
    return (speed.priced_individual if is_alone else speed.listed_individual) + rounds * speed.wide_charge + shortened


def _added_ns(plan: Plan, table: IndividualsTable | EventsTable, speed: Speed) -> float:
    """The time of adding up and clipping what one row adds."""
    if plan.product is None:
        return plan.layout.entries_of_row * _entry_ns(plan, table, speed)
    size, classes = plan.product.features.size, plan.product.classes
    multiplied = size**2 if plan.product.model is None else 2 * size * classes
    scaled = (size if plan.product.model is None else classes) * (plan.scale.clip_binds + plan.shortens)
    made = _read_ns(plan.product.features, speed) + classes * speed.error
    return made + multiplied * speed.product + scaled * speed.clipped_entry


def _entry_ns(plan: Plan, table: IndividualsTable | EventsTable, speed: Speed) -> float:
    """The time of adding up and clipping one entry of a row."""
    if isinstance(table, EventsTable) and _adds_one_number(plan):
        return speed.scalar_entry
    clipped = speed.clipped_entry if plan.scale.clip_binds else 0.0
    clipped += speed.clipped_entry if plan.scale.sigmas else 0.0  # as many steps of arithmetic
    clipped += speed.clipped_entry if plan.shortens and not _adds_one_number(plan) else 0.0
    clipped += speed.entry if plan.scale.clips_squared else 0.0  # sorting once more, by item
    clipped += 2 * speed.scalar_entry if plan.reduce and REDUCTIONS[plan.reduce].is_of_entries else 0.0
    if isinstance(table, EventsTable) or plan.layout.entries_of_row > 1:
        return speed.entry + clipped
    return clipped + (speed.scatter_entry * (1 + len(plan.rows.group_by)) if plan.layout.dimension > 1 else 0.0)


def _adds_one_number(plan: Plan) -> bool:
    """Tell whether a row adds one count or sum at a fixed coordinate. With `group_by` the coordinate varies by row."""
    return len(plan.layout.items) == 1 and plan.layout.items[0].is_scalar and not plan.rows.group_by


def _made_ready_ns(plan: Plan, speed: Speed) -> float:
    """The time of placing the entries of matrices and making tables of features, before the first row is looked at."""
    calculated = sum(codes * (1 + made_of) for codes, made_of in feature_tables(plan))
    return speed.entry * weights_of(plan) + speed.leaf_row * CALCULATED * calculated


def _committed_bytes(plan: Plan, touched: int, capacity: int) -> int:
    """The bytes stored for one query: touched and active slots, norms, the released numbers, labels, the text.

    The numbers are in the entry, and where they are few also in the reply. Parameters that came by hash are kept once,
    but the price counts them each time.
    """
    slots = 2 * (-(-capacity // 8)) + _PIECES_BYTES + capacity // _SLOTS_A_BYTE
    norms = 0 if plan.has_one_norm else narrowest(plan.scale.charged_squared_steps).itemsize * touched
    norms *= 2 if plan.shortens else 1
    names = _labels_bytes(plan.answered) + _axes_bytes(plan.answered) + _estimates_bytes(plan.layout)
    own = _OWN_NOISE_BYTES * len(plan.layout.items) if plan.scale.sigmas else 0
    replied = 0 if _is_long(plan) else _NUMBER_BYTES * plan.dimension
    parameters = sum(len(each.numbers) for each in plan.parameters)
    return slots + norms + 8 * plan.dimension + replied + parameters + names + own + 2 * len(plan.canonical)


def _is_long(plan: Plan) -> bool:
    """Tell whether the reply is stored without its numbers, which are then read from the entry again."""
    return plan.dimension > LABELS_MAX


def _unstored_bytes(plan: Plan) -> int:
    """The bytes of a reply that are sent and not stored."""
    return _NUMBER_BYTES * plan.dimension if _is_long(plan) else 0


def _shape(predicate: Predicate) -> Hashable:
    """A predicate without the values it compares with. A list of values is replaced by its length."""
    match predicate:
        case Within(column, _, _):
            return column
        case Null(column):
            return Null, column
        case Among(column, codes):
            return column, len(codes)
        case Conjunction(parts):
            return Conjunction, tuple(map(_shape, parts))
        case Disjunction(parts):
            return Disjunction, tuple(map(_shape, parts))
        case All() | Nothing():
            return repr(predicate)


def _chosen_ns(
    predicate: Predicate, columns: Mapping[str, QueryColumn], read: Iterable[QueryColumn], speed: Speed
) -> float:
    """The time of calculating the columns in `read` for one row and testing the conditions on it.

    Columns are calculated for choosing rows, and again for adding them up.
    """
    formulas = [column.formula for column in read if column.formula is not None]
    calculated = 2 * sum(formula.conditions for formula in formulas)
    searched = _searched_steps(predicate, columns) + _sought_steps(columns)
    return speed.leaf_row * (1 + _leaves(predicate, columns) + calculated) + speed.searched_row * searched


def _conditions_ready_ns(predicate: Predicate, columns: Mapping[str, QueryColumn], speed: Speed) -> float:
    """The time of preparing conditions and tables of intervals and weights, before the first row is looked at."""
    leaves = leaves_of(predicate)
    literals = _CONDITION * len(leaves) + sum(len(leaf.codes) for leaf in leaves if isinstance(leaf, Among))
    return speed.literal * literals + speed.searched_row * _table_steps(columns)


def _leaves(predicate: Predicate, columns: Mapping[str, QueryColumn]) -> float:
    """The conditions on a row, in those on a column of one byte; a list of values counts more, by its length."""
    read = [leaf for leaf in leaves_of(predicate) if not isinstance(leaf, All | Nothing)]
    return sum(_width(columns[leaf.column]) * (_tested(leaf) if isinstance(leaf, Among) else 1) for leaf in read)


def _tested(values: Among) -> int:
    return len(values.codes) if len(values.codes) <= RUNS_MAX else _TABLE_LOOKED_UP


def _width(column: QueryColumn) -> float:
    """The price of a condition on a column, in units of one on a column of one byte. At eight bytes it is some four."""
    return (1 + column.coding.dtype.itemsize) / 2


def _sought_steps(columns: Mapping[str, QueryColumn]) -> int:
    """The steps in which one value is sought among thresholds or weights, where its domain is too large for a table."""
    formulas = [each.formula for each in columns.values() if isinstance(each.formula, (Intervals, Weighted, Placed))]
    return sum(
        2 * formula.listed.bit_length()
        for formula in formulas
        if columns[formula.column].coding.span
        > (TABLE_SPAN_MAX if isinstance(formula, Placed) else CODE_TABLE_SPAN_MAX)
    )


def _table_steps(columns: Mapping[str, QueryColumn]) -> int:
    """The steps in which the tables of intervals and weights are made, by which rows are then looked up."""
    formulas = [each.formula for each in columns.values() if isinstance(each.formula, (Intervals, Weighted))]
    tables = [(columns[formula.column].coding.span, formula.listed) for formula in formulas]
    return sum((span + 2) * (1 + listed.bit_length()) for span, listed in tables if span <= CODE_TABLE_SPAN_MAX)


def _searched_steps(predicate: Predicate, columns: Mapping[str, QueryColumn]) -> int:
    """The steps of searching for one row's value in lists that are too long for ranges and too wide for a table."""
    lists = [leaf for leaf in leaves_of(predicate) if isinstance(leaf, Among) and len(leaf.codes) > RUNS_MAX]
    wide = [leaf for leaf in lists if columns[leaf.column].coding.span > TABLE_SPAN_MAX]
    return sum(len(leaf.codes).bit_length() for leaf in wide)


def _predicted_ns(model: Predicted, speed: Speed) -> float:
    """The time of one prediction: its features, its arguments and its link."""
    return _read_ns(model.features, speed) + model.classes * (speed.error + model.features.size * speed.product)


def _read_ns(features: FeatureMap, speed: Speed) -> float:
    """The time of reading the features of one row."""
    numbers = sum(vector.size for vector in features.vectors)
    return (features.size - numbers) * speed.feature + numbers * speed.vector_number


def _totalled_ns(events: OwnTotal, speed: Speed, *, people: int, rows: int) -> float:
    """The time of choosing and totalling the events of all individuals, and coding each individual's total."""
    chosen = _chosen_ns(events.predicate, events.columns, events.columns.values(), speed)
    ready = _conditions_ready_ns(events.predicate, events.columns, speed)
    return ready + rows * (chosen + speed.scalar_entry) + people * speed.individual


def _labels_bytes(layout: Layout) -> int:
    if layout.dimension > LABELS_MAX:
        return 0
    columns = _domains(layout)
    names = sum(max(map(len, part), default=0) for part in _names(layout))
    return layout.dimension * (_LABEL_BYTES + sum(map(_value_bytes, columns)) + 2 * _NAME_BYTES * names)


def _estimated_ns(layout: Layout, speed: Speed) -> float:
    """The time of working out the estimates of all groups, with each number that an estimate is worked out from."""
    if not layout.estimated or layout.dimension > LABELS_MAX:
        return 0.0
    each = sum(_ESTIMATE + sum(layout.items[part].size for part in item.parts) for item in layout.estimated)
    return speed.label * each * (layout.dimension // layout.block)


def _estimates_bytes(layout: Layout) -> int:
    if not layout.estimated or layout.dimension > LABELS_MAX:
        return 0
    titles = sum(_NAME_BYTES * len(item.title) for item in layout.estimated)
    label = _LABEL_BYTES + sum(_value_bytes(domain) for _, domain in layout.groups)
    rows = len(layout.estimated) * (_ESTIMATE_BYTES + label) + titles
    stated = len(layout.estimated) * (_ESTIMATED_BYTES + 2 * label) + 2 * titles
    return stated + rows * (layout.dimension // layout.block)


def _axes_bytes(layout: Layout) -> int:
    columns = _domains(layout)
    shown = [column for column in columns if isinstance(column, ListedValues) or _has_names(column)]
    listed = [column for column in shown if len(domain_of(column)) <= CATEGORIES_SHOWN_MAX]
    said = sum(_NUMBER_BYTES * len(domain_of(column)) for column in columns if isinstance(column, Parts))
    said += _NAME_BYTES * sum(len(name) + 1 for part in _names(layout) for name in part)
    return (
        said
        + _AXIS_BYTES * (len(layout.groups) + len(layout.items))
        + sum(len(domain_of(column)) * _value_bytes(column) for column in listed)
    )


def _domains(layout: Layout) -> list[Domain]:
    """The values of each group and item that has any."""
    own = [item.domain for item in layout.items if item.domain is not None]
    return [domain for _, domain in layout.groups] + own


def _names(layout: Layout) -> list[tuple[str, ...]]:
    """The names of features and classes that an answer repeats."""
    parts = [part for item in layout.items for part in item.names]
    return [part for part in parts if len(part) <= CATEGORIES_SHOWN_MAX or layout.dimension <= LABELS_MAX]


def _has_names(column: Domain) -> bool:
    return isinstance(column, CategoryColumn) and column.categories is not None


def _value_bytes(column: Domain) -> int:
    """The bytes of the longest value of a column in JSON, with a name. A character takes at most six bytes there."""
    return _longest_bytes(column.of if isinstance(column, ListedValues) else column)


@lru_cache(maxsize=1024)
def _longest_bytes(column: Countable | Parts) -> int:
    longest = LABEL_BYTES if isinstance(column, Parts) else 24
    if isinstance(column, CategoryColumn) and column.categories is not None:
        longest = max(6 * len(category) if isinstance(category, str) else 20 for category in column.categories)
    return longest + 80
