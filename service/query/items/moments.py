"""The second moments of features."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

from service.query.expressions_ast import Features, Intercept
from service.query.extents import NORM_SQUARED_MAX
from service.query.features import BITS_MAX, BITS_MIN, ReadFeatures, read_features
from service.query.item import Item, ItemPlace, PlanItem
from service.query.items.products import Products, ProductSteps
from service.query.literals_ast import Closed
from service.query.phrases import feature_words
from service.query.problems import QueryProblem
from service.query.product_plan import ProductPlan
from service.query.schema import doc


class Moments(Closed):
    """Features of which all products of two are summed."""

    features: Features
    intercept: Intercept = False


class MomentsItem(Item):
    """One coordinate for each pair of features, j <= k: the sum of their products, row by row of the triangle.

    It stands alone in `select`, and is about individuals.
    """

    stands_alone: ClassVar = True
    admits_groups: ClassVar = False
    moments: Annotated[Moments, doc("The features.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that count the features."""
        return f"second moments of {feature_words(body)}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The products of all pairs of features."""
        asked = self.moments
        read = read_features(asked.features, place.columns, f"{place.field}.moments", intercept=asked.intercept)
        return [Products.of("moments", read.in_steps(BITS_MAX).names, None, partial(_squares, read))]


def _squares(read: ReadFeatures, _clip_squared: Fraction | None) -> Iterator[ProductSteps]:
    """The ways of counting, the finest steps first, while no feature is lost. Norms before the clip fit 64 bits too."""
    for bits in range(BITS_MAX, BITS_MIN - 1, -1):
        try:
            features = read.in_steps(bits)
        except QueryProblem:
            return
        most = (features.squares_max**2 + features.fourths_max) // 2
        if most <= NORM_SQUARED_MAX:
            yield ProductSteps(
                product=ProductPlan(features=features, model=None),
                grid_log2=2 * features.step_log2,
                norm_squared_max=most,
            )
