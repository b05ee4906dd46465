"""Every page for everyone: screen readers, keyboards, phones, both schemes; and with little to load."""

from collections.abc import Callable

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.dashboard.browser import Scheme, Visit
from tests.rotation import one_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAGES = {
    "curator": [
        *("/curator", "/curator/town", "/curator/town/queries", "/curator/town/people", "/curator/town/analysts"),
        *(
            "/curator/town/data",
            "/curator/town/ledger",
            "/curator/town/settings",
            "/curator/_keys",
            "/curator/_register",
        ),
    ],
    "individual": ["/individual"],
    "analyst": ["/analyst", "/analyst/history", "/analyst/allowance"],
    "auditor": ["/auditor"],
}
SHOWN: list[tuple[Scheme, int]] = [("light", 1280), ("dark", 1280), ("light", 320)]
"""Schemes and widths; a run shows each role's pages in one of them, the next run in the next."""
BYTES_MAX = 60 * 1024
HIDDEN = """[
  ...[...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth),
  ...[...document.querySelectorAll("#tabs a")].filter(each => each.getBoundingClientRect().right > innerWidth),
].map(each => each.textContent)"""


def _settled(visit: Visit, path: str) -> None:
    visit.go(path)
    visit.page.wait_for_load_state("load")
    expect(visit.page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    visit.page.wait_for_timeout(600)


@pytest.mark.parametrize(
    ("role", "scheme", "width"), [(role, *shown) for n, role in enumerate(PAGES) for shown in one_of(SHOWN, n)]
)
def test_pages_are_accessible_and_fit(open_visit: Callable[..., Visit], role: str, scheme: Scheme, width: int) -> None:
    """No violation that axe knows, nothing that only scrolling sideways shows; a picture of each is kept."""
    visit = open_visit(scheme, width)
    visit.sign_in(role)
    for path in PAGES[role]:
        _settled(visit, path)
        found = Axe().run(visit.page)
        told = [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found.response["violations"]]
        assert told == [], path
        widths = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1], path
        hidden = visit.page.evaluate(HIDDEN)
        assert hidden == [], path
        visit.picture(f"{path.strip('/').replace('/', '-')}-{scheme}-{width}")


@pytest.mark.parametrize("path", one_of(["/sign-in", "/docs"]))
def test_a_page_without_a_key_is_accessible(visit: Visit, path: str) -> None:
    """The sign-in and the reference; one of the two in a run."""
    _settled(visit, path)
    assert Axe().run(visit.page).response["violations"] == []
    visit.picture(f"{path.strip('/')}-light-1280")


@pytest.mark.parametrize("role", PAGES)
def test_a_page_works_by_keyboard(visit: Visit, role: str) -> None:
    """The first stop skips to the content; every control can be reached and shows that it is."""
    visit.sign_in(role)
    _settled(visit, PAGES[role][0])
    visit.page.keyboard.press("Tab")
    expect(visit.page.locator(":focus")).to_have_text("Skip to the content")
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("location.hash") == "#main"
    stops = visit.page.locator("a[href], button:not([disabled]), input, select, textarea, summary")
    assert visit.page.evaluate("nodes => nodes.every(node => node.tabIndex >= 0)", stops.element_handles())


@pytest.mark.parametrize("role", PAGES)
def test_a_page_is_small(visit: Visit, role: str) -> None:
    """All of it, as it is sent, is at most 60 KB; the second time nothing is sent again."""
    sizes: dict[str, int] = {}
    visit.sign_in(role)
    visit.go(PAGES[role][0])
    names = visit.page.evaluate(
        "performance.getEntriesByType('resource').map(each => each.name).filter(each => each.includes('/assets/'))"
    )
    with httpx.Client(headers={"Accept-Encoding": "gzip"}) as client:
        for name in [visit.page.url, *names]:
            with client.stream("GET", name) as response:
                sizes[name] = sum(len(chunk) for chunk in response.iter_raw())
                again = client.get(name, headers={"If-None-Match": response.headers["etag"]})
                assert (again.status_code, again.content) == (304, b"")
    assert len(sizes) > 4
    assert sum(sizes.values()) <= BYTES_MAX, sizes


def test_a_chart_has_its_data_behind_it(visit: Visit) -> None:
    """As a table with a caption, for those who do not see the picture."""
    visit.sign_in("curator")
    _settled(visit, "/curator/town")
    figure = visit.page.locator("figure").first
    figure.get_by_text("The data as a table").click()
    expect(figure.get_by_role("columnheader", name="Share left")).to_be_visible()
    expect(figure.get_by_role("row")).to_have_count(51)
    assert visit.page.get_by_role("img", name="Chart: What is left of each limit").count() == 1


def test_pages_fit_at_twice_the_size(open_visit: Callable[..., Visit]) -> None:
    """As zoomed to 200 %: half the width."""
    visit = open_visit("light", 640)
    visit.sign_in("curator")
    _settled(visit, "/curator/town")
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
