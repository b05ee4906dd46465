"""The vector of an individual in moments and gradients, from a query's JSON and the uploaded values, in fractions.

Slow and obvious, and independent of the service's codes and matrices: of a plan it takes nothing but its steps.
"""

from fractions import Fraction
from math import exp, floor
from typing import Any

from tests.engine.reference import WorldEvaluator
from tests.engine.worlds import Row
from tests.laws.fraction_values import Near

Numbers = list[int]


def factors(
    row: Row, query: dict[str, Any], *, step_log2: int, parameters: tuple[int, ...] = (), **steps: int
) -> tuple[Numbers | None, Numbers] | None:
    """The error (None of moments) and the features in whole steps, before the clip; None of one that adds nothing."""
    evaluator = WorldEvaluator(query)
    known = evaluator.stored(row)
    if "where" in query and evaluator.truth(query["where"], known) is not True:
        return None
    ((kind, body),) = query["select"][0].items()
    features = _features(body, known, evaluator, step_log2)
    if features is None or kind == "moments":
        return None if features is None else (None, features)
    size = len(features)
    rows = [parameters[start : start + size] for start in range(0, len(parameters), size)]
    exact = Fraction(2) ** (step_log2 + steps["parameter_log2"])
    arguments = [exact * sum(h * theta for h, theta in zip(features, row, strict=True)) for row in rows]
    error = _error(body, known, evaluator, arguments)
    if error is None:
        return None
    return [round(each / Fraction(2) ** steps["error_log2"]) for each in error], features


def _number(node: Any, row: Row, evaluator: WorldEvaluator) -> Fraction | None:
    """A number or truth value of the row; None for NULL."""
    value = evaluator.value(node, row)
    return None if value is None else value.value if isinstance(value, Near) else Fraction(value)


def _features(body: dict[str, Any], row: Row, evaluator: WorldEvaluator, step_log2: int) -> Numbers | None:
    step, found = Fraction(2) ** step_log2, []
    for feature in body["features"]:
        if "one_hot" in feature:
            key = feature["one_hot"]
            count, place = len(evaluator.parts(key)), evaluator.part(key, row)
            found += [floor(1 / step + Fraction(1, 2)) * (place == each) for each in range(count)]
            continue
        if "vector" in feature:
            name = feature["vector"]
            if row[name] is None:
                return None
            own = Fraction(2) ** evaluator.columns[name].get("step_log2", 0)
            found += [_whole(number * own / step) for number in row[name]]
            continue
        value = _number(feature["of"], row, evaluator)
        value = feature.get("fill") if value is None else value
        if value is None:
            return None
        found.append(floor(Fraction(value) / step + Fraction(1, 2)))
    return [*found, floor(1 / step + Fraction(1, 2))] if body.get("intercept") else found


def _error(
    body: dict[str, Any], row: Row, evaluator: WorldEvaluator, arguments: list[Fraction]
) -> list[Fraction] | None:
    """Prediction less target, by class."""
    target = body["target"]
    if body["loss"] == "softmax":
        place = evaluator.part(target, row)
        weights = [exp(-min(_tenth_bits(max(arguments) - each), 2**15) / 2**10) for each in arguments]
        total = sum(weights[1:], start=weights[0])
        found = [Fraction(weight / total - (place == each)) for each, weight in enumerate(weights)]
        return None if place is None else found
    value = _number(target, row, evaluator)
    if value is None:
        return None
    if body["loss"] == "squared":
        clip = Fraction(body["residual_clip"])
        return [min(max(arguments[0] - value, -clip), clip)]
    scaled = min(max(_tenth_bits(arguments[0]), -(2**15)), 2**15) / 2**10
    predicted = 1 / (1 + exp(-scaled)) if scaled >= 0 else exp(scaled) / (1 + exp(scaled))
    return [Fraction(predicted - bool(value))]


def _tenth_bits(argument: Fraction) -> int:
    """In steps of 2^-10, to the nearest, ties to even."""
    return round(argument * 2**10)


def _whole(number: Fraction) -> int:
    """A number that no rounding is allowed to change."""
    if number.denominator != 1:
        raise ValueError(f"{number} is no whole number of steps")
    return number.numerator


def outer(error: Numbers | None, features: Numbers) -> Numbers:
    """The entries of the vector."""
    if error is None:
        return [features[j] * features[k] for j in range(len(features)) for k in range(j, len(features))]
    return [each * feature for each in error for feature in features]
