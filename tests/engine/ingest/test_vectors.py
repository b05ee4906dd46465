"""Uploads of vectors: lists in every layout and format, and every way in which a list is none of the column's."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.engine.ingest import RowsProblem, columnar
from service.engine.ingest.upload_size import UploadBounds
from service.query.schema import Schema, Table
from tests.engine.ingest.uploads import (
    ARROW,
    CSV,
    NDJSON,
    PARQUET,
    arrow,
    parquet,
    problems,
    read,
    read_within,
    written,
)

NUMBERS = [[1, 2, 300], None, [255, 0, 7], [-4, 0, 9]]
CODES = [[1, 1, 2, 255], [0, 0, 0, 0], [1, 255, 0, 7], [1, 0, 0, 9]]
LENGTH = "must be a list of 3 numbers"


def table(lower: int = 0, upper: int = 255, length: int = 3) -> Table:
    """Individuals with a vector each."""
    column = {"type": "vector", "length": length, "lower": lower, "upper": upper}
    people = {"kind": "individuals", "key": "id", "columns": {"pixels": column}}
    return Schema.model_validate({"people": people}).tables["people"]


def keys(count: int) -> list[str]:
    """One for each row."""
    return [f"p{place}" for place in range(count)]


def columns(values: pa.Array) -> dict[str, Any]:
    """The columns of a file."""
    return {"id": pa.array(keys(len(values))), "pixels": values}


def ndjson(values: list[Any]) -> bytes:
    """One object a line."""
    return written(NDJSON, list(zip(keys(len(values)), values, strict=True)), ("id", "pixels"))


def layouts() -> dict[str, pa.Array]:
    """The lists in every layout that is read."""
    plain = pa.array(NUMBERS, pa.list_(pa.float64()))
    kinds = {
        "list": pa.list_(pa.int64()),
        "large": pa.large_list(pa.int16()),
        "fixed": pa.list_(pa.int32(), 3),
        "floats": pa.list_(pa.float32()),
    }
    halves = [None if each is None else [np.float16(number) for number in each] for each in NUMBERS]
    longer = pa.concat_arrays([pa.array([[9, 9], None], kinds["list"]), plain.cast(kinds["list"])]).slice(2)
    fixed = pa.concat_arrays([pa.array([[9, 9, 9]], kinds["fixed"]), plain.cast(kinds["fixed"])]).slice(1)
    cast = {name: plain.cast(kind) for name, kind in kinds.items()}
    return cast | {"halves": pa.array(halves, pa.list_(pa.float16())), "sliced": longer, "fixed sliced": fixed}


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("content_type", [ARROW, PARQUET])
@pytest.mark.parametrize("piece_bytes", [2**23, 1])
def test_every_layout_gives_the_same_codes(
    monkeypatch: pytest.MonkeyPatch, layout: str, content_type: str, piece_bytes: int
) -> None:
    """In pieces of any size; numbers out of bounds are moved to them and their vectors counted."""
    monkeypatch.setattr(columnar, "PIECE_BYTES", piece_bytes)
    body = (arrow if content_type == ARROW else parquet)(columns(layouts()[layout]))
    found = read(body, content_type, table())
    assert found.codes["pixels"].dtype == np.uint8
    assert found.codes["pixels"].tolist() == CODES
    assert (found.clipped, found.nulls, found.out_of_domain) == ({"pixels": 2}, {"pixels": 1}, {"pixels": 0})


def test_json_lists_are_read_as_those_of_other_formats() -> None:
    """Whole numbers may be written as 2.0."""
    found = read(ndjson([[1, 2.0, 300], None, [255, 0, 7], [-4, -0.0, 9]]), NDJSON, table())
    assert found.codes["pixels"].tolist() == CODES
    assert (found.clipped, found.nulls) == ({"pixels": 2}, {"pixels": 1})


def test_bounds_below_zero_and_of_two_bytes() -> None:
    """A code is the number less the lower bound."""
    found = read(ndjson([[-300, 0, 300], [-301, 7, 2**62]]), NDJSON, table(-300, 300))
    assert found.codes["pixels"].dtype == np.uint16
    assert found.codes["pixels"].tolist() == [[1, 0, 300, 600], [1, 0, 307, 600]]
    unsigned = pa.array([[2**64 - 1, 0, 5]], pa.list_(pa.uint64()))
    assert read(arrow(columns(unsigned)), ARROW, table(-300, 300)).codes["pixels"].tolist() == [[1, 600, 300, 305]]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([[1, 2], [1, 2, 3], []], [(1, "pixels", LENGTH), (3, "pixels", LENGTH)]),
        ([[1, 2, None]], [(1, "pixels", "a number of the list is missing")]),
        ([[1, 2, 3], [1, 2, float("nan")]], [(2, "pixels", "a number of the list is not finite")]),
        ([[1, float("-inf"), 3]], [(1, "pixels", "a number of the list is not finite")]),
        ([[1, 2.5, 3]], [(1, "pixels", "a number of the list is not whole: it counts steps")]),
    ],
)
@pytest.mark.parametrize("content_type", [ARROW, PARQUET])
def test_a_list_that_is_no_vector_is_named_by_row(values: list[Any], found: list[Any], content_type: str) -> None:
    """Row and column, and never a number of the upload."""
    body = (arrow if content_type == ARROW else parquet)(columns(pa.array(values, pa.list_(pa.float64()))))
    assert problems(body, content_type, table()) == found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], LENGTH),
        ([1, None, 3], "the list holds something other than numbers"),
        ([1, "2", 3], "the list holds something other than numbers"),
        ([1, True, 3], "the list holds something other than numbers"),
        ([1, [2], 3], "the list holds something other than numbers"),
        ([1, 2.5, 3], "a number of the list is not whole: it counts steps"),
        (5, "an integer is not what the column holds"),
        ("1,2,3", "text is not what the column holds"),
        ({"0": 1}, "an object is not what the column holds"),
    ],
)
def test_json_that_is_no_vector_is_named_by_row(value: object, message: str) -> None:
    """The second row is at fault."""
    assert problems(ndjson([[1, 2, 3], value]), NDJSON, table()) == [(2, "pixels", message)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2]),
        pa.array(["a"]),
        pa.array([["a", "b", "c"]]),
        pa.array([[[1], [2], [3]]]),
        pa.array([{"x": 1}]),
        pa.array([[1, 2, 3]], pa.list_view(pa.int64())),
        pa.array([[True, False, True]]),
    ],
    ids=str,
)
def test_other_types_are_refused_as_a_whole(values: pa.Array) -> None:
    """Before any value is looked at."""
    (problem,) = problems(arrow(columns(values)), ARROW, table())
    assert problem[:2] == (None, "pixels")


def test_csv_holds_no_vectors() -> None:
    """Its refusal says what does."""
    message = "CSV holds no vectors: send NDJSON, Arrow or Parquet"
    assert problems(b"id,pixels\nann,1\n", CSV, table()) == [(None, "pixels", message)]


def test_a_column_of_nothing_holds_no_vector() -> None:
    """Arrow's null type, as a frame without values has it."""
    found = read(arrow(columns(pa.nulls(2))), ARROW, table())
    assert found.codes["pixels"].tolist() == [[0, 0, 0, 0]] * 2


