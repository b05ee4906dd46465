"""One service for all tests of the pages on a worker, and one browser for those that run one after the other.

While Playwright runs it holds an event loop in its thread, in which no asynchronous test can run: it stops when a test
of another folder is next.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import Scheme, Site, Visit, chromium, open_browser, open_site, visiting
from tests.e2e.homes import Homes

Opening = Callable[..., Visit]
OPENED = pytest.StashKey[Browser]()


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Browser:
    """The browser of the folder. Where the machine has none, the test is skipped."""
    path, folder = chromium(), request.node.parent
    if path is None:
        pytest.skip("NO BROWSER: the pages are not tested here; install Debian's package chromium")
    if OPENED not in folder.stash:
        opening = ExitStack()
        folder.stash[OPENED] = opening.enter_context(open_browser(path))
        opening.callback(folder.stash.__delitem__, OPENED)
        folder.addfinalizer(opening.close)
    opened: Browser = folder.stash[OPENED]
    return opened


@pytest.fixture(scope="session")
def site(homes: Homes) -> Iterator[Site]:
    """The service."""
    with open_site(homes.begun()) as opened:
        yield opened


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """A visit in a window of usual size."""
    with visiting(browser, site) as opened:
        yield opened


@pytest.fixture
def open_visit(browser: Browser, site: Site) -> Iterator[Opening]:
    """Opens visits, in a scheme and a width."""
    with ExitStack() as opened:

        def opening(scheme: Scheme = "light", width: int = 1280) -> Visit:
            return opened.enter_context(visiting(browser, site, scheme=scheme, width=width))

        yield opening


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a file with a name and a text."""

    def make(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return make
