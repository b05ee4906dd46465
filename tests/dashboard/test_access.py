"""Every page for everyone: screen readers, keyboards, phones, both schemes; and with little to load."""

from collections.abc import Callable

import pytest

from tests.dashboard.browser import Scheme, Visit
from tests.dashboard.loading import loaded_by, sizes_of
from tests.dashboard.looks import check_accessible, check_fits, check_hides_nothing, check_keyboard
from tests.rotation import one_of

pytestmark = pytest.mark.browser
SECTIONS = ("", "/queries", "/people", "/analysts", "/data", "/ledger", "/settings")
PAGES = {
    "curator": ["", *(f"/town{section}" for section in SECTIONS), "/_keys", "/_register"],
    "individual": [""],
    "analyst": ["", "/history", "/allowance"],
    "auditor": [""],
}
"""By role; the first is the one that its sign-in leads to."""
SHOWN: list[tuple[Scheme, int]] = [("light", 1280), ("dark", 1280), ("light", 320)]
"""Schemes and widths; the gate shows each role's pages in one of them, a soak in all."""
BYTES_MAX = 60 * 1024


@pytest.mark.parametrize(
    ("role", "scheme", "width"), [(role, *shown) for n, role in enumerate(PAGES) for shown in one_of(SHOWN, n)]
)
def test_the_pages_of_a_role_are_for_everyone(
    open_visit: Callable[..., Visit], role: str, scheme: Scheme, width: int
) -> None:
    """Small to load, in reach of a keyboard, without a violation that axe knows, and fitting; also at twice the size.

    The first page, as it is sent, has at most 60 KB, and the second time nothing is sent again. A picture of each page
    is kept.
    """
    visit = open_visit(scheme, width)
    page = visit.enter(role)
    visit.settle()
    sizes = sizes_of([page.url, *(name for name in loaded_by(page) if "/assets/" in name)])
    assert len(sizes) > 4
    assert sum(sizes.values()) <= BYTES_MAX, sizes
    check_keyboard(page)
    for place in PAGES[role]:
        path = f"/{role}{place}"
        visit.go(path)
        visit.settle()
        check_accessible(page)
        check_fits(page)
        check_hides_nothing(page)
        visit.picture(f"{path.strip('/').replace('/', '-')}-{scheme}-{width}")
        if width == 1280:
            page.set_viewport_size({"width": width // 2, "height": 900})
            check_fits(page)
            page.set_viewport_size({"width": width, "height": 900})


@pytest.mark.parametrize("path", one_of(["/sign-in", "/docs"]))
def test_a_page_without_a_key_is_accessible(visit: Visit, path: str) -> None:
    """The sign-in, and in a soak all of the reference."""
    visit.go(path)
    visit.settle()
    check_accessible(visit.page)
    visit.picture(f"{path.strip('/')}-light-1280")
