"""Proposals for schemas: every domain that is read off the data is marked."""

import datetime as dt
import gzip
import io
import json
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


def test_the_key_and_the_kind_may_be_stated() -> None:
    """Otherwise the first name that sounds like a key, and whether it repeats."""
    body = b"no,person_id\n1,a\n2,b\n"
    assert infer_schema(body)["tables"]["people"]["key"] == "person_id"
    assert infer_schema(body, key="no")["tables"]["people"]["key"] == "no"
    assert infer_schema(body, kind="events")["tables"]["people"]["kind"] == "events"
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
