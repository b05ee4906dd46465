"""The vector of an individual in moments and gradients, from a query's JSON and the uploaded values, in fractions.

Slow and obvious, and independent of the service's codes and matrices: of a plan it takes nothing but its steps.
"""

from fractions import Fraction
from math import exp, floor
from typing import Any

from service.query.plan import Plan
from tests.engine.reference import Columns, Row, part_of, stored, truth, value_of
from tests.engine.worlds import planned

Numbers = list[int]


def query_of(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A query of one item."""
    return {"version": 1, "select": [item], "noise": {"sigma": 30.0}} | more


def plan_of(query: dict[str, Any]) -> Plan:
    """Its plan."""
    plan = planned(query)
    assert plan is not None
    return plan


def factors(
    row: Row, query: dict[str, Any], columns: Columns, *, step_log2: int, parameters: tuple[int, ...] = (), **steps: int
) -> tuple[Numbers | None, Numbers] | None:
    """The error (None of moments) and the features in whole steps, before the clip; None of one that adds nothing."""
    known = stored(row, columns)
    if "where" in query and truth(query["where"], known) is not True:
        return None
    ((kind, body),) = query["select"][0].items()
    features = _features(body, known, columns, step_log2)
    if features is None or kind == "moments":
        return None if features is None else (None, features)
    size = len(features)
    rows = [parameters[start : start + size] for start in range(0, len(parameters), size)]
    exact = Fraction(2) ** (step_log2 + steps["parameter_log2"])
    arguments = [exact * sum(h * theta for h, theta in zip(features, row, strict=True)) for row in rows]
    error = _error(body, known, columns, arguments)
    if error is None:
        return None
    return [_rounded(each / Fraction(2) ** steps["error_log2"]) for each in error], features


def _features(body: dict[str, Any], row: Row, columns: Columns, step_log2: int) -> Numbers | None:
    step, found = Fraction(2) ** step_log2, []
    for feature in body["features"]:
        if "one_hot" in feature:
            key = feature["one_hot"]
            name = key if isinstance(key, str) else next(iter(key.values()))["column"]
            count, place = part_of(key, row[name], columns[name])
            found += [floor(1 / step + Fraction(1, 2)) * (place == each) for each in range(count)]
            continue
        if "vector" in feature:
            numbers, own = row[feature["vector"]], Fraction(2) ** columns[feature["vector"]].get("step_log2", 0)
            if numbers is None:
                return None
            found += [_whole(number * own / step) for number in numbers]
            continue
        value = value_of(feature["of"], row)
        value = feature.get("fill") if value is None else value
        if value is None:
            return None
        found.append(floor(Fraction(value) / step + Fraction(1, 2)))
    return [*found, floor(1 / step + Fraction(1, 2))] if body.get("intercept") else found


def _error(body: dict[str, Any], row: Row, columns: Columns, arguments: list[Fraction]) -> list[Fraction] | None:
    """Prediction less target, by class."""
    target = body["target"]
    if body["loss"] == "softmax":
        name = target if isinstance(target, str) else target.get("col") or next(iter(target.values()))["column"]
        key = target if not isinstance(target, str) and "col" not in target else name
        _, place = part_of(key, row[name], columns[name])
        weights = [exp(-min(_tenth_bits(max(arguments) - each), 2**15) / 2**10) for each in arguments]
        total = sum(weights[1:], start=weights[0])
        found = [Fraction(weight / total - (place == each)) for each, weight in enumerate(weights)]
        return None if place is None else found
    value = row[target] if isinstance(target, str) else value_of(target, row)
    if value is None:
        return None
    if body["loss"] == "squared":
        clip = Fraction(body["residual_clip"])
        return [min(max(arguments[0] - Fraction(value), -clip), clip)]
    scaled = min(max(_tenth_bits(arguments[0]), -(2**15)), 2**15) / 2**10
    predicted = 1 / (1 + exp(-scaled)) if scaled >= 0 else exp(scaled) / (1 + exp(scaled))
    return [Fraction(predicted - bool(value))]


def _tenth_bits(argument: Fraction) -> int:
    return _rounded(argument * 2**10)


def _rounded(number: Fraction) -> int:
    """To the nearest, ties to even."""
    return round(number)


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
