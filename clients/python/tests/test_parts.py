"""Uploads in parts: every row once and in order, cut alike each time, each part under a key of its own."""

import csv
import gzip
import io
import json
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
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.reply_documents import DATASET
from sparing import APIStatusError, Client, ColumnsError, UploadReport
from sparing._parts import parts_of

COLUMNS: dict[str, list[Any]] = {"person_id": ["a", "b", "c", "d", "e"], "age": [1, 2, None, 4, 5]}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
TABLE = pa.table(COLUMNS)
CSV = b"person_id,age\na,1\nb,2\nc,\nd,4\ne,5\n"
NDJSON = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
TABLES = {"people": {"kind": "individuals", "key": "person_id", "columns": {"age": {"type": "integer"}}}}
REGISTERED = DATASET | {"tables": TABLES}


def parquet() -> bytes:
    """A file whose row groups have one row each."""
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=1)
    return sink.getvalue()


def arrow(*, batch_rows: int = 3) -> bytes:
    """A stream of batches."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=batch_rows)
    return sink.getvalue()


def reader(batch_rows: int) -> pa.RecordBatchReader:
    """A stream of Arrow that is read once."""
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=batch_rows))


def rows_of(part: tuple[Any, str | None]) -> list[dict[str, Any]]:
    """The rows of a part as dictionaries, NULLs as None."""
    content, content_type = part
    if content_type is None:
        table = pa.table(content) if isinstance(content, dict) else pa.table(pl.DataFrame(content).to_arrow())
        return [{**row, "age": None if row["age"] is None else int(row["age"])} for row in table.to_pylist()]
    if content_type == "application/x-ndjson":
        return [json.loads(line) for line in content.splitlines()]
    found = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return [{"person_id": row["person_id"], "age": int(row["age"]) if row["age"] else None} for row in found]


SOURCES: dict[str, Callable[[], Any]] = {
    "CSV": lambda: CSV,
    "CSV without a last line end": lambda: CSV[:-1],
    "packed CSV": lambda: gzip.compress(CSV),
    "an open file": lambda: io.BytesIO(CSV),
    "NDJSON": lambda: NDJSON,
    "Parquet": parquet,
    "Arrow": arrow,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "lazy polars": lambda: pl.LazyFrame(COLUMNS),
    "a table": lambda: TABLE,
    "a reader of single rows": lambda: reader(1),
    "a reader of all rows": lambda: reader(5),
    "columns by name": lambda: COLUMNS,
}


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 6])
@pytest.mark.parametrize("name", SOURCES)
def test_each_row_is_in_one_part_in_order(name: str, rows: int) -> None:
    """All parts but the last have as many rows as was asked for."""
    parts = [rows_of(part) for part in parts_of(SOURCES[name](), None, rows)]
    assert parts == [ROWS[start : start + rows] for start in range(0, len(ROWS), rows)]


@pytest.mark.parametrize(
    "source",
    [b"person_id,age\n", b"", pd.DataFrame({"person_id": [], "age": []}), TABLE.slice(0, 0), pl.DataFrame(), {}],
    ids=["CSV", "nothing", "pandas", "a table", "polars", "no columns"],
)
def test_a_source_without_rows_is_one_part(source: Any) -> None:
    """So that its columns are looked at, and the report tells of no rows."""
    assert len(list(parts_of(source, None, 3))) == 1


def test_vectors_are_cut_with_their_rows() -> None:
    """A column of an array of two dimensions."""
    source = {"person_id": ["a", "b", "c"], "pixels": np.arange(6).reshape(3, 2)}
    parts: list[Any] = list(parts_of(source, None, 2))
    assert [part["pixels"].tolist() for part, _ in parts] == [[[0, 1], [2, 3]], [[4, 5]]]


def test_a_path_is_read_as_its_parts_are_asked_for(tmp_path: Path) -> None:
    """The type follows from the suffix, and the header stands in each part, byte for byte."""
    where = tmp_path / "people.csv"
    where.write_bytes(b"\xef\xbb\xbfperson_id;age\r\n" + b"a;1\r\n" * 3)
    assert [content for content, _ in parts_of(where, None, 2)] == [
        b"\xef\xbb\xbfperson_id;age\r\n" + b"a;1\r\n" * count for count in (2, 1)
    ]


fields = st.text(alphabet=st.sampled_from('ab,;"\n\r é'), max_size=6)


@given(
    table=st.lists(st.tuples(fields, fields), max_size=12), rows=st.integers(1, 5), end=st.sampled_from(["\n", "\r\n"])
)
def test_fields_may_hold_line_ends_and_quotes(table: list[tuple[str, str]], rows: int, end: str) -> None:
    """A part is read to the rows that the whole file has there."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y"), *table])
    parts = [content for content, _ in parts_of(written.getvalue().encode(), "text/csv; charset=utf-8", rows)]
    read = [list(csv.reader(io.StringIO(part.decode(), newline=""))) for part in parts]
    assert all(header == ["x", "y"] for header, *_ in read)
    assert [tuple(row) for _, *part in read for row in part] == table
    assert all(len(part) == rows + 1 for part in read[:-1])


