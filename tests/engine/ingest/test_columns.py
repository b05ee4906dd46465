"""Written values of every format become codes: numbers, booleans, dates and times; what is none is named."""

import datetime as dt
import io
import json
import math
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.arrays import Mask
from service.engine.ingest.columns import code_column
from service.engine.ingest.problems import RowsProblem
from service.engine.ingest.reader import CSV, NDJSON, read_rows
from service.engine.ingest.rows import FileForm, Rows
from service.query.columns import coding_of
from service.query.schema import BooleanColumn, CategoryColumn, IndividualsTable, IntegerColumn, RealColumn, Schema
from tests.engine.ingest.uploads import ARROW, stream

AGE = IntegerColumn(type="integer", lower=0, upper=120)
WIDE = IntegerColumn(type="integer", lower=-(2**53) + 1, upper=2**53 - 1)
SPEND = RealColumn(type="real", lower=-0.7, upper=0.1)
MEMBER = BooleanColumn(type="boolean")
ITEM = CategoryColumn(type="category", size=300)


class Reports(list[tuple[list[int], str]]):
    """The reports: rows and errors."""

    def __call__(self, wrong: Mask, message: str) -> None:
        if wrong.any():
            self.append((np.flatnonzero(wrong).tolist(), message))


def coded(column: BooleanColumn | CategoryColumn | IntegerColumn | RealColumn, *texts: str | None) -> list[int]:
    """Codes of written values with which nothing is wrong."""
    reports = Reports()
    codes = code_column(column, pa.array(texts, pa.string()), reports, is_text=True).codes
    assert reports == []
    return [int(code) for code in codes]


MOST = 2**53 - 1
LISTED = CategoryColumn(type="category", categories=(1, 2, "2.0"))
GRADE = CategoryColumn(type="category", categories=(3, "1", 1, "x"))


@pytest.mark.parametrize(
    ("column", "texts", "codes"),
    [
        (AGE, ["1e+02", "1E1", "+5", "7.0", "120"], [100, 10, 5, 7, 120]),
        (AGE, ["99.0", None, "7.00", "-0.0", "120.0"], [99, 121, 7, 0, 120]),
        (AGE, ["0" * 5000 + "7"], [7]),
        (WIDE, ["-0", "007", str(2**63 - 1), str(-(2**63))], [MOST, MOST + 7, 2 * MOST, 0]),
        (WIDE, [f"{MOST}.0", f"{MOST}"], [2 * MOST] * 2),
        (MEMBER, ["t", "f", "T", "TRUE", "0"], [1, 0, 1, 1, 0]),
        (MEMBER, ["true", "FALSE", "True", "1", "0", None], [1, 0, 1, 1, 0, 2]),
        (MEMBER, ["1.0", "0.0"], [1, 0]),
        (CategoryColumn(type="category", size=9), ["8.0", "9.0"], [8, 9]),
        (LISTED, ["1.0", "2", "2.0", "1.00"], [0, 1, 2, 3]),
        (GRADE, ["3", "1", "x", "03", None], [0, 1, 3, 4, 4]),
    ],
)
def test_values_are_read_as_databases_and_statistics_write_them(
    column: IntegerColumn | BooleanColumn | CategoryColumn, texts: list[str | None], codes: list[int]
) -> None:
    """Whole numbers with an exponent, a plus sign or a point, booleans of any case, and categories by their text.

    A data frame with missing values writes its whole numbers and its booleans with a point. A number in the list of
    categories is found by its digits; of two that read alike the first counts.
    """
    assert coded(column, *texts) == codes


@pytest.mark.parametrize(
    "array",
    [
        pa.array([36.6, None, math.nan], pa.float32()),
        pa.array(np.array([36.6, math.nan, math.nan], np.float16)),
        pa.array([Decimal("36.6"), None, None], pa.decimal128(38, 17)),
        pa.array([36.6, None, math.nan]),
    ],
    ids=["32 bits", "16 bits", "a decimal", "64 bits"],
)
def test_a_number_is_the_decimal_that_it_is_printed_as(array: pa.Array) -> None:
    """However many bits it has; what is not a number is missing."""
    column = RealColumn(type="real", lower=30, upper=45)
    coding = coding_of(column)
    found = code_column(column, array, Reports(), is_text=False)
    assert found.codes.tolist() == [coding.code_of(36.6), coding.null_code, coding.null_code]
    assert (found.nulls, found.clipped) == (2, 0)


