"""Charts in a real browser: no label covers another or a bar, and the bars of a histogram fill their bins."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.dashboard.browser import Visit

pytestmark = pytest.mark.browser
COVERED = """() => {
  const boxes = [...document.querySelectorAll(".chart :is(text, .bar)")]
    .filter(node => node.tagName === "text" || node.getAttribute("height") > 0)
    .map(node => [node.textContent || "a bar", node.getBoundingClientRect(), node.matches(".label")]);
  const meet = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom - 2 && other.top < one.bottom - 2;
  return boxes.flatMap(([text, box, isLabel], place) => isLabel
    ? boxes.filter(([, other], at) => at !== place && meet(box, other)).map(([other]) => `${text} | ${other}`)
    : []);
}"""
BARS = """nodes => nodes.map(node => ["x", "width", "height"].map(name => Number(node.getAttribute(name))))"""


def _changed(page: Page, address: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Have the answers of an address changed on their way to the page."""

    def fulfill(route: Route) -> None:
        told = route.fetch()
        document = told.json()
        change(document)
        route.fulfill(response=told, json=document)

    page.route(address, fulfill)


def _every_other_bin(summary: dict[str, Any]) -> None:
    for place, each in enumerate(summary["remaining_share_histogram"]):
        each["individuals"] = 10 if 26 <= place < 46 and place % 2 else 0
    summary["quantiles"] |= {"0.05": 0.55, "0.5": 0.73}


def _gone_at_once(forecast: dict[str, Any]) -> None:
    forecast["dropped_after"] = [{"share": share, "queries": 12} for share in (0.01, 0.1, 0.5)]


@pytest.mark.parametrize("width", [1280, 390])
def test_labels_cover_nothing(open_visit: Callable[..., Visit], width: int) -> None:
    """With marks at one side of the histogram, and three drop-outs at one place, which are told together.

    Where every other bin is empty, two are drawn as one: bars stand beside each other, with a hairline between.
    """
    visit = open_visit("light", width)
    _changed(visit.page, "**/budgets/summary", _every_other_bin)
    _changed(visit.page, "**/forecast", _gone_at_once)
    page = visit.enter("curator", "/curator/town")
    expect(page.get_by_text("1 %, 10 % and 50 % gone")).to_be_visible()
    expect(page.get_by_text("half have as much")).to_be_visible()
    assert page.evaluate(COVERED) == []
    if width == 1280:
        bars = page.locator("figure").first.locator(".bar").evaluate_all(BARS)
        _fill([bar for bar in bars if bar[2] > 0], count=10)


def test_a_chart_is_told_in_words_too(visit: Visit) -> None:
    """It has a table with a caption, for those who do not see the picture, and words at the point under the pointer."""
    page = visit.enter("curator", "/curator/town")
    visit.settle()
    figure = page.locator("figure").first
    figure.get_by_text("The data as a table").click()
    expect(figure.get_by_role("columnheader", name="Share left")).to_be_visible()
    expect(figure.get_by_role("row")).to_have_count(51)
    assert page.get_by_role("img", name="Chart: What is left of each limit").count() == 1
    chart, tip = page.locator(".chart").nth(1), page.locator(".tip").nth(1)
    # A line has two points, and one may not be old enough yet; a level line has no height and passes for hidden.
    chart.locator(".line, .dot").first.wait_for(state="attached")
    chart.hover(position={"x": 200, "y": 100})
    expect(tip).to_contain_text("half have")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()


def test_bins_of_numbers_are_bars_of_their_width(visit: Visit) -> None:
    """An answer by bins of a column is a histogram, each bar with its error bar."""
    visit.enter("analyst", key="clinic")
    visit.page.get_by_role("checkbox", name="height").check()
    visit.page.get_by_role("button", name="Ask", exact=True).click()
    expect(visit.page.locator("figcaption")).to_contain_text(re.compile(r"[)\]] is largest with"))
    _fill(visit.page.locator("figure .bar").evaluate_all(BARS), count=11)
    expect(visit.page.locator(".ring")).to_have_count(11)


def _fill(bars: list[list[float]], *, count: int) -> None:
    assert len(bars) == count
    for (x, width, _), (following, *_) in pairwise(bars):
        assert following - (x + width) == pytest.approx(1, abs=0.1)
