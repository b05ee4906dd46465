"""A count or a sum over another one."""

from typing import Annotated, Any, Final

from service.query.composite_item import CompositeItem, LinearParts
from service.query.estimates import RatioOf
from service.query.item import Item, ItemPlace, words_of
from service.query.items.count import CountItem
from service.query.items.count_individuals import CountIndividualsItem
from service.query.items.sum import SumItem
from service.query.literals_ast import ByKey, Closed
from service.query.problems import QueryProblem
from service.query.schema import doc

ONE_NUMBER: Final[tuple[type[Item], ...]] = (CountItem, CountIndividualsItem, SumItem)
"""The linear items of one number in each group."""

OneNumber = Annotated[Item, ByKey("item_kind", ONE_NUMBER)]
"""A linear item of one number in each group."""


class OfTwo(Closed):
    """Two items of one number."""

    of: Annotated[OneNumber, doc("The item above.")]
    to: Annotated[OneNumber, doc("The item below.")]


class RatioItem(CompositeItem):
    """One item over another one: a rate, a share, or a sum for each individual."""

    ratio: Annotated[OfTwo, doc("The two items, which get equal parts of the cost.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that name both items."""
        return f"{words_of(body['of'], ONE_NUMBER)} over {words_of(body['to'], ONE_NUMBER)}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The two items."""
        above, below = self.ratio.of, self.ratio.to
        if above == below:
            raise QueryProblem.of(f"{place.field}.ratio.to", "is the item above, and the ratio is 1")
        titles = [title_of(above, place, ".ratio.of"), title_of(below, place, ".ratio.to")]
        return LinearParts(title=" / ".join(titles), parts=[(above, 1), (below, 1)], estimator=RatioOf())


def title_of(item: Item, place: ItemPlace, within: str) -> str:
    """The title of an item of one number. Raises QueryProblem naming the field."""
    [compiled] = item.compiled(place._replace(within=within))
    return compiled.title
