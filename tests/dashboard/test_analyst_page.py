"""The analyst's form and its answers: what is said before a query is asked, and beside its numbers."""

import json
import re

import pytest
from playwright.sync_api import Route, expect

from tests.dashboard.browser import AGE, COUNTRIES, COUNTRY, VISITS, Site, Visit, people_with
from tests.dashboard.conftest import Opening

pytestmark = pytest.mark.browser
REFUSED = r"status of 4\d\d"


@pytest.fixture
def clinic(visit: Visit) -> Visit:
    """The form of an analyst of the clinic, with the preview of its first query."""
    visit.enter("analyst", key="clinic")
    visit.page.get_by_label("Noise as").select_option("sigma")
    expect(visit.page.get_by_text("± 39 with 95 % confidence")).to_be_visible()
    return visit


def test_a_query_that_nobody_can_pay_says_so_before_ask_and_beside_the_number(clinic: Visit) -> None:
    """In words, with the cost as a multiple of the budget; the answer's own address warns too."""
    page = clinic.page
    page.get_by_label("Amount").fill("0.5")
    expect(page.get_by_text("Nobody can pay for this query.")).to_have_count(1)
    expect(page.get_by_text("more than the whole budget of each person: 71 times")).to_be_visible()
    expect(page.get_by_text("A vector longer than")).to_have_count(1)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".result")).to_be_visible()
    expect(page.get_by_text("Nobody can pay for this query.")).to_have_count(2)
    page.get_by_role("link", name="Its own address").click()
    expect(page.get_by_text("Individuals may be left out of this query.")).to_be_visible()
    expect(page.get_by_text("more than the whole budget of each person: 71 times")).to_be_visible()


def test_who_can_pay_is_told_from_public_numbers(clinic: Visit) -> None:
    """A small bill can be paid for and half a metre of height cannot; a usual count warns of nothing."""
    page = clinic.page
    expect(page.locator(".note.problem")).to_have_count(0)
    page.get_by_label("Amount").fill("2")
    expect(page.get_by_text("Nobody can pay for this query.")).to_be_visible()
    for column, sigma, words in (
        ("bill", "20", "Individuals may be left out of this query."),
        ("height", "2", "Nobody can pay for this query."),
        ("height", "4", "Individuals may be left out of this query."),
    ):
        page.get_by_label("What").select_option(f"sum {column}")
        page.get_by_label("Amount").fill(sigma)
        expect(page.get_by_text(f"sum of {column} in patients, σ {sigma};")).to_be_visible()
        expect(page.get_by_text(words)).to_be_visible()
        expect(page.locator(".note.problem")).to_have_count(1)


def test_another_dataset_brings_its_schema_into_the_form(visit: Visit, site: Site) -> None:
    """An analyst of all datasets begins with the one that the address names; the list has no schema of either."""
    site.add_key("everything", "analyst")
    page = visit.enter("analyst", "/analyst?dataset=town", key="everything")
    chooser = page.get_by_label("Dataset", exact=True)
    expect(chooser).to_have_value("town")
    page.get_by_label("Noise as").select_option("sigma")
    expect(page.get_by_text("with 95 % confidence")).to_be_visible()
    chooser.select_option("clinic")
    expect(page.get_by_label("What").locator("option", has_text="bill").first).to_be_attached()
    expect(page.get_by_text("count of patients, σ 20")).to_be_visible()
    expect(page.get_by_text("with 95 % confidence")).to_be_visible()


def test_a_preview_that_comes_after_another_dataset_was_chosen_is_not_shown(visit: Visit, site: Site) -> None:
    """It would be read by the schema of the dataset that was chosen meanwhile."""
    site.add_key("everything", "analyst")
    page = visit.enter("analyst", "/analyst?dataset=town", key="everything")
    page.get_by_label("Noise as").select_option("sigma")
    expect(page.get_by_text("count of people, σ 20")).to_be_visible()
    held: list[Route] = []
    page.route("**/datasets/town/queries/preview", lambda route: held.append(route))  # noqa: PLW0108 - it has a name
    with page.expect_request("**/datasets/town/queries/preview"):
        page.get_by_label("Amount").fill("21")
    page.get_by_label("Dataset", exact=True).select_option("clinic")
    expect(page.get_by_text("count of patients, σ 21")).to_be_visible()
    for route in held:
        with page.expect_response("**/v1/allowances"):
            route.continue_()
    expect(page.get_by_text("count of patients, σ 21")).to_be_visible()
    expect(page.get_by_text("count of people, σ 21")).to_have_count(0)


