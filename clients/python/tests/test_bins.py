"""Levels of bins to ask for, and the edges that answers state."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.levels import deviation
from clients.python.tests.released import item_axis, released
from sparing import bin_levels, col
from sparing._bins import bins_of


def edges_asked(column: Any, edges: Any, **more: Any) -> list[list[float]]:
    """The edges of each level."""
    asked: list[Any] = [group.json["bin"] for group in bin_levels(column, edges, **more)]
    assert all(each["column"] == "age" for each in asked)
    return [each["edges"] for each in asked]


@given(st.integers(1, 2000), st.integers(2, 9))
def test_levels_are_nested_and_end_at_a_few_bins(count: int, branching: int) -> None:
    """Each bin merges at most so many of the finer level, and hardly fewer than the others."""
    levels = edges_asked("age", range(count + 1), branching=branching)

    assert levels[0] == list(range(count + 1))
    assert len(levels[-1]) - 1 <= 2 * branching
    for finer, coarser in pairwise(levels):
        assert set(coarser) <= set(finer)
        merged = np.diff([finer.index(edge) for edge in coarser])
        assert max(merged) <= branching
        assert max(merged) - min(merged) <= 1
        assert len(finer) - 1 > 2 * branching


def test_levels_of_a_column() -> None:
    """Levels as the service is asked for them."""
    assert [len(edges) - 1 for edges in edges_asked(col("age"), range(0, 121, 5))] == [24, 6]
    assert edges_asked("age", np.array([0, 18, 65])) == [[0, 18, 65]]


@pytest.mark.parametrize("count", [12, 16, 40, 100, 365, 1024])
def test_merging_four_is_close_to_the_best_at_a_given_cost(count: int) -> None:
    """Within a tenth of every other branching, and far better than a single level of many bins."""
    found, *others, wide, single = (
        deviation(count, branching, cuts_every=max(1, count // 100))[1]
        for branching in (4, 2, 3, 5, 6, 8, 10, 16, 32, count)
    )

    assert found <= 1.1 * min(others)
    assert found < 0.9 * single
    if count >= 365:
        assert wide > 1.2 * found


@pytest.mark.parametrize(
    ("edges", "branching", "error", "message"),
    [
        ([0, 1], 1, ValueError, "branching must be at least 2, got 1"),
        ([0], 4, ValueError, "edges must have at least two edges"),
        ([0, 2, 2], 4, ValueError, "each above the one before"),
        ([0, math.inf], 4, TypeError, "edges must have edges that are finite numbers"),
        (["2026-01-01", "2026-02-01"], 4, TypeError, "edges must have edges that are finite numbers"),
    ],
)
def test_edges_that_make_no_bins_are_refused(edges: Any, branching: int, error: type[Exception], message: str) -> None:
    """The argument is named."""
    with pytest.raises(error, match=message):
        bin_levels("age", edges, branching=branching)


COUNT = {"select": [item_axis("count")]}
HISTOGRAM = {
    "select": [
        item_axis("count"),
        item_axis("histogram(age)", offset=1, size=2)
        | {"values": {"column": "age", "size": 2, "lower": 17, "upper": 18}},
    ]
}


def answer(*axes: Any, first: object = "[0, 1)") -> Any:
    """An answer with these axes, and a label in the column age."""
    return released([0.0], [{"age": first, "select": "count"}], axes=axes)


@pytest.mark.parametrize(
    ("axes", "first", "edges"),
    [
        (({"column": "age", "size": 2, "edges": [0, 18, 65]}, COUNT), "[0, 18)", (0, 18, 65)),
        (({"column": "age", "size": 3, "width": 10}, COUNT), "[-10, 0)", (-10, 0, 10, 20)),
        (({"column": "age", "size": 3, "width": 0.1}, COUNT), "[0.2, 0.3)", (0.2, 0.3, 0.4, 0.5)),
        (({"column": "age", "size": 3, "lower": 1, "upper": 3}, COUNT), 1, (1, 2, 3, 4)),
        (({"column": "c", "size": 2, "categories": ["a", "b"]}, {"column": "age", "edges": [0, 1]}, COUNT), "", (0, 1)),
    ],
)
def test_the_edges_of_an_answer(axes: Any, first: object, edges: Any) -> None:
    """Axes state them; multiples of a width are those of the service."""
    assert bins_of(answer(*axes, first=first), "count", {"c"} if len(axes) == 3 else (), "levels[0]") == ("age", edges)


def test_the_values_of_a_histogram_are_bins() -> None:
    """If they are integers."""
    assert bins_of(answer(HISTOGRAM), "histogram(age)", (), "levels[0]") == ("age", (17, 18, 19))


@pytest.mark.parametrize(
    ("axes", "fixed", "error", "message"),
    [
        ((COUNT,), (), ValueError, r"levels\[0\] must be by one column, others fixed by `within`; it is by none"),
        (({"column": "age"}, {"column": "c"}, COUNT), (), ValueError, "it is by age, c"),
        (({"column": "age"}, COUNT), ("c",), ValueError, r"levels\[0\] is not by c; it is by age"),
        (({"column": "age", "categories": ["a"]}, COUNT), (), ValueError, r"age in levels\[0\] must have bins or int"),
        (({"column": "age", "by": "month"}, COUNT), (), ValueError, r"age in levels\[0\] must have bins or integers"),
        (({"column": "age", "edges": ["2026-01-01", "2027-01-01"]}, COUNT), (), TypeError, "finite numbers"),
    ],
)
def test_answers_without_bins_are_refused(axes: Any, fixed: Any, error: type[Exception], message: str) -> None:
    """The argument and its columns are named."""
    with pytest.raises(error, match=message):
        bins_of(answer(*axes), "count", fixed, "levels[0]")
