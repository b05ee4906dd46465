"""Proposals for schemas: every domain that is read off the data is marked."""

import datetime as dt
import gzip
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import infer_schema
from sparing._domains import Seen, plain_name
from sparing._infer import KEY_WORDS, PEOPLE_WORDS

ROWS: dict[str, list[Any]] = {
    "Customer ID": ["a", "b", "c"],
    "age": [34, None, 51],
    "spend": [10.5, 0.0, None],
    "member": [True, None, False],
    "country": ["NO", "SE", None],
}
CSV = "Customer ID,age,spend,member,country\na,34,10.5,true,NO\nb,,0.0,,SE\nc,51,,FALSE,\n"


def declared(proposal: dict[str, Any], table: str = "people") -> dict[str, Any]:
    """The columns without their marks."""
    columns = proposal["tables"][table]["columns"]
    return {name: {k: v for k, v in column.items() if k != "confirm"} for name, column in columns.items()}


def sources(where: Path) -> list[Any]:
    """The rows in every form."""
    (where / "people.csv").write_text(CSV)
    (where / "people.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    (where / "people.ndjson").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.table(ROWS), where / "people.parquet")
    semicolons = io.BytesIO(CSV.replace(",", ";").encode())
    files = [where / f"people.{kind}" for kind in ("csv", "csv.gz", "ndjson", "parquet")]
    return [*files, CSV.encode(), semicolons, pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)]


def test_every_form_gives_the_same_proposal(tmp_path: Path) -> None:
    """Files, bytes and frames; rounded away from zero, with zero between the bounds."""
    for source in sources(tmp_path):
        proposal = infer_schema(source)
        assert declared(proposal) == {
            "age": {"type": "integer", "lower": 0, "upper": 100},
            "spend": {"type": "real", "lower": 0.0, "upper": 20.0},
            "member": {"type": "boolean"},
            "country": {"type": "category", "categories": ["NO", "SE"]},
        }
        table = proposal["tables"]["people"]
        assert (table["kind"], table["key"]) == ("individuals", "customer_id")
        assert proposal["columns"] == {"Customer ID": "customer_id"}
        assert proposal.get("delimiter", ",") == (";" if isinstance(source, io.BytesIO) else ",")


def test_every_domain_read_off_the_data_is_marked() -> None:
    """Bounds and categories are, a boolean has no domain; the rows of one individual are marked at the table."""
    columns = infer_schema(CSV.encode())["tables"]["people"]["columns"]
    assert {name for name, column in columns.items() if "confirm" in column} == {"age", "spend", "country"}
    assert all("must not be read off the data" in columns[name]["confirm"] for name in ("age", "spend", "country"))
    events = infer_schema(b"id,day\na,1\na,2\na,3\nb,1\n", table="visits")["tables"]["visits"]
    assert (events["kind"], events["rows_per_individual"]) == ("events", 4)
    assert "read off the data" in events["confirm"]


def test_columns_that_fit_no_declaration_are_left_out_with_a_reason() -> None:
    """And an upload is told to leave them out."""
    rows = {
        "id": list(range(2000)),
        "note": [f"text {number}" for number in range(2000)],
        "when": [dt.timedelta(1)] * 2000,
        "empty": [None] * 2000,
        "list": [[1, 2]] * 2000,
    }
    proposal = infer_schema(pl.DataFrame(rows))
    assert proposal["tables"]["people"]["columns"] == {}
    assert proposal["columns"] == dict.fromkeys(["note", "when", "empty", "list"])
    assert {name: reason.split()[2] for name, reason in proposal["left_out"].items()} == {
        "note": "2000",
        "when": "times",
        "empty": "no",
        "list": "neither",
    }


def test_decimals_are_numbers() -> None:
    """An upload takes them so: a real, and an integer where all are whole."""
    rows = {"id": [1, 2], "price": [Decimal("12.50"), None], "count": [Decimal("3.00"), Decimal(4)]}
    columns = infer_schema(pl.DataFrame(rows))["tables"]["people"]["columns"]
    assert [(each["type"], each["lower"], each["upper"]) for each in columns.values()] == [
        ("real", 0.0, 20.0),
        ("integer", 0, 5),
    ]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"id,when\na,2025-03-01\nb,\nc,2026-02-01\n", "date"),
        (b"id,when\na,2025-03-01 10:00\nb,\nc,2026-02-01\n", "datetime"),
        (pl.DataFrame({"id": [1, 2], "when": [dt.date(2025, 3, 1), dt.date(2026, 2, 1)]}), "date"),
        (pl.DataFrame({"id": [1, 2], "when": [dt.datetime(2025, 3, 1), dt.datetime(2026, 2, 1)]}), "datetime"),  # noqa: DTZ001 - as frames hold them
    ],
)
def test_times_have_bounds_in_whole_years(data: Any, kind: str) -> None:
    """Times of text and of frames; marked, as all bounds are."""
    declared = infer_schema(data)["tables"]["people"]["columns"]["when"]
    ends = ("", "") if kind == "date" else ("T00:00:00Z", "T23:59:59Z")
    assert declared.pop("confirm").startswith("must not be read off the data")
    assert declared == {"type": kind, "lower": f"2025-01-01{ends[0]}", "upper": f"2026-12-31{ends[1]}"}


@pytest.mark.parametrize("text", [b"id,when\na,2025-02-30\n", b"id,when\na,2025-02-01\nb,soon\n"])
def test_text_that_is_no_time_is_a_category(text: bytes) -> None:
    """One value that is none decides."""
    assert infer_schema(text)["tables"]["people"]["columns"]["when"]["type"] == "category"


