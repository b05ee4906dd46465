"""CSV by RFC 4180, and typed arrays of Parquet and Arrow: what fits the columns, and refusals with their row."""

import io
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.engine.ingest import FileForm, RowsProblem
from service.engine.ingest.csv_text import ROW_BYTES_MAX, lines_of_rows
from service.engine.ingest.reader import read_rows
from tests.engine.ingest.uploads import ARROW, CSV, PARQUET, PEOPLE, VISITS, arrow, csv, parquet, places, problems, read


def test_quoted_fields_hold_commas_quotes_and_line_breaks() -> None:
    """RFC 4180, section 2, says so; lines end either way, and the last one need not end."""
    body = b'id,country,age,spend,member\r\n"a,""b""\r\nc",NO,1,1,1\r\nd,SE,2,2,0'
    assert list(read(body).keys) == ['a,"b"\r\nc', "d"]


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    """Spreadsheets write one."""
    assert list(read(b"\xef\xbb\xbf" + csv("a,NO,1,1,1")).keys) == ["a"]


def test_blank_lines_are_no_rows() -> None:
    """Before the header, between rows and at the end."""
    assert list(read(b"\n" + csv("a,NO,1,1,1", "", "b,NO,1,1,1", "", "")).keys) == ["a", "b"]


def test_a_row_must_be_as_long_as_the_header() -> None:
    """Longer and shorter rows are named; what stands in rows before them is looked at, too."""
    body = csv("a,NO,x,1,1", "b,NO,1,1", "c,NO,1,1,1,1", "d,NO,x,1,1")
    assert problems(body) == [
        (1, "age", "not an integer (line 2 of the file)"),
        (2, None, "4 fields where the header has 5 (line 3 of the file)"),
        (3, None, "6 fields where the header has 5 (line 4 of the file)"),
    ]


def test_many_broken_rows_are_given_up_on() -> None:
    """The first twenty are named."""
    assert places(csv(*["a,b"] * 50)) == [(row, None) for row in range(1, 21)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "header line is required"),
        (b"\n\n", "header line is required"),
        (b"id,country\xff\n", "header is not UTF-8"),
        ("id,country,age,spend,member\na,NO,1,1,1\n".encode("utf-16"), "header is not UTF-8"),
        (csv('a,"NO,1,1,1', "b,NO,1,1,1"), "not closed"),
        (b'id,"country\n', "not closed"),
        (csv("a,NO,1,1," + "1" * (2 * ROW_BYTES_MAX)), "longer than"),
    ],
)
def test_a_file_that_cannot_be_split_is_refused_as_a_whole(body: bytes, message: str) -> None:
    """A cut upload must not pass for a whole one."""
    [(row, column, found)] = problems(body)
    assert (row, column) == (None, None)
    assert message in found


def test_text_must_be_utf8() -> None:
    """Latin-1 is named where it stands."""
    assert places(csv("a,NO,1,1,1") + b"\xe4,NO,1,1,1\n" + b"c,\xe4,1,1,1\n") == [(2, "id"), (3, "country")]


def test_an_empty_field_is_null_quoted_or_not() -> None:
    """CSV has no other word for it."""
    assert read(csv('a,"",,"",')).nulls == {"country": 1, "age": 1, "spend": 1, "member": 1}


def test_a_file_comes_in_pieces_of_any_size() -> None:
    """A source may give fewer bytes than it was asked for, and end in the middle of a writer."""

    class Trickle(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 7, 7))

    body = csv("a,NO,1,1,1", '"b,",SE,2,2,0').rstrip()
    assert list(read_rows(Trickle(body), CSV, PEOPLE, budget_units=1).keys) == ["a", "b,"]


def test_lines_are_looked_up_where_the_file_can_be_read_again() -> None:
    """A source that is no file, or breaks Python's reader, has no line numbers."""

    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

    assert lines_of_rows(Stream(csv("a", "b")), {1}) == {}
    assert lines_of_rows(io.BytesIO(csv("a", "b")), set()) == {}
    assert lines_of_rows(io.BytesIO(csv("x" * 200_000, "b")), {2}) == {}
    source = io.BytesIO(csv("a", "b"))
    assert lines_of_rows(source, {2, 9}) == {2: 3}
    assert not source.closed


@pytest.mark.parametrize(("mark", "shown"), [(";", "';'"), ("\t", "a tab"), ("|", "'|'")])
def test_another_mark_between_fields_is_recognised_and_taken(mark: str, shown: str) -> None:
    """A header between other marks is named with the parameter that reads it; quoted fields may hold the mark."""
    body = csv("a,NO,1,2,1").replace(b",", mark.encode()) + f'"b{mark}c"{mark}SE{mark}1{mark}1{mark}0\n'.encode()
    [(row, column, message)] = problems(body)
    assert (row, column) == (None, None)
    assert message == f"the header looks delimited by {shown}: state it as the parameter `delimiter`"
    rows = read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=1, form=FileForm(delimiter=mark))
    assert list(rows.keys) == ["a", f"b{mark}c"]
    with pytest.raises(RowsProblem, match="looks delimited by ','"):
        read_rows(io.BytesIO(csv("a,NO,1,2,1")), CSV, PEOPLE, budget_units=1, form=FileForm(delimiter=mark))


