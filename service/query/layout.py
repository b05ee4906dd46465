"""The coordinates of an answer, in order, and the name of each.

Groups are outermost, row-major in the order of `group_by`; then the select items in order; then an item's own
coordinates. Names are made on demand: an answer may have a million coordinates, and few want a million names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from service.query.calendar import Labels, date_text, time_text
from service.query.parts import Parts
from service.query.schema import BooleanColumn, CategoryColumn, DateColumn, DatetimeColumn, IntegerColumn

__all__ = [
    "LABELS_MAX",
    "Axis",
    "Count",
    "CountIndividuals",
    "Countable",
    "Domain",
    "Histogram",
    "Label",
    "Layout",
    "PlanItem",
    "Sum",
    "domain_of",
]

LABELS_MAX = 10_000
CATEGORIES_SHOWN_MAX = 1000

Countable = CategoryColumn | IntegerColumn | DateColumn | DatetimeColumn | BooleanColumn
Domain = Countable | Parts
Label = dict[str, str | int | bool]
Axis = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """1 for each selected row."""

    size: int = 1

    @property
    def title(self) -> str:
        """As labels write it."""
        return "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountIndividuals:
    """1 for each individual with a selected row."""

    size: int = 1

    @property
    def title(self) -> str:
        """As labels write it."""
        return "count_individuals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The column's value of each selected row; `name` is that of a functional."""

    column: str
    size: int = 1
    name: str | None = None

    @property
    def title(self) -> str:
        """As labels write it."""
        return f"sum({self.column})" if self.name is None else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """1 at the column's code of each selected row."""

    column: str
    size: int

    @property
    def title(self) -> str:
        """As labels write it."""
        return f"histogram({self.column})"


PlanItem = Count | CountIndividuals | Sum | Histogram


def domain_of(column: Domain) -> Sequence[str | int | bool]:
    """The values of a column in the order of their codes, without listing them."""
    match column:
        case CategoryColumn():
            return column.domain
        case IntegerColumn():
            return range(column.lower, column.upper + 1)
        case DateColumn():
            low, high = column.bounds
            return Labels(date_text, low, high - low + 1)
        case DatetimeColumn():
            low, high = column.bounds
            return Labels(time_text, low, high - low + 1)
        case Parts():
            return column.labels
        case BooleanColumn():
            return (False, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The coordinates of one answer. Coordinate = group * block + offset of the item + the item's own coordinate."""

    groups: tuple[tuple[str, Domain], ...]
    items: tuple[tuple[PlanItem, Countable | None], ...]  # a histogram with its column, anything else with None

    @property
    def block(self) -> int:
        """How many coordinates one group has."""
        return sum(item.size for item, _ in self.items)

    @property
    def dimension(self) -> int:
        """How many coordinates there are."""
        dimension = self.block
        for _, column in self.groups:
            dimension *= len(domain_of(column))
        return dimension

    def labels(self) -> list[Label]:
        """One name for each coordinate, or none at all above 10,000 coordinates, where `axes` must do."""
        if self.dimension > LABELS_MAX:
            return []
        names = [name for name, _ in self.groups]
        inner = [label for item, column in self.items for label in _item_labels(item, column)]
        return [
            dict(zip(names, group, strict=True)) | label
            for group in product(*(domain_of(column) for _, column in self.groups))
            for label in inner
        ]

    def axes(self) -> list[Axis]:
        """The same in a few lines whatever the dimension: the groups from the outermost in, then the select items."""
        return [*(_column_axis(name, column) for name, column in self.groups), {"select": list(self._item_axes())}]

    def _item_axes(self) -> Iterator[Axis]:
        offset = 0
        for item, column in self.items:
            axis: Axis = {"select": item.title, "offset": offset, "size": item.size}
            if isinstance(item, Histogram) and column is not None:
                axis["values"] = _column_axis(item.column, column)
            yield axis
            offset += item.size


def _item_labels(item: PlanItem, column: Countable | None) -> Iterator[Label]:
    if isinstance(item, Histogram) and column is not None:
        yield from ({"select": item.title, item.column: value} for value in domain_of(column))
    else:
        yield {"select": item.title}


def _column_axis(name: str, column: Domain) -> Axis:
    domain = domain_of(column)
    axis: Axis = {"column": name, "size": len(domain)}
    if isinstance(column, Parts):
        return axis | {name: list(value) if isinstance(value, tuple) else value for name, value in column.said}
    if isinstance(column, (IntegerColumn, DateColumn, DatetimeColumn)):
        return axis | {"lower": column.lower, "upper": column.upper}
    if isinstance(domain, range) or len(domain) > CATEGORIES_SHOWN_MAX:
        return axis  # the integers below `size`, or a list that the public schema has
    return axis | {"categories": list(domain)}
