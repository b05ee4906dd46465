"""The items of linear models, moments and gradients, and the features that they read.

They only build the service's JSON, as `sparing._expressions` does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from typing import Literal as Word

from sparing._expressions import Column, Condition, Exact, Group, Item, Value, plain
from sparing._query import GroupKey, key_json

Link = Word["logistic", "softmax", "identity"]
"""The functions from a linear prediction to a probability, to a value of the target, and to the number itself."""
Loss = Word["logistic", "softmax", "squared"]
"""The losses, in this order for a target that is a boolean, a column or bin, and a number."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Numbers of an individual that a linear model reads; made by `feature`, `one_hot` and `vector`."""

    json: dict[str, object]


AnyFeature: TypeAlias = Feature | Value | str
"""A column or a value stands for the feature of it, without a fill."""


def feature(value: str | Value, fill: Exact | None = None) -> Feature:
    """A column or a calculated value that is a number, or a boolean as 0 or 1.

    `fill` stands for NULL; without it an individual with NULL adds nothing.
    """
    of = value if isinstance(value, Value) else Column(value)
    return Feature({"of": of.json} if fill is None else {"of": of.json, "fill": plain(fill)})


def one_hot(key: GroupKey) -> Feature:
    """A number for each value of a column, bin or part of the calendar: 1 at the individual's own, 0 at the others."""
    return Feature({"one_hot": key_json(key)})


def vector(column: str) -> Feature:
    """The numbers of a column of vectors, as stored; an individual without a vector adds nothing."""
    return Feature({"vector": column})


def fold(seed: str, *, of: int, parts: Iterable[int]) -> Condition:
    """The individuals in some of `of` equal parts, from 0 on, into which the seed divides them at random and for good.

    `~fold("churn", of=5, parts=[0])` are all others, for a fit that the first part judges.
    """
    return Condition({"fold": {"seed": seed, "of": of, "in": list(parts)}})


def moments(features: Sequence[AnyFeature], *, intercept: bool = False) -> Item:
    """The sum of the products of each pair of features, which `answer.matrix` has as a square; it stands alone.

    `intercept` adds the number 1 as the last feature.
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
    """The sum of the gradients of a linear model's loss at `parameters`; it stands alone, and `answer.matrix` has it.

    Args:
        loss: `logistic` for a boolean target, `softmax` for a column or bin, `squared` for a number.
        target: what is predicted; an individual without it adds nothing.
        features: the features, in the order of the parameters.
        parameters: a number for each feature, the intercept's last; of `softmax` such a row for each value. More than
            1,000 are sent as an array, and by their hash once the service has answered a query with them.
        intercept: whether the number 1 is the last feature.
        residual_clip: of `squared`, the difference beyond which one is cut.
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
        features: the features, in the order of the parameters; without one of them there is no prediction.
        parameters: a number for each feature, the intercept's last; of `softmax` such a row for each value. Many are
            sent as those of a gradient.
        link: `logistic` for a probability, `softmax` for the likeliest value of the target, `identity` for a number.
        target: of `softmax`, the column whose values are predicted.
        intercept: whether the number 1 is the last feature.
    """
    model: dict[str, object] = {"link": link, **_model(features, intercept=intercept)}
    model |= {"parameters": _numbers(parameters)}
    return Value({"predict": model if target is None else model | {"target": target}})


def own(
    events: str, *, clip: tuple[Exact, Exact], sum_: str | Value | None = None, where: Condition | None = None
) -> Value:
    """A value of an individual: the number of its own events, or with `sum_` the sum over them, moved into `clip`.

    Args:
        events: the table of events.
        clip: the least and the greatest that it may be.
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
    """The feature of a column or value, or the one that it is."""
    if isinstance(given, Feature):
        return given
    if not isinstance(given, str | Value):
        raise TypeError(f"a feature is made by feature, one_hot or vector, not of {given!r}")
    return feature(given)


def _numbers(given: Any) -> list[object]:  # noqa: ANN401 - as above
    """Rows of numbers, or one row, as Python's own."""
    listed = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise TypeError(f"parameters are a list or an array of numbers, not {given!r}")
    return [_numbers(each) if _is_row(each) else plain(each) for each in listed]


def _is_row(each: object) -> bool:
    return isinstance(each, Sequence) or getattr(each, "ndim", 0) > 0
