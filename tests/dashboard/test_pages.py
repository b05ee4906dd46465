"""The pages in a real browser, each as one of its audience uses it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.dashboard.browser import Visit
from tests.rotation import some_of
from tests.waiting import until

pytestmark = pytest.mark.browser
REFUSED = r"status of 4\d\d"
MakeFile = Callable[[str, str], Path]


@pytest.mark.parametrize("role", ["curator", *some_of(["individual", "analyst", "auditor"], 3)])
def test_each_role_signs_in_and_out(visit: Visit, role: str) -> None:
    """The key is kept nowhere; another role's address leads to one's own page; after the sign-out nothing is shown."""
    other = "analyst" if role == "curator" else "curator"
    visit.sign_in(role)
    visit.go(f"/{other}")
    visit.page.wait_for_url(f"**/{role}**")

    (cookie,) = visit.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    stored = visit.page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert visit.site.keys[role] not in stored
    assert cookie["value"] not in stored

    visit.page.get_by_role("button", name="Sign out").click()
    visit.page.wait_for_url("**/sign-in")
    visit.expected.append(r"status of 401")
    visit.page.goto(f"{visit.site.url}/{role}")
    visit.page.wait_for_url("**/sign-in?ended=1")
    expect(visit.page.get_by_text("Your session has ended")).to_be_visible()


def test_a_page_that_the_browser_kept_is_loaded_anew(visit: Visit) -> None:
    """Back after a sign-out shows the sign-in, also where a browser would show the page as it was."""
    visit.enter("individual")
    visit.page.evaluate("window.isKept = true")
    visit.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: false }))")
    assert visit.page.evaluate("window.isKept")
    with visit.page.expect_navigation():
        visit.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert not visit.page.evaluate("window.isKept ?? false")


def test_a_wrong_key_is_refused_in_words(visit: Visit) -> None:
    """The form says so, and a key that is none is not even sent."""
    visit.expected.append(r"status of 401")
    visit.page.goto(f"{visit.site.url}/")
    visit.page.wait_for_url("**/sign-in")
    visit.page.get_by_label("API key").fill("sparing_wrong")
    visit.page.get_by_role("button", name="Sign in").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("This key is not valid.")
    visit.page.get_by_label("API key").fill("sparing wrong…")
    visit.page.get_by_role("button", name="Sign in").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("This is not an API key.")


def test_a_revoked_key_ends_the_session(visit: Visit) -> None:
    """The next request leads to the sign-in."""
    principal = visit.site.add_key("short", "auditor", dataset="town")
    visit.enter("auditor", key="short")
    expect(visit.page.get_by_role("heading", name="The record of town")).to_be_visible()
    with visit.site.client("curator") as curator:
        curator.delete(f"/v1/principals/{principal}").raise_for_status()
    visit.expected.append(r"status of 401")
    visit.page.get_by_role("button", name="Check the chain").click()
    visit.page.wait_for_url("**/sign-in?ended=1")


def test_the_histogram_moves_while_a_client_asks(visit: Visit) -> None:
    """Without loading the page again: the sentence, the bars, the newest query and the sequence."""
    page = visit.enter("curator", "/curator/town")
    expect(page.locator(".live")).to_contain_text("live, sequence")
    before = _counted(visit)
    visit.site.ask(sigma=9.0, where={"eq": [{"col": "country"}, "NO"]})
    newest = page.get_by_role("region", name="Queries, newest first").get_by_role("row").nth(1)
    expect(newest).to_contain_text("count of people where country = “NO”, σ 9")
    until(lambda: _counted(visit) != before)


def _counted(visit: Visit) -> str:
    drawn = "[...document.querySelectorAll('figure')[0].querySelectorAll('.bar')].map(each => each.outerHTML).join()"
    until(lambda: visit.page.evaluate(drawn) != "")
    bars: str = visit.page.evaluate(drawn)
    return bars


LEFT_OUT = re.compile("^(39|40). people of (39|40). would be left out at once")
"""All but a few, who may have no country or have spent their limits on other tests' queries."""


