"""Answers: intervals that hold as often as they say, and the numbers in every library's form."""

import math
import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from statistics import NormalDist
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from clients.python.tests.released import released
from sparing import Answer, Interval, Preview, combine
from sparing._printable import printable

mpl.use("Agg")
ONE = released([41.5], [{"select": "count"}], id="0190-a", sigma=20.0, grid=0.5, half_width_95=39.0)


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


def test_a_certain_place_is_wrong_at_most_as_often_as_it_may_be() -> None:
    """In 4,000 draws around a tie and a near tie, a number is called certain wrongly in at most a tenth."""
    truth, wrong = np.array([3.0, 3.0, 2.5, 0.0]), 0
    for noise in np.random.default_rng(3).standard_normal((4000, 4)):
        (first,) = vector(*(truth + noise)).top(1, confidence=0.9)
        wrong += first.is_certain
    assert wrong / 4000 <= 0.1


def test_numbers_as_arrays_and_frames() -> None:
    """One row for each number, with its label and error bar."""
    answer = vector(1.0, 2.5)
    assert answer.to_numpy().tolist() == [1.0, 2.5]
    rows = [
        {"group": "a", "select": "count", "value": 1.0, "half_width_95": 39.0, "coverage_certified": True},
        {"group": "b", "select": "count", "value": 2.5, "half_width_95": 39.0, "coverage_certified": True},
    ]
    assert answer.to_pandas().to_dict("records") == rows
    assert answer.to_polars().to_dicts() == rows
    assert answer.to_arrow().to_pylist() == rows


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
    axes = ({"column": "area", "size": 2**20}, {"select": [{"select": "count", "size": 1}]})
    large = replace(ONE, values=tuple(map(float, range(2**20))), labels=(), axes=axes, dimension=2**20)
    assert repr(large) == "Answer(0, 1, 2, ... ± 39, dimension=1048576, id='0190-a')"
    assert repr(ONE) == "Answer(42 ± 39, dimension=1, id='0190-a')"
    assert len(large._repr_html_()) < 10_000
    assert "20 of 1,048,576 numbers" in large._repr_html_()
    assert "<td>19</td>" in large._repr_html_()
    page = replace(vector(1.0), labels=({"group": "<script>"},))._repr_html_()
    assert "&lt;script&gt;" in page


def test_a_warning_stands_beside_the_number() -> None:
    """In one line, before the table of a notebook, and over a plot."""
    preview = Preview(
        dimension=1, grid=1, sigma=1, half_width_95=39, worst_case_rho=Decimal(1), warnings=("A vector longer than 3.",)
    )
    warned = replace(vector(131.4), warnings=("A vector longer than 3 & so on.",))
    assert repr(warned).startswith("Answer(131 ± 39, warnings=['A vector longer than 3 & so on.'], ")
    assert str(warned) == repr(warned)
    assert warned._repr_html_().startswith(
        "<p><strong>Warning:</strong> A vector longer than 3 &amp; so on.</p><table>"
    )
    assert repr(combine([warned])).startswith("Combined(131.4 ± 2.0, warnings=['A vector longer than 3 & so on.'], ")
    shown = repr(preview)
    assert shown.index("warnings=('A vector") < shown.index("worst_case_rho")
    assert warned.plot().get_title() == "A vector longer than 3 & so on."
    assert "warning" not in (repr(ONE) + ONE._repr_html_() + vector(1.0).plot().get_title()).lower()


