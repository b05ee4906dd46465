"""Parquet and Arrow: types that fit the declared column, arrays that are what they claim."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.ingest.uploads import ARROW, PARQUET, VISITS, arrow, parquet, places, problems, read

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
        ("spend", pa.array([1.0, float("nan")]), 2),
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
