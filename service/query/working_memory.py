"""The part of a query that is worked on at once, and the most memory that it takes: public numbers.

The engine chooses rows stretch by stretch and makes vectors run by run. So its working memory depends on what was
declared and not on how many rows there are. Beside that it takes memory for each touched individual and for each
coordinate, which the capacity and the dimension bound.
"""

from typing import Final

from service.arrays import narrowest
from service.query.columns import CODE_TABLE_SPAN_MAX, Intervals, Placed, QueryColumn, Weighted
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within, leaves_of
from service.query.division import PAGE_SLOTS, people_at_fullest, rows_at_fullest
from service.query.own_events import OwnTotal
from service.query.plan import Plan
from service.query.predictions import Predicted
from service.query.product_plan import rows_in_products
from service.query.runs import BLOCK_ROWS, rows_in_run
from service.query.schema import EventsTable, IndividualsTable

STRETCH_ROWS: Final = 2**18
"""The rows of events that are looked at together, or the rows of one individual if it has more."""
LISTED_MAX: Final = 2**20
"""The most rows that are looked up through an index at once. If there are more, all rows are looked at."""
SCAN_WORTH: Final = 64
"""The number of rows for each listed row from which on an index is used. With fewer, all rows are looked at.

Picking a listed row costs as much as passing half as many rows, so that the price of looking at all rows covers both
ways.
"""
RUNS_MAX: Final = 8
"""The most runs of codes in a list of values that is tested as ranges. These then cost about as much as one look-up."""
TABLE_SPAN_MAX: Final = 2**20
"""The largest column for which a list of values is looked up in a table, of one byte a code."""

# Bytes of working arrays for one of each, with a margin over what the largest queries allocate.
_FIXED: Final = 2**16  # the objects of one query
_ITEM: Final = 2**12  # of a select item
_LOOKED_AT_ROW: Final = 4  # masks, and where they are counted
_BETWEEN_ROW: Final = 2  # masks of one range, beside the codes less a bound
_LISTED_VALUE_ROW: Final = 32  # places in a list of values
_CHOSEN_ROW: Final = 8  # its number
_LOOKED_UP_ROW: Final = 40  # numbers of rows and their codes, before and after each condition
_EQUAL_ENTRY: Final = 24  # of individuals with one entry each, the same for all: slot and coordinate
_ROOM_ENTRY: Final = 16  # of individuals with one entry each, what is left of each: units, and whether they are enough
_SINGLE_ENTRY: Final = 80  # of individuals with one entry each: slot, value, norm, charge and what it is worked out of
_REDUCED_ENTRY: Final = 32  # of individuals with one entry each, its root and the square that is charged
_ENTRY: Final = 160  # owner, coordinate and value, before and after sorting and scaling
_QUOTIENT: Final = 32  # of an entry in steps of its item: size, estimate and residue
_ITEM_CLIPPED: Final = 88  # of an entry sorted by its item, once more with those before: item, order and all that is it
_ACCOUNT: Final = 40  # of an individual in a list: slot, whether it is touched and active, norm and charge
_MARKED: Final = 3  # of one in a stretch, beside its norm: whether it is touched and active
_FACTOR: Final = 48  # of a feature or an error of an individual: itself, its square, masked and scaled
_COORDINATE: Final = 8
_DRAWN: Final = 64  # of noise: words, radius, angle and draw
_DRAWN_MAX: Final = 2**16  # coordinates whose noise is drawn at a time
_SELECTED_ROW: Final = 40  # of rows that are weighed: how many their individual has, of those with a value too
_WEIGHED: Final = 64  # of an entry that is weighed: its individual's rows, size, sign and product
_CODE: Final = 8
_CALCULATED_VALUE: Final = 16  # of a calculated column: its code, and those of what it is made of
_CALCULATING: Final = 48  # steps of both operands and the result, and masks
_THRESHOLD: Final = 48  # of an interval, weight or place
_WEIGHT: Final = 64  # of a matrix
_TABLES: Final = 48 * CODE_TABLE_SPAN_MAX  # of intervals by code, while it is made
_PARAMETER: Final = 16  # of a prediction: a whole number, and the double that it is
_FEATURE_CODE: Final = 8  # of a table of a feature
_TOTAL: Final = 24  # of an individual's events: before and after it is coded
_EVENT_ADDED: Final = 48 + _CALCULATING  # of an event that is totalled: its individual, its value and masks
_VALUE: Final = 64  # of a list of values