def test_the_forecast_follows_the_form(visit: Visit) -> None:
    """A smaller σ costs more, and fewer such queries remain; items with noise of their own have a field each."""
    several = [{"count": {}}, {"histogram": {"column": "country"}}]
    visit.site.ask(select=several, noise={"sigma": [21, 30]})
    page = visit.enter("curator", "/curator/town")
    title = page.locator("section", has_text="What the next queries would meet").locator("figcaption")
    expect(title).to_contain_text("50 % after")
    page.get_by_label("Noise σ of item 2").fill("1")
    expect(title).to_have_text(LEFT_OUT)
    page.get_by_label("Kind of query").select_option("count of all people, clipped to 1 per person")
    expect(title).to_contain_text("50 % after")
    page.get_by_label("Noise σ", exact=True).fill("1")
    expect(title).to_have_text(LEFT_OUT)


def test_a_receipt_appears_and_a_pause_takes_effect_on_the_next_query(visit: Visit) -> None:
    """Charged, then left out while paused, then charged again."""
    page = visit.enter("individual")
    receipts = page.get_by_role("region", name="Receipts, newest first")

    def newest(words: str, outcome: str) -> None:
        page.reload()
        row = receipts.get_by_role("row").nth(1)
        expect(row).to_contain_text(words)
        expect(row).to_contain_text(outcome)

    visit.site.ask(sigma=31.0)
    newest("count of people, σ 31", "used your data")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("You have paused.")).to_be_visible()
    visit.site.ask(sigma=32.0)
    newest("count of people, σ 32", "left you out")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("You have paused.")).to_have_count(0)
    visit.site.ask(sigma=33.0)
    newest("count of people, σ 33", "used your data")


def test_the_steps_of_a_fit_are_one_line_that_opens(visit: Visit) -> None:
    """In receipts, history and ledgers: queries in a row that differ in their parameters alone."""
    age = {"of": {"mul": [{"col": "age"}, 0.01]}, "fill": 0}
    model = {"loss": "softmax", "target": "country", "features": [age]}
    for number in range(3):
        visit.site.ask(sigma=50.0, select=[{"gradient": model | {"parameters": [[number / 10], [0], [0]]}}])
    visit.site.ask(sigma=51.0)
    for role, place, region in (
        ("individual", "/individual", "Receipts, newest first"),
        ("analyst", "/analyst/history", "Your answers, newest first"),
        ("curator", "/curator/town/queries", "Queries, newest first"),
        ("auditor", "/auditor/town", "Entries, newest first"),
    ):
        visit.enter(role, place)
        lines = visit.page.get_by_role("region", name=region).get_by_role("row")
        expect(lines.nth(1)).to_contain_text("count of people, σ 51")
        expect(lines.nth(2)).to_contain_text("softmax gradient of country by 1 feature in people, σ 50")
        before = lines.count()
        opener = lines.nth(2).get_by_role("button", name="3 steps")
        expect(opener).to_have_attribute("aria-expanded", "false")
        opener.click()
        expect(opener).to_have_attribute("aria-expanded", "true")
        expect(lines).to_have_count(before + 3)
        for number in (3, 4, 5):
            expect(lines.nth(number)).to_contain_text("softmax gradient of country by 1 feature in people, σ 50")
        opener.click()
        expect(lines).to_have_count(before)


def test_an_individual_sees_its_record_and_saves_its_account(visit: Visit) -> None:
    """The record is its own; the file holds every receipt, those that did not concern it too."""
    page = visit.enter("individual")
    page.get_by_role("button", name="Show it").click()
    expect(page.get_by_role("region", name="Your rows in people")).to_contain_text("80")
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    told = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    receipts = visit.site.read("me/receipts", by="individual", limit=1000)["items"]
    assert [row["query_id"] for row in told["receipts"]] == [row["query_id"] for row in receipts]
    assert told["record"]["tables"]["people"]["rows"][0]["age"] == 80
    assert "p1" not in json.dumps(told["record"])


