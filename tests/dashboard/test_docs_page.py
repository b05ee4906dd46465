"""The reference at /docs: everything in the document is on the page, for everyone, and can be used."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.browser import Scheme, Site, Visit, visiting
from tests.dashboard.loading import loaded_by, sizes_of
from tests.dashboard.looks import check_accessible, check_fits, check_keyboard

pytestmark = pytest.mark.browser
BYTES_MAX = 80 * 1024
REST_TAKEN_AWAY = """document.querySelectorAll("article:not(#role-analyst article, #type-Query)")
  .forEach(each => each.remove())"""
"""Axe takes its time for each element of a page, also for those that it is not to look at."""


@pytest.fixture(scope="module")
def document(site: Site) -> dict[str, Any]:
    """The document of the running service."""
    found: dict[str, Any] = httpx.get(f"{site.url}/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def docs(browser: Browser, site: Site) -> Iterator[Visit]:
    """The page, drawn, without a sign-in: loaded once for all tests that look at it."""
    with visiting(browser, site) as visit:
        visit.go("/docs")
        expect(visit.page.get_by_role("heading", name="Types")).to_be_visible()
        yield visit


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_everything_is_on_the_page_for_everyone(docs: Visit, document: dict[str, Any]) -> None:
    """Each operation with its method, path, words, parameters, body and refusals, and each type with its members."""
    assert docs.context.cookies() == []
    shown = docs.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('article')].map(each => [each.id, each.textContent]))"
    )
    for method, path, operation in _operations(document):
        text = shown[operation["operationId"]]
        assert f"{method} {path}" in text
        assert operation["summary"] in text
        assert operation["description"].replace("`", "").split("\n\n")[0] in text
        for parameter in operation.get("parameters", ()):
            assert parameter["description"].replace("`", "") in text, parameter
        for status in operation["responses"]:
            assert status in text or status == "default"
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"].replace("`", "").split("\n\n")[0] in shown[f"type-{name}"]
        for member, described in schema.get("properties", {}).items():
            assert member in shown[f"type-{name}"]
            assert described["description"].replace("`", "") in shown[f"type-{name}"], (name, member)


def test_operations_stand_with_their_roles(docs: Visit, document: dict[str, Any]) -> None:
    """In the section of the last of them, and as a link in those of the others; sessions are everyone's."""
    for tag in document["tags"]:
        section = docs.page.locator(f"#role-{tag['name']}")
        expect(section).to_contain_text(tag["description"])
        links = section.locator("article h3 a, p a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
        own = {f"#{each['operationId']}" for *_, each in _operations(document) if tag["name"] in each["tags"]}
        everyone = {"#sign_in", "#sign_out", "#read_session"}
        assert set(links) - {"#type-Problem"} >= own - everyone
        assert not everyone & set(links)
    expect(docs.page.locator("#role-everyone article")).to_have_count(3)


def test_every_link_leads_somewhere(docs: Visit) -> None:
    """Within the page to an element, and to two addresses of the service."""
    lost = docs.page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(each => each.getAttribute('href').slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert lost == []
    others = docs.page.locator("a:not([href^='#'])").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    assert set(others) == {"/", "/openapi.json", "/sign-in"}


def test_an_address_leads_to_an_operation(visit: Visit) -> None:
    """An entry in the contents does too, and is marked while the operation is on the screen."""
    visit.go("/docs#ask")
    expect(visit.page.locator("#ask h3")).to_be_in_viewport()
    current = visit.page.locator("#contents a[aria-current]")
    expect(current).to_have_text("Ask a query")
    expect(current).to_be_in_viewport()
    visit.page.locator("#contents").get_by_role("link", name="Sign out").click()
    expect(visit.page.locator("#sign_out h3")).to_be_in_viewport()
    assert visit.page.evaluate("location.hash") == "#sign_out"
    expect(current).to_have_text("Sign out")


def test_an_example_is_copied(docs: Visit, document: dict[str, Any]) -> None:
    """The chosen one, as JSON that is the document's."""
    docs.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask = docs.page.locator("#ask")
    content = document["paths"]["/v1/datasets/{dataset}/queries"]["post"]["requestBody"]["content"]
    for title, example in content["application/json"]["examples"].items():
        ask.get_by_label("Example of ask").select_option(label=title)
        ask.get_by_role("button", name="Copy: Request body, ask").click()
        expect(ask.get_by_text("Copied")).to_be_visible()
        assert json.loads(docs.page.evaluate("navigator.clipboard.readText()")) == example["value"]
    expect(ask.locator("pre.request")).to_contain_text("POST /v1/datasets/care/queries")
    expect(ask.locator("pre.request")).to_contain_text("Idempotency-Key: ")


def test_the_page_works_by_keyboard(visit: Visit) -> None:
    """Every control and every example that scrolls can be reached, and refusals unfold."""
    visit.go("/docs")
    expect(visit.page.get_by_role("heading", name="Types")).to_be_visible()
    check_keyboard(visit.page, "a[href], button, select, summary, .example pre")
    visit.page.locator("#ask summary").last.focus()
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("#ask").get_by_text("allowance-exceeded")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1440), ("light", 320)])
def test_the_page_is_accessible_and_fits(open_visit: Callable[..., Visit], scheme: Scheme, width: int) -> None:
    """No violation that axe knows, nothing to scroll sideways; a picture of what the window shows of an operation.

    Axe looks at one role and one type, which have every kind of part; `test_access.py` has it look at the whole page.
    """
    visit = open_visit(scheme, width)
    visit.go("/docs#ask")
    visit.page.locator("#ask").wait_for()
    check_fits(visit.page)
    visit.picture(f"docs-ask-{scheme}-{width}", is_whole=False)
    visit.page.evaluate(REST_TAKEN_AWAY)
    check_accessible(visit.page)


def test_the_contents_fold_on_a_phone(open_visit: Callable[..., Visit]) -> None:
    """They open at a touch, and close when an operation was chosen."""
    visit = open_visit("light", 360)
    visit.go("/docs")
    link = visit.page.locator("#contents").get_by_role("link", name="Preview a query")
    expect(link).to_be_hidden()
    visit.page.get_by_text("Contents", exact=True).click()
    link.click()
    expect(link).to_be_hidden()
    expect(visit.page.locator("#preview h3")).to_be_in_viewport()


def test_the_page_is_small_and_is_sent_once(docs: Visit) -> None:
    """With the document that it is drawn from; the second time nothing is sent again, and nothing was asked of /v1."""
    names = loaded_by(docs.page)
    assert [name for name in names if "/v1" in name] == []
    sizes = sizes_of([docs.page.url, *names])
    assert any(name.endswith("/assets/openapi.json") for name in sizes)
    assert sum(sizes.values()) <= BYTES_MAX, sizes


def test_a_document_that_does_not_come_is_said(visit: Visit) -> None:
    """In words, and not as an empty page."""
    visit.expected.append("503")
    visit.page.route("**/assets/openapi.json", lambda route: route.fulfill(status=503, body=""))
    visit.page.goto(f"{visit.site.url}/docs")
    expect(visit.page.get_by_role("alert")).to_contain_text("did not come")
