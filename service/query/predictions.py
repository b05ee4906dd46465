"""A linear model's prediction as a value: a probability, the likeliest value of a column, or a number.

Features and parameters are whole steps, as in a gradient, so that the argument is an exact sum. A probability is
rounded to steps of 2^-16. Where arguments are equal, the first class is predicted. A number keeps the argument's own
steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from service.arrays import Integers
from service.query.columns import Coding, QueryColumn, ReaderFormula
from service.query.expressions_ast import Predict, Prediction
from service.query.features import BITS_MAX, FeatureMap, Vector, read_features
from service.query.group_keys import countable
from service.query.model_parameters import PackedParameters, parameter_rows, parameter_steps
from service.query.problems import QueryProblem
from service.query.row_columns import RowColumns, text_of
from service.query.runs import MULTIPLIED_MAX

PROBABILITY_LOG2: Final = -16
"""The step of a probability, as a power of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(PackedParameters, ReaderFormula):
    """A model at given parameters: `service.engine.predictions` works it out for blocks of rows."""

    conditions: ClassVar[int] = 0
    features: FeatureMap
    link: str
    unit_log2: int  # the argument's steps, as a power of two

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns from which the features are read. Vectors are left out, as they are not columns of rows."""
        return tuple(part.column for part in self.features.parts if not isinstance(part, Vector))


def prediction_column(node: Predict, columns: RowColumns, field: str) -> QueryColumn:
    """The column of the predictions. Raises QueryProblem naming the field."""
    asked = node.predict
    target = _target(asked, columns, field)
    read = read_features(asked.features, columns, field, intercept=asked.intercept)
    features = read.in_steps(BITS_MAX, as_stored=True)
    classes = None if target is None else target.coding.span + 1
    rows = parameter_rows(asked.parameters, classes, features.size, field=f"{field}.parameters", of=asked.link)
    steps, parameter_log2 = parameter_steps(rows, features)
    formula = Predicted(
        features=features,
        link=asked.link,
        classes=classes or 1,
        packed=steps.tobytes(),
        unit_log2=features.step_log2 + parameter_log2,
    )
    name = text_of(node)
    if target is not None:
        return QueryColumn(name=name, kind=target.kind, coding=target.coding, declared=target.declared, formula=formula)
    if asked.link == "logistic":
        coding = Coding(offset=0, span=1 << -PROBABILITY_LOG2, step_log2=PROBABILITY_LOG2)
    else:
        most = argument_max(features, steps[0])
        coding = Coding(offset=-most, span=2 * most, step_log2=formula.unit_log2)
    return QueryColumn(name=name, kind="real", coding=coding, formula=formula)


def refuse_long(columns: Mapping[str, QueryColumn], rows: int) -> None:
    """Raise QueryProblem where predictions would occupy the server for seconds, by public numbers.

    Each prediction is made for choosing rows and again for adding them up.
    """
    models = [column.formula for column in columns.values() if isinstance(column.formula, Predicted)]
    multiplied = 2 * rows * sum(model.features.size * model.classes for model in models)
    if multiplied > MULTIPLIED_MAX:
        most = f"{MULTIPLIED_MAX:.0e} products of two numbers for all rows"
        raise QueryProblem.of("body", f"predicts by {multiplied:.2g} of at most {most}; use fewer features or classes")


def argument_max(features: FeatureMap, parameters: Integers) -> int:
    """The largest size of the argument of one class, in steps. Of a one-hot column's features only one is not zero.

    `parameters` (features,) are in whole steps too.
    """
    sizes = np.abs(parameters)
    most = place = 0
    for part in features.parts:
        own = sizes[place : place + part.size]
        most += part.largest * int(own.sum() if isinstance(part, Vector) else own.max())
        place += part.size
    return most if features.one is None else most + features.one * int(sizes[place])


def _target(asked: Prediction, columns: RowColumns, field: str) -> QueryColumn | None:
    if asked.link != "softmax":
        if asked.target is not None:
            raise QueryProblem.of(f"{field}.target", f"must not be given for {asked.link}")
        return None
    if asked.target is None:
        raise QueryProblem.of(f"{field}.target", "is required for softmax: the column whose values are predicted")
    column = columns.named(asked.target, f"{field}.target")
    countable(column, f"{field}.target")
    return column