def test_a_decimal_comma_is_named_where_it_is_not_stated() -> None:
    """The message says the parameter."""
    reports = Reports()
    code_column(SPEND, pa.array(["0.1", "1,5"]), reports, is_text=True)
    assert reports == [([1], "not a number; of numbers such as 1,5 state decimal=','")]


def test_numbers_with_a_stated_comma_have_no_points() -> None:
    """A point may be a mark of thousands, and is refused."""
    x = RealColumn(type="real", lower=0, upper=9)
    table = IndividualsTable(kind="individuals", key="id", columns={"n": AGE, "x": x})
    read = partial(read_rows, content_type=CSV, table=table, budget_units=1, form=FileForm(delimiter=";", decimal=","))
    rows = read(io.BytesIO(b"id;n;x\na;5,0;1,5\n"))
    assert [int(rows.codes["n"][0]), int(rows.codes["x"][0])] == [5, coding_of(x).code_of(1.5)]
    with pytest.raises(RowsProblem, match="column x: not a number"):
        read(io.BytesIO(b"id;n;x\na;5;1.500\n"))


def test_categories_that_undeclared_texts_may_mean_are_counted() -> None:
    """But for case, blanks and forms of letters."""
    column = CategoryColumn(type="category", categories=("Oslo", "Ålesund"))
    texts = pa.array(["OSLO", "Oslo ", "A\u030aLESUND", "Bergen", "Oslo", None])
    found = code_column(column, texts, Reports(), is_text=True)
    assert (found.out_of_domain, found.nearest) == (4, {"Oslo": 2, "Ålesund": 1})


@pytest.mark.parametrize(
    ("column", "texts", "message"),
    [
        (
            AGE,
            "0x1F|1.5|1.|.0|1.0.0|1e-3|1e+|15e-1|1e99999|+-5| 5|5 |1_000|--1|-||½|٣|five|5\n".split("|"),
            "not an integer",
        ),
        (SPEND, "nan|NaN|inf|-Infinity|0x1p3|1.5.2|.|e5| 1|1d||1e".split("|"), "not a number"),
    ],
)
def test_what_is_no_number(column: IntegerColumn | RealColumn, texts: list[str], message: str) -> None:
    """Decimal digits with perhaps a minus, zeros behind a point or, of a real, an exponent, and nothing else."""
    for text in texts:
        reports = Reports()
        code_column(column, pa.array([None, text, "7"], pa.string()), reports, is_text=True)
        assert (text, reports) == (text, [([1], message)])


def test_a_number_beyond_a_double_is_not_clipped_but_refused() -> None:
    """1e400 would be infinity; 1e-400 is zero."""
    reports = Reports()
    code_column(SPEND, pa.array(["1e400", "-1e400", "1e-400"]), reports, is_text=True)
    assert reports == [([0, 1], "not a finite number")]


def test_integers_are_read_up_to_64_bits() -> None:
    """Beyond that they are refused, in whatever company."""
    reports = Reports()
    texts = [str(2**63), "7", str(-(2**63) - 1), "9" * 10_000, None, "-" + "0" * 30 + "5"]
    values = code_column(AGE, pa.array(texts), reports, is_text=True)
    assert reports == [([0, 2, 3], "does not fit in 64 bits")]
    assert values.codes[[1, 4, 5]].tolist() == [7, 121, 0]


def test_what_is_no_boolean() -> None:
    """Another word, an empty text and a part of a word."""
    reports = Reports()
    code_column(MEMBER, pa.array(["yes", "", None, "2", "tru"]), reports, is_text=True)
    assert [rows for rows, _ in reports] == [[0, 1, 3, 4]]


def test_numbered_categories_end_at_their_size() -> None:
    """Values out of the domain count in no category, and their number is reported."""
    column = code_column(ITEM, pa.array(["0", "299", "300", "-1", None]), Reports(), is_text=True)
    assert column.codes.tolist() == [0, 299, 300, 300, 300]
    assert (column.out_of_domain, column.nulls) == (2, 1)


