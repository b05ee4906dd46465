"""The population variance of a value, and the standard deviation, which is its root."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from service.query.columns import label_of
from service.query.composite_item import CompositeItem, LinearParts
from service.query.estimates import DeviationOf, Estimator, VarianceOf
from service.query.item import Form, Input, ItemPlace
from service.query.items.centred_value import VARIANCE_PARTS, centred
from service.query.items.sum import OfValue, value_of_words
from service.query.schema import doc


class VarianceItem(CompositeItem):
    """The population variance over the rows that have a value, worked out from two sums and a count."""

    FORM: ClassVar = Form(words="variance of {column}", inputs={"column": Input(kind="numeric")})
    variance: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Name the column, or the calculation."""
        return f"variance of {value_of_words(body)}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The sum of what the value is above the middle of its bounds, the number of rows with one, and the squares."""
        return _spread(self.variance, place, self.KIND, VarianceOf)


class StddevItem(CompositeItem):
    """The population standard deviation over the rows that have a value: the root of the variance."""

    FORM: ClassVar = Form(words="standard deviation of {column}", inputs={"column": Input(kind="numeric")})
    stddev: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Name the column, or the calculation."""
        return f"standard deviation of {value_of_words(body)}"

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The linear items of the variance."""
        return _spread(self.stddev, place, self.KIND, DeviationOf)


def _spread(asked: OfValue, place: ItemPlace, kind: str, estimator: Callable[[float], Estimator]) -> LinearParts:
    value = centred(asked, place, kind)
    return LinearParts(
        title=f"{kind}({label_of(value.text)})",
        parts=list(zip((value.total, value.count, value.squares), VARIANCE_PARTS, strict=True)),
        estimator=estimator(float(value.half)),
    )
