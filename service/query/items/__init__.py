"""The kinds of select items, one module for each kind. ITEMS is their only list, in the order of the documents."""

from typing import Annotated, Final

from service.query.item import Item
from service.query.items.active import ActiveItem
from service.query.items.count import CountItem
from service.query.items.count_individuals import CountIndividualsItem
from service.query.items.difference import DifferenceItem
from service.query.items.exhausted import ExhaustedItem
from service.query.items.gradient import GradientItem
from service.query.items.histogram import HistogramItem
from service.query.items.linear import LinearItem
from service.query.items.mean import MeanItem, StddevItem, VarianceItem
from service.query.items.moments import MomentsItem
from service.query.items.quantile import QuantileItem
from service.query.items.ratio import RatioItem
from service.query.items.sum import SumItem
from service.query.literals_ast import ByKey

ITEMS: Final[tuple[type[Item], ...]] = (
    CountItem,
    CountIndividualsItem,
    SumItem,
    HistogramItem,
    LinearItem,
    MeanItem,
    VarianceItem,
    StddevItem,
    QuantileItem,
    RatioItem,
    DifferenceItem,
    ActiveItem,
    ExhaustedItem,
    MomentsItem,
    GradientItem,
)

AnyItem = Annotated[Item, ByKey("item_kind", ITEMS)]
"""An item of any kind, by its one key."""
