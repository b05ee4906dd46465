"""Moments and gradients as matrices: the shape of an answer's numbers from its axes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def matrix_of(values: Sequence[float], axes: Sequence[Mapping[str, Any]], numpy: Any) -> Any:  # noqa: ANN401 - a module
    """The symmetric matrix of moments, or the gradient, with a row for each class where it has classes.

    Raises ValueError for an answer of other items.
    """
    items: list[Mapping[str, Any]] = [*axes[-1].get("select", ())] if axes else []
    title = str(items[0]["select"]) if len(items) == 1 else ""
    array = numpy.array(values, dtype="float64")
    if title == "gradient":
        return array.reshape(_shape(items[0], len(values)))
    if title != "moments":
        raise ValueError("this answer is neither of moments nor of a gradient")
    size = math.isqrt(2 * len(values))
    square = numpy.zeros((size, size))
    square[numpy.triu_indices(size)] = array
    return square + numpy.triu(square, 1).T


def _shape(item: Mapping[str, Any], size: int) -> tuple[int, ...]:
    """Classes and features, of which one or the other are listed; a model of one number has features alone."""
    if "classes" in item:
        return len(item["classes"]), -1
    width = len(item.get("features", range(size)))
    return (size,) if width == size else (-1, width)
