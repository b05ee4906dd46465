"""NDJSON: the declared members in every line, in their own JSON types, once each."""

import pytest

from service.engine.ingest.ndjson import LINE_BYTES_MAX
from tests.engine.ingest.uploads import NDJSON, VISITS, places, problems, read

GOOD = '{"id": "a", "country": "NO", "age": 1, "spend": 2.5, "member": true}'


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('{"id": "a"', (1, None)),
        ("[1, 2]", (1, None)),
        ("7", (1, None)),
        (GOOD.replace("2.5", "NaN"), (1, None)),
        (GOOD.replace("2.5", "1e400"), (1, None)),
        (GOOD.replace("2.5", "-Infinity"), (1, None)),
        (GOOD.replace('"a"', '"\\ud800"'), (1, None)),
        (GOOD.replace('"member": true', '"member": true, "member": true'), (1, None)),
        (GOOD + GOOD, (1, None)),
        ("[" * 100_000, (1, None)),
        (GOOD.replace('"age": 1, ', ""), (1, "age")),
        (GOOD.replace('"age": 1', '"age": 1, "more": 2'), (1, "more")),
        (GOOD.replace('"NO"', "true"), (1, "country")),
        (GOOD.replace('"age": 1', '"age": 1.5'), (1, "age")),
        (GOOD.replace('"age": 1', '"age": "1"'), (1, "age")),
        (GOOD.replace('"age": 1', '"age": true'), (1, "age")),
        (GOOD.replace('"age": 1', '"age": 18446744073709551615'), (1, "age")),
        (GOOD.replace('"age": 1', '"age": 99999999999999999999'), (1, "age")),
        (GOOD.replace("2.5", '"2.5"'), (1, "spend")),
        (GOOD.replace("2.5", "[2.5]"), (1, "spend")),
        (GOOD.replace("2.5", '{"x": 2.5}'), (1, "spend")),
        (GOOD.replace("true", '"true"'), (1, "member")),
        (GOOD.replace("true", "2"), (1, "member")),
        (GOOD.replace("true", "0.5"), (1, "member")),
        (GOOD.replace('"a"', "1.5"), (1, "id")),
        (GOOD.replace('"a"', "null"), (1, "id")),
        (GOOD.replace('"a"', '""'), (1, "id")),
    ],
)
def test_what_is_wrong_in_a_line_is_named(line: str, place: tuple[int, str | None]) -> None:
    """By its row, and by its column where it has one."""
    assert places(line.encode(), NDJSON) == [place]


def test_values_may_hold_colons_and_members_come_in_any_order() -> None:
    """Colons outside of members make a row suspicious, not wrong."""
    line = '{"member": 0, "country": "a:b", "id": "x:y", "spend": 3, "age": null}'
    rows = read(line.encode(), NDJSON)
    assert list(rows.keys) == ["x:y"]
    assert rows.out_of_domain["country"] == 1
    assert rows.codes["member"].tolist() == [0]


def test_blank_lines_and_a_byte_order_mark_are_no_rows() -> None:
    """Rows are counted without them; line ends may be Windows'."""
    body = b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n\r\n  \n" + GOOD.replace('"a"', '"b"').encode() + b"\n\n"
    assert list(read(body, NDJSON).keys) == ["a", "b"]
    assert places(GOOD.encode() + b"\n\nnope\n", NDJSON) == [(2, None)]


def test_a_line_without_an_end_is_not_read_to_its_end() -> None:
    """A line is in memory as a whole, and so has a longest."""
    [(row, column, message)] = problems(b" " * (LINE_BYTES_MAX + 1), NDJSON)
    assert (row, column) == (None, None)
    assert "line 1 of the file is longer" in message


def test_a_message_says_what_kind_of_value_was_found() -> None:
    """In the words of JSON."""
    assert "an object" in problems(b'{"id": "a", "item": {}}', NDJSON, VISITS)[0][2]


def test_whole_numbers_may_have_a_point() -> None:
    """A data frame with missing values writes them so; a category of 1.5 is not declared, as in CSV."""
    line = GOOD.replace('"age": 1', '"age": 41.0').replace("true", "1.0").replace('"NO"', "1.5")
    rows = read(line.encode(), NDJSON)
    assert (rows.codes["age"].tolist(), rows.codes["member"].tolist()) == ([41], [1])
    assert rows.out_of_domain["country"] == 1
