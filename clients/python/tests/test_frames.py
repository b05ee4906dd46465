"""Data frames and files with other names, as they are sent: Parquet or text with the declared columns alone."""

import contextlib
import gzip
import io
import json
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy

from clients.python.tests.reply_documents import DATASET
from sparing import Client, ColumnsError

TABLES = {"people": {"kind": "individuals", "key": "person_id", "columns": {"age": {"type": "integer"}, "town": {}}}}
REGISTERED = DATASET | {"tables": TABLES}
ROWS: dict[str, list[Any]] = {"person_id": ["a", "b"], "age": [1.0, None], "town": ["x", None]}
SENT: list[dict[str, Any]] = [
    {"person_id": "a", "age": 1.0, "town": "x"},
    {"person_id": "b", "age": None, "town": None},
]


@pytest.fixture
def sends(client: Client, script: Any) -> Any:
    """Uploads data and returns the request."""

    def send(data: Any, **options: Any) -> httpx.Request:
        begun = len(script.requests)
        script.steps = [
            *[httpx.Response(200)] * begun,
            httpx.Response(200, json=REGISTERED),
            httpx.Response(200, json={"rows": 2, "individuals": 2}),
        ]
        client.datasets.upload(dataset="d", table="people", data=data, **options)
        request: httpx.Request = script.requests[-1]
        return request

    return send


def rows_of(request: httpx.Request, script: Any) -> list[dict[str, Any]]:
    """The rows of the Parquet file that was sent."""
    assert request.headers["Content-Type"] == "application/vnd.apache.parquet"
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(script.bodies[-1])).to_pylist()
    return found


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=[7, 8]).astype({"town": "category"}),
        pl.DataFrame(ROWS),
        pl.LazyFrame(ROWS),
        pa.table(ROWS),
        pa.RecordBatch.from_pydict(ROWS),
        lambda: pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, pa.table(ROWS).to_batches()),  # read once
    ],
    ids=["pandas", "pandas with an index", "polars", "lazy polars", "arrow", "batch", "reader"],
)
def test_a_frame_is_sent_as_parquet(frame: Any, sends: Any, script: Any) -> None:
    """NaN of pandas is a missing value, and its index is left out."""
    assert rows_of(sends(frame() if callable(frame) else frame), script) == SENT
    assert script.keys[-1] is not None


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_renamed_and_left_out_by_an_explicit_mapping(kind: Any, sends: Any, script: Any) -> None:
    """From the curator's names to the declared ones; None leaves a column out."""
    frame = kind({"ID": ["a", "b"], "AGE": [1.0, None], "town": ["x", None], "note": ["secret", ""]})
    request = sends(frame, columns={"ID": "person_id", "AGE": "age", "note": None})
    assert rows_of(request, script) == SENT
    assert b"secret" not in script.bodies[-1]


def test_an_index_is_sent_where_it_is_mapped(sends: Any, script: Any) -> None:
    """One level of several too."""
    frame = pd.DataFrame(ROWS).set_index("person_id")
    assert rows_of(sends(frame, columns={"person_id": "person_id"}), script) == [
        {"person_id": row["person_id"], "age": row["age"], "town": row["town"]} for row in SENT
    ]
    levels = pd.DataFrame(ROWS | {"Nr": [1, 2]}).set_index(["Nr", "person_id"])
    sent = rows_of(sends(levels, columns={"person_id": "person_id"}), script)
    assert sorted(sent[0]) == ["age", "person_id", "town"]


@pytest.mark.parametrize(
    ("names", "columns", "message"),
    [
        (["Person ID", "age", "town"], {}, "map it with columns={'Person ID': 'person_id'}"),
        (["person_id", "AGE", "town"], {}, "'AGE' is not declared: map it with columns={'AGE': 'age'}, or leave it"),
        (["person_id", "age", "town", "shoe"], {}, "'shoe' is not declared: leave it out with columns={'shoe': None}"),
        (["person_id", "age"], {}, "'town' is missing"),
        (["person_id", "age", "town"], {"Town": "town"}, "does not have; did you mean 'town'?"),
        (["person_id", "age", "a2", "town"], {"a2": "age"}, "2 columns would become 'age'"),
        (["person_id", "age", "town"], {"town": "city"}, "'city' is not declared"),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "ndjson"])
