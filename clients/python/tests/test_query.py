"""Keyword arguments become the query language's document, and nothing is guessed."""

from typing import Any

import numpy as np
import pytest

from sparing import col, count, sum_
from sparing._query import question_json

MINIMAL = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"select": [count(), sum_("spend")]}, {"select": [{"count": {}}, {"sum": {"column": "spend"}}]}),
        ({"where": col("a") == 1}, {"where": {"eq": [{"col": "a"}, 1]}}),
        ({"where": None, "from_": None, "l2_clip": None}, {}),
        ({"from_": "visits"}, {"from": "visits"}),
        ({"group_by": "country"}, {"group_by": ["country"]}),
        ({"group_by": ("country", "member")}, {"group_by": ["country", "member"]}),
        ({"group_by": col("country")}, {"group_by": ["country"]}),
        (
            {"group_by": ["country", col("day").by("month")]},
            {"group_by": ["country", {"bucket": {"column": "day", "by": "month"}}]},
        ),
        ({"group_by": col("age").bins(width=10)}, {"group_by": [{"bin": {"column": "age", "width": 10}}]}),
        ({"l2_clip": 2, "rows": 5}, {"per_individual": {"l2_clip": 2, "rows": 5}}),
        ({"rows": 5}, {"per_individual": {"rows": 5}}),
        ({"l2_clip": 1}, {"per_individual": {"l2_clip": 1}}),
        ({"l2_clip": (1, np.float64(50))}, {"per_individual": {"l2_clip": [1, 50]}}),
        ({"reuse": False, "rule": "skip"}, {"reuse": False, "rule": "skip"}),
    ],
)
def test_each_argument_has_its_member(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """Missing arguments are left to the service's defaults."""
    assert question_json({"dataset": "d", "sigma": 20, **given}) == MINIMAL | expected  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        ({"rho": 0.001}, {"rho": 0.001}),
        ({"share": 0.01}, {"share": 0.01}),
        ({"sigma": np.float32(8)}, {"sigma": 8}),
        ({"half_width": 40}, {"half_width": 40, "confidence": 0.95}),
        ({"half_width": 40, "confidence": 0.99}, {"half_width": 40, "confidence": 0.99}),
        ({"sigma": [5, 2000]}, {"sigma": [5, 2000]}),
        ({"sigma": np.array([5, 2000])}, {"sigma": [5, 2000]}),
        ({"half_width": (10, 5000)}, {"half_width": [10, 5000], "confidence": 0.95}),
        ({"share": 0.05, "weights": [3, 1]}, {"share": 0.05, "weights": [3, 1]}),
        ({"rho": 0.05, "weights": (np.float64(3), 1)}, {"rho": 0.05, "weights": [3, 1]}),
    ],
)
def test_noise_is_stated_in_one_of_four_ways(noise: dict[str, Any], expected: dict[str, Any]) -> None:
    """By its size, by its cost, or by the error bar wanted."""
    assert question_json({"dataset": "d", **noise})["noise"] == expected  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"sigma": 1, "rho": 1},
        {"sigma": 1, "confidence": 0.9},
        {"sigma": [1, 2], "weights": [1, 2]},
        {"weights": [1]},
    ],
)
def test_any_other_noise_is_an_error(noise: dict[str, Any]) -> None:
    """No default: how much privacy a query may cost is the analyst's decision."""
    with pytest.raises(ValueError, match=r"give exactly one of|confidence goes with|weights go with"):
        question_json({"dataset": "d", **noise})  # type: ignore[typeddict-item]


def test_a_misspelt_argument_is_an_error() -> None:
    """A condition that is silently not sent would answer another query."""
    with pytest.raises(TypeError, match="wheer"):
        question_json({"dataset": "d", "sigma": 1, "wheer": col("a") == 1})  # type: ignore[typeddict-unknown-key]
