"""Texts that others have chosen, on every page: each is text in its own order, and makes no page wider."""

import csv
import io
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, expect

from tests.dashboard.browser import Site, Visit

pytestmark = pytest.mark.browser

ELSEWHERE = "https://elsewhere.example/"
HOSTILE = [
    f'<a class="planted" href="{ELSEWHERE}">a link</a>',
    f'<svg:a xlink:href="{ELSEWHERE}">a link</svg:a>',
    '<b class="planted">bold</b>',
    'one<br class="planted">two',
    '<sub class="planted">low</sub>',
    "&lt;b&gt; &amp; &#60;i&#62;",
    '"><img class="planted" src=x onerror=alert(1)>',
    "'};alert(1);//",
    "javascript:alert(1)",
    "${alert(1)} {{alert(1)}} $x^2$",
    "[a link](javascript:alert(1))",
    ELSEWHERE,
    "x" * 1000,
    "word " * 100 + "end",
]
PLACES = 2 * len(HOSTILE) + 2
"""Two at least of each point of a chart."""
TURNED = "\u202egnp.exe\u202c \u2067 \u200f"
PLANTED = """[
  ...document.querySelectorAll(".planted, main img, main script, main iframe"),
  ...[...document.querySelectorAll("a, area, form")].filter(each =>
    new URL(each.getAttribute("href") ?? each.getAttribute("action") ?? each.getAttributeNS(
      "http://www.w3.org/1999/xlink", "href") ?? "", location.href).origin !== location.origin
  ),
].map(each => each.outerHTML)"""
TURNS = r"/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)"
WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
  .filter(each => each.getBoundingClientRect().right > innerWidth && !each.closest(".scroll > *"))
  .map(each => each.outerHTML.slice(0, 200))"""


def _key(text: str) -> str:
    """The text as far as a key may be as long."""
    return text[:100].strip()


def _people() -> str:
    """Each text a person's key and its category."""
    text = io.StringIO()
    rows = [[_key(each), each] for each in HOSTILE]
    csv.writer(text).writerows([["person", "group"], *rows, [_key(TURNED), HOSTILE[0]]])
    return text.getvalue()


@pytest.fixture(scope="module")
def hostile(site: Site) -> Site:
    """A dataset whose every free text is hostile: categories, keys, names, organisation, purpose, queries."""
    columns = {"group": {"type": "category", "categories": HOSTILE}}
    tables = {"people": {"kind": "individuals", "key": "person", "columns": columns}}
    registration = {"name": "hostile", "guarantee": {"rho": "10"}, "capacity": 100, "tables": tables}
    short = [each for each in HOSTILE if len(each) <= 128]
    site.add(registration, _people())
    for name in short:
        key = "hostile analyst" if name == short[0] else f"hostile analyst called {name}"
        site.add_key(key, "analyst", name=name, dataset="hostile", organisation=name, purpose=name)
    for role, wish in (("curator", {}), ("auditor", {}), ("individual", {"individual": _key(TURNED)})):
        site.add_key(f"hostile {role}", role, name=short[2], dataset="hostile", **wish)
    for place, each in enumerate(HOSTILE):
        where = {"eq": [{"col": "group"}, each]}
        site.ask(dataset="hostile", by="hostile analyst", sigma=20.0 + place, where=where)
    with site.client("hostile individual") as individual:
        individual.post("/v1/me/erasure/hostile").raise_for_status()
    return site


@pytest.fixture
def checked(visit: Visit, hostile: Site) -> Iterator[Visit]:
    """A visit in which no dialog opens."""
    assert visit.site is hostile
    dialogs: list[str] = []

    def on_dialog(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    visit.page.on("dialog", on_dialog)
    yield visit
    assert dialogs == []


def _only_text(visit: Visit, *shown: str) -> None:
    """Nothing that is on the page now was made of a text; `shown` are there letter by letter."""
    page = visit.page
    visit.settle()
    for each in shown:
        expect(page.locator("main")).to_contain_text(each[:200])
    assert page.evaluate(PLANTED) == []
    assert not page.evaluate(TURNS)
    assert page.evaluate(WIDE) == []


def test_texts_of_others_are_text_on_a_curators_pages(checked: Visit) -> None:
    """Queries in words, names of analysts, keys of people, categories; an account, and a problem that quotes."""
    visit = checked
    visit.enter("curator", key="hostile curator")
    for place, shown in (
        ("", [HOSTILE[0]]),
        ("/queries", [HOSTILE[0], HOSTILE[2], HOSTILE[5]]),
        ("/analysts", [HOSTILE[0], HOSTILE[2], HOSTILE[5]]),
        ("/people", []),
        ("/data", []),
        ("/ledger", []),
        ("/settings", []),
    ):
        visit.go(f"/curator/hostile{place}")
        _only_text(visit, *shown)
    for key in (HOSTILE[0], HOSTILE[6], HOSTILE[12], TURNED):
        visit.go(f"/curator/hostile/people?key={quote(_key(key))}")
        _only_text(visit)


def test_names_of_keys_are_text_where_keys_are_handed_out(checked: Visit) -> None:
    """The list of all principals, of those of one dataset: another test makes more than a page holds."""
    checked.enter("curator", "/curator/_keys")
    checked.page.get_by_role("searchbox", name="Search").fill("hostile")
    _only_text(checked, HOSTILE[0], HOSTILE[2], HOSTILE[5])


def test_categories_are_text_in_an_analysts_charts(checked: Visit) -> None:
    """Names under the chart, its title, the tip of each point, the table behind; and in the list of earlier answers."""
    visit, page = checked, checked.page
    visit.enter("analyst", key="hostile analyst")
    page.get_by_role("checkbox", name="group").check()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("figcaption")).to_contain_text("is largest with")
    chart = page.locator(".chart").first
    chart.locator("text").first.wait_for()
    box = chart.bounding_box()
    assert box is not None
    told = set()
    for place in range(PLACES):
        chart.hover(position={"x": 40 + place * (box["width"] - 60) / PLACES, "y": box["height"] / 2})
        tip, planted = page.evaluate(f"[document.querySelector('.tip').innerText, {PLANTED}]")
        told.add(tip)
        assert planted == []
    assert len(told) == len(HOSTILE)
    page.get_by_text("The data as a table").first.click()
    _only_text(visit, *HOSTILE[:6])
    visit.go("/analyst/history")
    _only_text(visit, HOSTILE[0], HOSTILE[2], HOSTILE[5])


def test_texts_of_others_are_text_to_an_individual_and_an_auditor(checked: Visit) -> None:
    """The individual's own key, the organisation and purpose of those who ask, the record; the ledger in words."""
    visit = checked
    visit.enter("individual", key="hostile individual")
    _only_text(visit, HOSTILE[0])
    visit.context.clear_cookies()
    visit.enter("auditor", key="hostile auditor")
    visit.page.get_by_role("button", name="Check the chain").click()
    expect(visit.page.get_by_text("The chain holds.")).to_be_visible()
    _only_text(visit)
