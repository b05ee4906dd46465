"""The forms of the curator's page for what only routes did: extensions, corrections, endings, options of an upload."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser import AGE, Visit

pytestmark = pytest.mark.browser
REFUSED = r"status of 4\d\d"
PEOPLE = {
    "kind": "individuals",
    "key": "card",
    "columns": {"town": {"type": "category", "categories": ["Oslo, north", "Bergen"]}, "age": AGE},
}
LOANS = {
    "kind": "events",
    "key": "card",
    "rows_per_individual": 2,
    "columns": {"shelf": {"type": "category", "size": 9}},
}


def _library(visit: Visit, name: str) -> None:
    """A dataset with two readers."""
    tables = {"people": PEOPLE, "loans": LOANS}
    registration = {"name": name, "guarantee": {"epsilon": "1", "delta": "1e-6"}, "capacity": 10, "tables": tables}
    visit.site.add(registration, 'card,town,age\nida,Bergen,40\nola,"Oslo, north",9\n')


def _card(page: Page, title: str) -> Any:
    return page.locator(".card").filter(has=page.get_by_role("heading", name=title, exact=True))


def test_a_dataset_is_extended_by_forms(visit: Visit) -> None:
    """Categories that may hold commas, a column, a table and room, each of which the service then has."""
    _library(visit, "extended")
    page = visit.enter("curator", "/curator/extended/settings")
    categories = _card(page, "Categories")
    categories.get_by_label("Column").select_option("people.town")
    categories.get_by_label("New categories, one a line").fill("Bodø\nTromsø, south")
    categories.get_by_role("button", name="Add categories").click()
    expect(page.get_by_text("Categories: people.town has 2 more.")).to_be_visible()
    column = _card(page, "A column")
    column.get_by_label("Column", exact=True).fill("height")
    column.get_by_label("Type").select_option("real")
    column.get_by_label("Lowest").fill("0.5")
    column.get_by_label("Highest").fill("2.5")
    column.get_by_role("button", name="Add the column").click()
    expect(page.get_by_text("Column height is added to people.")).to_be_visible()
    table = _card(page, "A table of events")
    table.get_by_label("Name").fill("visits")
    table.get_by_label("Rows of unknown individuals").select_option("drop")
    table.get_by_label("Column", exact=True).fill("day")
    table.get_by_label("Categories, one a line").fill("Mon\nTue")
    table.get_by_role("button", name="Add the table").click()
    expect(page.get_by_text("Table visits is added.")).to_be_visible()
    page.get_by_label("Individuals, at most").fill("5000")
    page.get_by_role("button", name="Raise the capacity").click()
    expect(page.get_by_text("The dataset takes up to 5,000 individuals.")).to_be_visible()

    told = visit.site.read("datasets/extended")
    people, visits = told["tables"]["people"]["columns"], told["tables"]["visits"]
    assert (told["capacity"], told["version"]) == (5000, 5)
    assert people["town"]["categories"] == ["Oslo, north", "Bergen", "Bodø", "Tromsø, south"]
    assert people["height"] == {"type": "real", "lower": 0.5, "upper": 2.5}
    assert (visits["unknown_individuals"], visits["columns"]["day"]["categories"]) == ("drop", ["Mon", "Tue"])


def _account(page: Page, individual: str) -> None:
    page.get_by_label("Key of the individual").fill(individual)
    page.get_by_role("button", name="Show the account").click()
    page.get_by_text("Correct the record …").click()


def test_a_record_is_corrected_where_it_stands(visit: Visit) -> None:
    """The fields hold the record; the changes alone are told, and sent once they are confirmed."""
    _library(visit, "corrected")
    page = visit.enter("curator", "/curator/corrected/people")
    _account(page, "ida")
    age, town = page.get_by_label("age"), page.get_by_label("town")
    expect(age).to_have_value("40")
    page.get_by_role("button", name="Correct …").click()
    expect(page.get_by_text("Nothing differs from the record.")).to_be_visible()
    age.fill("")
    town.select_option("Oslo, north")
    page.get_by_role("button", name="Correct …").click()
    expect(page.get_by_text("town: Bergen becomes Oslo, north")).to_be_visible()
    expect(page.get_by_text("age: 40 becomes no value")).to_be_visible()
    assert visit.site.read("datasets/corrected/record", individual="ida")["tables"]["people"]["rows"] == [
        {"town": "Bergen", "age": 40}
    ]
    age.fill("41")
    expect(page.get_by_text("age: 40 becomes")).to_have_count(0)
    page.get_by_role("button", name="Correct …").click()
    page.get_by_role("button", name="Correct it").click()
    expect(page.get_by_text("age: 40 became 41")).to_be_visible()
    expect(age).to_have_value("41")
    assert visit.site.read("datasets/corrected/record", individual="ida")["tables"]["people"]["rows"] == [
        {"town": "Oslo, north", "age": 41}
    ]


def test_a_value_beyond_a_bound_is_not_sent(visit: Visit) -> None:
    """An empty field stays empty: no bound takes its place."""
    _library(visit, "bounded")
    visit.site.upload("bounded/tables/people", "card,town,age\numa,,\n")
    page = visit.enter("curator", "/curator/bounded/people")
    _account(page, "uma")
    expect(page.get_by_label("age")).to_have_value("")
    page.get_by_label("age").fill("121")
    page.get_by_role("button", name="Correct …").click()
    assert page.get_by_label("age").evaluate("field => field.validity.rangeOverflow")
    expect(page.get_by_role("button", name="Correct it")).to_have_count(0)


def test_a_dataset_is_archived_or_deleted_once_its_name_is_typed(visit: Visit) -> None:
    """Another name changes nothing; an archived dataset says so where it took rows; a deleted one is gone."""
    _library(visit, "ended")
    page = visit.enter("curator", "/curator/ended/settings")
    archive = _card(page, "Archive")
    archive.get_by_label("Type ended to confirm").fill("town")
    archive.get_by_role("button", name="Archive").click()
    expect(archive.get_by_role("alert")).to_contain_text("The confirmation must be exactly ended.")
    assert not visit.site.read("datasets/ended")["archived"]
    archive.get_by_label("Type ended to confirm").fill("ended")
    archive.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("ended is archived.")).to_be_visible()
    expect(page.get_by_text("Add to the dataset")).to_have_count(0)
    assert visit.site.read("datasets/ended")["archived"]
    page.get_by_role("link", name="Data", exact=True).click()
    expect(page.get_by_text("This dataset is archived.")).to_be_visible()
    expect(page.get_by_role("button", name="Upload")).to_have_count(0)

    visit.go("/curator/ended/settings")
    delete = _card(page, "Delete")
    delete.get_by_label("Type ended to confirm").fill("ended")
    delete.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    expect(page.get_by_role("cell", name="ended", exact=True)).to_have_count(0)
    visit.go("/curator/town/settings")
    expect(page.get_by_text("It has answered queries, so it cannot be deleted.")).to_be_visible()


def test_an_upload_leaves_out_what_it_is_told_to_and_counts_it(visit: Visit, file: Callable[[str, str], Path]) -> None:
    """Rows of unknown individuals, rows beyond the limit of one, and rows that are there twice."""
    _library(visit, "lent")
    page = visit.enter("curator", "/curator/lent/data")
    expect(page.get_by_label("Rows of unknown individuals")).to_be_hidden()
    page.get_by_label("Table").select_option("loans")
    page.get_by_label("Rows of unknown individuals").select_option("drop")
    page.get_by_label("Rows beyond an individual's limit").select_option("truncate")
    page.get_by_label("Rows that are there already in the file").select_option("drop")
    rows = "card,shelf\nida,1\nida,1\nida,2\nida,3\nola,4\nnobody,5\n"
    page.get_by_label("File", exact=True).set_input_files(file("loans.csv", rows))
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("3 rows are stored, with 0 new people.")).to_be_visible()
    expect(page.get_by_text("1 row of individuals that are not in the dataset: left out")).to_be_visible()
    expect(page.get_by_text("1 row beyond the limit of an individual: left out")).to_be_visible()
    expect(page.get_by_text("1 row with the key and the values of an earlier row")).to_be_visible()
    assert visit.site.read("datasets/lent")["rows"] == {"people": 2, "loans": 3}


def test_one_key_of_many_is_found(visit: Visit) -> None:
    """By a search that the service makes, and page by page."""
    _library(visit, "many")
    readers = [f"reader-{number}" for number in range(120)]
    with visit.site.client("curator") as curator:
        curator.patch("/v1/datasets/many", json={"capacity": 200}).raise_for_status()
        visit.site.upload("many/tables/people", "card,town,age\n" + "".join(f"{each},Bergen,30\n" for each in readers))
        curator.post("/v1/datasets/many/individuals/keys", json=readers).raise_for_status()
    visit.enter("curator", "/curator/_keys")
    page, listed = visit.page, visit.page.get_by_role("region", name="Keys", exact=True).get_by_role("row")
    expect(listed).to_have_count(101)
    page.get_by_role("button", name="More keys").click()
    expect(listed.nth(101)).to_be_visible()
    page.get_by_label("Search").fill("many reader-117")
    expect(listed).to_have_count(2)
    expect(listed.nth(1)).to_contain_text("reader-117")
    page.get_by_label("Search").fill("nothing like it")
    expect(page.get_by_text("No key matches.")).to_be_visible()


def test_the_ledger_tells_whether_a_backup_was_put_back(visit: Visit) -> None:
    """With what it lacks, and what reconciling burns."""
    page = visit.enter("curator", "/curator/town/ledger")
    expect(page.get_by_text("The ledger holds everything that was witnessed.")).to_be_visible()
    told = {
        "state": "ledger-rollback",
        "sequence": 8,
        "witnessed_sequence": 12,
        "shared_sequence": 8,
        "missing_rho": "0.005",
    }
    page.route("**/v1/datasets/town/backup", lambda route: route.fulfill(json=told))
    page.reload()
    expect(page.get_by_text("This dataset takes no query.")).to_be_visible()
    words = "12 entries were witnessed, and the ledger has the entries up to 8 of them."
    expect(page.get_by_text(f"A backup was put back: {words} To reconcile it burns at most ρ 0.005")).to_be_visible()
