"""Answers: intervals that hold as often as they say, and the numbers in every library's form."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from statistics import NormalDist
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import Answer, Interval

mpl.use("Agg")
ONE = Answer(
    id="0190-a",
    sequence=7,
    values=(41.5,),
    labels=({"select": "count"},),
    axes=(),
    sigma=20.0,
    grid=0.5,
    dimension=1,
    half_width_95=39.0,
    worst_case_rho=Decimal("0.00125"),
    coverage_certified=True,
    reused=False,
    epoch=1,
    released_at=datetime(2026, 11, 21, 9, tzinfo=UTC),
)


def vector(*values: float, sigma: float = 1.0) -> Answer:
    """An answer with a number for each of the groups a, b, c, ..."""
    labels = tuple({"group": chr(97 + place), "select": "count"} for place in range(len(values)))
    return replace(ONE, values=values, labels=labels, dimension=len(values), sigma=sigma, grid=2.0**-20)


def coverage(*, dimension: int, simultaneous: bool, width_factor: float = 1.0) -> float:
    """How often intervals cover zero, of noise of sigma 1: each, or all at once."""
    noise = np.random.default_rng(7).standard_normal((20_000, dimension))
    width = vector(*[0.0] * dimension).half_width(0.9, simultaneous=simultaneous) * width_factor
    covered = np.abs(noise) <= width
    return float((covered.all(axis=1) if simultaneous else covered).mean())


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("dimension", [1, 5])
def test_intervals_cover_as_often_as_they_say(dimension: int, simultaneous: bool) -> None:
    """To three standard errors of 20,000 draws, and intervals a twentieth narrower would be found out."""
    error = 3 * math.sqrt(0.9 * 0.1 / 20_000)
    assert coverage(dimension=dimension, simultaneous=simultaneous) == pytest.approx(0.9, abs=error)
    narrow = coverage(dimension=dimension, simultaneous=simultaneous, width_factor=0.95)
    assert narrow < 0.9 - error


def test_the_interval_of_one_number() -> None:
    """Its ends belong to it; an answer with several numbers has several."""
    assert ONE.interval() == Interval(low=41.5 - 39.0, high=41.5 + 39.0)
    assert 41.5 + ONE.half_width() in ONE.interval()
    assert 41.5 + ONE.half_width() + 0.5 not in ONE.interval()
    assert vector(1.0, 2.0).intervals(0.5)[1].low < 2 < vector(1.0, 2.0).intervals(0.5)[1].high
    with pytest.raises(ValueError, match="2 values"):
        vector(1.0, 2.0).interval()
    for confidence in (0, 1, 2):
        with pytest.raises(ValueError, match="confidence"):
            ONE.half_width(confidence)


@given(st.integers(1, 2**20), st.floats(0.5, 0.999))
def test_all_intervals_at_once_are_wider_by_the_number_of_numbers(dimension: int, confidence: float) -> None:
    """Each needs confidence^(1/d): the quantile of a maximum of d normals."""
    answer = replace(vector(0.0), dimension=dimension)
    tail = -math.expm1(math.log(confidence) / dimension) / 2
    expected = -NormalDist().inv_cdf(tail)
    assert answer.half_width(confidence, simultaneous=True) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_the_largest_numbers_and_which_are_certain() -> None:
    """B is far above all, c and d are too close to tell which of them is second."""
    answer = vector(1.0, 90.0, 30.0, 29.5)
    first, second = answer.top(2)
    assert [(each.label["group"], each.is_certain) for each in (first, second)] == [("b", True), ("c", False)]
    assert [each.is_certain for each in answer.top(3)] == [True, True, True]
    assert all(each.is_certain for each in answer.top(9))
    with pytest.raises(ValueError, match="at least 1"):
        answer.top(0)
    with pytest.raises(ValueError, match="no labels"):
        replace(answer, labels=()).top(1)


def test_a_certain_place_is_wrong_at_most_as_often_as_it_may_be() -> None:
    """In 4,000 draws around a tie and a near tie, a number is called certain wrongly in at most a tenth."""
    truth, wrong = np.array([3.0, 3.0, 2.5, 0.0]), 0
    random = np.random.default_rng(3)
    for noise in random.standard_normal((4000, 4)):
        (first,) = vector(*(truth + noise)).top(1, confidence=0.9)
        wrong += first.is_certain
    assert wrong / 4000 <= 0.1


def test_numbers_as_arrays_and_frames() -> None:
    """One row for each number, with its label and error bar."""
    answer = vector(1.0, 2.5)
    assert answer.to_numpy().tolist() == [1.0, 2.5]
    rows = [
        {"group": "a", "select": "count", "value": 1.0, "half_width_95": 39.0},
        {"group": "b", "select": "count", "value": 2.5, "half_width_95": 39.0},
    ]
    assert answer.to_pandas().to_dict("records") == rows
    assert answer.to_polars().to_dicts() == rows
    assert answer.to_arrow().to_pylist() == rows
    assert isinstance(replace(answer, labels=()).to_polars(), pl.DataFrame)
    assert replace(answer, labels=()).to_arrow().column_names == ["coordinate", "value", "half_width_95"]


def test_labels_of_different_items_share_a_frame() -> None:
    """A histogram's column is missing in the row of a count."""
    labels: Any = ({"select": "count"}, {"select": "histogram(item)", "item": 3})
    frame = replace(vector(1.0, 2.0), labels=labels).to_polars()
    assert frame["item"].to_list() == [None, 3]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        ONE.to_pandas()


def test_a_million_numbers_are_one_line() -> None:
    """And twenty rows in a notebook, with what is in a label written as text."""
    large = replace(ONE, values=tuple(map(float, range(2**20))), labels=(), dimension=2**20)
    assert repr(large) == "Answer(0, 1, 2, ... ± 39, dimension=1048576, id='0190-a')"
    assert repr(ONE) == "Answer(41.5 ± 39, dimension=1, id='0190-a')"
    assert len(large._repr_html_()) < 10_000
    assert "20 of 1,048,576 numbers" in large._repr_html_()
    page = replace(vector(1.0), labels=({"group": "<script>"},), warnings=("a & b",))._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<p>a &amp; b</p>" in page


def test_a_plot_has_error_bars() -> None:
    """One point for each number, by the names of its groups."""
    ax = vector(1.0, 2.0, sigma=20.0).plot(confidence=0.9)
    ((low, _),) = [[segment[0][1] for segment in ax.containers[0].lines[2][0].get_segments()]]
    assert low == pytest.approx(1.0 - NormalDist(sigma=20).inv_cdf(0.95), rel=1e-3)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    assert vector(5.0).plot(ax) is ax
