"""The values to which coordinates belong: a column's declared domain, its parts, or listed values."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.query.calendar import Labels, date_text, time_text
from service.query.parts import Parts
from service.query.schema import BooleanColumn, CategoryColumn, DateColumn, DatetimeColumn, IntegerColumn

CATEGORIES_SHOWN_MAX = 1000
Countable = CategoryColumn | IntegerColumn | DateColumn | DatetimeColumn | BooleanColumn
Label = dict[str, str | int | bool]
Axis = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedValues:
    """Some values of a column, in the order in which they were asked for."""

    of: Countable
    values: tuple[str | int | bool, ...]


Domain = Countable | Parts | ListedValues


def domain_of(column: Domain) -> Sequence[str | int | bool]:
    """The values of a column in the order of their codes, without listing them."""
    match column:
        case CategoryColumn():
            return column.domain
        case IntegerColumn():
            return range(column.lower, column.upper + 1)
        case DateColumn() | DatetimeColumn():
            low, high = column.bounds
            return Labels(date_text if column.type == "date" else time_text, low, high - low + 1)
        case Parts():
            return column.labels
        case ListedValues():
            return column.values
        case BooleanColumn():
            return (False, True)


def axis_of(name: str, column: Domain) -> Axis:
    """The values of some coordinates in a few lines, under the name of their column."""
    domain = domain_of(column)
    axis: Axis = {"column": name, "size": len(domain)}
    if isinstance(column, Parts):
        return axis | {name: list(value) if isinstance(value, tuple) else value for name, value in column.said}
    if isinstance(column, ListedValues):
        return axis | ({"categories": list(column.values)} if len(domain) <= CATEGORIES_SHOWN_MAX else {})
    if isinstance(column, (IntegerColumn, DateColumn, DatetimeColumn)):
        return axis | {"lower": column.lower, "upper": column.upper}
    if isinstance(domain, range) or len(domain) > CATEGORIES_SHOWN_MAX:
        return axis  # the integers below `size`, or a list that the public schema has
    return axis | {"categories": list(domain)}