def test_a_limit_is_lowered_to_what_is_spent_and_no_further(visit: Visit) -> None:
    """A smaller one is refused in words before anything is sent; the smallest leaves nothing."""
    visit.site.add_key("p13", "individual", dataset="town", individual="p13")
    sent: list[str] = []
    visit.page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    visit.page.on("dialog", lambda dialog: dialog.accept())
    page = visit.enter("individual", key="p13")
    limit = page.get_by_label("New limit, per cent of the present one")
    stated = page.get_by_text("the smallest new limit is").text_content() or ""
    least = float(stated.partition("the smallest new limit is ")[2].partition(" %")[0])
    assert 0 < least < 100
    for refused in (least - 0.01, 101):
        limit.fill(str(refused))
        page.get_by_role("button", name="Lower it").click()
        expect(page.get_by_role("alert")).to_contain_text(f"A new limit is at least {least:g} %")
        assert not [url for url in sent if url.endswith("/lower")]
    limit.fill(str(least))
    page.get_by_role("button", name="Lower it").click()
    expect(page.get_by_text("of your limit is spent, so the smallest")).to_contain_text("99")
    (account,) = visit.site.read("me/budgets", by="p13")
    assert account["share_spent"] > 0.99


def test_a_request_to_be_erased_reaches_the_curator(visit: Visit, open_visit: Callable[[], Visit]) -> None:
    """The curator erases after typing the key; the individual's session ends with it."""
    visit.site.add_key("p7", "individual", dataset="town", individual="p7")
    visit.page.on("dialog", lambda dialog: dialog.accept())
    visit.enter("individual", key="p7")
    visit.page.get_by_role("button", name="Ask for it").click()
    expect(visit.page.get_by_text("You have asked to be erased.")).to_be_visible()

    curators = open_visit()
    page = curators.enter("curator", "/curator/town")
    expect(page.get_by_text("One person asks to be erased.")).to_be_visible()
    page.get_by_role("link", name="See the requests").click()
    expect(page.get_by_role("link", name="People, 1 request")).to_be_visible()
    page.get_by_role("button", name="p7", exact=True).click()
    expect(page.get_by_role("heading", name="Individual p7")).to_be_visible()
    expect(page.get_by_label("Type the key p7 to confirm")).to_be_hidden()
    page.get_by_role("button", name="Erase p7 …").click()
    page.get_by_label("Type the key p7 to confirm").fill("p8")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("The confirmation must be exactly p7.").first).to_be_visible()
    curators.expected.append("confirmation must be")
    page.get_by_label("Type the key p7 to confirm").fill("p7")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("Individual p7 is erased.")).to_be_visible()
    expect(page.get_by_text("One person asks to be erased.")).to_have_count(0)
    expect(page.get_by_role("link", name="People", exact=True)).to_be_visible()

    visit.expected.append(r"status of 40[14]")
    visit.page.reload()
    visit.page.wait_for_url("**/sign-in?ended=1")


def test_a_bad_file_shows_row_and_column(visit: Visit, file: MakeFile) -> None:
    """Nothing is stored; the mended file is, and sending it again stores it once."""
    page = visit.enter("curator", "/curator/town/data")
    visit.expected.append(REFUSED)
    header = "person_id,country,age,member\n"
    page.get_by_label("File", exact=True).set_input_files(file("bad.csv", f"{header}zed,NO,old,true\n"))
    page.get_by_role("button", name="Upload").click()
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("rows[1].age")
    page.get_by_label("File", exact=True).set_input_files(file("good.csv", f"{header}zed,FI,130,true\n"))
    page.get_by_role("button", name="Upload").click()
    expect(problem).to_contain_text("to store them so, state accept=age")
    page.get_by_text("Columns that are not as declared").click()
    page.get_by_label("Columns to store though many of their values are not as declared").fill("age, country")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("1 rows are stored, with 1 new people.")).to_be_visible()
    expect(page.get_by_text("age: 1 moved to the nearer bound")).to_be_visible()
    expect(page.get_by_text("country: 1 outside the declared categories")).to_be_visible()


