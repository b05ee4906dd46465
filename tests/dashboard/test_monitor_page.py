"""The curve of a dataset's monitor: the analyst asks its ticks, and both roles see the running count."""

import re

import pytest
from playwright.sync_api import expect

from sparing import Client
from tests.dashboard.browser import AGE, Site, people_with
from tests.dashboard.conftest import Opening

pytestmark = pytest.mark.browser

CLUB = {
    "name": "club",
    "guarantee": {"rho": "2"},
    "capacity": 1000,
    "monitor": {"rho": "0.01", "ticks": 3, "share": 0.5},
    "tables": {"people": people_with(age=AGE)},
}


def club(site: Site) -> None:
    """The dataset with nine hundred people, and an analyst of it."""
    site.add(CLUB, "person_id,age\n" + "".join(f"c{n},{n % 90}\n" for n in range(900)))
    site.add_key("club", "analyst", dataset="club")


def test_an_analyst_asks_ticks_and_a_curator_sees_the_curve(open_visit: Opening, site: Site) -> None:
    """Both pages show what the client makes of the same ticks; after the last one there is nothing to ask."""
    club(site)
    visit = open_visit()
    page = visit.enter("analyst", "/analyst/history", key="club")
    expect(page.get_by_role("heading", name="How many are exhausted in club")).to_be_visible()
    expect(page.get_by_text("0 of 3 ticks were asked")).to_be_visible()
    page.get_by_role("button", name="Ask for tick 1").click()
    expect(page.get_by_role("button", name="Ask for tick 2")).to_be_visible()
    # It costs each of 450 people more than half of a budget.
    site.ask(dataset="club", by="club", sigma=0.7, where={"ge": [{"col": "age"}, 45]})
    with Client(base_url=site.url, api_key=site.keys["club"]) as client:
        page.get_by_role("button", name="Ask for tick 2").click()
        expect(page.get_by_text("2 of 3 ticks were asked")).to_be_visible()
        *_, last = client.dataset("club").exhausted_curve()
    width = round(1.96 * last.standard_error)
    caption = f"With less than 50 % of the budget left: {last.value:.0f} ± {width} by tick 2"
    expect(page.locator("figcaption").last).to_have_text(caption)
    assert abs(last.value - 450) < 6 * last.standard_error
    page.get_by_role("button", name="Ask for tick 3").click()
    expect(page.get_by_text("3 of 3 ticks were asked")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Ask for tick"))).to_have_count(0)

    curator = open_visit("dark")
    curator.enter("curator", "/curator/club")
    expect(curator.page.locator("figcaption", has_text="by tick 3")).to_be_visible()


def test_a_monitor_is_registered_with_the_dataset(open_visit: Opening, site: Site) -> None:
    """Its terms are in the JSON once it is wanted; under pure differential privacy there is none to want."""
    visit = open_visit()
    visit.enter("curator", "/curator/_register")
    page, json = visit.page, visit.page.get_by_label("The registration as JSON")
    page.get_by_label("Name").first.fill("watched")
    page.get_by_label("Column", exact=True).fill("country")
    page.get_by_label("Categories, one a line").fill("NO\nSE")
    expect(page.get_by_label("Reserve in ρ")).to_be_hidden()
    page.get_by_text("Keep a reserve of each limit").click()
    page.get_by_label("Reserve in ρ").fill("0.002")
    page.get_by_label("Ticks").fill("64")
    expect(json).to_have_value(re.compile('"monitor": {\n    "rho": "0.002",\n    "ticks": 64,\n    "share": 0.1'))
    page.get_by_label("Charges add up by").select_option("pure")
    expect(json).not_to_have_value(re.compile("monitor"))
    page.get_by_label("Charges add up by").select_option("gdp")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="watched has no people yet")).to_be_visible()
    monitor = site.read("datasets/watched")["monitor"]
    assert (monitor["rho"], monitor["ticks"], monitor["share"], monitor["asked"]) == ("0.002", 64, 0.1, 0)
