"""Coverage as a query: the number of individuals that have a share of the dataset's budget left.

The part that an individual has left is a function of its own record and of the answers before, so that this is a
linear query as any other: all who are counted pay for it (theory: releasing coverage privately). The share is large
enough for that, so that nobody is left out of the number because of the number's own charge. All refusals are by public
numbers.
"""

from fractions import Fraction
from math import ceil, floor
from typing import Final

from service.query.language import ActiveItem, Query
from service.query.layout import Active
from service.query.problems import QueryProblem
from service.query.row_columns import DataTable
from service.query.scale import Scale
from service.query.schema import EventsTable

_DIGITS: Final = 3  # of a share that is suggested


def active_of(item: ActiveItem, query: Query, table: DataTable, *, budget_units: int) -> Active:
    """The item for a dataset with this budget: the share in whole units, rounded up.

    Raises QueryProblem beside other items, of events, and for a query that would take an earlier answer.
    """
    if len(query.select) > 1:
        raise QueryProblem.of("select", "active stands alone: ask the other items in a query of their own")
    if isinstance(table, EventsTable):
        raise QueryProblem.of("from", "active is about individuals, and this is a table of events")
    if query.reuse and "reuse" in query.model_fields_set:
        raise QueryProblem.of("reuse", "must be false, or left out: active changes with every charge")
    share = item.active.share
    return Active(units=_units(Fraction(share), budget_units), share=share)


def payable_units(item: Active, scale: Scale, budget_units: int) -> int:
    """The units that an individual must have left to be counted, which pay for any vector of this scale.

    Raises QueryProblem where they may not, with a share that will do.
    """
    worst_case_units = scale.worst_case_units
    if item.units >= worst_case_units:
        return item.units
    paid = "each counted individual pays for this query"
    if worst_case_units > budget_units:
        problem = f"{paid}, and it costs more than the whole budget: ask with more noise"
    else:
        problem = f"{paid}: at least {_least_share(worst_case_units, budget_units)}"
    raise QueryProblem.of("select[0].active.share", problem)


def _units(share: Fraction, budget_units: int) -> int:
    return ceil(share * budget_units)


def _least_share(units: int, budget_units: int) -> str:
    """A short decimal, at most 1, that is a share of at least so many units, rounded up, and little more."""
    least, exponent = Fraction(units, budget_units), 0
    while least * 10**exponent < 10 ** (_DIGITS - 1):
        exponent += 1
    digits = floor(least * 10**exponent)
    while _units(Fraction(float(Fraction(digits, 10**exponent))), budget_units) < units:
        digits += 1
    return f"{float(Fraction(digits, 10**exponent)):.12g}"