def test_numbers_have_no_more_digits_than_their_error_bars_make_sensible(clinic: Visit) -> None:
    """Two figures of the error bar, and the number to the same place; the file has all digits."""
    page = clinic.page
    query = {"version": 1, "select": [{"sum": {"column": "bill"}}], "group_by": ["ward"], "noise": {"sigma": 5000}}
    page.get_by_label("The query as JSON").fill(json.dumps(query))
    expect(page.get_by_text("± 9,800 with 95 % confidence, on each of 3 numbers")).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("figcaption")).to_contain_text(re.compile(r"[^0-9-](-?[0-9,]*00|0) ± 9,800"))
    page.get_by_text("The data as a table").click()
    for row in page.get_by_role("region", name="is largest with").get_by_role("row").all()[1:]:
        shown = row.get_by_role("cell").nth(1).text_content() or ""
        assert int(shown.replace(",", "")) % 100 == 0


def test_the_page_of_an_answer_says_what_was_asked(clinic: Visit) -> None:
    """It names the dataset and the query, in words and in the form that can be asked again."""
    clinic.site.ask(dataset="clinic", by="clinic", sigma=33, where={"eq": [{"col": "ward"}, "Heart, lungs"]})
    listed = clinic.site.read("queries", by="clinic")["items"][0]
    clinic.go("/analyst/history")
    page = clinic.page
    page.get_by_role("link", name=listed["words"]).first.click()
    expect(page.get_by_role("heading", name=listed["words"])).to_be_visible()
    expect(page.get_by_text("Asked of clinic")).to_be_visible()
    page.get_by_text("The query as JSON").click()
    assert json.loads(page.locator("details pre").inner_text()) == listed["query"]


def test_numbers_dates_and_categories_with_commas_make_a_query(clinic: Visit) -> None:
    """Bins of a real column, years of a date, and categories that are ticked, never split at their commas."""
    page = clinic.page
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column").select_option("ward")
    page.get_by_label("Comparison").select_option("in")
    page.get_by_role("checkbox", name="Heart, lungs").check()
    page.get_by_role("checkbox", name="Eyes").check()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column").last.select_option("height")
    page.get_by_label("Comparison").last.select_option("ge")
    page.get_by_role("spinbutton", name="Value").fill("1.5")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column").last.select_option("bill")
    page.get_by_label("Comparison").last.select_option("in")
    page.get_by_label("Values, one a line").fill("120\n4000")
    expect(page.get_by_label("Width of height")).to_be_hidden()
    page.get_by_role("checkbox", name="height").check()
    page.get_by_label("Width of height").fill("0.5")
    page.get_by_role("checkbox", name="born").check()
    page.get_by_label("Part of born").select_option("quarter")
    expect(page.get_by_text("with 95 % confidence, on each of 2,032 numbers")).to_be_visible()
    query = json.loads(page.get_by_label("The query as JSON").input_value())
    assert query["where"]["and"] == [
        {"in": [{"col": "ward"}, ["Heart, lungs", "Eyes"]]},
        {"ge": [{"col": "height"}, 1.5]},
        {"in": [{"col": "bill"}, [120, 4000]]},
    ]
    assert query["group_by"] == [
        {"bin": {"column": "height", "width": 0.5}},
        {"bucket": {"column": "born", "by": "quarter"}},
    ]
    python = page.locator("pre").text_content() or ""
    assert 'group_by=[col("height").bins(width=0.5), col("born").by("quarter")]' in python


def test_each_of_several_numbers_has_a_precision_of_its_own(clinic: Visit) -> None:
    """Each has its own field, its own error bar in the preview, and its own chart and digits in the answer."""
    page = clinic.page
    page.get_by_role("button", name="Add another number").click()
    page.get_by_label("What").last.select_option("sum bill")
    expect(page.get_by_label("Amount")).to_have_count(0)
    expect(page.get_by_label("Its σ").last).to_have_value("400000")  # at the cost of the count
    page.get_by_label("Its σ").first.fill("5")
    page.get_by_label("Its σ").last.fill("250000")
    page.get_by_role("checkbox", name="ward").check()
    expect(page.get_by_text("count ± 9.8, sum(bill) ± 490,000 with 95 % confidence, on each of 6")).to_be_visible()
    query = json.loads(page.get_by_label("The query as JSON").input_value())
    assert query["select"] == [{"count": {}}, {"sum": {"column": "bill"}}]
    assert query["noise"] == {"sigma": [5, 250000]}
    assert 'select=[count(), sum_("bill")]' in (page.locator("pre").text_content() or "")
    page.get_by_role("button", name="Ask", exact=True).click()
    captions = page.locator("figcaption")
    expect(captions.nth(0)).to_have_text(re.compile(r"^count: .* is largest with -?[0-9.]{1,4} ± 9.8$"))
    expect(captions.nth(1)).to_have_text(re.compile(r"^sum\(bill\): .* is largest with (0|-?[0-9,]*0,000) ± 490,000$"))


