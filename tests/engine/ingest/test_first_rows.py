"""The first rows of Parquet and Arrow as CSV: the forms of all types, what is left out, and where they end."""

import csv
import io
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from service.engine.ingest import FirstRows, RowsProblem, first_rows
from service.engine.ingest.first_rows import read_first_rows
from tests.engine.ingest.uploads import ARROW, PARQUET, arrow, parquet, stream

NEW_YORK = pa.array([datetime(2024, 2, 29, 23, 30, tzinfo=UTC)], pa.timestamp("ms", "America/New_York"))


def first(body: bytes, content_type: str = ARROW) -> FirstRows:
    """The first rows of a body."""
    return read_first_rows(io.BytesIO(body), content_type)


def fields(found: FirstRows) -> list[list[str]]:
    """The fields that a reader of CSV finds, the header first."""
    return list(csv.reader(io.StringIO(found.csv, newline="")))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([0, -5, 2**63 - 1]), ["0", "-5", "9223372036854775807"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([1.0, -0.0, 0.1, 1e16, float("nan"), None]), ["1", "0", "0.1", "1e+16", "", ""]),
        (pa.array([float("inf"), float("-inf")]), ["1e999", "-1e999"]),
        (pa.array([0.5, 2.0], pa.float16()), ["0.5", "2"]),
        (pa.array([Decimal("1.50"), Decimal("2.00"), None]), ["1.5", "2", ""]),
        (pa.array([True, False, None]), ["true", "false", ""]),
        (pa.array([date(2024, 2, 29), date(1, 1, 1)]), ["2024-02-29", "0001-01-01"]),
        (pa.array([date(2024, 2, 29)], pa.date64()), ["2024-02-29"]),
        (pa.array([10**7, -(10**7)], pa.int32()).cast(pa.date32()), ["9999-12-31", "0001-01-01"]),
        (NEW_YORK, ["2024-02-29T23:30:00.000Z"]),
        (pa.array([1_709_249_401], pa.timestamp("s")), ["2024-02-29T23:30:01Z"]),
        (
            pa.array([2**62, -(2**62)], pa.timestamp("us")),
            ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z"],
        ),
        (pa.array([2**63 - 1], pa.timestamp("ns")), ["2262-04-11T23:47:16.854775807Z"]),
        (pa.array(['a "b"', "c,d", "e\nf", "", None]), ['a "b"', "c,d", "e\nf", "", ""]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array(["a"], pa.large_string()), ["a"]),
        (pa.array(["a"], pa.string_view()), ["a"]),
        (pa.array([date(2024, 2, 29), None]).dictionary_encode(), ["2024-02-29", ""]),
        (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, 8])), ["7", "7", "8"]),
        (pa.nulls(2), ["", ""]),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else "",
)
def test_each_type_has_the_form_of_csv(values: pa.Array, texts: list[str]) -> None:
    """Whole numbers without a point, dates within four digits of a year, and nothing for what is missing."""
    found = first(arrow({"number": range(len(values)), "value": values}))
    assert fields(found) == [["number", "value"], *([str(number), text] for number, text in enumerate(texts))]


def test_a_column_of_text_is_told_whatever_its_layout() -> None:
    """Its values may look like numbers."""
    texts = pa.array(["01", "2024-01-01"])
    found = first(arrow({"a": texts, "b": texts.dictionary_encode(), "c": texts.cast(pa.string_view()), "d": [1, 2]}))
    assert found.text_columns == ("a", "b", "c")


@pytest.mark.parametrize(("content_type", "write"), [(PARQUET, parquet), (ARROW, arrow)])
def test_what_has_no_form_as_text_is_left_out_by_name(content_type: str, write: Any) -> None:
    """Lists, structures, bytes, times of day and durations, and an index without a name; the others stay in order."""
    columns = {
        "list": [[1], []],
        "a": [1, 2],
        "structure": [{"a": 1}, None],
        "bytes": [b"x", b"y"],
        "a.b": ["x", "y"],
        "at": [time(1), None],
        "__index_level_0__": [5, 6],
        "took": [timedelta(1), None],
    }
    found = first(write(columns), content_type)
    assert fields(found) == [["a", "a.b"], ["1", "x"], ["2", "y"]]
    other, times = (first_rows._OTHER, first_rows._TIMES_OF_DAY)
    assert found.left_out == {
        **dict.fromkeys(("list", "structure", "bytes"), other),
        **dict.fromkeys(("at", "took"), times),
        "__index_level_0__": "it is an index without a name",
    }


@pytest.mark.parametrize(("content_type", "write"), [(PARQUET, parquet), (ARROW, arrow)])
@pytest.mark.parametrize("most", [1, 3, 5, 6])
def test_the_rows_end_at_their_number(
    monkeypatch: pytest.MonkeyPatch, content_type: str, write: Any, most: int
) -> None:
    """And the report says whether these are all."""
    monkeypatch.setattr(first_rows, "ROWS_MAX", most)
    found = first(write({"a": range(5)}), content_type)
    assert (found.rows, found.is_whole) == (min(most, 5), most >= 5)
    assert [row[0] for row in fields(found)[1:]] == [str(number) for number in range(min(most, 5))]


def test_the_rows_end_at_their_bytes_as_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """With header and line ends: three of header, and seven of a row."""
    body = arrow({"a": ["é" * 2 + "x"] * 4})
    for most, rows in ((3 + 4 * 7, 4), (3 + 4 * 7 - 1, 3), (3 + 7, 1)):
        monkeypatch.setattr(first_rows, "CSV_BYTES_MAX", most)
        found = first(body)
        assert (found.rows, found.is_whole) == (rows, rows == 4)
        assert len(found.csv.encode()) == 3 + 7 * rows
    monkeypatch.setattr(first_rows, "CSV_BYTES_MAX", 3 + 6)
    with pytest.raises(RowsProblem, match="the first row takes more than 9 bytes as CSV"):
        first(body)


@pytest.mark.parametrize(("content_type", "write"), [(PARQUET, parquet), (ARROW, arrow)])
def test_a_file_without_rows_is_a_header(content_type: str, write: Any) -> None:
    """And whole."""
    found = first(write({"a": pa.array([], pa.int64())}), content_type)
    assert (found.csv, found.rows, found.is_whole) == ("a\r\n", 0, True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not a readable Arrow stream"),
        (b"PAR1", "the body is not a readable Arrow stream"),
        (arrow({"a": [1, 2, 3]})[:-80], "the body is not a readable Arrow stream"),
        (arrow({"a": [[1]], "b": [b"x"]}), "no column holds numbers, text, booleans or times"),
        (arrow({}), "no column holds numbers, text, booleans or times"),
        (arrow({f"c{number}": [1] for number in range(2**12 + 1)}), "the file has 4097 columns: at most 4096 are read"),
        (arrow({"a" * (2**18 + 1): [1]}), "the names of the columns take more than 262144 bytes"),
    ],
    ids=range(7),
)
def test_what_is_no_such_file_is_refused(body: bytes, message: str) -> None:
    """With the reason."""
    with pytest.raises(RowsProblem, match=message):
        first(body)


def test_two_columns_of_one_name_are_refused() -> None:
    """A proposal could not say which is meant."""
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(RowsProblem, match="column a: the column appears more than once"):
        first(stream(batch))


def test_text_that_is_none_is_refused() -> None:
    """By row and column, as in an upload."""
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(RowsProblem, match="row 1, column a: not valid UTF-8"):
        first(arrow({"a": broken}))
