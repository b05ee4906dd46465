"""Dates and times of every format come to the same codes; what is none is named."""

import datetime as dt
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.ingest.problems import RowsProblem
from service.engine.ingest.reader import ARROW, CSV, NDJSON, Rows, read_rows
from service.query.schema import Schema

TABLE = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {
                "born": {"type": "date", "lower": "1900-01-01", "upper": "2030-12-31"},
                "seen": {"type": "datetime", "lower": "2000-01-01T00:00:00Z", "upper": "2030-12-31T23:59:59Z"},
            },
        }
    }
).table("people")
BORN, SEEN = (dt.date(1900, 1, 1), dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
Moment = dt.datetime | None
MOMENTS = st.none() | st.datetimes(
    SEEN.replace(tzinfo=None), SEEN.replace(tzinfo=None, year=2030), timezones=st.just(dt.UTC)
)


def read(content: bytes, content_type: str) -> Rows:
    """An upload."""
    return read_rows(io.BytesIO(content), content_type, TABLE, budget_units=1)


def arrow(born: pa.Array, seen: pa.Array) -> bytes:
    """An Arrow stream."""
    table = pa.table({"id": [str(n) for n in range(len(born))], "born": born, "seen": seen})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def codes(moments: list[Moment]) -> tuple[list[int], list[int]]:
    """The codes by hand."""
    last = (dt.date(2030, 12, 31) - BORN).days, (dt.datetime(2030, 12, 31, 23, 59, 59, tzinfo=dt.UTC) - SEEN)
    nulls = last[0] + 1, int(last[1].total_seconds()) + 1
    born = [nulls[0] if each is None else (each.date() - BORN).days for each in moments]
    seen = [nulls[1] if each is None else (each - SEEN) // dt.timedelta(seconds=1) for each in moments]
    return born, seen


@given(st.lists(MOMENTS, min_size=1, max_size=8))
def test_every_format_gives_the_same_codes(moments: list[Moment]) -> None:
    """Text of CSV and NDJSON, and Arrow's dates and times of every unit, with and without a zone."""
    days = [None if each is None else each.date() for each in moments]
    texts = [("", "") if each is None else (f"{each.date()}", each.isoformat()) for each in moments]
    csv = "\n".join(["id,born,seen", *(f"{n},{a},{b}" for n, (a, b) in enumerate(texts))]).encode()
    rows = [{"id": n, "born": a or None, "seen": b or None} for n, (a, b) in enumerate(texts)]
    uploads = [(csv, CSV), ("\n".join(map(json.dumps, rows)).encode(), NDJSON)]
    naive = [None if each is None else each.replace(tzinfo=None) for each in moments]
    for unit in ("us", "ns", "ms", "s"):
        times = pa.array(naive, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        uploads.append((arrow(pa.array(days, pa.date32()), times), ARROW))
        uploads.append((arrow(pa.array(days, pa.date64()), times.cast(pa.timestamp(unit, "Asia/Tokyo"))), ARROW))
    uploads.append((arrow(pa.array([a or None for a, _ in texts]), pa.array([b or None for _, b in texts])), ARROW))
    uploads.append((arrow(pa.array(naive, pa.timestamp("us")), pa.array(naive, pa.timestamp("us"))), ARROW))
    for content, content_type in uploads:
        found = read(content, content_type).codes
        assert (found["born"].tolist(), found["seen"].tolist()) == codes(moments)


def test_what_is_outside_is_moved_to_the_nearer_bound_and_counted() -> None:
    """As a number is."""
    body = b"id,born,seen\na,1890-05-05,1999-12-31T23:59:59Z\nb,2031-01-01,2400-01-01T00:00:00Z\n"
    found = read(body, CSV)
    spans = [
        (dt.date(2030, 12, 31) - BORN).days,
        int((dt.datetime(2031, 1, 1, tzinfo=dt.UTC) - SEEN).total_seconds()) - 1,
    ]
    assert [found.codes[name].tolist() for name in ("born", "seen")] == [[0, span] for span in spans]
    assert found.clipped == {"born": 2, "seen": 2}


def test_a_frame_of_pandas_is_read_with_its_missing_times() -> None:
    """NaT is NULL, and a time of day in a column of dates counts as its day."""
    seen = pd.Series(pd.to_datetime(["2026-03-31T23:59:59.999", None]))
    found = read(arrow(pa.Array.from_pandas(seen), pa.Array.from_pandas(seen)), ARROW)
    assert (found.nulls, found.codes["born"][0]) == ({"born": 1, "seen": 1}, (dt.date(2026, 3, 31) - BORN).days)
    assert found.codes["seen"][0] == np.datetime64("2026-03-31T23:59:59").astype(int) - int(SEEN.timestamp())


@pytest.mark.parametrize(
    ("born", "seen", "column", "message"),
    [
        ("31.03.2026", "2026-01-01", "born", "not a date: write it as 2026-03-31"),
        ("2026-02-29", "2026-01-01", "born", "not a date: write it as 2026-03-31"),
        ("2026-03-31T00:00:00", "2026-01-01", "born", "not a date: write it as 2026-03-31"),
        ("2026-03-31", "today", "seen", "not a time: write it as 2026-03-31T23:59:59Z"),
    ],
)
def test_text_that_is_no_time_is_named(born: str, seen: str, column: str, message: str) -> None:
    """With row, line and column; nothing is guessed."""
    with pytest.raises(RowsProblem) as refused:
        read(f"id,born,seen\na,,\nb,{born},{seen}\n".encode(), CSV)
    (error,) = refused.value.errors
    assert (error.row, error.column, error.message) == (2, column, f"{message} (line 3 of the file)")


def test_a_column_of_numbers_holds_no_times() -> None:
    """Days since when?"""
    with pytest.raises(RowsProblem, match="the column holds int64, not dates"):
        read(arrow(pa.array([20000]), pa.array([0], pa.timestamp("s"))), ARROW)
