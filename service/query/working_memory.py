"""How much of a query is worked on at a time, and how much memory that takes at most: public numbers.

The engine chooses rows stretch by stretch and makes vectors run by run, so that its working memory depends on what was
declared and not on how many rows there are. What it takes beside that, for each individual touched and each coordinate,
is bounded by the capacity and the dimension.
"""

from typing import Final

from service.core.arrays import narrowest
from service.query.columns import Intervals, Placed, QueryColumn, Weighted, listed
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Null, Predicate, Within, leaves_of
from service.query.layout import BLOCK_ROWS, Count, CountIndividuals, Functionals, rows_in_run
from service.query.plan import Plan
from service.query.schema import EventsTable, IndividualsTable

STRETCH_ROWS: Final = 2**18
"""Rows of events that are looked at at a time, or one individual's if these are more."""
LISTED_MAX: Final = 2**20
"""The most rows that are looked up through an index at a time; for more, all rows are looked at."""
SCAN_WORTH: Final = 64
"""An index is used where all rows are at least this many times the listed ones, and else all rows are looked at.

Picking a listed row costs as much as passing half as many, so that the price of looking at all rows covers both ways.
"""
CODE_TABLE_SPAN_MAX: Final = 2**16
"""The largest column whose values' intervals or weights are looked up in a table, of eight bytes a code."""
RUNS_MAX: Final = 8
"""The most runs of codes in a list of values that are looked up as ranges, which cost about what one look-up costs."""
TABLE_SPAN_MAX: Final = 2**20
"""The largest column in which a list of values is looked up in a table, of one byte a code."""

PAGE_SLOTS: Final = 2**16
"""The slots of a page. Memory by slot is held in whole pages, up to an eighth more of them than are in use."""

# Bytes of working arrays for one of each, with a margin over what the largest queries allocate.
_FIXED: Final = 2**16  # the objects of one query
_ITEM: Final = 2**12  # of a select item
_LOOKED_AT_ROW: Final = 4  # masks, and where they are counted
_BETWEEN_ROW: Final = 2  # masks of one range, beside the codes less a bound
_LISTED_VALUE_ROW: Final = 32  # places in a list of values
_CHOSEN_ROW: Final = 8  # its number
_LOOKED_UP_ROW: Final = 40  # numbers of rows and their codes, before and after each condition
_EQUAL_ENTRY: Final = 24  # of individuals with one entry each, the same for all: slot and coordinate
_SINGLE_ENTRY: Final = 80  # of individuals with one entry each: slot, value, norm, charge and what it is worked out of
_ENTRY: Final = 160  # owner, coordinate and value, before and after sorting and scaling
_ACCOUNT: Final = 40  # of an individual in a list: slot, whether it is touched and active, norm and charge
_MARKED: Final = 3  # of one in a stretch, beside its norm: whether it is touched and active
_COORDINATE: Final = 8
_DRAWN: Final = 64  # of noise: words, radius, angle and draw
_DRAWN_MAX: Final = 2**16  # coordinates whose noise is drawn at a time
_SORTED_ROW: Final = 64  # of rows sorted by their contents: order, owner and place
_SORTED_CODE: Final = 8
_CALCULATED_VALUE: Final = 16  # of a calculated column: its code, and those of what it is made of
_CALCULATING: Final = 48  # steps of both operands and the result, and masks
_THRESHOLD: Final = 48  # of an interval, weight or place
_WEIGHT: Final = 64  # of a matrix
_TABLES: Final = 48 * CODE_TABLE_SPAN_MAX  # of intervals by code, while it is made
_VALUE: Final = 64  # of a list of values


