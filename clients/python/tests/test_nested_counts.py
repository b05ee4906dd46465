"""Consistent trees, against least squares with dense matrices."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.released import Numbers
from sparing._nested_counts import NestedCounts, NoisyLevel, WeightedSum


@st.composite
def forests(draw: Any) -> list[NoisyLevel]:
    """One to four nested levels of up to 14 cells, with any variances."""
    bounds = [tuple(range(draw(st.integers(1, 14)) + 1))]
    for _ in range(draw(st.integers(0, 3))):
        inner = bounds[-1][1:-1]
        kept = draw(st.lists(st.sampled_from(inner), unique=True)) if inner else []
        bounds.append((0, *sorted(kept), bounds[-1][-1]))
    return [
        NoisyLevel(
            bounds=each, counts=tuple(draw(st.floats(-100, 100)) for _ in each[1:]), variance=draw(st.floats(0.01, 100))
        )
        for each in bounds
    ]


def design(bounds: tuple[int, ...]) -> Numbers:
    """A row for each interval of a level: 1 at its cells."""
    cells = np.arange(bounds[-1])
    return np.array([(cells >= low) & (cells < high) for low, high in pairwise(bounds)], dtype=np.float64)


def least_squares(levels: list[NoisyLevel]) -> tuple[Numbers, Numbers]:
    """The estimates of the cells, and their covariances, from the normal equations."""
    rows = np.vstack([design(level.bounds) for level in levels])
    precisions = np.concatenate([np.full(len(level.counts), 1 / level.variance) for level in levels])
    counts = np.concatenate([level.counts for level in levels])
    covariances = np.linalg.inv(rows.T @ (rows * precisions[:, None]))
    return covariances @ rows.T @ (precisions * counts), covariances


@given(forests())
def test_consistent_counts_are_least_squares(levels: list[NoisyLevel]) -> None:
    """For any branching, variances and missing levels."""
    assert NestedCounts(levels).cells == pytest.approx(list(least_squares(levels)[0]), rel=1e-6, abs=1e-6)


@given(forests(), st.data())
def test_the_variance_of_a_weighted_sum_is_that_of_least_squares(levels: list[NoisyLevel], data: Any) -> None:
    """For any cuts and weights."""
    cells = levels[0].bounds[-1]
    inner = data.draw(st.lists(st.integers(1, cells - 1), unique=True, max_size=5)) if cells > 1 else []
    cuts = (0, *sorted(inner), cells)
    weights = tuple(data.draw(st.floats(-2, 2)) for _ in cuts[1:])
    dense = np.repeat(weights, np.diff(cuts))

    found = NestedCounts(levels).variance(WeightedSum(cuts=cuts, weights=weights))
    assert found == pytest.approx(float(dense @ least_squares(levels)[1] @ dense), rel=1e-6, abs=1e-9)


@given(forests())
def test_parts_add_up_and_no_variance_grows(levels: list[NoisyLevel]) -> None:
    """A tree made consistent already stays as it is, and each interval is at least as precise as its own count."""
    cells = np.array(NestedCounts(levels).cells)
    again = [
        NoisyLevel(bounds=level.bounds, counts=tuple(design(level.bounds) @ cells), variance=level.variance)
        for level in levels
    ]
    counts = NestedCounts(again)

    assert counts.cells == pytest.approx(list(cells), rel=1e-6, abs=1e-6)
    for level in levels:
        for low, high in pairwise(level.bounds):
            pieces = sorted({0: 0.0, low: 1.0, high: 0.0}.items())
            cuts = (*(cut for cut, _ in pieces if cut < level.bounds[-1]), level.bounds[-1])
            weights = tuple(weight for cut, weight in pieces if cut < level.bounds[-1])
            assert counts.variance(WeightedSum(cuts=cuts, weights=weights)) <= level.variance * (1 + 1e-9)


def test_by_hand() -> None:
    """Parts 1 and 3 of a whole 10, all of variance 1: two thirds of the missing 6 are shared out to the parts."""
    levels = [
        NoisyLevel(bounds=(0, 1, 2), counts=(1.0, 3.0), variance=1.0),
        NoisyLevel(bounds=(0, 2), counts=(10.0,), variance=1.0),
    ]
    counts = NestedCounts(levels)

    assert counts.cells == pytest.approx((3, 5))
    assert counts.variance(WeightedSum(cuts=(0, 2), weights=(1.0,))) == pytest.approx(2 / 3)
    assert counts.variance(WeightedSum(cuts=(0, 1, 2), weights=(1.0, 0.0))) == pytest.approx(2 / 3)
