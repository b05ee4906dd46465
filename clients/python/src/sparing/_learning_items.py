"""The items of linear models (moments, gradients and predictions), and the features that these read.

They only build JSON, which the service checks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from typing import Literal as Word

from sparing._expressions import Column, Condition, Exact, Group, Item, Value, plain
from sparing._models import Dataset
from sparing._query import GroupKey, key_json

Link = Word["logistic", "softmax", "identity"]
"""The functions that turn a linear prediction into a probability, a value of the target, and the number itself."""
Loss = Word["logistic", "softmax", "squared"]
"""The losses: for a boolean target, for a target that is a column or bins, and for a target that is a number."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Numbers of an individual that a linear model reads; made by `feature`, `one_hot` and `vector`."""

    json: dict[str, object]


AnyFeature: TypeAlias = Feature | Value | str
"""A feature; a column or a value stands for its feature without a fill."""


def feature(value: str | Value, fill: Exact | None = None) -> Feature:
    """The feature of a column or a calculated value that is a number, or of a boolean as 0 or 1.

    `fill` replaces NULL; without a fill, an individual with NULL is not counted.
    """
    of = value if isinstance(value, Value) else Column(value)
    return Feature({"of": of.json} if fill is None else {"of": of.json, "fill": plain(fill)})


def scaled(column: str, dataset: Dataset) -> Value:
    """The number of a column, brought from its declared bounds to -1 and 1 by a line; it reads public bounds alone.

    It is a value for a feature, `feature(scaled("age", shop), fill=0)`, or for the target of a linear regression: all
    of one size, as moments and gradients need them (docs/learning.md).

    Args:
        column: an integer or real column of the table of individuals.
        dataset: the dataset with its schema, `client.dataset(name).describe()`.

    Raises:
        ValueError: the column is not declared, is of another type, or its bounds are equal.
    """
    tables: Mapping[str, Any] = dataset.tables
    columns = next(table["columns"] for table in tables.values() if table["kind"] == "individuals")
    if column not in columns:
        raise ValueError(f"the table of individuals has no column {column!r}")
    declared = columns[column]
    if declared["type"] not in ("integer", "real") or not declared["lower"] < declared["upper"]:
        raise ValueError(f"{column!r} is no number between two declared bounds: {declared}")
    middle: float = (declared["lower"] + declared["upper"]) / 2
    half: float = (declared["upper"] - declared["lower"]) / 2
    return (Column(column) - (int(middle) if middle.is_integer() else middle)) * (1 / half)


def one_hot(key: GroupKey) -> Feature:
    """The feature with a number for each value of a column, bin or calendar part: 1 for the individual's, else 0."""
    return Feature({"one_hot": key_json(key)})


def vector(column: str) -> Feature:
    """The feature with the stored numbers of a column of vectors; an individual without a vector is not counted."""
    return Feature({"vector": column})


def fold(seed: str, *, of: int, parts: Iterable[int]) -> Condition:
    """The condition that an individual is in one of these `parts` of a random division that `seed` fixes for good.

    The `of` equal parts are numbered from 0. `~fold("churn", of=5, parts=[0])` selects all others than part 0, such as
    for a fit that is then evaluated on part 0.
    """
    return Condition({"fold": {"seed": seed, "of": of, "in": list(parts)}})


def moments(features: Sequence[AnyFeature], *, intercept: bool = False) -> Item:
    """The item of the summed products of each pair of features; `answer.matrix` is their matrix.

    It must be the only item. `intercept` adds the number 1 as the last feature.
    """
    return Item({"moments": _model(features, intercept=intercept)})


def gradient(
    loss: Loss,
    *,
    target: str | Value | Group,
    features: Sequence[AnyFeature],
    parameters: Any,  # noqa: ANN401 - nested sequences, or an array of a library that is not needed otherwise
    intercept: bool = False,
    residual_clip: Exact | None = None,
) -> Item:
    """The item of the summed gradients of a linear model's loss; `answer.matrix` has the sum. It must be the only item.

    Args:
        loss: `logistic` for a boolean target, `softmax` for a column or bin, `squared` for a number.
        target: the predicted column, value or bins; an individual without a target adds nothing.
        features: the features, in the order of the parameters.
        parameters: a number for each feature, the intercept's last; for `softmax` a row of these for each value of the
            target. More than 1,000 numbers are sent as an array, or only as their hash once the service has answered a
            query with them.
        intercept: whether the number 1 is the last feature.
        residual_clip: for `squared`, the bound to which the difference between prediction and target is clipped.
    """
    model: dict[str, object] = {"loss": loss, "target": target.json if isinstance(target, Value) else key_json(target)}
    model |= _model(features, intercept=intercept) | {"parameters": _numbers(parameters)}
    return Item({"gradient": model if residual_clip is None else model | {"residual_clip": plain(residual_clip)}})


def predict(
    features: Sequence[AnyFeature],
    parameters: Any,  # noqa: ANN401 - as of a gradient
    *,
    link: Link = "logistic",
    target: str | None = None,
    intercept: bool = False,
) -> Value:
    """The prediction of a linear model at given parameters, as a value of the row.

    Args:
        features: the features, in the order of the parameters; an individual without one of them has no prediction.
        parameters: numbers as for `gradient`.
        link: `logistic` for a probability, `softmax` for the likeliest value of the target, `identity` for a number.
        target: for `softmax`, the column whose values are predicted.
        intercept: whether the number 1 is the last feature.
    """
    model: dict[str, object] = {"link": link, **_model(features, intercept=intercept)}
    model |= {"parameters": _numbers(parameters)}
    return Value({"predict": model if target is None else model | {"target": target}})


def own(
    events: str, *, clip: tuple[Exact, Exact], sum_: str | Value | None = None, where: Condition | None = None
) -> Value:
    """A value of an individual: the number of its own events, or with `sum_` the sum over them, clipped to `clip`.

    Args:
        events: the table of events.
        clip: the least and the greatest value.
        sum_: the column or value of the events that is added up.
        where: the events that count; by default all.
    """
    added = Column(sum_) if isinstance(sum_, str) else sum_
    body: dict[str, object] = {"from": events, "clip": [plain(bound) for bound in clip]}
    body |= {"count": {}} if added is None else {"sum": added.json}
    return Value({"own": body if where is None else body | {"where": where.json}})


def _model(features: Sequence[AnyFeature], *, intercept: bool) -> dict[str, object]:
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise TypeError(f"features is a list such as [feature('age'), one_hot('country')], not {features!r}")
    listed = [as_feature(each).json for each in features]
    return {"features": listed, "intercept": True} if intercept else {"features": listed}


def as_feature(given: AnyFeature) -> Feature:
    """The feature of a column or value; a feature unchanged."""
    if isinstance(given, Feature):
        return given
    if not isinstance(given, str | Value):
        raise TypeError(f"a feature is made by feature, one_hot or vector, not of {given!r}")
    return feature(given)


def _numbers(given: Any) -> list[object]:  # noqa: ANN401 - as above
    """Rows of numbers, or a single row, as lists of Python's numbers."""
    listed = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise TypeError(f"parameters are a list or an array of numbers, not {given!r}")
    return [_numbers(each) if _is_row(each) else plain(each) for each in listed]


def _is_row(each: object) -> bool:
    return isinstance(each, Sequence) or getattr(each, "ndim", 0) > 0
