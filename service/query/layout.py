"""The coordinates of an answer, in order, and the name of each.

Groups are outermost, row-major in the order of `group_by`. Then come the select items in order, then an item's own
coordinates. Names are made on demand: an answer may have a million coordinates, and few readers want a million names.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from service.query.domains import Axis, Domain, Label, axis_of, domain_of
from service.query.estimated_items import EstimatedItem
from service.query.item import PlanItem

DIMENSION_MAX = 2**20
LABELS_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The coordinates of one answer. Coordinate = group * block + offset of the item + the item's own coordinate."""

    groups: tuple[tuple[str, Domain], ...]
    items: tuple[PlanItem, ...]
    places: tuple[int, ...]  # the select item that each is of
    estimated: tuple[EstimatedItem, ...] = ()  # the items that are worked out from the numbers, or are numbers

    @cached_property
    def block(self) -> int:
        """The number of coordinates of one group."""
        return sum(item.size for item in self.items)

    @cached_property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.block * prod(len(domain_of(column)) for _, column in self.groups)

    @cached_property
    def entries_of_row(self) -> int:
        """The most entries that one row adds, to all items together."""
        return sum(item.entries_of_row for item in self.items)

    def reduced(self, function: str) -> "Layout":
        """The layout with one coordinate, which is a function of all the coordinates here."""
        title = self.items[0].title if len(self.items) == 1 else f"{len(self.items)} functionals"
        return Layout(groups=(), items=(PlanItem(title=f"{function}({title}) of {self.dimension}"),), places=(0,))

    def labels(self) -> list[Label]:
        """One name for each coordinate. Above 10,000 coordinates there are none, and `axes` must do."""
        if self.dimension > LABELS_MAX:
            return []
        names = [name for name, _ in self.groups]
        inner = [label for item in self.items for label in item.labels()]
        return [
            dict(zip(names, group, strict=True)) | label
            for group in product(*(domain_of(column) for _, column in self.groups))
            for label in inner
        ]

    def axes(self, *, has_places: bool = False) -> list[Axis]:
        """The coordinates in a few lines, whatever their number: first the groups, the outermost first, then the items.

        With places, each item states its place in `select`.
        """
        offset, items = 0, []
        for place, item in zip(self.places, self.items, strict=True):
            axis: Axis = {"select": item.title, "offset": offset, "size": item.size}
            if has_places:
                axis["item"] = place
            items.append(axis | item.axis())
            offset += item.size
        return [*(axis_of(name, column) for name, column in self.groups), {"select": items}]
