"""Rows in all four formats, and the results of reading them."""

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.engine.ingest import Duplicates, Rows, RowsProblem
from service.engine.ingest.reader import read_rows
from service.engine.ingest.upload_size import UploadBounds
from service.query.schema import Schema, Table

CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
BUDGET = 2**40

SCHEMA = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {
                "country": {"type": "category", "categories": ["NO", "SE"]},
                "age": {"type": "integer", "lower": 0, "upper": 120},
                "spend": {"type": "real", "lower": 0, "upper": 500},
                "member": {"type": "boolean"},
            },
        },
        "visits": {"kind": "events", "key": "id", "columns": {"item": {"type": "category", "size": 1000}}},
    }
)
PEOPLE = SCHEMA.tables["people"]
VISITS = SCHEMA.tables["visits"]
NAMES = ("id", "country", "age", "spend", "member")


def with_limits() -> Table:
    """A table of individuals with limits of their own."""
    return Schema.model_validate(
        {"people": {"kind": "individuals", "key": "id", "columns": {"rho": {"type": "budget"}}}}
    ).tables["people"]


def csv(*lines: str, header: str = ",".join(NAMES)) -> bytes:
    """A file with a header line."""
    return "\n".join([header, *lines, ""]).encode()


def ndjson(*rows: Sequence[Any], names: Sequence[str] = NAMES) -> bytes:
    """One object a line."""
    return "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows).encode()


def arrow(columns: dict[str, Any]) -> bytes:
    """A stream of one batch for each two rows."""
    return stream(pa.table(columns), rows=2)


def stream(table: pa.Table | pa.RecordBatch, *, rows: int | None = None) -> bytes:
    """A stream of batches of so many rows, or of one."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        if rows is None:
            writer.write(table)
        else:
            writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def parquet(columns: dict[str, Any]) -> bytes:
    """A file of one row group for each two rows."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=2)
    return sink.getvalue()


def written(content_type: str, rows: Sequence[Sequence[Any]], names: Sequence[str] = NAMES) -> bytes:
    """The rows in any format; None is a value that is missing."""
    if content_type == CSV:
        lines = (",".join("" if value is None else str(value) for value in row) for row in rows)
        return csv(*lines, header=",".join(names))
    if content_type == NDJSON:
        return ndjson(*rows, names=names)
    columns = {name: pa.array([row[place] for row in rows]) for place, name in enumerate(names)}
    return (parquet if content_type == PARQUET else arrow)(columns)


def read(body: bytes, content_type: str = CSV, table: Table = PEOPLE, *, duplicates: Duplicates = "keep") -> Rows:
    """The rows of a body."""
    return read_rows(io.BytesIO(body), content_type, table, budget_units=BUDGET, duplicates=duplicates)


def read_within(body: bytes, content_type: str, table: Table, bounds: UploadBounds) -> Rows:
    """The rows of a body, under bounds."""
    return read_rows(io.BytesIO(body), content_type, table, budget_units=BUDGET, bounds=bounds)


def problems(body: bytes, content_type: str = CSV, table: Table = PEOPLE) -> list[tuple[int | None, str | None, str]]:
    """(row, column, message) of everything that is wrong with a body."""
    try:
        read(body, content_type, table)
    except RowsProblem as problem:
        return [(error.row, error.column, error.message) for error in problem.errors]
    raise AssertionError("nothing is wrong")


def places(body: bytes, content_type: str = CSV, table: Table = PEOPLE) -> list[tuple[int | None, str | None]]:
    """(row, column) of everything that is wrong with a body."""
    return [(row, column) for row, column, _ in problems(body, content_type, table)]