def test_the_cost_of_several_numbers_is_divided_by_weights(clinic: Visit) -> None:
    """A share of the budget is one amount; parts that differ are weights, and equal ones are left out."""
    page, document = clinic.page, clinic.page.get_by_label("The query as JSON")
    page.get_by_role("button", name="Add another number").click()
    page.get_by_label("Noise as").select_option("share")
    expect(page.get_by_label("Amount")).to_have_value("0.01")
    assert json.loads(document.input_value())["noise"] == {"share": 0.01}
    page.get_by_label("Its part of the cost").first.fill("3")
    assert json.loads(document.input_value())["noise"] == {"share": 0.01, "weights": [3, 1]}
    page.get_by_role("button", name="Remove").last.click()
    assert json.loads(document.input_value())["noise"] == {"share": 0.01}


def test_the_form_asks_by_share_and_says_what_is_left(visit: Visit, site: Site) -> None:
    """One per cent to begin with, with the error bar that it buys beside it, and the rest of the certified budget."""
    tables = {"people": people_with(age=AGE)}
    site.add({"name": "unasked", "guarantee": {"rho": "1"}, "tables": tables}, "person_id,age\n1,2\n")
    site.add_key("unasked", "analyst", name="analyst of what nobody has asked", dataset="unasked")
    page = visit.enter("analyst", key="unasked")
    expect(page.get_by_label("Noise as")).to_have_value("share")
    expect(page.get_by_label("Amount")).to_have_value("0.01")
    expect(page.get_by_text("± 14 with 95 % confidence")).to_be_visible()
    expect(page.get_by_text("After it, 99 % of the budget is left for certified answers to all")).to_be_visible()
    page.get_by_label("Amount").fill("0.2")
    expect(page.get_by_text("After it, 80 % of the budget is left")).to_be_visible()
    page.get_by_label("Amount").fill("1")
    expect(page.get_by_text("After it, no further answer is certified.")).to_be_visible()


def test_what_is_worked_out_has_an_interval_on_the_page(clinic: Visit) -> None:
    """Offered as the service lists it, with its own inputs; the answer has estimates and no linear items."""
    page, document = clinic.page, clinic.page.get_by_label("The query as JSON")
    page.get_by_label("What").select_option("mean bill")
    expect(page.get_by_label("Noise as")).to_have_value("share")
    assert page.get_by_label("Noise as").locator("option").count() == 2
    expect(page.get_by_text("The error bars follow from the counts, and the answer has them")).to_be_visible()
    page.get_by_role("button", name="Add another number").click()
    page.get_by_label("What").last.select_option("quantile bill")
    page.get_by_label("Share of rows below it").fill("0.9")
    page.get_by_label("Amount").fill("0.5")
    page.get_by_role("checkbox", name="ward").check()
    query = json.loads(document.input_value())
    assert query["select"] == [{"mean": {"column": "bill"}}, {"quantile": {"column": "bill", "probability": 0.9}}]
    assert query["noise"] == {"share": 0.5}
    python = page.locator("pre").text_content() or ""
    assert 'select=[mean("bill"), quantile("bill", probability=0.9)]' in python
    assert "print(answer.averages)" in python
    page.get_by_role("button", name="Ask", exact=True).click()
    captions = page.locator("figcaption")
    expect(captions).to_have_count(2)
    expect(captions.nth(0)).to_have_text(re.compile(r"^mean\(bill\): .* is largest with -?[0-9,.]+ \(.* to .*\)$"))
    expect(captions.nth(1)).to_have_text(re.compile(r"^quantile\(bill, 0.9\): .* is largest with "))
    page.get_by_role("link", name="Its own address").click()
    expect(page.get_by_role("heading", name="mean of bill and 0.9 quantile of bill in patients")).to_be_visible()
    expect(page.locator("figcaption")).to_have_count(2)