def test_the_curator_finds_a_query_and_verifies_the_ledger(visit: Visit) -> None:
    """A search by words; the service's verification; the browser's own chain."""
    visit.site.ask(sigma=41.0, where={"eq": [{"col": "country"}, "DK"]})
    visit.enter("curator", "/curator/town/queries")
    page, rows = visit.page, visit.page.get_by_role("region", name="Queries, newest first").get_by_role("row")
    page.get_by_label("Search").fill("country dk 41")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("count of people where country = “DK”, σ 41")
    page.get_by_label("Search").fill("nothing like it")
    expect(page.get_by_text("No query matches.")).to_be_visible()
    visit.go("/curator/town/ledger")
    page.get_by_role("button", name="Verify the ledger").click()
    expect(page.get_by_text("The ledger holds.")).to_be_visible()
    page.get_by_role("button", name="Check the chain").click()
    expect(page.get_by_text("The chain holds.")).to_be_visible()


def test_an_auditor_sees_a_changed_entry(visit: Visit) -> None:
    """The chain that the service lists holds; with one analyst's name changed on the way it does not."""
    several = [{"count": {}}, {"histogram": {"column": "country"}}]
    visit.site.ask(select=several, noise={"sigma": [20, 30]})  # its hash binds one sigma more
    page = visit.enter("auditor")
    page.get_by_role("button", name="Check the chain").click()
    expect(page.get_by_text("The chain holds.")).to_be_visible()
    newest = page.locator(".key").text_content()
    assert visit.site.read("datasets/town/ledger", by="auditor", limit=1)["items"][0]["hash"] == newest

    def changed(route: Route) -> None:
        told = route.fetch()
        document = told.json()
        document["items"][3]["analyst"] = "another"
        route.fulfill(response=told, json=document)

    page.route("**/ledger?*", changed)
    page.get_by_role("button", name="Check the chain").click()
    expect(page.get_by_text("The chain is broken.")).to_be_visible()


def test_an_auditor_finds_a_kept_hash_where_the_ledger_had_it(visit: Visit) -> None:
    """At the newest row, or at an earlier one that the ledger has grown from; nowhere, it is an alarm."""
    visit.enter("auditor")
    page, check = visit.page, visit.page.get_by_role("button", name="Check the chain")
    rows = visit.site.read("datasets/town/ledger", by="auditor", limit=3)["items"]
    for kept, title, words in (
        (rows[0]["hash"], "The chain holds.", "It is the hash that you kept: nothing was added since."),
        (
            f" {rows[2]['hash'].upper()}",
            "The chain holds.",
            f"The ledger had this hash after row {rows[2]['sequence']}, and has grown by 2 rows since.",
        ),
        ("ab" * 32, "The hash that you kept is nowhere in this ledger.", "Either the ledger was written anew"),
        ("abc", "The hash that you kept is nowhere in this ledger.", "What you kept is no hash"),
    ):
        page.get_by_label("Hash of an earlier check").fill(kept)
        check.click()
        expect(page.get_by_text(title)).to_be_visible()
        expect(page.get_by_text(words)).to_be_visible()


def test_an_analyst_previews_and_asks(visit: Visit) -> None:
    """The preview follows the form; the answer has an error bar; a repeat is said to be free; refusals have words."""
    page = visit.enter("analyst")
    page.get_by_label("Noise as").select_option("sigma")
    expect(page.get_by_text("with 95 % confidence")).to_contain_text("± 39")
    page.get_by_label("Amount").fill("40")
    expect(page.get_by_text("with 95 % confidence")).to_contain_text("± 78")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Column").select_option("age")
    page.get_by_label("Comparison").select_option("ge")
    page.get_by_role("spinbutton", name="Value").fill("30")
    expect(page.get_by_text("count of people where age ≥ 30, σ 40")).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".result")).to_contain_text("± 78")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("the data may have changed since. It cost nothing.")).to_be_visible()

    page.get_by_role("checkbox", name="country").check()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("figcaption")).to_contain_text("is largest with")
    visit.go("/analyst/history")
    expect(page.get_by_role("region", name="Your answers, newest first")).to_contain_text("by country")

    visit.expected.append(REFUSED)
    visit.go("/analyst")
    expect(page.get_by_text("with 95 % confidence")).to_be_visible()
    page.get_by_label("The query as JSON").fill(json.dumps({"version": 1, "select": [{"sum": {"column": "agee"}}]}))
    expect(page.get_by_role("alert")).to_contain_text("noise")


