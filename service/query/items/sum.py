"""The sum of a column, or of a value that is calculated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from service.query.columns import QueryColumn, label_of
from service.query.expressions_ast import OfValue
from service.query.extents import Extent
from service.query.item import Form, Input, Item, ItemPlace, PlanItem
from service.query.phrases import value_words
from service.query.problems import QueryProblem, quoted
from service.query.schema import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(PlanItem):
    """The column's value of each selected row."""

    column: str

    def extent(self, columns: Mapping[str, QueryColumn]) -> Extent:
        """The declared bounds of the column, in its own steps."""
        coding = columns[self.column].coding
        return Extent(
            low=coding.offset,
            high=coding.offset + coding.span,
            step_log2=coding.step_log2,
            integral=columns[self.column].kind != "real",
        )


def value_of_words(body: Any) -> str:  # noqa: ANN401 - JSON
    """The column, or the words for the calculation."""
    return value_words(body["of"]) if "of" in body else str(body["column"])


class ValueItem(Item):
    """An item of a column, or of a value that is calculated."""

    FORM: ClassVar[Form]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """The words of the form, with the column or the calculation."""
        return cls.FORM.words.format(column=value_of_words(body))


class SumItem(ValueItem):
    """One coordinate: the value of each selected row."""

    FORM: ClassVar = Form(words="sum of {column}", inputs={"column": Input(kind="numbers")})
    one_number: ClassVar = "always"
    sum: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The sum."""
        column, field = place.columns.of_value(self.sum, f"{place.field}.sum")
        if not column.is_number:
            raise QueryProblem.of(
                field, f"{quoted(column.name)} is not numeric; count the rows where it has the value of interest"
            )
        return [Sum(column=column.name, title=f"sum({label_of(column.name)})")]
