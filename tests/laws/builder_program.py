"""A query's JSON as steps of the Python client's builder, in its operators and methods."""

import datetime as dt
from functools import reduce
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparing import Condition, Feature, Value, col, feature, one_hot, vector
from sparing._builder import DatasetQueries, QueryBuilder

Json = dict[str, Any]

COMPARISONS = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}
ARITHMETIC = {"add": add, "sub": sub, "mul": mul}
JUNCTIONS = {"and": and_, "or": or_}


def built(document: Json, dataset: DatasetQueries) -> QueryBuilder:
    """The steps, one for each part of the document."""
    steps = dataset.query(document["from"]) if "from" in document else dataset.query()
    where = document.get("where", {})
    for part in where.get("and", [where] if where else []):
        steps = steps.where(condition(part))
    for key in document.get("group_by", []):
        steps = steps.group_by(group(key))
    for item in document["select"]:
        steps = selecting(steps, item)
    bounds = document.get("per_individual", {})
    steps = steps.clip(bounds["l2_clip"]) if "l2_clip" in bounds else steps
    steps = steps.rows(bounds["rows"]) if "rows" in bounds else steps
    steps = steps if document.get("reuse", True) else steps.fresh()
    steps = steps.rule(document["rule"]) if "rule" in document else steps
    return steps.noise(**document["noise"])


def selecting(steps: QueryBuilder, item: Json) -> QueryBuilder:
    """One more item."""
    ((kind, body),) = item.items()
    match kind:
        case "count":
            return steps.count()
        case "count_individuals":
            return steps.count_individuals()
        case "active":
            return steps.active(body["share"])
        case "sum":
            return steps.sum(value(body["of"]) if "of" in body else body["column"])
        case "histogram":
            counted = body["column"] if "column" in body else group(body)
            return steps.histogram(counted, values=map(literal, body["values"]) if "values" in body else None)
        case "moments":
            return steps.moments(features(body), intercept=body.get("intercept", False))
        case "gradient":
            target = body["target"]
            return steps.gradient(
                body["loss"],
                target=target if isinstance(target, str) else group(target) if "bin" in target else value(target),
                features=features(body),
                parameters=np.array(body["parameters"], dtype=object),
                intercept=body.get("intercept", False),
                residual_clip=body.get("residual_clip"),
            )
    if "matrix" in body:
        matrix, values = sparse(body["matrix"])
        return steps.linear(body["column"], matrix, values=values)
    weights = body["weights"]
    return steps.linear(body["column"], [*map(weighed, weights)] if isinstance(weights, list) else weighed(weights))


def features(model: Json) -> list[Feature]:
    """Those of moments or a gradient."""
    return [
        vector(each["vector"])
        if "vector" in each
        else one_hot(group(each["one_hot"]))
        if "one_hot" in each
        else feature(value(each["of"]), each.get("fill"))
        for each in model["features"]
    ]


def sparse(rows: Json) -> tuple[csr_array, list[Any]]:
    """A matrix of scipy, and the values that its columns stand for, in the order of their texts."""
    values = sorted(set(rows["indices"]), key=repr)
    places = [values.index(value) for value in rows["indices"]]
    shape = (len(rows["starts"]) - 1, len(values))
    return csr_array((rows["values"], places, rows["starts"]), shape=shape), [*map(literal, values)]


def weighed(weights: Json) -> Any:
    """A mapping from value to weight."""
    return {literal(index): weight for index, weight in zip(weights["indices"], weights["values"], strict=True)}


def group(key: Any) -> Any:
    """A column, by name or as an object, or parts of one."""
    if isinstance(key, str):
        return key if "." in key else col(key)
    ((kind, body),) = key.items()
    column = col(body["column"])
    if kind == "bucket":
        return column.by(body["by"])
    return column.bins(width=body["width"]) if "width" in body else column.bins(map(literal, body["edges"]))


def condition(node: Json) -> Condition:
    """By comparison operators, `&`, `|` and `~`, and the methods of a value."""
    ((kind, body),) = node.items()
    match kind:
        case "and" | "or":
            return reduce(JUNCTIONS[kind], map(condition, body))
        case "not":
            return ~condition(body)
        case "is_null":
            return value(body).is_null()
        case "in":
            return value(body[0]).is_in(map(literal, body[1]))
        case "between":
            return value(body[0]).between(literal(body[1]), literal(body[2]))
    found: Condition = COMPARISONS[kind](value(body[0]), operand(body[1]))
    return found


def value(node: Json) -> Value:
    """By arithmetic operators, `abs` and `clip`."""
    ((kind, body),) = node.items()
    match kind:
        case "col":
            return col(body)
        case "abs":
            return abs(value(body))
        case "clip":
            return value(body[0]).clip(body[1], body[2])
    found: Value = ARITHMETIC[kind](*map(operand, body))
    return found


def operand(node: Any) -> Any:
    """A value, or a literal."""
    return value(node) if isinstance(node, dict) else literal(node)


def literal(given: Any) -> Any:
    """A date or a time as Python's own, where its text is the same."""
    if not isinstance(given, str):
        return given
    for kind in (dt.date, dt.datetime):
        try:
            read = kind.fromisoformat(given)
        except ValueError:
            continue
        if read.isoformat() == given:
            return read
    return given
