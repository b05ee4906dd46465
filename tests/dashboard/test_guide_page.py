"""The guide in a browser: under its policy, with search and both colour schemes, on a phone too."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, expect

from service.api.routes import guide
from tests.api.world import build_world
from tests.dashboard.browser import Scheme, Site, Visit, visiting
from tests.dashboard.looks import check_accessible, check_fits
from tests.rotation import one_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def guided(guide_site: Path) -> Iterator[Site]:
    """A service in memory with the built guide."""
    world = build_world()
    server = uvicorn.Server(uvicorn.Config(world.app, log_level="warning"))
    with pytest.MonkeyPatch.context() as monkeypatch, socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(guide, "folder_of", lambda name, in_clone: guide_site)
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        yield Site(f"http://127.0.0.1:{listening.getsockname()[1]}", Path(), {})
        server.should_exit = True
        serving.join()
    world.replica.close()


@pytest.fixture
def reader(browser: Browser, guided: Site) -> Iterator[Visit]:
    """A reader at the beginning of the guide."""
    with visiting(browser, guided) as visit:
        visit.go("/guide")
        yield visit


def test_a_word_is_found_without_any_other_server(reader: Visit) -> None:
    """The search runs in a worker of the page; its results lead to the section."""
    search = reader.page.get_by_role("textbox", name="Search")
    search.click()
    search.press_sequentially("half width")
    reader.page.locator(".md-search-result__link", has_text="What a half width covers").first.click()
    expect(reader.page.get_by_role("heading", name="What a half width covers")).to_be_in_viewport()


def test_the_sign_in_leads_to_the_guide(reader: Visit) -> None:
    """A newcomer has no key yet."""
    reader.go("/sign-in")
    reader.page.get_by_role("link", name="The guide").click()
    expect(reader.page.get_by_role("heading", name="Where to begin")).to_be_visible()


def test_the_reader_chooses_the_colours(reader: Visit) -> None:
    """The system's at first; the choice stays on the next page."""
    expect(reader.page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
    reader.page.get_by_title("To the dark colours").click()
    expect(reader.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    reader.page.get_by_role("link", name="Your data").first.click()
    expect(reader.page.locator("h1")).to_contain_text("Your data")
    expect(reader.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")


@pytest.mark.parametrize(
    ("place", "scheme", "width"),
    [
        (place, *shown)
        for n, place in enumerate(["", "reference/query-language/", "notebooks/health-insurance/"])
        for shown in one_of([("light", 1280), ("dark", 1280), ("light", 360)], n)
    ],
)
def test_a_page_fits_and_shows_its_pictures(
    browser: Browser, guided: Site, scheme: Scheme, width: int, place: str
) -> None:
    """In both schemes and on a phone: nothing to scroll sideways, each picture there."""
    with visiting(browser, guided, scheme=scheme, width=width) as visit:
        visit.go(f"/guide/{place}")
        check_fits(visit.page)
        assert visit.page.evaluate("[...document.images].every(each => each.naturalWidth > 0)")
        visit.picture(f"guide-{place.strip('/').replace('/', '-') or 'start'}-{scheme}-{width}", is_whole=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_start_can_be_read_by_everyone(browser: Browser, guided: Site, scheme: Scheme) -> None:
    """No violation that axe knows in the text: contrast, names of links and pictures, order of headings."""
    with visiting(browser, guided, scheme=scheme) as visit:
        visit.go("/guide/")
        check_accessible(visit.page, {"include": [["article"]]})
