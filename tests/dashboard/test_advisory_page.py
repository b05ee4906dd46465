"""An advisory epsilon on the pages of an individual and a curator, and a record's divergence behind its warning."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser import AGE, Site, people_with
from tests.dashboard.conftest import Opening

pytestmark = pytest.mark.browser

CHOIR = {
    "name": "choir",
    "guarantee": {"epsilon": "1", "delta": "1e-5"},
    "accounting": {"kind": "zcdp"},
    "capacity": 100,
    "tables": {"people": people_with(age=AGE)},
}


def choir(site: Site) -> None:
    """Ten people under zCDP, keys of an analyst and of one of them, and one answer with Gaussian noise."""
    site.add(CHOIR, "person_id,age\n" + "".join(f"s{n},{n}\n" for n in range(10)))
    site.add_key("choir", "analyst", dataset="choir")
    site.add_key("s1", "individual", dataset="choir", individual="s1")
    site.ask(dataset="choir", by="choir", sigma=30)


def test_a_limit_is_worth_more_until_an_answer_has_laplace_noise(open_visit: Opening, site: Site) -> None:
    """The individual and the curator are told; the divergence of a record is fetched once its warning is open."""
    choir(site)
    visit, curator = open_visit(), open_visit("dark")
    visit.enter("individual", key="s1")
    sentence = visit.page.get_by_text("As long as all noise is Gaussian it is ε = 0.915.")
    expect(sentence).to_be_visible()
    page = curator.enter("curator", "/curator/choir")
    expect(page.get_by_text("advisory: what that is worth while all noise is Gaussian")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    curator.go("/curator/choir/people")
    page.get_by_label("Key of the individual").fill("s1")
    page.keyboard.press("Enter")
    summary = page.get_by_text("How far the answers depend on this record")
    expect(summary).to_be_visible()
    assert not [each for each in asked if "divergence" in each]
    summary.click()
    expect(page.get_by_text("It is not a guarantee, and must not leave the curator")).to_be_visible()
    expect(page.get_by_text("ε = 0.1027, δ = 1e-5")).to_be_visible()

    site.ask(dataset="choir", by="choir", mechanism="laplace", noise={"scale": 100})
    visit.go("/individual")
    expect(visit.page.get_by_text("You were promised ε = 1")).to_be_visible()
    expect(sentence).to_have_count(0)
