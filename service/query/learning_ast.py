"""The select items of private learning, as the JSON on the wire reads them: second moments and gradients of features.

`service.query.features` and `service.query.gradients` give them their meaning in a table.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from service.query.expressions_ast import Features, GroupKey, Intercept, Row
from service.query.literals_ast import Closed
from service.query.parameters_ast import Parameters
from service.query.schema import doc, optional

RESIDUAL_MIN, RESIDUAL_MAX = 1e-30, 1e30


class Moments(Closed):
    """Features of which all products of two are summed."""

    features: Features
    intercept: Intercept = False


class MomentsItem(Closed):
    """One coordinate for each pair of features, j <= k: the sum of their products, row by row of the triangle.

    It stands alone in `select`, and is about individuals.
    """

    KIND: ClassVar = "moments"
    moments: Annotated[Moments, doc("The features.")]


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


class GradientItem(Closed):
    """One coordinate for each feature, of `softmax` for each value of the target and each feature.

    It stands alone in `select`, and is about individuals.
    """

    KIND: ClassVar = "gradient"
    gradient: Annotated[Gradient, doc("The model and its parameters.")]
