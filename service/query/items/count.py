"""The count of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from service.query.item import Form, Item, ItemPlace, PlanItem
from service.query.literals_ast import Empty
from service.query.schema import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(PlanItem):
    """1 for each selected row."""

    has_one_norm: ClassVar = True
    is_unit: ClassVar = True

    title: str = "count"


class CountItem(Item):
    """One coordinate: 1 for each selected row."""

    FORM: ClassVar = Form(words="count")
    one_number: ClassVar = "always"
    count: Annotated[Empty, doc("Nothing: `{}`.")]

    @classmethod
    def sentence(cls, body: Any, table: str) -> str:  # noqa: ANN401, ARG003 - JSON
        """Words that name the rows that are counted."""
        return f"count of {table}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:  # noqa: ARG002 - it reads nothing
        """The count."""
        return [Count()]