def test_a_quote_within_a_field_is_a_quote() -> None:
    """It opens nothing: the rows after it are cut as others are, also where a quoted field holds a line end."""
    rows = [b'5" disc,1\n', b'"a\nb",2\n', b"c,3\n"]
    assert [part for part, _ in parts_of(b"x,y\n" + b"".join(rows), None, 1)] == [b"x,y\n" + row for row in rows]
    other = b"".join(rows).replace(b",", b";")
    assert len(list(parts_of(b"x;y\n" + other, None, 1, ";"))) == 3


def test_a_field_without_an_end_is_named_by_its_line() -> None:
    """Before its part is sent, and without reading the file again for each of its lines."""
    endless = b'x\n1\n"' + b"2\n" * 100_000
    parts = parts_of(endless, None, 1)
    assert next(parts)[0] == b"x\n1\n"
    with pytest.raises(ValueError, match=r"line \d+ of the CSV: field larger than field limit"):
        next(parts)


def replies(*rows: int) -> list[httpx.Response]:
    """A report for each part."""
    return [
        httpx.Response(200, json={"rows": each, "individuals": 1, "nulls": {"age": each}, "warnings": ["odd"]})
        for each in rows
    ]


def test_parts_have_keys_in_order_and_one_report(client: Client, script: Any) -> None:
    """Over many files; the progress tells of each part."""
    script.steps, told = replies(2, 1, 2), list[tuple[int, int]]()
    report = client.datasets.upload_parts(
        dataset="d",
        table="people",
        files=[b"person_id,age\na,1\nb,2\nc,\n", b"person_id,age\nd,4\ne,5\n"],
        rows=2,
        run="june",
        duplicates="drop",
        progress=lambda parts, rows: told.append((parts, rows)),
    )
    assert script.keys == ["june-0", "june-1", "june-2"]
    assert script.bodies == [b"person_id,age\n" + rows for rows in (b"a,1\nb,2\n", b"c,\n", b"d,4\ne,5\n")]
    assert {request.url.params["duplicates"] for request in script.requests} == {"drop"}
    assert told == [(1, 2), (2, 3), (3, 5)]
    assert report == UploadReport(rows=5, individuals=3, nulls={"age": 5}, warnings=("odd",))


def test_a_failed_part_names_its_key_and_the_same_run_sends_the_same_bytes(client: Client, script: Any) -> None:
    """So that the service knows the parts that it has stored."""
    sent: Any = {"dataset": "d", "table": "people", "data": parquet(), "rows": 2, "run": "june"}
    known, refused = httpx.Response(200, json=REGISTERED), httpx.Response(422)
    script.steps = [known, *replies(2), known, refused]
    with pytest.raises(APIStatusError) as failure:
        client.datasets.upload_parts(**sent)
    assert failure.value.idempotency_key == "june-1"

    script.steps += [known, *replies(2), known, *replies(2), known, *replies(1)]
    assert client.datasets.upload_parts(**sent).rows == 5
    uploads = [(key, body) for key, body in zip(script.keys, script.bodies, strict=True) if key is not None]
    assert [key for key, _ in uploads] == ["june-0", "june-1", "june-0", "june-1", "june-2"]
    assert uploads[:2] == uploads[2:4]


def test_columns_are_mapped_in_every_part(client: Client, script: Any) -> None:
    """And a column that is not declared is refused before its part is sent."""
    known = httpx.Response(200, json=REGISTERED)
    script.steps = [known, *replies(1), known, *replies(1), known]
    sent: Any = {"dataset": "d", "table": "people", "data": b"ID,age\na,1\nb,2\n", "rows": 1}
    client.datasets.upload_parts(**sent, columns={"ID": "person_id"})
    assert [body for body in script.bodies if body] == [b"person_id,age\na,1\n", b"person_id,age\nb,2\n"]
    with pytest.raises(ColumnsError, match="'height' is not declared"):
        client.datasets.upload_parts(dataset="d", table="people", data={"person_id": ["a"], "height": [2]})


def test_keys_are_made_anew_by_default(client: Client, script: Any) -> None:
    """Two calls are two uploads."""
    script.steps = replies(1, 1)
    for _ in range(2):
        client.datasets.upload_parts(dataset="d", table="people", data=b"person_id\na\n")
    first, second = (key.rpartition("-") for key in script.keys)
    assert first[0] != second[0]
    assert first[2] == second[2] == "0"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({}, ValueError, "give data, or files"),
        ({"data": CSV, "files": [CSV]}, ValueError, "give data, or files"),
        ({"data": CSV, "rows": 0}, ValueError, "rows must be at least 1, got 0"),
        ({"data": CSV, "idempotency_key": "k"}, TypeError, "upload_parts() takes no idempotency_key"),
    ],
)
def test_what_makes_no_sense_is_refused(client: Client, options: Any, error: type[Exception], said: str) -> None:
    """Before anything is read or sent."""
    with pytest.raises(error) as refused:
        client.datasets.upload_parts(dataset="d", table="people", **options)
    assert str(refused.value) == said
