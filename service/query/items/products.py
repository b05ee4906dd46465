"""Products of features as items: their coordinates, and the choice of the steps in which they are counted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import floor, ldexp, sqrt
from typing import ClassVar, Final

from service.core.laws import Gaussian
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN
from service.query.dataset_terms import DatasetTerms
from service.query.domains import CATEGORIES_SHOWN_MAX, Axis, Label
from service.query.extents import RowBounds
from service.query.item import AskedPrecision, PlanItem
from service.query.layout import DIMENSION_MAX
from service.query.precision import Precision, precision_of
from service.query.problems import QueryProblem
from service.query.product_plan import ProductPlan
from service.query.runs import MULTIPLIED_MAX
from service.query.scale import SIGMA_STEPS_EASY, Scale

CLIP_SQUARED_MIN: Final = 4**16
"""The least squared clip in steps: truncation loses little of a vector at the clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSteps:
    """One way of counting: the steps, and the largest squared norm of an individual in them."""

    product: ProductPlan
    grid_log2: int
    norm_squared_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Products(PlanItem):
    """The products of features: of each pair where `classes` is None, or of each feature with the error of each class.

    A model of one number has an empty tuple of classes.
    """

    is_scalar: ClassVar = False
    has_own_scale: ClassVar = True

    features: tuple[str, ...]
    classes: tuple[str | int | bool, ...] | None
    ways: Callable[[Fraction | None], Iterable[ProductSteps]] | None = field(default=None, repr=False, compare=False)
    """The ways of counting the products under a clip, which is given squared; None once a way is chosen."""

    @classmethod
    def of(
        cls,
        title: str,
        features: Sequence[str],
        classes: Sequence[str | int | bool] | None,
        ways: Callable[[Fraction | None], Iterable[ProductSteps]],
    ) -> "Products":
        """The item with a coordinate for each product. Raises QueryProblem for too many."""
        count = len(features)
        size = count * (count + 1) // 2 if classes is None else count * max(len(classes), 1)
        refuse_many(size)
        several = None if classes is None else tuple(classes)
        return cls(title=title, size=size, features=tuple(features), classes=several, ways=ways)

    @property
    def names(self) -> Sequence[tuple[str, ...]]:
        """The features and the classes."""
        return self.features, tuple(map(str, self.classes or ()))

    def labels(self) -> list[Label]:
        """The pair, or the class and feature, of each coordinate."""
        if self.classes is None:
            pairs = combinations_with_replacement(self.features, 2)
            return [{"select": self.title, "feature": first, "with": second} for first, second in pairs]
        if not self.classes:
            return [{"select": self.title, "feature": name} for name in self.features]
        each = product(self.classes, self.features)
        return [{"select": self.title, "class": value, "feature": name} for value, name in each]

    def axis(self) -> Axis:
        """The features and the classes in a few lines. A list that is too long is left out."""
        named = {"features": self.features, "classes": self.classes or ()}
        return {key: list(names) for key, names in named.items() if 0 < len(names) <= CATEGORIES_SHOWN_MAX}

    def scaled(self, precision: AskedPrecision, terms: DatasetTerms) -> "tuple[Products, Scale]":
        """The products with the chosen way of counting, and the scale of that way."""
        if self.ways is None:
            raise ValueError("the way of counting is chosen already")
        self._refuse_long(terms.capacity)
        sought = precision_of(precision.noise, precision.mechanism, budget_units=terms.budget_units)
        ways = list(self.ways(precision.clip_squared))
        chosen, scale = _chosen(ways, precision.clip_squared, sought, terms.capacity)
        return replace(self, product=chosen.product, ways=None), scale

    def _refuse_long(self, capacity: int) -> None:
        """Raise QueryProblem where the products would occupy the server for seconds, by public numbers."""
        size = len(self.features)
        multiplied = capacity * size * (size if self.classes is None else 2 * max(len(self.classes), 1))
        if multiplied > MULTIPLIED_MAX:
            most = f"{MULTIPLIED_MAX:.0e} products of two numbers for a dataset's capacity"
            problem = f"makes {multiplied:.2g} of at most {most}; select fewer features or classes"
            raise QueryProblem.of("select", problem)


def refuse_many(coordinates: int) -> None:
    """Raise QueryProblem for more coordinates than an answer may have."""
    if coordinates > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")


def _chosen(
    candidates: Sequence[ProductSteps], clip_squared: Fraction | None, precision: Precision, capacity: int
) -> tuple[ProductSteps, Scale]:
    """The finest candidate that fits 64 bits and makes noise easy to draw, or else the coarsest with any draw."""
    fitting = []
    for candidate in candidates:
        most = candidate.norm_squared_max
        if clip_squared is not None:
            most = min(most, floor(clip_squared / Fraction(4) ** candidate.grid_log2))
        if RowBounds(rows=1, groups=1, capacity=capacity).fits(most):
            fitting.append((candidate, most))
    if not fitting:
        raise QueryProblem.of("select", "adds up to numbers too large for exact sums; give an l2_clip")
    if fitting[0][1] < CLIP_SQUARED_MIN:
        raise QueryProblem.of("per_individual.l2_clip", "is too small beside the declared bounds")
    for most_steps, ordered in ((SIGMA_STEPS_EASY, fitting), (SIGMA_STEPS_MAX, fitting[::-1])):
        for candidate, most in ordered:
            if precision.estimate(most, candidate.grid_log2) <= most_steps:
                return candidate, _scale(candidate, most, clip_squared, precision)
    most_sigma = ldexp(SIGMA_STEPS_MAX, fitting[-1][0].grid_log2)
    raise QueryProblem.of(precision.field, f"must give a sigma of at most {most_sigma:.6g} in this query")


def _scale(candidate: ProductSteps, most: int, clip_squared: Fraction | None, precision: Precision) -> Scale:
    sigma_steps = precision.size_steps(most, candidate.grid_log2)
    if sigma_steps < SIGMA_STEPS_MIN:
        least = ldexp(SIGMA_STEPS_MIN, candidate.grid_log2)
        raise QueryProblem.of(precision.field, f"must give a sigma of at least {least:.6g} in this query")
    binds = most < candidate.norm_squared_max
    l2_clip = sqrt(clip_squared if binds and clip_squared is not None else most * Fraction(4) ** candidate.grid_log2)
    return Scale(
        grid_log2=candidate.grid_log2,
        clip_squared_steps=most,
        clip_binds=binds,
        l2_clip=l2_clip,
        charged_squared_steps=most,
        l2_charged=l2_clip,
        law=(law := Gaussian(sigma_steps)),
        worst_case_units=law.charge(most),
    )