def working_bytes(plan: Plan, table: IndividualsTable | EventsTable, *, capacity: int) -> int:
    """The most that the evaluation of a plan allocates, in bytes, on any data of at most `capacity` individuals.

    It is counted from the plan to the released numbers and the charges, and holds beside the dataset with its indexes.
    """
    rows = table.rows_max(capacity)
    return (
        _FIXED
        + len(plan.items) * _ITEM
        + _values_bytes(plan)
        + sum(_code_table_bytes(column, plan) for column in plan.columns.values())
        + _WEIGHT * sum(len(item.matrix.steps) for item in plan.items if isinstance(item, Functionals))
        + max(
            _scan_bytes(plan, table, rows),
            min(rows // SCAN_WORTH, LISTED_MAX) * (_LOOKED_UP_ROW + _calculated_bytes(plan)),
        )
        + _run_bytes(plan, table, rows)
        + min(rows, capacity) * _account_bytes(plan, table)
        + plan.dimension * _COORDINATE
        + min(plan.dimension, _DRAWN_MAX) * _DRAWN
    )


def _account_bytes(plan: Plan, table: IndividualsTable | EventsTable) -> int:
    """The bytes of an individual touched, kept until the entry is made."""
    if isinstance(table, EventsTable) or plan.entries_of_row > 1:
        return _ACCOUNT
    return _MARKED + (0 if plan.has_one_norm else narrowest(plan.clip_squared_steps).itemsize)


def _scan_bytes(plan: Plan, table: IndividualsTable | EventsTable, rows: int) -> int:
    """The bytes of choosing rows by looking at all of them."""
    if isinstance(table, IndividualsTable):
        pages = -(-rows // PAGE_SLOTS)
        looked_at = min((pages + pages // 8) * PAGE_SLOTS, BLOCK_ROWS)
    else:
        looked_at = min(rows, max(STRETCH_ROWS, table.rows_per_individual))
    per_row = _LOOKED_AT_ROW + _condition_bytes(plan.predicate, plan) + _calculated_bytes(plan)
    if plan.rows_kept is not None:
        per_row += _SORTED_ROW + _SORTED_CODE * len(table.columns)
    return looked_at * per_row + min(rows, looked_at) * _CHOSEN_ROW


def _condition_bytes(predicate: Predicate, plan: Plan) -> int:
    """The bytes of a condition on one row; of several, one is worked out after the other."""
    match predicate:
        case Conjunction(parts) | Disjunction(parts):
            return 1 + max(_condition_bytes(part, plan) for part in parts)
        case Within(column, _, _) | Null(column):
            return _BETWEEN_ROW + plan.columns[column].coding.dtype.itemsize
        case Among():
            return _LISTED_VALUE_ROW
        case All() | Nothing():
            return 0


def _run_bytes(plan: Plan, table: IndividualsTable | EventsTable, rows: int) -> int:
    """The bytes of the vectors of one run, with the codes that they are made of."""
    most, is_of_events = plan.entries_of_row, isinstance(table, EventsTable)
    run_rows = min(rows, rows_in_run(entries=most, is_of_events=is_of_events))
    if most == 1 and not is_of_events:
        entry = _EQUAL_ENTRY if plan.has_one_norm else _SINGLE_ENTRY
        return run_rows * (entry + _code_bytes(plan))
    entries = run_rows * most
    own_rows = min(rows, table.rows_per_individual) if isinstance(table, EventsTable) else 1
    if own_rows > run_rows:
        # One individual's entries are added up part by part, and the sums of the parts before wait for the others.
        entries += min(2 * plan.dimension + entries, own_rows * most)
    return entries * _ENTRY + run_rows * _code_bytes(plan)


def _code_bytes(plan: Plan) -> int:
    """The bytes of the codes that say what one row adds, and where."""
    names = {*plan.group_by, *(item.column for item in plan.items if not isinstance(item, (Count, CountIndividuals)))}
    return sum(plan.columns[name].coding.dtype.itemsize for name in names) + _calculated_bytes(plan)


def _calculated_bytes(plan: Plan) -> int:
    """The bytes of the columns calculated for one row, each kept until the row is done with, and of working one out."""
    formulas = [column for column in plan.columns.values() if column.formula is not None]
    return len(formulas) * _CALCULATED_VALUE + (_CALCULATING if formulas else 0)


def _code_table_bytes(column: QueryColumn, plan: Plan) -> int:
    if isinstance(column.formula, Placed):
        span = plan.columns[column.formula.column].coding.span
        table = (span + 2) * column.coding.dtype.itemsize if span <= TABLE_SPAN_MAX else 0
        return _THRESHOLD * listed(column.formula) + table
    return _THRESHOLD * listed(column.formula) + _TABLES if isinstance(column.formula, (Intervals, Weighted)) else 0


def _values_bytes(plan: Plan) -> int:
    """The bytes of lists of values, each made ready for looking rows up in it."""
    lists = [leaf for leaf in leaves_of(plan.predicate) if isinstance(leaf, Among)]
    spans = [plan.columns[leaf.column].coding.span for leaf in lists]
    return _VALUE * sum(len(leaf.codes) for leaf in lists) + sum(span + 2 for span in spans if span <= TABLE_SPAN_MAX)