def test_a_problem_gives_the_line_of_a_file_with_another_mark() -> None:
    """A field that spans lines is found again by the same mark."""
    body = csv('"a\n1",NO,1,2,1', "b,NO,x,1,1").replace(b",", b";")
    with pytest.raises(RowsProblem, match="line 4 of the file"):
        read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=1, form=FileForm(delimiter=";"))


def test_a_single_unknown_name_without_marks_is_an_unknown_column() -> None:
    """No mark is suspected where none is."""
    assert ("person", "the column is not declared") in [(c, m) for _, c, m in problems(csv("a", header="person"))]


GOOD: dict[str, Any] = {
    "id": ["a", "b"],
    "country": ["NO", "SE"],
    "age": [1, 2],
    "spend": [1.5, 2.0],
    "member": [True, None],
}


@pytest.mark.parametrize(
    ("column", "array", "codes"),
    [
        ("country", pa.array(["SE", "NO"]).dictionary_encode(), [1, 0]),
        ("country", pa.array(["SE", None], pa.large_string()), [1, 2]),
        ("country", pa.array(["SE", "SE"], pa.string_view()), [1, 1]),
        ("country", pa.array([b"SE", b"NO"], pa.binary()), [1, 0]),
        ("country", pa.array([5, 6], pa.int8()), [2, 2]),
        ("country", pa.nulls(2), [2, 2]),
        ("age", pa.array([200, 7], pa.uint64()), [120, 7]),
        ("age", pa.array([None, -9], pa.int8()), [121, 0]),
        ("age", pa.nulls(2), [121, 121]),
        ("spend", pa.array([0, 1000], pa.int16()), [0, 500 * 2**43]),
        ("spend", pa.array([Decimal("1.25"), None]), [5 * 2**41, 500 * 2**43 + 1]),
        ("spend", pa.array(np.array([0.5, 1], dtype=np.float16)), [2**42, 2**43]),
        ("member", pa.array([0, 1], pa.int8()), [0, 1]),
        ("member", pa.array([True, None]), [1, 2]),
    ],
)
def test_a_type_that_can_hold_the_column_is_read(column: str, array: pa.Array, codes: list[int]) -> None:
    """Any width, any layout, integers for numbers and booleans."""
    assert read(arrow(GOOD | {column: array}), ARROW).codes[column].tolist() == codes


def test_runs_are_unrolled() -> None:
    """Run-end encoding is another layout of the same values."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([7]))
    assert read(arrow(GOOD | {"age": runs}), ARROW).codes["age"].tolist() == [7, 7]


@pytest.mark.parametrize("write", [(PARQUET, parquet), (ARROW, arrow)])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", [1.5, 2.5]),
        ("id", [True, False]),
        ("age", ["1", "2"]),
        ("age", [True, False]),
        ("spend", ["1", "2"]),
        ("spend", [date(2020, 1, 1), None]),
        ("member", ["true", "false"]),
        ("country", [["NO"], ["SE"]]),
    ],
)
def test_a_type_that_cannot_is_refused(write: tuple[str, Any], column: str, values: list[Any]) -> None:
    """The column is named; no row is to blame."""
    content_type, written = write
    assert places(written(GOOD | {column: values}), content_type) == [(None, column)]


@pytest.mark.parametrize(
    ("column", "array", "row"),
    [
        ("spend", pa.array([float("inf"), 1.0]), 1),
        ("age", pa.array([1, 2**63], pa.uint64()), 2),
        ("member", pa.array([1, 2], pa.int8()), 2),
        ("id", pa.array(["a", None]), 2),
        ("country", pa.array([b"NO", b"\xff"], pa.binary()), 2),
    ],
)
def test_a_value_that_is_none_is_named(column: str, array: pa.Array, row: int) -> None:
    """By row and column."""
    assert places(parquet(GOOD | {column: array}), PARQUET) == [(row, column)]


def test_text_that_is_not_utf8_is_named_in_its_row() -> None:
    """An Arrow string may hold any bytes; it is checked before it is read."""
    broken = pa.array([b"NO"] * 4 + [b"\xff"]).view(pa.string())
    columns = {"id": ["a", "b", "c", "d", "e"], "country": broken, "age": [1] * 5, "spend": [1] * 5, "member": [1] * 5}
    assert problems(arrow(columns), ARROW) == [(5, "country", "not valid UTF-8")]
    assert problems(parquet(columns), PARQUET) == [(5, "country", "not valid UTF-8")]


def test_an_array_that_reaches_outside_its_buffers_is_refused() -> None:
    """Offsets come from the writer of the stream, and would be followed into foreign memory."""
    body = bytearray(arrow({"id": ["abcdefgh"] * 2, "item": [1, 2]}))
    place = body.index(np.array([0, 8, 16], dtype="<i4").tobytes())
    body[place + 4 : place + 8] = np.array([2**30], dtype="<i4").tobytes()
    assert problems(bytes(body), ARROW, VISITS) == [(None, "id", "a malformed array")]


@pytest.mark.parametrize(
    "body", [b"", b"PAR1", b"not a file of columns at all", arrow(GOOD)[:300], parquet(GOOD)[:-20]]
)
@pytest.mark.parametrize("content_type", [PARQUET, ARROW])
def test_what_is_no_such_file_is_refused(body: bytes, content_type: str) -> None:
    """For every outcome of the reader."""
    [(row, column, message)] = problems(body, content_type)
    assert (row, column) == (None, None)
    assert "not a readable" in message
