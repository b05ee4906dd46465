"""RFC 4180, and what is not: refused, with the row where it can be told."""

import io

import pytest

from service.engine.ingest import RowsProblem
from service.engine.ingest.csv_text import ROW_BYTES_MAX, lines_of_rows
from service.engine.ingest.reader import read_rows
from tests.engine.ingest.uploads import CSV, PEOPLE, csv, places, problems, read


def test_quoted_fields_hold_commas_quotes_and_line_breaks() -> None:
    """As in RFC 4180, section 2; either line end, and none at the end of the file."""
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
    rows = read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=1, delimiter=mark)
    assert list(rows.keys) == ["a", f"b{mark}c"]
    with pytest.raises(RowsProblem, match="looks delimited by ','"):
        read_rows(io.BytesIO(csv("a,NO,1,2,1")), CSV, PEOPLE, budget_units=1, delimiter=mark)


def test_a_problem_gives_the_line_of_a_file_with_another_mark() -> None:
    """A field that spans lines is found again by the same mark."""
    body = csv('"a\n1",NO,1,2,1', "b,NO,x,1,1").replace(b",", b";")
    with pytest.raises(RowsProblem, match="line 4 of the file"):
        read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=1, delimiter=";")


def test_a_single_unknown_name_without_marks_is_an_unknown_column() -> None:
    """No mark is suspected where none is."""
    assert ("person", "the column is not declared") in [(c, m) for _, c, m in problems(csv("a", header="person"))]
