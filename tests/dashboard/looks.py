"""Checks of each page that is drawn: axe finds nothing in it, it fits, and a keyboard reaches all of it."""

from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

HIDDEN: Final = """[
  ...[...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth),
  ...[...document.querySelectorAll("#tabs a")].filter(each => each.getBoundingClientRect().right > innerWidth),
].map(each => each.textContent)"""
CONTROLS: Final = "a[href], button:not([disabled]), input, select, textarea, summary"


def check_accessible(page: Page, context: dict[str, Any] | None = None) -> None:
    """No violation that axe knows, in the page or in the parts that the context includes."""
    found = Axe().run(page, context=context)
    violations = found.response["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in violations] == [], page.url


def check_fits(page: Page) -> None:
    """Nothing is wider than the window."""
    shown, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert shown <= window, page.url


def check_hides_nothing(page: Page) -> None:
    """No table and no tab shows only when it is scrolled sideways."""
    assert page.evaluate(HIDDEN) == [], page.url


def check_keyboard(page: Page, controls: str = CONTROLS) -> None:
    """The first stop skips to the content, and every control can be reached; the page was not touched before."""
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    stops = page.locator(controls)
    assert page.evaluate("nodes => nodes.every(node => node.tabIndex >= 0)", stops.element_handles())