@pytest.mark.parametrize("content_type", [ARROW, PARQUET, NDJSON])
def test_the_same_row_twice_can_be_dropped(content_type: str) -> None:
    """The numbers decide, and whether there are any: three zeros are not a missing vector."""
    values: list[Any] = [[1, 2, 3], [1, 2, 3], [0, 0, 0], None]
    body = written(content_type, list(zip("aabb", values, strict=True)), ("id", "pixels"))
    with pytest.raises(RowsProblem, match="row 4, column id: the same key as in row 3") as refused:
        read(body, content_type, table(), duplicates="drop")
    assert len(refused.value.errors) == 1


def test_the_bytes_of_lists_are_counted_as_they_are_once_expanded() -> None:
    """An Arrow stream has 18 bytes of keys and 36 of numbers."""
    body = arrow(columns(pa.array([[1, 2, 3]] * 9, pa.list_(pa.uint8(), 3))))
    read_within(body, ARROW, table(), UploadBounds(decoded_bytes=2 * 9 + 3 * 9))
    with pytest.raises(RowsProblem, match="45 bytes or more once decoded, and an upload may take 44"):
        read_within(body, ARROW, table(), UploadBounds(decoded_bytes=44))


def test_a_parquet_file_of_many_numbers_is_refused_by_what_it_says_of_itself() -> None:
    """A kilobyte for sixteen million numbers in one list: refused before any is decoded."""
    sink = io.BytesIO()
    lists = pa.ListArray.from_arrays([0, 2**24], pa.array(np.zeros(2**24, dtype=np.uint8)))
    pq.write_table(pa.table({"id": ["a"], "pixels": lists}), sink, compression="zstd")
    assert len(sink.getvalue()) < 2**14
    with pytest.raises(RowsProblem, match=f"{2**24} bytes or more once decoded"):
        read_within(sink.getvalue(), PARQUET, table(), UploadBounds(decoded_bytes=2**24 - 1))
    assert problems(sink.getvalue(), PARQUET, table()) == [(1, "pixels", LENGTH)]


def test_the_memory_of_vectors_is_counted_before_they_are_decoded() -> None:
    """Twice what is kept of a row."""
    body = arrow(columns(pa.array([[0] * 1000] * 100, pa.list_(pa.uint8(), 1000))))
    with pytest.raises(RowsProblem, match="bytes of memory"):
        read_within(body, ARROW, table(length=1000), UploadBounds(memory_bytes=2**26 + 2 * 100 * 1000))
    read_within(body, ARROW, table(length=1000), UploadBounds(memory_bytes=2**26 + 3 * 100 * 1000))