@pytest.mark.parametrize(
    ("header", "person"),
    [
        ("order_id,customer,amount", "customer"),
        ("row_id,subject_id,los", "subject_id"),
        ("event_id,patientid,x", "patientid"),
        ("visit_id,Person No,x", "person_no"),
        ("person,covid,age", "person"),
        ("customer,paid,x", "customer"),
        ("when,order_id,id", "id"),
        ("survived,class,age", "survived"),
    ],
)
def test_the_key_is_guessed_by_whole_words_and_marked_with_what_else_it_may_be(header: str, person: str) -> None:
    """Words of people come first; the end of another word is no reason."""
    (table,) = infer_schema(f"{header}\n1,7,1\n2,7,2\n2,8,3\n".encode())["tables"].values()
    assert table["key"] == person
    guess, kind, *_ = table["confirm"].split("; ")
    assert guess.startswith(f"the key was guessed among {person} (")
    assert kind.startswith(f"the kind is {table['kind']} as the key ")
    assert "(2 in 3 rows)" in guess


def test_the_page_guesses_by_the_same_words() -> None:
    """They stand in its script too, as a browser runs no Python."""
    page = Path(__file__).parents[2].joinpath("dashboard", "schema-infer.js").read_text(encoding="utf-8")
    (people,) = re.findall(r"const PEOPLE_WORDS = \(\n(.+?)\n\)\.split", page, re.DOTALL)
    (keys,) = re.findall(r"const KEY_WORDS = \[(.+?)\];", page)
    assert set(" ".join(re.findall(r'"(.+?)"', people)).split()) == PEOPLE_WORDS
    assert set(re.findall(r'"(\w+)"', keys)) == KEY_WORDS


def test_names_that_a_schema_refuses_are_changed_or_refused() -> None:
    """The word of labels, names alike in 63 letters or in a number, and names that an upload cannot tell apart."""
    long = "on a scale of 1 to 5 how satisfied are you with the service of our staff at the "
    named = infer_schema(f"id,Select,score,Score,score_2,{long}desk,{long}phone\n1,1,1,1,1,1,1\n".encode())
    names = list(named["tables"]["people"]["columns"])
    assert names[:4] == ["select_2", "score", "score_2", "score_2_2"]
    assert len(set(names)) == 6
    assert max(map(len, names)) == 63
    for text in ("id,score,score\n1,2,3\n", "sep=;\nid;age\n1;2\n"):
        with pytest.raises(ValueError, match="an upload takes"):
            infer_schema(text.encode())
    for encoded in ("id,by\n1,Troms\xf8\n".encode("latin-1"), "id,age\n1,31\n".encode("utf-16")):
        with pytest.raises(ValueError, match="save it as UTF-8"):
            infer_schema(encoded)


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (["02139", "10001"], "category"),
        (["12,50", "7"], "real"),
        (["1990-01-31", "1991-02-28"], "date"),
        (["2026-01-01 10:00", "2026-01-02"], "datetime"),
        (["1582218195625938945", "1"], None),
        (["Skin\u2028and hair", "Eyes"], None),
    ],
)
def test_texts_of_a_file_and_of_a_frame_mean_what_they_say(values: list[str], declared: str | None) -> None:
    """Postcodes are names, decimal commas are numbers, and whole numbers beyond 2^53 have no bounds."""
    proposal = infer_schema("\n".join(["id;x", *(f"{n};{each}" for n, each in enumerate(values))]).encode())
    column = proposal["tables"]["people"]["columns"].get("x")
    assert (column and column["type"]) == declared
    assert proposal.get("decimal") == ("," if "," in values[0] else None)
    if declared in {"date", "datetime"}:
        frame = infer_schema(pd.DataFrame({"id": [1, 2], "x": values}))
        assert frame["tables"]["people"]["columns"]["x"]["type"] == declared


def test_missing_values_of_pandas_are_missing() -> None:
    """`NA` compares with nothing."""
    frame = pd.DataFrame({"id": [1, 2], "age": [31, None], "ok": [True, None]}).convert_dtypes()
    assert [each["type"] for each in infer_schema(frame)["tables"]["people"]["columns"].values()] == [
        "integer",
        "boolean",
    ]


def test_the_key_and_the_kind_may_be_stated() -> None:
    """Then neither is marked."""
    body = b"no,person_id\n1,a\n2,b\n"
    assert infer_schema(body)["tables"]["people"]["key"] == "person_id"
    assert infer_schema(body, key="no")["tables"]["people"]["key"] == "no"
    assert infer_schema(body, kind="events")["tables"]["people"]["kind"] == "events"
    assert "confirm" not in infer_schema(body, key="no", kind="individuals")["tables"]["people"]
    with pytest.raises(ValueError, match="there is no column 'nr'; there are 'no', 'person_id'"):
        infer_schema(body, key="nr")
    with pytest.raises(ValueError, match="kind must be"):
        infer_schema(body, kind="person")
    with pytest.raises(ValueError, match="there is no column"):
        infer_schema(b"")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Customer ID", "customer_id"),
        ("customerNo", "customer_no"),
        ("Größe (cm)", "groe_cm"),
        ("2nd", "c_2nd"),
        ("", "c"),
    ],
)
def test_names_become_names_of_a_schema(name: str, plain: str) -> None:
    """Lower case, and a letter first."""
    assert plain_name(name) == plain


def test_two_names_that_become_one_stay_two() -> None:
    """The second gets a number."""
    proposal = infer_schema(b"id,Age,AGE\na,1,2\n")
    assert proposal["columns"] == {"Age": "age", "AGE": "age_2"}


@given(st.lists(st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=9))
def test_proposed_bounds_hold_all_values(values: list[float]) -> None:
    """And zero."""
    column = Seen(values, is_text=False).column()
    assert column["lower"] <= min(0, *values) <= max(0, *values) <= column["upper"]
