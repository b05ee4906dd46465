"""Registration from a file: the page proposes what the client does, and registers no domain before it is confirmed."""

import base64
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from sparing import infer_schema
from tests.dashboard.browser import Site, Visit
from tests.dashboard.conftest import Opening

pytestmark = pytest.mark.browser
PEOPLE = """Person No;Kjønn;Height;Born;Seen;Member;Ward;Nothing
1;k;1.82;1970-05-03;2024-02-29T23:30:00-05:00;true;Heart, lungs;
2;m;-.5e1;2001-01-31;2025-12-31 23:59;False;Eyes;
3;;;;;;"Skin
and hair";
"""
TO_CONFIRM = re.compile("This domain is public without the file|The key column names the individual")
EVENTS = "person_no,amount,when\n" + "".join(f"{n % 2},{n * 7},202{n}-01-01\n" for n in range(6))


NOTHING: list[None] = [None, None, None]
IN_COLUMNS = pa.table(
    {
        "Person No": ["1", "2", "3"],
        "age": [31, None, 64],
        "whole": [1.0, 250.0, float("nan")],
        "height": pa.array([1.82, -5.5, None], pa.float32()),
        "ceiling": [float("inf"), 0.5, None],
        "price": [Decimal("12.50"), Decimal("-3.25"), None],
        "born": [date(1970, 5, 3), date(2001, 1, 31), None],
        "seen": pa.array([datetime(2024, 2, 29, 23, 30, tzinfo=UTC), None, None], pa.timestamp("us", "America/Denver")),
        "local": pa.array([946_684_799, None, 0], pa.timestamp("s")),
        "member": [True, False, None],
        "code": pa.array(["01", "02", None]).dictionary_encode(),
        "ward": ["Heart, lungs", 'the "eyes"', "Skin\nand hair"],
        "spoken": ["true", "2024-01-01", "7"],
        "Nothing": pa.array(NOTHING, pa.int64()),
        "tags": [["a"], [], None],
        "photo": [b"x", b"y", None],
        "at": [time(7, 30), None, None],
    }
)
VISITS = pa.table({"person_no": [n % 2 for n in range(6)], "amount": [n * 7 for n in range(6)]})


def _write(table: pa.Table, path: Path) -> None:
    """Write a table as Parquet, or as a stream."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def _dropped(visit: Visit, name: str, text: str | bytes) -> None:
    """Drop a file on the place for it, as a person drags one there."""
    content = base64.b64encode(text.encode() if isinstance(text, str) else text).decode()
    transfer = visit.page.evaluate_handle(
        """([name, content]) => {
          const bytes = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
          const transfer = new DataTransfer();
          transfer.items.add(new File([bytes], name));
          return transfer;
        }""",
        [name, content],
    )
    visit.page.locator(".drop").dispatch_event("drop", {"dataTransfer": transfer})


def test_a_file_proposes_what_the_client_proposes(visit: Visit, tmp_path: Path) -> None:
    """The tables are the client's but for the words of `confirm`, read in the browser: no request is made."""
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("proposed")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "/v1/" in request.url else None)
    expected: dict[str, object] = {}
    for name, text in (("People 2024.csv", PEOPLE), ("events.tsv", EVENTS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        expected |= infer_schema(tmp_path / name)["tables"]
        _dropped(visit, name, text)
        expect(page.get_by_text(f"{name} proposes the table")).to_be_visible()
        if name.startswith("People"):
            expect(page.get_by_text("“Person No” of the file is person_no here.")).to_be_visible()
            expect(page.get_by_text("“Nothing” is left out: it holds no value.")).to_be_visible()
    tables = page.evaluate("JSON.parse(document.querySelector('textarea[aria-label$=JSON]').value).tables")
    assert tables["events"].pop("unknown_individuals") == "reject"
    assert _marked(tables) == _marked(expected)
    assert sent == []


def test_a_columnar_file_proposes_what_the_client_proposes(visit: Visit, tmp_path: Path) -> None:
    """Read by the service: one request for each file, and nothing of it is kept. What is left out is named."""
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("columnar")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "/v1/" in request.url else None)
    expected: dict[str, object] = {}
    for name, table in (("People 2024.parquet", IN_COLUMNS), ("visits.arrows", VISITS)):
        _write(table, tmp_path / name)
        proposal = infer_schema(tmp_path / name)
        expected |= proposal["tables"]
        _dropped(visit, name, (tmp_path / name).read_bytes())
        expect(page.get_by_text(f"{name} proposes the table")).to_be_visible()
        for column, reason in proposal.get("left_out", {}).items():
            expect(page.get_by_text(f"“{column}” is left out: {reason}.")).to_be_visible()
    tables = page.evaluate("JSON.parse(document.querySelector('textarea[aria-label$=JSON]').value).tables")
    assert tables["visits"].pop("unknown_individuals") == "reject"
    assert _marked(tables) == _marked(expected)
    assert {each.rpartition("/v1")[2] for each in sent} == {"/files/preview"}
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("Not confirmed yet: people_2024, people_2024.age")).to_be_visible()