def test_an_analysts_page_asks_for_nothing_that_depends_on_data(visit: Visit) -> None:
    """Its requests are those of the analyst's part of the interface."""
    seen: set[str] = set()
    visit.page.on("request", lambda request: seen.add(httpx.URL(request.url).path))
    visit.enter("analyst")
    for path in ("/analyst", "/analyst/history", "/analyst/allowance"):
        visit.go(path)
        visit.settle()
    asked = {path for path in seen if path.startswith("/v1/")}
    assert asked <= {
        "/v1/session",
        "/v1/datasets",
        "/v1/datasets/town",
        "/v1/allowances",
        "/v1/queries",
        "/v1/datasets/town/queries/preview",
    }


def test_a_curator_registers_a_dataset_and_hands_out_a_key(visit: Visit) -> None:
    """The form builds the schema; the empty dataset says how it is filled; the key is shown once and works."""
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("shop")
    page.get_by_label("Column", exact=True).fill("country")
    page.get_by_label("Categories, one a line").fill("Norway, north\n\nSweden ")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="shop has no people yet")).to_be_visible()
    tables = visit.site.read("datasets/shop")["tables"]
    assert tables["people"]["columns"] == {
        "country": {"type": "category", "categories": ["Norway, north", "Sweden"], "size": None}
    }

    visit.go("/curator/_keys")
    page.get_by_label("Name", exact=True).fill("Ann of the shop")
    page.get_by_label("Role").select_option("analyst")
    page.get_by_label("Dataset", exact=True).first.select_option("shop")
    page.get_by_role("button", name="Make the key", exact=True).click()
    visit.site.keys["shop"] = page.locator(".key").text_content() or ""
    with visit.site.client("shop") as analyst:
        assert [each["name"] for each in analyst.get("/v1/datasets").json()["items"]] == ["shop"]
        page.on("dialog", lambda dialog: dialog.accept())
        row = page.get_by_role("row").filter(has_text="Ann of the shop")
        row.get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
        assert analyst.get("/v1/datasets").status_code == 401


def test_a_file_of_individuals_becomes_a_file_of_keys(visit: Visit, file: MakeFile) -> None:
    """From the column of the key, also where another one quotes commas, quotes and ends of lines."""
    page = visit.enter("curator", "/curator/_keys")
    form = page.locator("section", has_text="Keys for many individuals").locator("form").last
    form.get_by_label("Dataset").select_option("town")
    text = 'note,person_id\r\n"a, ""b""\nc",p11\r\n,"p12"\r\n'
    form.get_by_label("File").set_input_files(file("people.csv", text))
    with page.expect_download() as download:
        form.get_by_role("button", name="Make the keys").click()
    header, *rows = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert header == "individual,api_key"
    keys = dict(row.split(",") for row in rows)
    assert keys.keys() == {"p11", "p12"}
    visit.site.keys["p12"] = keys["p12"]
    assert visit.site.read("session", by="p12")["individual"] == "p12"


def test_the_alarm_is_set_on_the_page(visit: Visit) -> None:
    """And kept by the service."""
    page = visit.enter("curator", "/curator/town")
    page.get_by_label("Per cent of the people").fill("25")
    page.get_by_role("button", name="Set the alarm").click()
    expect(page.get_by_text("It rings when 25 %")).to_be_visible()
    assert visit.site.read("datasets/town/alarm")["share"] == 0.25
