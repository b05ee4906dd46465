"""The gradient of a linear model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Discriminator, Field, Tag

from service.query.columns import QueryColumn
from service.query.domains import domain_of
from service.query.expressions_ast import BinKey, BucketKey, Features, GroupKey, Intercept, Row
from service.query.extents import exponent_above
from service.query.features import BITS_MAX, FeatureMap, read_features
from service.query.group_keys import Group, countable, group_of
from service.query.item import Item, ItemPlace, PlanItem
from service.query.items.products import Products, ProductSteps, refuse_many
from service.query.literals_ast import Closed
from service.query.model_parameters import parameter_rows, parameter_steps
from service.query.parameters_ast import Parameters
from service.query.phrases import feature_words, group_words, value_words
from service.query.problems import QueryProblem, quoted
from service.query.product_plan import Model, ProductPlan
from service.query.row_columns import RowColumns
from service.query.schema import doc, optional

ERROR_BITS: Final = 16
"""The steps of the largest error, as a power of two. The noise may ask for fewer steps, the clip for more."""
ERROR_BITS_MAX: Final = 24
CLIP_BITS: Final = 8
"""The least steps, as a power of two, of the error that the clip leaves beside the longest features."""
RESIDUAL_MIN, RESIDUAL_MAX = 1e-30, 1e30


def _target_kind(node: object) -> str:
    is_group = isinstance(node, str) or (isinstance(node, dict) and ("bin" in node or "bucket" in node))
    return "(group)" if is_group or getattr(node, "KIND", None) in {"bin", "bucket"} else "(value)"


class Gradient(Closed):
    """A linear model of features, of which the gradient of the loss is summed at given parameters."""

    loss: Annotated[
        Literal["logistic", "softmax", "squared"],
        doc("`logistic`: the target is a boolean. `softmax`: a category or bin. `squared`: a number."),
    ]
    target: Annotated[
        Annotated[Row, Tag("(value)")] | Annotated[GroupKey, Tag("(group)")],
        Discriminator(_target_kind),
        doc("The value that is predicted; an individual without one adds nothing."),
    ]
    features: Features
    intercept: Intercept = False
    parameters: Parameters
    residual_clip: Annotated[float, Field(ge=RESIDUAL_MIN, le=RESIDUAL_MAX)] | None = optional(
        "Of `squared`: the largest difference of prediction and target that counts; a larger one is cut to it."
    )


class GradientItem(Item):
    """One coordinate for each feature, of `softmax` for each value of the target and each feature.

    It stands alone in `select`, and is about individuals.
    """

    stands_alone: ClassVar = True
    admits_groups: ClassVar = False
    gradient: Annotated[Gradient, doc("The model and its parameters.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that name the loss and the target, and count the features."""
        target = body["target"]
        is_group = isinstance(target, str) or "bin" in target or "bucket" in target
        predicted = group_words(target) if is_group else value_words(target)
        return f"{body['loss']} gradient of {predicted} by {feature_words(body)}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The products of features with errors, at these parameters."""
        asked, field = self.gradient, f"{place.field}.gradient"
        read = read_features(asked.features, place.columns, field, intercept=asked.intercept)
        features = read.in_steps(BITS_MAX, as_stored=True)
        target = _target(asked, place.columns, field)
        classes = tuple(domain_of(target.domain)) if isinstance(target, Group) else ()
        refuse_many(max(len(classes), 1) * features.size)
        column = target.column if isinstance(target, Group) else target
        ways = partial(_ways, _model(asked, column, max(len(classes), 1), features, f"{field}.parameters"), features)
        return [Products.of("gradient", features.names, classes, ways)]


def _model(asked: Gradient, target: QueryColumn, classes: int, features: FeatureMap, field: str) -> Model:
    """The asked model with its parameters in whole steps. Raises QueryProblem naming the field."""
    count = classes if asked.loss == "softmax" else None
    rows = parameter_rows(asked.parameters, count, features.size, field=field, of=asked.loss)
    steps, parameter_log2 = parameter_steps(rows, features)
    return Model(
        loss=asked.loss,
        target=target.name,
        target_offset=target.coding.offset,
        target_log2=target.coding.step_log2,
        target_span=target.coding.span,
        classes=classes,
        packed=steps.tobytes(),
        parameter_log2=parameter_log2,
        error_max=float(Fraction(asked.residual_clip or 1)),
        error_log2=0,
    )


def _ways(model: Model, features: FeatureMap, clip_squared: Fraction | None) -> Iterator[ProductSteps]:
    """The steps of the error, finest first, while the clip leaves enough of them. Raises QueryProblem if none do."""
    error_max = Fraction(model.error_max)
    least = error_max**2 if clip_squared is None else _clip_of_error(clip_squared, features, error_max)
    coarsest = -exponent_above(1 / least) - CLIP_BITS
    largest = -exponent_above(1 / error_max**2)
    finest = max(min(largest - ERROR_BITS, coarsest), largest - ERROR_BITS_MAX)
    if finest > coarsest:
        raise QueryProblem.of("per_individual.l2_clip", "is too small beside the declared bounds")
    return (_in_error_steps(model, features, error_log2) for error_log2 in range(finest, coarsest + 1))


def _in_error_steps(model: Model, features: FeatureMap, error_log2: int) -> ProductSteps:
    """The model with errors in steps of 2**error_log2. The errors of several classes have a norm of at most sqrt(2)."""
    largest = floor(Fraction(model.error_max) / Fraction(2) ** error_log2)
    squared = largest**2 * (1 if model.classes == 1 else 2)
    return ProductSteps(
        product=ProductPlan(features=features, model=replace(model, error_log2=error_log2)),
        grid_log2=features.step_log2 + error_log2,
        norm_squared_max=squared * features.squares_max,
    )


def _clip_of_error(clip_squared: Fraction, features: FeatureMap, error_max: Fraction) -> Fraction:
    """The square of the error that the clip leaves beside the longest features, at most that of the largest error."""
    return min(clip_squared / (features.squares_max * Fraction(4) ** features.step_log2), error_max**2)


def _target(asked: Gradient, columns: RowColumns, field_of_item: str) -> QueryColumn | Group:
    """The column that is predicted; for `softmax` the group."""
    field, target = f"{field_of_item}.target", asked.target
    if asked.residual_clip is not None and asked.loss != "squared":
        raise QueryProblem.of(f"{field_of_item}.residual_clip", f"must not be given for {asked.loss}")
    if isinstance(target, BinKey | BucketKey):
        if asked.loss != "softmax":
            raise QueryProblem.of(field, f"must be a value, not groups: {asked.loss} predicts one number")
        return group_of(target, columns, field)
    column = columns.named(target, field) if isinstance(target, str) else columns.value(target, field)
    if asked.loss == "softmax":
        return Group(label=column.name, column=column, domain=countable(column, field))
    if asked.loss == "logistic" and column.kind != "boolean":
        raise QueryProblem.of(field, f"must be a boolean column; for the values of {quoted(column.name)} use softmax")
    if asked.loss == "squared" and not column.is_number:
        raise QueryProblem.of(field, f"must be a number; {quoted(column.name)} is none")
    if asked.loss == "squared" and asked.residual_clip is None:
        raise QueryProblem.of(f"{field_of_item}.residual_clip", "is required: a residual has no bound of its own")
    return column