def test_other_columns_are_refused_with_a_proposal(
    kind: str, names: list[str], columns: dict[str, str], message: str, sends: Any, script: Any
) -> None:
    """Before any row is sent."""
    rows = {name: ["x"] for name in names}
    data: dict[str, Any] = {
        "pandas": pd.DataFrame(rows),
        "polars": pl.DataFrame(rows),
        "csv": (",".join(names) + "\n").encode(),
        "ndjson": json.dumps(rows).encode(),
    }
    with pytest.raises(ColumnsError) as refused:
        sends(data[kind], columns=columns)
    assert message in str(refused.value)
    assert [request.method for request in script.requests] == ["GET"]


def test_an_unknown_table_is_named(client: Client, script: Any) -> None:
    """With the one that is meant."""
    script.steps = [httpx.Response(200, json=REGISTERED)]
    with pytest.raises(ColumnsError, match="no table 'peple'; did you mean 'people'"):
        client.datasets.upload(dataset="d", table="peple", data=pd.DataFrame(ROWS))


def test_pandas_without_pyarrow_says_what_to_install(sends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars needs nothing else."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    sends(pl.DataFrame(ROWS))
    with pytest.raises(ImportError, match="a pandas frame is sent as Parquet, which needs pyarrow: pip install"):
        sends(pd.DataFrame(ROWS))


def text(rows: str) -> list[bytes]:
    """Some rows, plain and packed."""
    return [rows.encode(), gzip.compress(rows.encode())]


@pytest.mark.parametrize("content", text('AGE;ID;note;town\n1;a;"x;\ny";x\n\n;"b";z;\n'), ids=["plain", "packed"])
def test_a_csv_file_is_rewritten_under_the_declared_names(
    content: bytes, sends: Any, script: Any, tmp_path: Path
) -> None:
    """Fields with marks and line breaks in them stay whole; the delimiter stays too."""
    where = tmp_path / "rows.csv"
    where.write_bytes(content)
    for data in (where, content, io.BytesIO(content)):
        request = sends(data, columns={"ID": "person_id", "AGE": "age", "note": None}, delimiter=";")
        assert script.bodies[-1] == b"age;person_id;town\n1;a;x\n;b;\n"
        assert request.url.params["delimiter"] == ";"


def test_a_row_of_another_length_stays_one(sends: Any, script: Any) -> None:
    """The service names it: no field is moved into another column."""
    sends(b"ID,age,town\na,1\nb,1,x,y\n", columns={"ID": "person_id"})
    assert script.bodies[-1] == b"person_id,age,town\na,1,,,\nb,1,x,y,,,\n"


def test_ndjson_and_parquet_files_are_rewritten_too(sends: Any, script: Any, tmp_path: Path) -> None:
    """Members that the mapping does not name stay."""
    columns = {"ID": "person_id", "note": None}
    sends(b'{"ID":"\xc3\xa5","age":1.5,"town":null,"note":1}\n', columns=columns)
    assert script.bodies[-1] == '{"person_id":"å","age":1.5,"town":null}\n'.encode()
    where = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"ID": ["a"], "age": [1], "town": ["x"], "note": ["n"]}), where)
    assert rows_of(sends(where, columns=columns), script) == [{"person_id": "a", "age": 1, "town": "x"}]


@pytest.mark.parametrize("packed", [False, True])
def test_progress_counts_the_bytes_sent(packed: bool, client: Client, script: Any, tmp_path: Path) -> None:
    """The bytes of all are announced where their number is known; they are counted anew for each try."""
    rows = b"person_id,age,town\n" + b"a,1,x\n" * 50_000
    where = tmp_path / ("rows.csv.gz" if packed else "rows.csv")
    where.write_bytes(gzip.compress(rows) if packed else rows)
    script.steps = [httpx.ReadTimeout("late"), httpx.Response(200, json={"rows": 1, "individuals": 1})]
    seen: list[tuple[int, int | None]] = []
    client.datasets.upload(dataset="d", table="people", data=where, progress=lambda *now: seen.append(now))
    total = None if packed else len(rows)
    assert script.bodies == [rows, rows]
    assert seen.count((0, total)) == 2
    assert seen[-1] == (len(rows), total)
    assert len(seen) > 4
    assert script.requests[0].headers.get("Content-Length") == (None if packed else str(len(rows)))