def test_listed_numbers_are_found_among_numbers() -> None:
    """Their codes are those of the same numbers among texts."""
    whole = code_column(GRADE, pa.array([3, 1, 7]), Reports(), is_text=False)
    assert whole.codes.tolist() == [0, 1, 4]


@given(values=st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_numbers_are_coded_as_the_coding_says(values: list[float]) -> None:
    """The rule of Coding.code_of after clipping, whether written out or not."""
    coding = coding_of(SPEND)
    wanted = [coding.code_of(min(max(value, SPEND.lower), SPEND.upper)) for value in values]
    assert coded(SPEND, *map(repr, values)) == wanted
    column = code_column(SPEND, pa.array(values), Reports(), is_text=False)
    assert [int(code) for code in column.codes] == wanted
    assert column.clipped == sum(not SPEND.lower <= value <= SPEND.upper for value in values)


@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_are_coded_as_the_coding_says(values: list[int | None]) -> None:
    """Clipped, then counted from the lower bound."""
    coding = coding_of(WIDE)
    wanted = [coding.null_code if v is None else min(max(v, WIDE.lower), WIDE.upper) - WIDE.lower for v in values]
    assert coded(WIDE, *(None if value is None else str(value) for value in values)) == wanted
    assert code_column(WIDE, pa.array(values, pa.int64()), Reports(), is_text=False).codes.tolist() == wanted


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
).tables["people"]
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
    return stream(pa.table({"id": [str(n) for n in range(len(born))], "born": born, "seen": seen}))


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
    """Dates and times are clipped like numbers."""
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
        ("2026-03-31T25:00:00", "2026-01-01", "born", "not a date: write it as 2026-03-31"),
        ("2026-03-31", "today", "seen", "not a time: write it as 2026-03-31T23:59:59Z"),
    ],
)
def test_text_that_is_no_time_is_named(born: str, seen: str, column: str, message: str) -> None:
    """With row, line and column; nothing is guessed."""
    with pytest.raises(RowsProblem) as refused:
        read(f"id,born,seen\na,,\nb,{born},{seen}\n".encode(), CSV)
    (error,) = refused.value.errors
    assert (error.row, error.column, error.message) == (2, column, f"{message} (line 3 of the file)")


@pytest.mark.parametrize(
    ("text", "day", "second"),
    [
        ("2026-03-31 23:59:59.5+02", 31, "21:59:59"),
        ("2026-03-31 23:59:59 UTC", 31, "23:59:59"),
        ("2026-03-31 23:59:59.000 +0000", 31, "23:59:59"),
        ("2026-03-31T23:59:59.1234567 -00:30", 31, "00:29:59"),
    ],
)
def test_zones_are_read_as_databases_write_them(text: str, day: int, second: str) -> None:
    """The day of a time in a column of dates is the one that is written."""
    found = read(f"id,born,seen\na,{text},{text}\n".encode(), CSV)
    assert found.codes["born"][0] == (dt.date(2026, 3, day) - BORN).days
    assert (
        dt.datetime.fromtimestamp(int(found.codes["seen"][0]) + SEEN.timestamp(), dt.UTC).time().isoformat() == second
    )
    assert found.without_zone == ()


def test_the_day_of_an_instant_is_that_of_its_own_zone() -> None:
    """Midnight of Oslo is the day before in UTC. A time without a zone is said to be without one."""
    seen = pd.Series(pd.to_datetime(["2026-03-01"]).tz_localize("Europe/Oslo"))
    naive = pa.array([0], pa.timestamp("s"))
    found = read(arrow(pa.Array.from_pandas(seen), naive), ARROW)
    assert found.codes["born"][0] == (dt.date(2026, 3, 1) - BORN).days
    assert found.without_zone == ("seen",)


def test_a_column_of_numbers_holds_no_times() -> None:
    """Days since when?"""
    with pytest.raises(RowsProblem, match="the column holds int64, not dates"):
        read(arrow(pa.array([20000]), pa.array([0], pa.timestamp("s"))), ARROW)
