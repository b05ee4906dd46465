"""From a plan of products to each individual's features and errors, in blocks of increasing slots.

Features, parameters and errors are whole numbers in doubles. The argument of a prediction is a sum below 2^53, and so
it is the same in any order of its additions, for one individual as for a block. The next steps are elementwise: the
argument is rounded to 2^-10 and looked up in a table, then the error is rounded to its steps, scaled to the clip,
truncated and measured. Every individual of a block takes these steps, whatever its record. An untouched individual has
an error of zero.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from service.arrays import Integers, Mask, Reals
from service.core.outer_products import WITHIN, OuterProducts, squared_norms, squares_of
from service.core.renyi_filter import Touched
from service.engine.features import FeatureReader
from service.engine.predictions import logistic, softmax
from service.engine.rows import RowView
from service.engine.sparse_vectors import BrokenInvariant
from service.query.plan import Plan
from service.query.product_plan import Model, ProductPlan


def products(
    plan: Plan, product: ProductPlan, reader: FeatureReader, stretches: Iterable[tuple[RowView, Touched]]
) -> Iterator[OuterProducts]:
    """The vectors of the individuals of each stretch. Raises BrokenInvariant for a vector beyond the plan's bounds."""
    parameters = None if product.model is None else product.model.parameters.astype(np.float64)
    for view, touched in stretches:
        features, known = reader.read(view, touched.index)
        marks = touched.among(known)
        if product.model is None or parameters is None:
            block = _square(plan, touched.index, marks, features, product.features.peak)
        else:
            errors, has_target = _errors(product, product.model, parameters @ features, view)
            marks = np.logical_and(marks, has_target)
            block = _gradient(plan, product, touched.index, np.where(marks, errors, 0.0), features)
        if int(block.norms_squared.max(initial=0)) > plan.scale.clip_squared_steps:
            raise BrokenInvariant("a vector is longer than the declared bounds allow")
        yield block


def _errors(product: ProductPlan, model: Model, arguments: Reals, view: RowView) -> tuple[Reals, Mask]:
    """The errors (classes, p), prediction less target in whole steps, and which rows have a target (p,)."""
    codes, unit_log2 = view[model.target], product.features.step_log2 + model.parameter_log2
    has_target = codes <= model.target_span
    if model.loss == "squared":
        targets = np.add(codes, model.target_offset, dtype=np.float64) * 2.0**model.target_log2
        residuals = np.clip(arguments * 2.0**unit_log2 - targets, -model.error_max, model.error_max)
        largest = np.floor(model.error_max * 2.0**-model.error_log2)
        return np.clip(np.rint(residuals * 2.0**-model.error_log2), -largest, largest), has_target
    if model.loss == "logistic":
        predicted = logistic(arguments, unit_log2) - (codes == 1)
    else:
        predicted = softmax(arguments, unit_log2)
        rows = np.flatnonzero(has_target)
        predicted[codes[rows].astype(np.int64), rows] -= 1
    return np.rint(predicted * 2.0**-model.error_log2), has_target


def _square(plan: Plan, index: slice | Integers, marks: Mask, features: Reals, peak: int) -> OuterProducts:
    """The products of the individuals' features with each other, within the clip."""
    norms = squared_norms(features, None) * marks
    block = OuterProducts(touched=Touched(index, marks), norms_squared=norms, left=features, right=None, peak=peak**2)
    beyond = np.flatnonzero(norms > plan.scale.clip_squared_steps)
    if plan.scale.clip_binds:
        block = block.shortened(beyond, np.full(beyond.size, plan.scale.clip_squared_steps))
    return replace(block, touched=Touched(index, block.norms_squared > 0))


def _gradient(
    plan: Plan, product: ProductPlan, index: slice | Integers, errors: Reals, features: Reals
) -> OuterProducts:
    """The products of the individuals' errors (classes, p) with their features, within the clip.

    The norm of a product is the product of both norms, so the clip bounds the error by the norm of the individual's
    features.
    """
    lengths = squares_of(features)
    bounds = plan.scale.clip_squared_steps // np.maximum(lengths, 1)
    squares = squares_of(errors)
    beyond = np.flatnonzero(squares > bounds)
    factors = np.sqrt(bounds[beyond] / squares[beyond]) * WITHIN
    errors[:, beyond] = np.trunc(errors[:, beyond] * factors)
    norms = squares_of(errors) * lengths
    model = product.model
    largest = 1.0 if model is None else np.floor(model.error_max * 2.0**-model.error_log2)
    return OuterProducts(
        touched=Touched(index, norms > 0),
        norms_squared=norms,
        left=errors,
        right=features,
        peak=int(largest) * product.features.peak,
    )