def test_the_active_are_asked_for_alone_and_anew(clinic: Visit) -> None:
    """With the share beside them, without a second number and without an earlier answer; the JSON leaves reuse out."""
    page, document = clinic.page, clinic.page.get_by_label("The query as JSON")
    page.get_by_label("What").select_option("active")
    page.get_by_label("At least this share").fill("0.25")
    expect(page.get_by_text("people with at least 25 % of the budget left, who all can pay")).to_be_visible()
    expect(page.get_by_role("button", name="Add another number")).to_be_disabled()
    expect(page.get_by_text("An earlier answer will do")).to_have_count(0)
    query = json.loads(document.input_value())
    assert query == {"version": 1, "from": "patients", "select": [{"active": {"share": 0.25}}], "noise": {"sigma": 20}}
    python = page.locator("pre").text_content() or ""
    assert "from sparing import Client, active" in python
    assert "select=active(share=0.25)" in python
    assert "reuse" not in python
    clinic.expected.append(REFUSED)
    page.get_by_label("At least this share").fill("0.01")
    expect(page.get_by_text("each counted individual pays for this query: at least 0.0447")).to_be_visible()
    page.get_by_label("What").select_option("count")
    expect(page.get_by_label("At least this share")).to_have_count(0)
    expect(page.get_by_text("An earlier answer will do")).to_be_visible()
    page.get_by_role("button", name="Add another number").click()
    assert page.get_by_label("What").first.locator("option[value=active]").count() == 0


def test_own_answers_about_the_active_make_a_curve(visit: Visit) -> None:
    """One for each question that was asked twice, whatever its noise, with a band around it and the data as a table."""
    active = [{"active": {"share": 0.3}}]
    for sigma, groups in ((20, []), (30, []), (20, ["ward"]), (25, []), (20, ["ward"])):
        visit.site.ask(dataset="clinic", by="clinic", sigma=sigma, select=active, group_by=groups)
    page = visit.enter("analyst", "/analyst/history", key="clinic")
    expect(page.get_by_role("heading", name="Who is still active")).to_be_visible()
    captions = page.locator("figcaption")
    expect(captions).to_have_count(4)
    of = "Count of patients with at least 30 % of the budget left"
    numbers = r"-?[0-9]+ ± {} at first, -?[0-9]+ ± {} now"
    for place, ward in enumerate(("Heart, lungs", "Eyes", "Skin")):
        expect(captions.nth(place)).to_have_text(re.compile(f"^{of}, by ward: {ward}: {numbers.format(39, 39)}$"))
    expect(captions.nth(3)).to_have_text(re.compile(f"^{of}: {numbers.format(39, 49)}$"))
    expect(page.locator(".band")).to_have_count(4)
    page.get_by_text("The data as a table").last.click()
    expect(page.get_by_role("region", name="left: ").last.get_by_role("row")).to_have_count(4)

    page.get_by_role("link", name="by ward").first.click()
    expect(page.locator(".band")).to_have_count(3)
    expect(page.get_by_text("Counted and charged: people with at least 30 %")).to_be_visible()


def test_one_answer_about_the_active_makes_no_curve(clinic: Visit) -> None:
    """Its own page has the number alone."""
    page = clinic.page
    page.get_by_label("What").select_option("active")
    page.get_by_label("At least this share").fill("0.75")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".result")).to_be_visible()
    page.get_by_role("link", name="Its own address").click()
    expect(page.locator(".result")).to_be_visible()
    clinic.settle()
    expect(page.locator("figure")).to_have_count(0)


PURE = {
    "name": "ward",
    "guarantee": {"epsilon": "1"},
    "accounting": {"kind": "pure"},
    "capacity": 1000,
    "tables": {"people": people_with(country=COUNTRY, age=AGE), "visits": VISITS},
}
"""A dataset in which only Laplace noise has a price."""


def pure_ward(site: Site) -> None:
    """The dataset with three hundred people, and an analyst of it; once for all tests."""
    if "ward" not in site.keys:
        site.add(PURE, "person_id,country,age\n" + "".join(f"w{n},{COUNTRIES[n % 3]},{n % 90}\n" for n in range(300)))
        site.add_key("ward", "analyst", name="analyst of the ward", dataset="ward", allowance_rho="40")