def test_a_proposed_domain_is_registered_once_it_is_confirmed(visit: Visit) -> None:
    """The page names those that are not; a file of another kind, or none of its kind, is refused in words."""
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("confirmed")
    _dropped(visit, "people.xlsx", "PK")
    expect(page.get_by_role("alert")).to_contain_text("This page reads CSV, Parquet and Arrow streams")
    visit.expected.append("status of 422")
    _dropped(visit, "people.parquet", "PAR1")
    expect(page.get_by_role("alert").last).to_contain_text("the body is not a readable Parquet file")
    _dropped(visit, "people.csv", "id,age,ward\na,31,Eyes\nb,64,Skin\n")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("Not confirmed yet: people, people.age, people.ward.")).to_be_visible()
    with visit.site.client("curator") as curator:
        assert curator.get("/v1/datasets/confirmed").status_code == 404
    page.get_by_label("Highest").fill("120")
    for box in page.get_by_role("checkbox", name=TO_CONFIRM).all():
        box.check()
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="confirmed has no people yet")).to_be_visible()
    columns = visit.site.read("datasets/confirmed")["tables"]["people"]["columns"]
    assert columns["age"] == {"type": "integer", "lower": 0, "upper": 120}
    assert columns["ward"]["categories"] == ["Eyes", "Skin"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_uploaded_under_the_names_that_it_was_registered_with(
    visit: Visit, tmp_path: Path, ending: str
) -> None:
    """The page says it before: other names, the file's own mark, and no column without a value."""
    file, name = tmp_path / f"people.{ending}", f"renamed_{ending}"
    if ending == "csv":
        file.write_text(PEOPLE.replace("\nand hair", "; hair"), encoding="utf-8")
        renamed, expected = "“Person No” of the file is person_no here.", {"ward": "Skin; hair"}
    else:
        columns = {"Person No": [1, 2, 3], "Ward Name": ["Eyes", "Eyes", "Skin"], "Nothing": [[1], [2], [3]]}
        _write(pa.table(columns), file)
        renamed, expected = "“Ward Name” of the file is ward_name here.", {"ward_name": "Skin"}
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill(name)
    _dropped(visit, file.name, file.read_bytes())
    expect(page.get_by_text(f"{file.name} proposes the table")).to_be_visible()
    for box in page.get_by_role("checkbox", name=TO_CONFIRM).all():
        box.check()
    page.get_by_role("button", name="Register").click()
    page.get_by_role("link", name="Upload a file").click()
    page.get_by_label("File", exact=True).set_input_files(file)
    expect(page.get_by_text(renamed)).to_be_visible()
    expect(page.get_by_text("“Nothing” is left out: the table has no such column.")).to_be_visible()
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("3 rows are stored, with 3 new people.")).to_be_visible()
    record = visit.site.read(f"datasets/{name}/record", individual="3")["tables"]
    ((row,),) = [held["rows"] for held in record.values()]
    assert row == dict.fromkeys(row) | expected


def test_another_accounting_is_registered_and_told(visit: Visit) -> None:
    """The form states it in the JSON that is sent; the overview says by which accounting the promise is."""
    page = visit.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("concentrated")
    page.get_by_label("Charges add up by").select_option(label="zero-concentrated DP")
    expect(page.get_by_label("The registration as JSON")).to_have_value(re.compile(r'"kind": "zcdp"'))
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="concentrated has no people yet")).to_be_visible()
    made = visit.site.read("datasets/concentrated")
    visit.site.upload("concentrated/tables/people", "person_id\na\n")
    assert (made["accounting"], made["mu"]) == ({"kind": "zcdp", "conversion": "optimal"}, None)
    visit.go("/curator/concentrated")
    expect(page.get_by_text("promised to each person, by zero-concentrated DP")).to_be_visible()


def test_an_order_and_a_pure_promise_are_registered(open_visit: Opening, site: Site) -> None:
    """Fields come with the accounting that needs them; an order that is too low is refused with the best one."""
    visit = open_visit()
    visit.enter("curator", "/curator/_register")
    page, sent = visit.page, visit.page.get_by_label("The registration as JSON")
    page.get_by_label("Name").first.fill("one_order")
    expect(page.get_by_label("Order", exact=True)).to_have_count(0)
    page.get_by_label("Charges add up by").select_option(label="Rényi DP of one order")
    page.get_by_label("Order", exact=True).fill("5")
    page.get_by_label("Conversion to ε and δ").select_option("simple")
    expect(sent).to_have_value(re.compile(r'"kind": "rdp",\s+"order": 5,\s+"conversion": "simple"'))
    visit.expected.append("status of 422")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("alert")).to_contain_text("accounting.order: must be above 14.82; 29.12")
    page.get_by_label("Order", exact=True).fill("32")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="one_order has no people yet")).to_be_visible()
    narrow = open_visit("dark", 390)
    page = narrow.enter("curator", "/curator/_register")
    page.get_by_label("Name").first.fill("alone")
    page.get_by_label("Charges add up by").select_option("pure")
    expect(page.get_by_label("δ")).to_be_hidden()
    expect(page.get_by_text("For few tables: a promise without δ.")).to_be_visible()
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="alone has no people yet")).to_be_visible()
    order, alone = (site.read(f"datasets/{name}") for name in ("one_order", "alone"))
    assert order["accounting"] == {"kind": "rdp", "order": 32, "conversion": "simple"}
    assert (alone["accounting"], alone["guarantee"]["delta"]) == ({"kind": "pure"}, None)


def _marked(told: object) -> object:
    """With the fact that a domain has to be confirmed in place of the words that say so."""
    if isinstance(told, dict):
        return {name: True if name == "confirm" else _marked(value) for name, value in told.items()}
    return told
