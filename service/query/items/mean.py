"""The mean, the population variance and the standard deviation of a column, or of a value that is calculated."""

from abc import abstractmethod
from typing import Annotated, ClassVar

from service.query.columns import label_of
from service.query.composite_item import CompositeItem, LinearParts
from service.query.estimates import DeviationOf, Estimator, MeanOf, VarianceOf
from service.query.expressions_ast import OfValue
from service.query.item import Form, Input, ItemPlace
from service.query.items.centred_value import MEAN_PARTS, VARIANCE_PARTS, CentredValue, centred
from service.query.items.sum import ValueItem
from service.query.schema import doc


class CentredItem(ValueItem, CompositeItem):
    """An item that is worked out from sums of a value about the middle of its bounds, over the rows that have one."""

    PARTS: ClassVar[tuple[int, ...]] = VARIANCE_PARTS

    @abstractmethod
    def estimator(self, value: CentredValue) -> Estimator:
        """The function of the sums."""

    def linear_parts(self, place: ItemPlace) -> LinearParts:
        """The sums, each with its part of the cost."""
        value = centred(getattr(self, self.KIND), place, self.KIND)
        title = f"{self.KIND}({label_of(value.text)})"
        return LinearParts(title=title, parts=value.sums(self.PARTS), estimator=self.estimator(value))


class MeanItem(CentredItem):
    """The mean over the rows that have a value, worked out from a sum and a count."""

    FORM: ClassVar = Form(words="mean of {column}", inputs={"column": Input(kind="numeric")})
    PARTS: ClassVar = MEAN_PARTS
    mean: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    def estimator(self, value: CentredValue) -> Estimator:
        """The mean."""
        return MeanOf(float(value.low), float(value.middle), float(value.high))


class VarianceItem(CentredItem):
    """The population variance over the rows that have a value, worked out from two sums and a count."""

    FORM: ClassVar = Form(words="variance of {column}", inputs={"column": Input(kind="numeric")})
    variance: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    def estimator(self, value: CentredValue) -> Estimator:
        """The variance."""
        return VarianceOf(float(value.half))


class StddevItem(CentredItem):
    """The population standard deviation over the rows that have a value: the root of the variance."""

    FORM: ClassVar = Form(words="standard deviation of {column}", inputs={"column": Input(kind="numeric")})
    stddev: Annotated[OfValue, doc("The column, or the value that is calculated.")]

    def estimator(self, value: CentredValue) -> Estimator:
        """The root of the variance."""
        return DeviationOf(float(value.half))
