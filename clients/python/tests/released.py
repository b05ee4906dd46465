"""Answers as a service releases them, made from counted numbers, for tests of post-processing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sparing import Answer

Numbers = npt.NDArray[np.float64]
_SEQUENCES: Iterator[int] = count(1)


def rounded_noise(
    rng: np.random.Generator, shape: int | tuple[int, ...], sigma: float | Numbers, grid: float | Numbers
) -> Numbers:
    """Noise as the service adds it: a Gaussian, rounded to the grid; one sigma and grid, or one for each column."""
    return np.asarray(np.rint(rng.normal(0, np.divide(sigma, grid), shape)) * grid)


def released(
    values: Sequence[float] | Numbers,
    labels: Sequence[Mapping[str, object]],
    *,
    sigma: float | tuple[float, ...] = 1.0,
    grid: float | tuple[float, ...] = 2.0**-20,
    axes: Sequence[Mapping[str, object]] = (),
    **more: Any,
) -> Answer:
    """An answer with an id of its own."""
    sequence = next(_SEQUENCES)
    fields: dict[str, Any] = {
        "id": f"answer-{sequence}",
        "sequence": sequence,
        "values": tuple(float(value) for value in values),
        "labels": tuple(labels),
        "axes": tuple(axes),
        "sigma": sigma,
        "grid": grid,
        "dimension": len(values),
        "half_width_95": tuple(2 * each for each in sigma) if isinstance(sigma, tuple) else 2 * sigma,
        "worst_case_rho": Decimal(1),
        "coverage_certified": True,
        "reused": False,
        "epoch": 1,
        "released_at": datetime(2026, 11, 21, 9, tzinfo=UTC),
        "table": "people",
    }
    return Answer(**(fields | more))


def in_groups(values: Sequence[float] | Numbers, item: str = "count", *, column: str = "group", **more: Any) -> Answer:
    """An answer with a number for each of the groups 0, 1, 2, ..."""
    return released(values, [{column: place, "select": item} for place in range(len(values))], **more)


def in_bins(values: Sequence[float] | Numbers, edges: Sequence[float], *, column: str = "age", **more: Any) -> Answer:
    """An answer with a count for each bin between edges, with the axes and labels of the service."""
    bins = [f"[{low:.12g}, {high:.12g})" for low, high in pairwise(edges)]
    bins[-1] = bins[-1].removesuffix(")") + "]"
    axes = ({"column": column, "size": len(bins), "edges": list(edges)}, {"select": [item_axis("count")]})
    return released(values, [{column: each, "select": "count"} for each in bins], axes=axes, **more)


def item_axis(item: str, *, offset: int = 0, size: int = 1) -> dict[str, object]:
    """An item in the axes of an answer."""
    return {"select": item, "offset": offset, "size": size}


def standard_error(probability: float, draws: int) -> float:
    """The standard error of the share of draws with this probability."""
    return math.sqrt(probability * (1 - probability) / draws)
