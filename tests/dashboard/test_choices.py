"""Each choice of each form makes a request that the service's own document describes."""

from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import expect

from tests.api.described import Document
from tests.dashboard.browser import TABLES, Site, Visit
from tests.dashboard.choices import KEYS, PEOPLE, Choices
from tests.dashboard.conftest import Opening

pytestmark = pytest.mark.browser

WAYS: Final[dict[str, dict[str, Any]]] = {
    "sigma": {"noise": {"sigma": 18}},
    "rho": {"noise": {"rho": 0.001}},
    "share": {"noise": {"share": 0.002}},
    "half_width": {"noise": {"half_width": 40, "confidence": 0.9}},
    "scale": {"noise": {"scale": 25}, "mechanism": "laplace"},
}
"""A query with its noise stated in each way."""
SEVERAL: Final = [{"count": {}}, {"histogram": {"column": "country"}}]
ITEMS: Final = [{"sigma": [21, 30]}, {"half_width": [50, 60], "confidence": 0.9}, {"share": 0.003, "weights": [1, 2]}]
ADDRESSES: Final = [
    ("curator", "/curator/_register"),
    ("curator", "/curator/_keys"),
    *(("curator", f"/curator/choices{place}") for place in ("", "/queries", "/people", "/data", "/settings")),
    ("analyst", "/analyst?dataset=choices"),
    ("individual", "/individual"),
]


@pytest.fixture(scope="module")
def document(site: Site) -> Document:
    """The document of the running service."""
    found: Document = httpx.get(f"{site.url}/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def choosing(site: Site) -> Site:
    """The site with a dataset that was asked in every way to state noise."""
    promise = {"epsilon": "1", "delta": "1e-6"}
    registration = {"name": "choices", "guarantee": promise, "capacity": 1000, "tables": TABLES}
    site.add(registration, "person_id,country,age,member\nann,NO,27,true\nbob,,,\n")
    site.add_key("chooser", "analyst", name="chooser", dataset="choices")
    for asked in WAYS.values():
        site.ask(dataset="choices", by="chooser", **asked)
    for noise in ITEMS:
        site.ask(dataset="choices", by="chooser", select=SEVERAL, noise=noise)
    return site


def _reach(visit: Visit, role: str, address: str) -> None:
    """A page, and of the people the record of one."""
    visit.enter(role, address)
    if address.endswith("/people"):
        visit.page.get_by_label("Key of the individual").fill("ann")
        visit.page.get_by_role("button", name="Show the account").click()
        expect(visit.page.get_by_role("heading", name="Individual ann")).to_be_visible()


@pytest.mark.parametrize(("role", "address"), ADDRESSES)
def test_every_choice_is_one_that_the_service_knows(
    choosing: Site, visit: Visit, document: Document, role: str, address: str
) -> None:
    """Each option of each list, each box ticked and not, and each form as it stands."""
    assert visit.site is choosing
    choices = Choices(visit=visit, document=document, file=KEYS if address.endswith("/_keys") else PEOPLE)
    _reach(visit, role, address)
    made = dict(choices.made())
    assert len(made) > 1
    assert {name: faults for name, faults in made.items() if faults} == {}


def test_a_choice_that_the_service_does_not_know_is_seen(
    choosing: Site, open_visit: Opening, document: Document
) -> None:
    """One word of a script is another."""
    visit = open_visit()
    script = httpx.get(f"{choosing.url}/assets/curator-data.js").text.replace('["drop", "drop', '["lose", "drop')
    changed = {"body": script, "content_type": "text/javascript"}
    visit.page.route("**/assets/curator-data.js", lambda route: route.fulfill(**changed))
    choices = Choices(visit=visit, document=document)
    _reach(visit, "curator", "/curator/choices/data")
    assert [faults for _, faults in choices.made() if faults] == [["append_rows: duplicates is 'lose'"]]


def test_a_forecast_begins_with_the_noise_of_the_query(choosing: Site, visit: Visit, document: Document) -> None:
    """However it was stated: a field with the amount, and no refusal."""
    page = visit.enter("curator", "/curator/choices")
    kind = page.get_by_label("Kind of query")
    amounts = {}
    for option in kind.locator("option").all():
        kind.select_option(option.get_attribute("value"))
        visit.settle()
        title = page.locator("section", has_text="What the next queries would meet").locator("figcaption")
        expect(title).to_contain_text("that it touches can pay for one")
        for field in page.locator(".fields .fields input").all():
            amounts[field.get_attribute("name")] = field.input_value()
    stated = [_schema(document, each)["required"][0] for each in document["components"]["schemas"]["Noise"]["oneOf"]]
    assert amounts.keys() | {"prepaid"} == set(stated)


def _schema(document: Document, reference: Document) -> Document:
    found: Document = document["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    return found
