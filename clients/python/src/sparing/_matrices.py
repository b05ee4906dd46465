"""Moments and gradients as matrices, whose shape follows from the axes of an answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def matrix_of(values: Sequence[float], axes: Sequence[Mapping[str, Any]], numpy: Any) -> Any:  # noqa: ANN401 - a module
    """The symmetric matrix (d, d) of moments, or a gradient (d,), or (classes, d) if it has classes.

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
    """The shape of a gradient: (classes, features), with -1 for a number that follows from the size, or (features,)."""
    if "classes" in item:
        return len(item["classes"]), -1
    width = len(item.get("features", range(size)))
    return (size,) if width == size else (-1, width)
