"""A count or sum over an individual's own events, as a value of the individual."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from service.query.arithmetic import Amount
from service.query.columns import LOOKED_UP, Coding, QueryColumn, ReaderFormula
from service.query.conditions import Predicate, predicate_of
from service.query.expressions_ast import Own
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, text_of, within_bounds
from service.query.schema import EventsTable, Schema
from service.query.suggestions import did_you_mean

TOTAL_MAX: Final = 2**59
"""The largest total of an individual's events in steps. Arithmetic with a clip of it fits 60 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTotal(ReaderFormula):
    """The number of those events of an individual that a predicate selects, or the sum of a column over them."""

    conditions: ClassVar[int] = LOOKED_UP
    """The price of looking up one total. Making the totals of all individuals is priced elsewhere."""
    table: str
    declared: EventsTable
    predicate: Predicate
    column: str | None  # None: counted
    columns: Mapping[str, QueryColumn]  # those of the events that are read


def own_events_column(
    node: Own, columns: RowColumns, columns_of: Callable[[Schema, str], RowColumns], field: str
) -> QueryColumn:
    """The column of the totals: zero for an individual without such events, and never NULL.

    `columns_of` gives the columns of another table. Raises QueryProblem naming the field.
    """
    asked = node.own
    if isinstance(columns.table, EventsTable):
        raise QueryProblem.of(field, "is a value of individuals, and this is a table of events")
    tables, named = columns.schema.tables, f"{field}.from"
    if asked.from_ not in tables:
        raise QueryProblem.of(named, f"there is no table {quoted(asked.from_)}{did_you_mean(asked.from_, tables)}")
    events = columns_of(columns.schema, asked.from_)
    if not isinstance(events.table, EventsTable):
        raise QueryProblem.of(named, f"{quoted(asked.from_)} is not a table of events")
    predicate = predicate_of(asked.where, events, field=f"{field}.where")
    added = None if asked.sum is None else events.value(asked.sum, f"{field}.sum")
    if added is not None and not added.is_number:
        raise QueryProblem.of(f"{field}.sum", "must be a number")
    if any(isinstance(each.formula, ReaderFormula) for each in events.used.values()):
        raise QueryProblem.of(field, "must not hold a prediction: it is a value of the query's own rows")
    total = _total(added, events.table.rows_per_individual, f"{field}.sum")
    formula = OwnTotal(
        table=asked.from_,
        declared=events.table,
        predicate=predicate,
        column=None if added is None else added.name,
        columns=events.used,
    )
    whole = QueryColumn(
        name=f"all of {text_of(node)}", kind="integer" if added is None else added.kind, coding=total, formula=formula
    )
    fields = f"{field}.clip[0]", f"{field}.clip[1]"
    return within_bounds(text_of(node), Amount.of_column(columns.add(whole)), asked.clip, fields)


def _total(added: QueryColumn | None, rows: int, field: str) -> Coding:
    """The coding of totals over at most `rows` events. Raises QueryProblem for a total that is too large."""
    low, high, step_log2 = 0, 1, 0
    if added is not None:
        coding = added.coding
        low, high, step_log2 = min(coding.offset, 0), max(coding.offset + coding.span, 0), coding.step_log2
    if rows * max(-low, high) > TOTAL_MAX:
        raise QueryProblem.of(field, "adds up to numbers too large for exact sums; clip the value")
    return Coding(offset=rows * low, span=rows * (high - low), step_log2=step_log2)