def test_options_are_parameters_of_the_address(client: Client, script: Any) -> None:
    """Those with the service's default are left out; an unknown one is a TypeError."""
    script.steps = [
        httpx.Response(200, json={"rows": 0, "individuals": 0, "stored": False, "rows_dropped": 3}),
        httpx.Response(200, json={"rows": 1, "individuals": 0, "rows_unknown": 2, "warnings": ["so"]}),
    ]
    report = client.datasets.upload(
        dataset="d", table="people", data=b"a\n", dry_run=True, decimal=",", accept=["age", "town"]
    )
    assert (report.stored, report.rows_dropped) == (False, 3)
    assert script.requests[0].url.query == b"dry_run=true&accept=age%2Ctown&decimal=%2C"
    report = client.datasets.upload(
        dataset="d", table="people", data=b"a\n", unknown_individuals="drop", duplicates="reject", delimiter=","
    )
    assert (report.rows_unknown, report.rows_repeated, report.warnings) == (2, 0, ("so",))
    assert script.requests[-1].url.query == b"unknown_individuals=drop&duplicates=reject"
    with pytest.raises(TypeError, match="takes no dryrun"):
        client.datasets.upload(dataset="d", table="people", data=b"a\n", dryrun=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="give data, or file"):
        client.datasets.upload(dataset="d", table="people")


def test_wrong_rows_are_counted_in_the_exception(client: Client, script: Any, problem: Any) -> None:
    """Beside the first of them."""
    rows = {"wrong": 70, "is_complete": True, "groups": [{"column": "age", "message": "m", "rows": 70}]}
    script.steps = [problem(422, "invalid-request", errors=[{"field": "rows[1].age", "message": "m"}], rows=rows)]
    with pytest.raises(Exception, match="70 rows are wrong in all") as refused:
        client.datasets.upload(dataset="d", table="people", data=b"a\n")
    assert refused.value.rows == rows  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32])
def test_columns_by_name_may_be_arrays(sends: Any, script: Any, kind: Any) -> None:
    """One of two dimensions has a vector in each row; a frame's column of arrays has too."""
    vectors = np.arange(6).reshape(2, 3).astype(kind)
    expected = [{"person_id": "a", "age": 1, "town": [0, 1, 2]}, {"person_id": "b", "age": 2, "town": [3, 4, 5]}]
    columns = {"person_id": ["a", "b"], "age": np.array([1, 2]), "town": vectors}
    assert rows_of(sends(columns), script) == expected
    assert rows_of(sends(columns | {"town": vectors[:, ::-1]}), script)[0]["town"] == [2, 1, 0]
    frame = pd.DataFrame({"person_id": ["a", "b"], "age": [1, 2], "town": list(vectors)})
    assert rows_of(sends(frame), script) == expected


def test_an_array_of_another_shape_is_refused(sends: Any) -> None:
    """Before anything but the schema is asked for."""
    columns = {"person_id": ["a", "b"], "age": np.array([1, 2]), "town": np.zeros((2, 3, 4))}
    with pytest.raises(ValueError, match="it has the shape"):
        sends(columns)


TWO_ROWS = "SELECT 'a' AS person_id, 1.0 AS age, 'x' AS town UNION ALL SELECT 'b', NULL, NULL"


