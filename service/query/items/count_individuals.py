"""The count of individuals with a selected row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from service.query.columns import QueryColumn
from service.query.extents import Extent
from service.query.item import Form, Item, ItemPlace, PlanItem
from service.query.literals_ast import Empty
from service.query.schema import doc

_ONCE = Extent(low=1, high=1, step_log2=0, integral=True, is_once=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountIndividuals(PlanItem):
    """1 for each individual with a selected row."""

    has_one_norm: ClassVar = True
    is_unit: ClassVar = True
    is_once: ClassVar = True

    title: str = "count_individuals"

    def extent(self, columns: Mapping[str, QueryColumn]) -> Extent:  # noqa: ARG002 - it reads nothing
        """One for all rows in a group together."""
        return _ONCE


class CountIndividualsItem(Item):
    """One coordinate: 1 for each individual that has at least one selected row there."""

    FORM: ClassVar = Form(words="number of individuals", table="events")
    one_number: ClassVar = "always"
    count_individuals: Annotated[Empty, doc("Nothing: `{}`.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401, ARG003 - JSON
        """Words that name the individuals."""
        return "individuals"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:  # noqa: ARG002 - as above
        """The count."""
        return [CountIndividuals()]