def test_a_pure_dataset_is_asked_with_laplace_noise(open_visit: Opening, site: Site) -> None:
    """Nothing else is offered: one number of each person, a scale, and charges in epsilon; on a phone in the dark too.

    The half widths are by the law of Laplace noise: 20 ln 20 - 1/2, rounded up.
    """
    pure_ward(site)
    visit = open_visit()
    page = visit.enter("analyst", key="ward")
    expect(page.get_by_text("± 300 with 95 % confidence")).to_be_visible()
    page.get_by_label("Noise as").select_option("scale")
    expect(page.get_by_text("± 60 with 95 % confidence")).to_be_visible()
    expect(page.get_by_text("Worst case 5 % of each person's budget (ε 0.05).")).to_be_visible()
    expect(page.get_by_label("Noise", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Add another number")).to_have_count(0)
    assert page.get_by_label("Noise as").locator("option").all_text_contents() == [
        "worst case, share of the budget",
        "error bar ±, 95 %",
        "standard deviation σ",
        "worst case in ε",
        "scale b of the Laplace noise",
    ]
    assert "active" not in str(page.get_by_label("What").locator("option").all_text_contents())
    query = json.loads(page.get_by_label("The query as JSON").input_value())
    assert (query["mechanism"], query["noise"]) == ("laplace", {"scale": 20})
    assert 'scale=20, mechanism="laplace"' in (page.locator("pre").text_content() or "")
    page.get_by_label("Amount").fill("0.5")
    expect(page.get_by_text("Nobody can pay for this query.")).to_be_visible()
    page.get_by_label("Amount").fill("20")
    page.get_by_role("checkbox", name="country").check()
    expect(page.get_by_text("on each of 3 numbers")).to_be_visible()
    expect(page.locator(".note.problem")).to_have_count(0)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("The noise is Laplace noise with scale 20.")).to_be_visible()
    expect(page.locator("figcaption")).to_contain_text("± 60")
    page.get_by_label("From").select_option("visits")
    expect(page.get_by_text("By, every group of the declared values")).to_have_count(0)
    expect(page.get_by_text("with 95 % confidence")).to_be_visible()
    visit.go("/analyst/history")
    expect(page.get_by_role("cell", name="ε 0.05")).to_be_visible()
    narrow = open_visit("dark", 390)
    narrow.enter("analyst", key="ward")
    narrow.page.get_by_label("Noise as").select_option("scale")
    expect(narrow.page.get_by_text("± 60 with 95 % confidence")).to_be_visible()


def test_the_law_of_the_noise_is_chosen_where_both_have_a_price(clinic: Visit) -> None:
    """For one number of each person; where there are several the choice is gone, and the noise is Gaussian again."""
    page = clinic.page
    law, query = page.get_by_label("Noise", exact=True), page.get_by_label("The query as JSON")
    expect(law).to_have_value("gaussian")
    law.select_option("laplace")
    expect(page.get_by_label("Noise as")).to_have_value("share")
    page.get_by_label("Noise as").select_option("scale")
    expect(page.get_by_text("± 60 with 95 % confidence")).to_be_visible()
    assert json.loads(query.input_value())["mechanism"] == "laplace"
    page.get_by_label("Noise as").select_option("half_width")
    expect(page.get_by_text("± 40 with 95 % confidence", exact=True)).to_be_visible()
    page.get_by_label("Noise as").select_option("scale")
    page.get_by_role("button", name="Add another number").click()
    expect(law).to_have_count(0)
    expect(page.get_by_label("Noise as")).to_have_value("share")
    assert "mechanism" not in json.loads(query.input_value())
    page.get_by_role("button", name="Remove").last.click()
    expect(law).to_have_value("laplace")
    law.select_option("gaussian")
    expect(page.get_by_label("Noise as")).to_have_value("share")
    assert "mechanism" not in json.loads(query.input_value())


def test_other_roles_read_charges_of_a_pure_dataset_in_epsilon(open_visit: Opening, site: Site) -> None:
    """The curator's pages of keys, analysts, queries and people, and the auditor's, which reads no dataset."""
    pure_ward(site)
    site.add_key("auditor of the ward", "auditor", dataset="ward")
    site.ask(dataset="ward", by="ward", mechanism="laplace", noise={"scale": 50})
    visit = open_visit()
    visit.enter("auditor", "/auditor/ward", key="auditor of the ward")
    expect(visit.page.get_by_role("columnheader", name="Worst case, ε")).to_be_visible()
    visit = open_visit()
    visit.enter("curator", "/curator/ward")
    expect(visit.page.get_by_label("Noise b")).to_have_value("50")
    title = visit.page.locator("section", has_text="What the next queries would meet").locator("figcaption")
    expect(title).to_contain_text("All 300 people that it touches can pay for one")
    visit.page.get_by_label("Kind of query").select_option(label="count of all visits, clipped to 1 per person")
    expect(visit.page.get_by_label("Noise b")).to_have_value("20")
    visit.settle()
    expect(visit.page.get_by_role("alert")).to_have_count(0)
    visit.go("/curator/_keys")
    expect(visit.page.get_by_role("row", name="analyst of the ward")).to_contain_text("ε\u00a040")
    visit.go("/curator/ward/analysts")
    expect(visit.page.get_by_text("Shares are of the dataset's budget, ε\u00a01.")).to_be_visible()
    visit.go("/curator/ward/people")
    expect(visit.page.get_by_text("limit, spent and left in ε")).to_be_visible()
