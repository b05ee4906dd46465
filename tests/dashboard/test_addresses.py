"""A page looks up what an address or the data names in maps: a member that every object has is no name there."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser import Site, Visit, people_with

pytestmark = pytest.mark.browser
MEMBERS = ("constructor", "__proto__", "%zz")
"""Two that a map of any kind has, and no escaped text."""


def test_an_analysts_address_that_names_nothing_leads_to_the_first_section(visit: Visit) -> None:
    """Names of members of objects, and what is no escaped text."""
    visit.enter("analyst")
    first = visit.page.title()
    for name in MEMBERS:
        visit.go(f"/analyst/{name}")
        assert visit.page.title() == first


def test_a_curators_address_that_names_nothing_is_told_in_words(visit: Visit) -> None:
    """A section leads to the overview, and a dataset is not found."""
    visit.expected.append(r"status of 404")
    visit.enter("curator")
    for name in MEMBERS:
        visit.go(f"/curator/town/{name}")
        visit.page.get_by_role("link", name="Overview").wait_for()
        visit.page.goto(f"{visit.site.url}/curator/_{name}")
        visit.page.locator("main > *").first.wait_for()
    visit.page.goto(f"{visit.site.url}/curator/constructor")
    visit.page.get_by_text("There is no dataset 'constructor'").first.wait_for()


def test_an_auditors_address_that_names_nothing_is_told_in_words(visit: Visit) -> None:
    """Each is a dataset of another, or none."""
    visit.expected.append(r"status of 40[04]")
    visit.enter("auditor")
    for name in MEMBERS:
        visit.page.goto(f"{visit.site.url}/auditor/{name}")
        visit.page.get_by_text("There is no").first.wait_for()


def test_the_reason_of_a_sign_in_is_one_that_the_page_knows(visit: Visit) -> None:
    """Nothing that an address brings is shown as a reason."""
    for name in MEMBERS:
        visit.page.goto(f"{visit.site.url}/sign-in?refused={name}")
        visit.page.get_by_label("API key").wait_for()
        expect(visit.page.get_by_text("native code")).to_have_count(0)


def test_a_column_called_constructor_is_corrected_as_any_other(visit: Visit, site: Site) -> None:
    """It was not moved to a bound."""
    number = {"type": "integer", "lower": 0, "upper": 9}
    tables = {"people": people_with(constructor=number)}
    site.add(
        {"name": "odd", "guarantee": {"rho": "1"}, "capacity": 10, "tables": tables}, "person_id,constructor\nann,3\n"
    )
    visit.enter("curator", "/curator/odd/people")
    visit.page.get_by_label("Key of the individual").fill("ann")
    visit.page.get_by_role("button", name="Show the account").click()
    visit.page.get_by_text("Correct the record").click()
    visit.page.get_by_label("constructor").fill("4")
    visit.page.get_by_role("button", name="Correct …").click()
    visit.page.get_by_role("button", name="Correct it").click()
    expect(visit.page.get_by_text("constructor: 3 became 4", exact=True)).to_be_visible()
