"""The mean of a column, or of a value that is calculated."""

from typing import Annotated, Any, ClassVar

from service.query.columns import label_of
from service.query.composite_item import CompositeItem, LinearParts
from service.query.estimates import MeanOf
from service.query.item import Form, Input, ItemPlace
from service.query.items.centred_value import MEAN_PARTS, centred
from service.query.items.sum import OfValue, value_of_words
from service.query.schema import doc


class MeanItem(CompositeItem):
    """The mean over the rows that have a value, worked out from a sum and a count."""

    FORM: ClassVar = Form(words="mean of {column}", inputs={"column": Input(kind="numeric")})
    mean: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Name the column, or the calculation."""
        return f"mean of {value_of_words(body)}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The sum of what the value is above the middle of its bounds, and the number of rows with one."""
        value = centred(self.mean, place, self.KIND)
        return LinearParts(
            title=f"mean({label_of(value.text)})",
            parts=list(zip((value.total, value.count), MEAN_PARTS, strict=True)),
            estimator=MeanOf(float(value.low), float(value.middle), float(value.high)),
        )
