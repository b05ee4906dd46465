"""An item that is worked out from linear items by public rules, such as a mean."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from service.query.estimated_items import Contrast
from service.query.estimates import Estimator
from service.query.item import Item, ItemPlace, PlanItem


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearParts:
    """The linear items that an item is worked out from, each with its part of the cost, and the function of them."""

    title: str
    parts: Sequence[tuple[Item, int]]
    estimator: Estimator
    contrast: Contrast | None = None


class CompositeItem(Item):
    """An item that is worked out from linear ones."""

    is_composite: ClassVar = True

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """Raise TypeError: the linear items are compiled instead."""
        raise TypeError(f"{place.field} is worked out from linear items")

    @abstractmethod
    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The linear items that the item is worked out from. Raises QueryProblem naming the field."""
