"""The difference between two groups, for an item that has one number in each group."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from service.query.composite_item import CompositeItem, LinearParts
from service.query.domains import domain_of
from service.query.estimated_items import Contrast
from service.query.estimates import DifferenceOf, Itself
from service.query.item import Item, ItemPlace, words_of
from service.query.items.mean import MeanItem, StddevItem, VarianceItem
from service.query.items.ratio import ONE_NUMBER, RatioItem, title_of
from service.query.layout import LABELS_MAX
from service.query.literals_ast import ByKey, Closed, ColumnName, Value
from service.query.phrases import literal_words
from service.query.problems import QueryProblem, quoted
from service.query.schema import doc

SUBTRACTED: Final[tuple[type[Item], ...]] = (*ONE_NUMBER, MeanItem, VarianceItem, StddevItem, RatioItem)
"""The items whose estimates have a standard error."""


class OfGroups(Closed):
    """An item, and two of the groups that it is asked for in."""

    of: Annotated[Item, ByKey("item_kind", SUBTRACTED), doc("The item.")]
    by: Annotated[ColumnName, doc("A column of `group_by`.")]
    from_: Annotated[Value, doc("The value of the group that is subtracted.")] = Field(alias="from")
    to: Annotated[Value, doc("The value of the group that it is subtracted from.")]


class DifferenceItem(CompositeItem):
    """One group less another, in the mean or another number of each; the other groups stay apart."""

    difference: Annotated[OfGroups, doc("The item and the two groups.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that name the item and the groups."""
        groups = f"{literal_words(body['from'])} and {literal_words(body['to'])}"
        return f"difference in {words_of(body['of'], SUBTRACTED)} between {body['by']} {groups}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The linear items of the item that is subtracted, in all groups."""
        asked, field = self.difference, f"{place.field}.difference"
        domain = _domain(asked.by, place, f"{field}.by")
        first, second = _value(asked.from_, domain, f"{field}.from"), _value(asked.to, domain, f"{field}.to")
        if first == second:
            raise QueryProblem.of(f"{field}.to", "is the group that is subtracted")
        each, within = asked.of, ".difference.of"
        if isinstance(each, CompositeItem):
            of = each.linear_parts(place._replace(within=within))
        else:
            of = LinearParts(title=title_of(each, place, within), parts=[(each, 1)], estimator=Itself())
        return LinearParts(
            title=f"difference({of.title}, {asked.by} {_text(first)} to {_text(second)})",
            parts=of.parts,
            estimator=DifferenceOf(of.estimator),
            contrast=Contrast(by=asked.by, first=first, second=second),
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _domain(by: str, place: ItemPlace, field: str) -> Sequence[str | int | bool]:
    domain = next((domain_of(group.domain) for group in place.groups if group.label == by), None)
    if domain is None:
        raise QueryProblem.of(field, f"{quoted(by)} is not in group_by: the groups of both values are needed")
    if len(domain) > LABELS_MAX:
        raise QueryProblem.of(field, f"has more than {LABELS_MAX} values")
    return domain


def _value(value: Value, domain: Sequence[str | int | bool], field: str) -> str | int | bool:
    """The value as labels have it. Raises QueryProblem for a value that is not declared; true is not 1 here."""
    if value not in domain or isinstance(value, bool) != isinstance(domain[0], bool):
        raise QueryProblem.of(field, f"{quoted(value)} is no declared value of the column")
    return domain[domain.index(value)]