def working_bytes(plan: Plan, table: IndividualsTable | EventsTable, *, capacity: int, shards: int = 1) -> int:
    """The most bytes that the evaluation of a plan allocates, on any data of at most `capacity` individuals.

    It covers the time from the plan to the released numbers and the charges, and comes on top of the dataset with its
    indexes. Over several shards it is the memory of the fullest one.
    """
    rows, capacity = rows_at_fullest(table, capacity, shards), people_at_fullest(capacity, shards)
    return (
        _FIXED
        + len(plan.layout.items) * _ITEM
        + _values_bytes(plan)
        + sum(_code_table_bytes(column, plan) for column in plan.rows.columns.values())
        + _feature_table_bytes(plan)
        + _reader_bytes(plan, capacity)
        + _WEIGHT * weights_of(plan)
        + max(
            _scan_bytes(plan, table, rows),
            min(rows // SCAN_WORTH, LISTED_MAX) * (_LOOKED_UP_ROW + _calculated_bytes(plan)),
        )
        + _run_bytes(plan, table, rows)
        + min(rows, capacity) * _account_bytes(plan, table)
        + plan.layout.dimension * _COORDINATE
        + min(plan.layout.dimension, _DRAWN_MAX) * _DRAWN
    )


def _account_bytes(plan: Plan, table: IndividualsTable | EventsTable) -> int:
    """The bytes for a touched individual that are kept until the entry is made."""
    if isinstance(table, EventsTable) or plan.layout.entries_of_row > 1:
        return _ACCOUNT
    return _MARKED + (0 if plan.has_one_norm else narrowest(plan.scale.charged_squared_steps).itemsize)


def _scan_bytes(plan: Plan, table: IndividualsTable | EventsTable, rows: int) -> int:
    """The bytes of choosing rows by looking at all of them."""
    if isinstance(table, IndividualsTable):
        pages = -(-rows // PAGE_SLOTS)
        looked_at = min((pages + pages // 8) * PAGE_SLOTS, BLOCK_ROWS)
    else:
        looked_at = min(rows, max(STRETCH_ROWS, table.rows_per_individual))
    per_row = _LOOKED_AT_ROW + _condition_bytes(plan.rows.predicate, plan) + _calculated_bytes(plan)
    if plan.rows.rows_kept is not None:
        per_row += _SELECTED_ROW
    return looked_at * per_row + min(rows, looked_at) * _CHOSEN_ROW


def _condition_bytes(predicate: Predicate, plan: Plan) -> int:
    """The bytes for a condition on one row. Several conditions are worked out one after the other."""
    match predicate:
        case Conjunction(parts) | Disjunction(parts):
            return 1 + max(_condition_bytes(part, plan) for part in parts)
        case Within(column, _, _) | Null(column):
            return _BETWEEN_ROW + plan.rows.columns[column].coding.dtype.itemsize
        case Among():
            return _LISTED_VALUE_ROW
        case All() | Nothing():
            return 0


def _run_bytes(plan: Plan, table: IndividualsTable | EventsTable, rows: int) -> int:
    """The bytes of the vectors of one run, with the codes that they are made of."""
    if plan.product is not None:
        width, looked_at = plan.product.width, min(rows, BLOCK_ROWS)
        factors = width * min(rows, rows_in_products(width))
        return factors * _FACTOR + looked_at * (_SINGLE_ENTRY + _code_bytes(plan)) + plan.layout.dimension * _VALUE
    most, is_of_events = plan.layout.entries_of_row, isinstance(table, EventsTable)
    run_rows = min(rows, rows_in_run(entries=most, is_of_events=is_of_events))
    if most == 1 and not is_of_events:
        entry = _EQUAL_ENTRY if plan.has_one_norm else _SINGLE_ENTRY
        entry += 0 if plan.layout.items[0].room_units is None else _ROOM_ENTRY
        entry += 0 if plan.reduce is None else _REDUCED_ENTRY
        return run_rows * (entry + _code_bytes(plan))
    entries = run_rows * most
    own_rows = min(rows, table.rows_per_individual) if isinstance(table, EventsTable) else 1
    if own_rows > run_rows:
        # One individual's entries are added up part by part, and the sums of the parts before wait for the others.
        entries += min(2 * plan.layout.dimension + entries, own_rows * most)
    entry = _ENTRY + (_QUOTIENT if plan.scale.sigmas else 0) + (_ITEM_CLIPPED if plan.scale.clips_squared else 0)
    entry += 0 if plan.rows.rows_kept is None else _WEIGHED
    return entries * entry + run_rows * _code_bytes(plan)


def _code_bytes(plan: Plan) -> int:
    """The bytes of the codes that say what one row adds, and where."""
    if plan.product is not None:
        return sum(column.coding.dtype.itemsize for column in columns_by_row(plan)) + _calculated_bytes(plan)
    names = {*plan.rows.group_by, *_item_columns(plan)}
    return sum(plan.rows.columns[name].coding.dtype.itemsize for name in names) + _calculated_bytes(plan)


def columns_by_row(plan: Plan) -> list[QueryColumn]:
    """The columns that are read or calculated for each row. Columns of features that tables hold are left out."""
    if plan.product is None and not any(isinstance(column.formula, Predicted) for column in plan.rows.columns.values()):
        return [*plan.rows.columns.values()]
    found: set[str] = set()
    waiting = [leaf.column for leaf in leaves_of(plan.rows.predicate) if not isinstance(leaf, All | Nothing)]
    waiting += [*plan.rows.group_by, *_item_columns(plan)]
    if plan.product is not None:
        waiting += plan.product.features.columns_by_row
        waiting += [] if plan.product.model is None else [plan.product.model.target]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            formula = plan.rows.columns[name].formula
            if isinstance(formula, Predicted):
                waiting += formula.features.columns_by_row
            elif formula is not None:
                waiting += formula.sources
    return [plan.rows.columns[name] for name in found]


def _item_columns(plan: Plan) -> list[str]:
    return [item.column for item in plan.layout.items if item.column is not None]


def weights_of(plan: Plan) -> int:
    """The number of entries of all matrices."""
    return sum(len(item.matrix.steps) for item in plan.layout.items if item.matrix is not None)


def models_of(plan: Plan) -> list[Predicted]:
    """The models whose predictions the query reads."""
    return [column.formula for column in plan.rows.columns.values() if isinstance(column.formula, Predicted)]


def own_events_of(plan: Plan) -> list[OwnTotal]:
    """The own events that the query totals."""
    return [column.formula for column in plan.rows.columns.values() if isinstance(column.formula, OwnTotal)]


def features_of(plan: Plan) -> int:
    """The number of entries of all lists of features."""
    maps = [model.features for model in models_of(plan)]
    return sum(len(features.parts) for features in maps + ([] if plan.product is None else [plan.product.features]))


def feature_tables(plan: Plan) -> list[tuple[int, int]]:
    """The number of codes, and of calculations for a code, for each feature that is looked up in a table."""
    maps = [model.features for model in models_of(plan)]
    maps += [] if plan.product is None else [plan.product.features]
    return [(root.codes, root.calculations) for features in maps for root in features.tables.values()]


def _calculated_bytes(plan: Plan) -> int:
    """The bytes of the columns calculated for one row, all kept until the row is done, and of the calculation."""
    formulas = [column for column in columns_by_row(plan) if column.formula is not None]
    return len(formulas) * _CALCULATED_VALUE + (_CALCULATING if formulas else 0)


def _code_table_bytes(column: QueryColumn, plan: Plan) -> int:
    formula = column.formula
    if isinstance(formula, Placed):
        span = plan.rows.columns[formula.column].coding.span
        table = (span + 2) * column.coding.dtype.itemsize if span <= TABLE_SPAN_MAX else 0
        return _THRESHOLD * formula.listed + table
    return _THRESHOLD * formula.listed + _TABLES if isinstance(formula, (Intervals, Weighted)) else 0


def _feature_table_bytes(plan: Plan) -> int:
    """The bytes of the tables of features, and of making the largest one."""
    tables = feature_tables(plan)
    made = max((codes * (_CALCULATED_VALUE * (1 + made_of) + _CALCULATING) for codes, made_of in tables), default=0)
    return made + sum(_FEATURE_CODE * codes for codes, _ in tables)


def _reader_bytes(plan: Plan, capacity: int) -> int:
    """The bytes of totals over own events, of a stretch of events, and of the blocks of models."""
    events = own_events_of(plan)
    total = len(events) * capacity * _TOTAL + (STRETCH_ROWS * _EVENT_ADDED if events else 0)
    for formula in events:
        calculated = [column.formula for column in formula.columns.values() if column.formula is not None]
        total += STRETCH_ROWS * (len(formula.columns) * _CODE + len(calculated) * _CALCULATED_VALUE)
        total += sum(_THRESHOLD * each.listed for each in calculated) + (_TABLES if calculated else 0)
    for model in models_of(plan):
        width = model.features.size + model.classes
        total += _FACTOR * width * rows_in_products(width) + _PARAMETER * model.classes * model.features.size
    return total


def _values_bytes(plan: Plan) -> int:
    """The bytes of the lists of values, which are prepared for looking up rows."""
    lists = [leaf for leaf in leaves_of(plan.rows.predicate) if isinstance(leaf, Among)]
    spans = [plan.rows.columns[leaf.column].coding.span for leaf in lists]
    return _VALUE * sum(len(leaf.codes) for leaf in lists) + sum(span + 2 for span in spans if span <= TABLE_SPAN_MAX)
