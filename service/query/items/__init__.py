"""The kinds of select items: one module each. ITEMS is the only list of them, in the order of the documents."""

from typing import TYPE_CHECKING, Annotated, Final, Union

from pydantic import Discriminator, Tag

from service.query.item import Item
from service.query.items.active import ActiveItem
from service.query.items.count import CountItem
from service.query.items.count_individuals import CountIndividualsItem
from service.query.items.exhausted import ExhaustedItem
from service.query.items.gradient import GradientItem
from service.query.items.histogram import HistogramItem
from service.query.items.linear import LinearItem
from service.query.items.moments import MomentsItem
from service.query.items.sum import SumItem
from service.query.literals_ast import only_key

ITEMS: Final[tuple[type[Item], ...]] = (
    CountItem,
    CountIndividualsItem,
    SumItem,
    HistogramItem,
    LinearItem,
    ActiveItem,
    ExhaustedItem,
    MomentsItem,
    GradientItem,
)

if TYPE_CHECKING:
    AnyItem = Item
else:
    AnyItem = Annotated[
        Union[tuple(Annotated[item, Tag(f"({item.KIND})")] for item in ITEMS)],  # noqa: UP007 - a computed union
        Discriminator(
            only_key,
            custom_error_type="item_kind",
            custom_error_message=(
                f"must be an object with exactly one of the keys {', '.join(item.KIND for item in ITEMS)}"
            ),
        ),
    ]
"""An item of any kind, by its one key."""
