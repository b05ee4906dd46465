"""The accounts of a dataset as one file, made page by page while it is sent: a million rows take little memory."""

import csv
import io
from collections.abc import Iterator
from dataclasses import fields
from tempfile import SpooledTemporaryFile
from typing import Any, Final

from fastapi import Response
from starlette.responses import StreamingResponse

from service.workflows.curator import Curators
from service.workflows.model.views import BudgetRow

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
EXPORTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {each: {"schema": {"type": "string", "format": "binary"}} for each in (CSV, PARQUET)}}
}
_PAGE: Final = 1000
_MEMORY_BYTES_MAX: Final = 2**22
_CHUNK: Final = 2**16
_COLUMNS: Final = tuple(each.name for each in fields(BudgetRow))


def exported(dataset: str, accept: str | None, curators: Curators) -> Response:
    """The file: Parquet where `accept` names it, else CSV."""
    wants_parquet = accept is not None and PARQUET in accept
    pages = _pages(dataset, curators)
    first = next(pages, [])  # a refusal comes before the response begins
    chunks = _parquet(first, pages) if wants_parquet else _csv(first, pages)
    name = f"{dataset}-budgets.{'parquet' if wants_parquet else 'csv'}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chunks, media_type=PARQUET if wants_parquet else CSV, headers=headers)


def _pages(dataset: str, curators: Curators) -> Iterator[list[BudgetRow]]:
    cursor = None
    while True:
        page = curators.budgets(dataset, cursor=cursor, limit=_PAGE)
        yield list(page.items)
        cursor = page.next
        if cursor is None:
            return


def _csv(first: list[BudgetRow], pages: Iterator[list[BudgetRow]]) -> Iterator[bytes]:
    yield _lines([_COLUMNS])
    yield _lines([_safe(row) for row in first])
    for rows in pages:
        yield _lines([_safe(row) for row in rows])


def _safe(row: BudgetRow) -> list[object]:
    """The row's values; a key that a spreadsheet would take for a formula begins with an apostrophe."""
    key = f"'{row.key}" if row.key[:1] in {"=", "+", "-", "@", "\t", "\r"} else row.key
    return [key, *(getattr(row, name) for name in _COLUMNS[1:])]


def _lines(rows: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _parquet(first: list[BudgetRow], pages: Iterator[list[BudgetRow]]) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = {"spent_units": pa.int64(), "budget_units": pa.int64(), "paused": pa.bool_()}
    counts = dict.fromkeys(["queries_charged", "queries_left_out"], pa.int64())
    schema = pa.schema([(name, (types | counts).get(name, pa.string())) for name in _COLUMNS])
    with SpooledTemporaryFile(max_size=_MEMORY_BYTES_MAX) as spool:
        with pq.ParquetWriter(spool, schema, compression="zstd") as writer:
            for rows in (first, *pages):
                columns = {name: [getattr(row, name) for row in rows] for name in _COLUMNS}
                writer.write_table(pa.table(columns, schema=schema))
        spool.seek(0)
        while chunk := spool.read(_CHUNK):
            yield chunk
