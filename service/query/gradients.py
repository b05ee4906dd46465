"""Second moments and gradients of linear models: the outer product that an individual adds, and its public scale.

An individual's gradient is error ⊗ features. Features are whole steps (`service.query.features`), parameters are
rounded to whole steps too, so that a prediction's argument is an exact sum: with real parameters its last digit would
depend on which other individuals are multiplied beside it. The error is rounded to steps of 2^error_log2, scaled
to the clip, truncated toward zero and then measured.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, ldexp, sqrt
from typing import Final

import numpy as np

from service.arrays import Integers
from service.core.laws import Gaussian
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN
from service.query.columns import QueryColumn
from service.query.domains import domain_of
from service.query.expressions_ast import BinKey, BucketKey
from service.query.features import BITS_MAX, BITS_MIN, FeatureMap, ReadFeatures, read_features
from service.query.group_keys import Group, countable, group_of
from service.query.language import Query
from service.query.layout import BLOCK_ROWS, DIMENSION_MAX, MULTIPLIED_MAX, RUN_ENTRIES, Products
from service.query.learning_ast import Gradient, GradientItem, MomentsItem
from service.query.model_parameters import parameter_rows, parameter_steps
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns
from service.query.scale import NORM_SQUARED_MAX, SIGMA_STEPS_EASY, TOTAL_MAX, Precision, Scale, precision_of
from service.query.schema import EventsTable

ERROR_BITS: Final = 16
"""The steps of the largest error, as a power of two, where the noise does not ask for fewer or the clip for more."""
ERROR_BITS_MAX: Final = 24
CLIP_BITS: Final = 8
"""The steps of an error that the clip leaves beside the longest features, as a power of two."""
CLIP_SQUARED_MIN: Final = 4**16
"""The least squared clip in steps: truncation loses little of a vector at the clip."""
PARAMETERS_FIELD: Final = "select[0].gradient.parameters"
WIDE_ROWS: Final = 256
"""Individuals with many factors that are worked on at a time, if these are no more than WIDE_ENTRIES together."""
WIDE_ENTRIES: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A linear model at given parameters, and how its error is counted."""

    loss: str
    target: str  # the column
    target_offset: int  # of `squared`, the target is (code + offset) * 2**target_log2
    target_log2: int
    target_span: int
    classes: int
    packed: bytes  # the parameters (classes, features) as int64, in steps of 2**parameter_log2
    parameter_log2: int
    error_max: float  # the largest error of one class, in its unit
    error_log2: int

    @property
    def parameters(self) -> Integers:
        """The parameters (classes, features) in their steps."""
        return np.frombuffer(self.packed, dtype=np.int64).reshape(self.classes, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """The products that an individual adds: of its features with each other, or with the model's error."""

    features: FeatureMap
    model: Model | None  # None: with each other

    @property
    def classes(self) -> int:
        """How many errors an individual has; none in moments."""
        return 0 if self.model is None else self.model.classes

    @property
    def width(self) -> int:
        """The rows of both factors together."""
        return self.features.size + self.classes


def rows_in_products(width: int) -> int:
    """How many individuals with so many factors each are worked on at a time: as many as stay in cache.

    Of wide ones more, at most 2^20 factors: the sum of a block, of 40,000 numbers or more, is added to the total once.
    """
    return min(max(RUN_ENTRIES // width, min(WIDE_ROWS, WIDE_ENTRIES // width), 1), BLOCK_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One way of counting: the steps, and the largest squared norm of an individual in them."""

    product: ProductPlan
    grid_log2: int
    norm_squared_max: int


def products_of(
    item: MomentsItem | GradientItem, query: Query, columns: RowColumns, *, capacity: int, budget_units: int
) -> tuple[Products, ProductPlan, Scale]:
    """The item with its labels, what it sums, and its scale. Raises QueryProblem naming the field."""
    kind = "moments" if isinstance(item, MomentsItem) else "gradient"
    _refuse_beside(kind, query, columns)
    precision = precision_of(query.noise, budget_units=budget_units)
    clip = None if query.per_individual is None else query.per_individual.l2_clip
    clip_squared = None if clip is None or isinstance(clip, tuple) else Fraction(clip) ** 2
    if isinstance(item, MomentsItem):
        labels, candidates = _moments(item, columns)
    else:
        labels, candidates = _gradient(item.gradient, columns, clip_squared)
    _refuse_long(labels, capacity)
    candidate, scale = _chosen(list(candidates), clip_squared, precision, capacity)
    return labels, candidate.product, scale


def _refuse_beside(kind: str, query: Query, columns: RowColumns) -> None:
    if len(query.select) > 1:
        raise QueryProblem.of("select", f"{kind} stands alone: ask the other items in a query of their own")
    if isinstance(columns.table, EventsTable):
        raise QueryProblem.of("from", f"{kind} is about individuals, and this is a table of events")
    if query.group_by:
        raise QueryProblem.of("group_by", f"must be left out with {kind}; a one_hot feature tells groups apart")


def _refuse_many(coordinates: int) -> None:
    if coordinates > DIMENSION_MAX:
        raise QueryProblem.of("select", f"makes more than {DIMENSION_MAX} coordinates")


def _refuse_long(labels: Products, capacity: int) -> None:
    """Raise QueryProblem where the products would occupy the server for seconds, by public numbers."""
    size = len(labels.features)
    multiplied = capacity * size * (size if labels.classes is None else 2 * max(len(labels.classes), 1))
    if multiplied > MULTIPLIED_MAX:
        most = f"{MULTIPLIED_MAX:.0e} products of two numbers for a dataset's capacity"
        raise QueryProblem.of("select", f"makes {multiplied:.2g} of at most {most}; select fewer features or classes")


def _moments(item: MomentsItem, columns: RowColumns) -> tuple[Products, Iterator[_Candidate]]:
    asked = item.moments
    read = read_features(asked.features, columns, "select[0].moments", intercept=asked.intercept)
    finest = read.in_steps(BITS_MAX)
    _refuse_many(finest.size * (finest.size + 1) // 2)
    return Products(title="moments", features=tuple(finest.names), classes=None), _squares(read)


def _squares(read: ReadFeatures) -> Iterator[_Candidate]:
    """The finest steps first, down to those at which a feature would be lost; norms before the clip fit 64 bits too."""
    for bits in range(BITS_MAX, BITS_MIN - 1, -1):
        try:
            features = read.in_steps(bits)
        except QueryProblem:
            return
        most = (features.squares_max**2 + features.fourths_max) // 2
        if most <= NORM_SQUARED_MAX:
            yield _Candidate(
                product=ProductPlan(features=features, model=None),
                grid_log2=2 * features.step_log2,
                norm_squared_max=most,
            )


def _gradient(
    asked: Gradient, columns: RowColumns, clip_squared: Fraction | None
) -> tuple[Products, Iterator[_Candidate]]:
    read = read_features(asked.features, columns, "select[0].gradient", intercept=asked.intercept)
    features = read.in_steps(BITS_MAX, as_stored=True)
    target = _target(asked, columns)
    classes = tuple(domain_of(target.domain)) if isinstance(target, Group) else ()
    count = max(len(classes), 1)
    _refuse_many(count * features.size)
    coding = (target.column if isinstance(target, Group) else target).coding
    rows = parameter_rows(
        asked.parameters,
        count if asked.loss == "softmax" else None,
        features.size,
        field=PARAMETERS_FIELD,
        of=asked.loss,
    )
    steps, parameter_log2 = parameter_steps(rows, features)
    error_max = Fraction(asked.residual_clip or 1)
    model = Model(
        loss=asked.loss,
        target=(target.column if isinstance(target, Group) else target).name,
        target_offset=coding.offset,
        target_log2=coding.step_log2,
        target_span=coding.span,
        classes=count,
        packed=steps.tobytes(),
        parameter_log2=parameter_log2,
        error_max=float(error_max),
        error_log2=0,
    )
    least = error_max**2 if clip_squared is None else _clip_of_error(clip_squared, features, error_max)
    coarsest = _exponent_below(least) - CLIP_BITS
    largest = _exponent_below(error_max**2)
    finest = max(min(largest - ERROR_BITS, coarsest), largest - ERROR_BITS_MAX)
    if finest > coarsest:
        raise QueryProblem.of("per_individual.l2_clip", "is too small beside the declared bounds")
    labels = Products(title="gradient", features=tuple(features.names), classes=classes)
    return labels, (_in_error_steps(model, features, error_log2) for error_log2 in range(finest, coarsest + 1))


def _in_error_steps(model: Model, features: FeatureMap, error_log2: int) -> _Candidate:
    """The model with errors in steps of 2**error_log2. Those of several classes together are at most sqrt(2) of one."""
    largest = floor(Fraction(model.error_max) / Fraction(2) ** error_log2)
    squared = largest**2 * (1 if model.classes == 1 else 2)
    return _Candidate(
        product=ProductPlan(features=features, model=replace(model, error_log2=error_log2)),
        grid_log2=features.step_log2 + error_log2,
        norm_squared_max=squared * features.squares_max,
    )


def _clip_of_error(clip_squared: Fraction, features: FeatureMap, error_max: Fraction) -> Fraction:
    """The square of the error that the clip leaves beside the longest features, at most that of the largest error."""
    return min(clip_squared / (features.squares_max * Fraction(4) ** features.step_log2), error_max**2)


def _exponent_below(squared: Fraction) -> int:
    """The largest e with 2^e <= sqrt(squared)."""
    exponent = (squared.numerator.bit_length() - squared.denominator.bit_length()) // 2 + 1
    while Fraction(4) ** exponent > squared:
        exponent -= 1
    return exponent


def _target(asked: Gradient, columns: RowColumns) -> QueryColumn | Group:
    """The column that is predicted, or of `softmax` the group."""
    field, target = "select[0].gradient.target", asked.target
    if asked.residual_clip is not None and asked.loss != "squared":
        raise QueryProblem.of("select[0].gradient.residual_clip", f"must not be given for {asked.loss}")
    if isinstance(target, BinKey | BucketKey):
        if asked.loss != "softmax":
            raise QueryProblem.of(field, f"must be a value, not groups: {asked.loss} predicts one number")
        return group_of(target, columns, field)
    if asked.loss == "softmax":
        column = columns.named(target, field) if isinstance(target, str) else columns.value(target, field)
        return Group(label=column.name, column=column, domain=countable(column, field))
    column = columns.named(target, field) if isinstance(target, str) else columns.value(target, field)
    if asked.loss == "logistic" and column.kind != "boolean":
        raise QueryProblem.of(field, f"must be a boolean column; for the values of {quoted(column.name)} use softmax")
    if asked.loss == "squared" and not column.is_number:
        raise QueryProblem.of(field, f"must be a number; {quoted(column.name)} is none")
    if asked.loss == "squared" and asked.residual_clip is None:
        raise QueryProblem.of("select[0].gradient.residual_clip", "is required: a residual has no bound of its own")
    return column


def _chosen(
    candidates: Sequence[_Candidate], clip_squared: Fraction | None, precision: Precision, capacity: int
) -> tuple[_Candidate, Scale]:
    """The finest candidate that fits 64 bits and an easy draw of the noise; or the coarsest with a draw at all."""
    fitting = []
    for candidate in candidates:
        most = candidate.norm_squared_max
        if clip_squared is not None:
            most = min(most, floor(clip_squared / Fraction(4) ** candidate.grid_log2))
        if most <= NORM_SQUARED_MAX and most * capacity**2 <= TOTAL_MAX**2:
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


def _scale(candidate: _Candidate, most: int, clip_squared: Fraction | None, precision: Precision) -> Scale:
    sigma_steps = precision.sigma_steps(most, candidate.grid_log2)
    if sigma_steps < SIGMA_STEPS_MIN:
        least = ldexp(SIGMA_STEPS_MIN, candidate.grid_log2)
        raise QueryProblem.of(precision.field, f"must give a sigma of at least {least:.6g} in this query")
    binds = most < candidate.norm_squared_max
    return Scale(
        grid_log2=candidate.grid_log2,
        clip_squared_steps=most,
        clip_binds=binds,
        l2_clip=sqrt(clip_squared if binds and clip_squared is not None else most * Fraction(4) ** candidate.grid_log2),
        law=(law := Gaussian(sigma_steps)),
        worst_case_units=law.charge(most),
    )