def cursor_rows() -> list[sqlite3.Row]:
    """The rows of a cursor of sqlite3."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(TWO_ROWS).fetchall()


def mapped_rows(kind: str) -> list[Any]:
    """The rows of a result of SQLAlchemy."""
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        result = connection.execute(sqlalchemy.text(TWO_ROWS))
        return list(result.mappings() if kind == "mapping" else result)


RECORDS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: SENT,
    "dicts without what is NULL": lambda: [SENT[0], {"person_id": "b", "age": float("nan")}],
    "an iterator": lambda: iter(SENT),
    "sqlite3": cursor_rows,
    "mappings of SQLAlchemy": lambda: mapped_rows("mapping"),
    "rows of SQLAlchemy": lambda: mapped_rows("row"),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_rows_are_sent_by_the_names_of_their_columns(kind: str, sends: Any, script: Any) -> None:
    """They are sent as NDJSON, which needs no library of data frames; a value that is not there is NULL."""
    assert sends(RECORDS[kind]()).headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in script.bodies[-1].splitlines()] == SENT


def test_rows_may_be_renamed_and_sent_in_parts(client: Client, script: Any) -> None:
    """Columns of a data frame may be too."""
    report = httpx.Response(200, json={"rows": 1, "individuals": 1})
    script.steps = [httpx.Response(200, json=REGISTERED), report] * 2
    rows = [{"ID": row["person_id"], "age": row["age"], "town": row["town"], "note": "secret"} for row in SENT]
    columns = {"ID": "person_id", "note": None}
    client.datasets.upload_parts(dataset="d", table="people", data=rows, files=(), columns=columns, rows=1)
    assert [json.loads(body) for body in script.bodies[1::2]] == SENT


CSV_TEXT = "person_id,age,town\na,1,x\n"


@pytest.mark.parametrize("kind", [io.StringIO, lambda text: bytearray(text.encode())])
def test_text_and_any_bytes_are_files(kind: Any, client: Client, script: Any) -> None:
    """In UTF-8."""
    script.steps = [httpx.Response(200, json={"rows": 1, "individuals": 1})]
    client.datasets.upload(dataset="d", table="people", data=kind(CSV_TEXT))
    assert script.bodies == [CSV_TEXT.encode()]


PACKED = gzip.compress(b"person_id,age,town\na,1,x\n" * 999)
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a number": (7, TypeError, "not a int"),
    "rows without names": ([("a", 1.0, "x")], TypeError, "row 1 is a tuple"),
    "a value without a form": ([SENT[0], SENT[1] | {"age": b"1"}], ValueError, "row 2: the bytes in the column 'age'"),
    "other rows": ([{"person_id": "a", "age": 1}], ColumnsError, "'town' is missing"),
    "keys of two types": (ROWS | {"person_id": [1, "b"]}, ValueError, "the column 'person_id'"),
    "objects in pandas": (pd.DataFrame(ROWS | {"town": [object(), None]}), ValueError, "column town"),
    "objects in polars": (pl.DataFrame(ROWS | {"town": [object(), None]}), ValueError, "cannot be sent as Parquet"),
    "unequal columns": (ROWS | {"town": ["x"]}, ValueError, "'person_id' 2, 'age' 2, 'town' 1"),
    "a column that is a text": (ROWS | {"town": "ab"}, TypeError, "the column 'town' must be a list"),
    "a series": (pd.Series(["x"], name="town"), ColumnsError, "'person_id' is missing"),
    "a series of polars": (pl.Series("town", ["x"]), ColumnsError, "'person_id' is missing"),
    "gzip that is cut short": (PACKED[:-9], ValueError, "the data is gzipped and broken"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_data_that_cannot_be_sent_are_named(kind: str, client: Client, script: Any) -> None:
    """In words of ours, and no row is sent."""
    data, error, words = WRONG[kind]
    script.steps = [httpx.Response(200, json=REGISTERED)]
    with pytest.raises(error, match=re.escape(words)) as refused:
        client.datasets.upload(dataset="d", table="people", data=data)
    assert type(refused.value) is error
    assert [request.method for request in script.requests] in ([], ["GET"])


def test_nan_among_texts_is_null(sends: Any, script: Any) -> None:
    """It is NULL in a data frame too."""
    data = {"person_id": ["a", "b"], "age": [1.0, None], "town": ["x", float("nan")]}
    assert rows_of(sends(data), script) == SENT


def test_a_broken_file_ends_the_upload(client: Client, script: Any, tmp_path: Path) -> None:
    """It is found while the file is sent: without its end, nothing is stored."""
    where = tmp_path / "people.csv.gz"
    where.write_bytes(PACKED[:-9])
    with pytest.raises(ValueError, match=r"people\.csv\.gz is gzipped and broken"):
        client.datasets.upload(dataset="d", table="people", file=where)
    assert script.bodies == []


@pytest.mark.parametrize(("data", "words"), [(b"PAR1 not", "the file cannot be read"), (b"{}[]", "Extra data")])
def test_a_file_that_is_not_what_it_seems_is_named(data: bytes, words: str, sends: Any) -> None:
    """It is found when its columns are looked at."""
    with pytest.raises(ValueError, match=words) as refused:
        sends(data, columns={})
    assert type(refused.value).__module__ != "pyarrow.lib"