class TestSeveralPrecisions:
    """A count and a sum by group, each with noise of its own."""

    BOTH = replace(
        vector(139.27, 551_120.4, 27.0, 98_000.0),
        labels=tuple({"cut": cut, "select": item} for cut in ("fair", "good") for item in ("count", "sum(price)")),
        axes=(
            {"column": "cut", "size": 2, "categories": ["fair", "good"]},
            {"select": [{"select": "count", "size": 1}, {"select": "sum(price)", "size": 1}]},
        ),
        sigma=(8.0, 2000.0),
        grid=(1.0, 0.25),
        half_width_95=(16.0, 3920.0),
    )

    def test_each_number_has_that_of_its_item(self) -> None:
        """In properties, intervals, frames and plots; one distance for all there is not."""
        assert self.BOTH.sigmas == (8.0, 2000.0, 8.0, 2000.0)
        assert self.BOTH.grids == (1.0, 0.25, 1.0, 0.25)
        assert self.BOTH.half_widths == (16.0, 3920.0, 16.0, 3920.0)
        assert self.BOTH.to_pandas()["half_width_95"].tolist() == list(self.BOTH.half_widths)
        widths = [(each.high - each.low) / 2 for each in self.BOTH.intervals(0.95, simultaneous=True)]
        assert widths == pytest.approx([20.0, 4982.0] * 2, rel=1e-3)
        (bars,) = self.BOTH.plot().containers
        assert [(high - low) / 2 for (_, low), (_, high) in bars.lines[2][0].get_segments()] == pytest.approx(
            [each.high - value for each, value in zip(self.BOTH.intervals(), self.BOTH.values, strict=True)]
        )
        with pytest.raises(ValueError, match="2 items have precisions of their own"):
            self.BOTH.half_width()

    def test_a_plot_may_be_of_one_item(self) -> None:
        """On its own scale; another item is named."""
        ax = self.BOTH.plot(item="sum(price)")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["fair", "good"]
        assert ax.containers[0].lines[0].get_ydata().tolist() == [551_120.4, 98_000.0]
        with pytest.raises(ValueError, match=r"no item sum\(age\)"):
            self.BOTH.plot(item="sum(age)")

    def test_texts_have_the_digits_of_each(self) -> None:
        """A line and a table."""
        assert repr(self.BOTH).startswith("Answer(139 ± 16, 551120 ± 3920, 27 ± 16, ..., dimension=4")
        page = self.BOTH._repr_html_()
        assert "<td>551,120</td><td>3,920</td>" in page
        assert page.count("width:160.0px") == 0
        assert [round(float(bar)) for bar in re.findall(r"width:([\d.]+)px;height:1em;background:#4a7ebb\"", page)] == [
            *(round(160 * 139.27 / 155.27), round(160 * 551_120.4 / 555_040.4)),
            *(round(160 * 27.0 / 155.27), round(160 * 98_000.0 / 555_040.4)),
        ]

    def test_the_largest_of_them_are_certain_by_their_own_intervals(self) -> None:
        """The sum of the fair is far above that of the good, and both are above the counts."""
        assert [(each.label["cut"], each.is_certain) for each in self.BOTH.top(2)] == [("fair", True), ("good", True)]


HOSTILE = (
    *("$x^2$", r"$\frac{$", "$", r"\$5 \\$", "<a href='https://example.com/'>a</a>", "<b>&lt;"),
    *('"><img src=x onerror=x>', "javascript:x", "\u202egnp.x", "line\nline", "x" * 1000),
)


def test_labels_are_drawn_and_shown_as_text() -> None:
    """Neither a formula in a plot nor markup or control characters in a notebook, whatever a category is called."""
    answer = replace(vector(*range(len(HOSTILE))), labels=tuple({"group": name} for name in HOSTILE))
    ax = answer.plot()
    ax.figure.canvas.draw()
    texts = [tick.get_text() for tick in ax.get_xticklabels()]
    assert [ax.xaxis.label._preprocess_math(text) for text in texts] == [(name, False) for name in HOSTILE]
    plt.close(ax.figure)

    class Page(HTMLParser):
        tags: ClassVar[set[str]] = set()
        text: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.tags.add(tag)
            assert {name for name, _ in attrs} <= {"style"}

        def handle_data(self, data: str) -> None:
            self.text.append(data)

    page = Page()
    page.feed(answer._repr_html_())
    page.close()
    assert page.tags == {"table", "tr", "th", "td", "div"}
    assert {printable(name) for name in HOSTILE} <= set(page.text)


def test_a_plot_has_error_bars() -> None:
    """One point for each number, by the names of its groups."""
    ax = vector(1.0, 2.0, sigma=20.0).plot(confidence=0.9)
    ((low, _),) = [[segment[0][1] for segment in ax.containers[0].lines[2][0].get_segments()]]
    assert low == pytest.approx(1.0 - NormalDist(sigma=20).inv_cdf(0.95), rel=1e-3)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    assert vector(5.0).plot(ax) is ax
