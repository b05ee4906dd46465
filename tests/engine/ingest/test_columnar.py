"""Parquet and Arrow in pieces: the layouts in which a value may stand for many, and what is refused before decoding."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.engine.ingest import RowsProblem, columnar
from service.engine.ingest.upload_size import UploadBounds
from tests.engine.ingest.uploads import ARROW, PARQUET, VISITS, arrow, parquet, problems, read, read_within, stream

KEYS = ["ann", "bob", "ann", None, "eve", "bob"]


def layouts() -> dict[str, pa.Array]:
    """The keys in every layout."""
    plain = pa.array([key or "nil" for key in KEYS])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 7), pa.int32()), plain)
    longer = pa.concat_arrays([pa.array(["x" * 99]), plain]).slice(1)
    return {
        "plain": plain,
        "sliced": longer,
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "dictionary": plain.dictionary_encode(),
        "dictionary of views": pa.DictionaryArray.from_arrays(
            plain.dictionary_encode().indices, plain.dictionary_encode().dictionary.cast(pa.string_view())
        ),
        "dictionary of large": plain.cast(pa.large_string()).dictionary_encode(),
        "runs": runs,
        "binary": plain.cast(pa.binary()),
    }


def batch(columns: dict[str, pa.Array]) -> bytes:
    """An Arrow stream of one batch."""
    return stream(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize(("piece_rows", "piece_bytes"), [(2**16, 2**23), (2, 2**23), (2**16, 7), (4, 1)])
def test_every_layout_gives_the_same_keys_in_pieces_of_any_size(
    monkeypatch: pytest.MonkeyPatch, layout: str, piece_rows: int, piece_bytes: int
) -> None:
    """Pieces are cut by rows and by bytes; a row that is larger than a piece is one by itself."""
    monkeypatch.setattr(columnar, "PIECE_ROWS", piece_rows)
    monkeypatch.setattr(columnar, "PIECE_BYTES", piece_bytes)
    body = batch({"id": layouts()[layout], "item": pa.array(range(6))})
    assert list(read(body, ARROW, VISITS).keys) == [key or "nil" for key in KEYS]


@pytest.mark.parametrize("layout", ["plain", "large", "view", "dictionary", "runs"])
def test_bytes_are_counted_as_they_are_once_expanded(layout: str) -> None:
    """Every layout counts alike: 18 bytes of the keys and 48 of the items."""
    body = batch({"id": layouts()[layout], "item": pa.array(range(6))})
    read_within(body, ARROW, VISITS, UploadBounds(decoded_bytes=66))
    with pytest.raises(RowsProblem, match="66 bytes or more once decoded, and an upload may take 65"):
        read_within(body, ARROW, VISITS, UploadBounds(decoded_bytes=65))


def test_missing_values_count_nothing() -> None:
    """In a view, whose length may be anything there, and in a dictionary."""
    for layout in (pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        body = batch({"id": pa.array(["a", None], layout), "item": pa.nulls(2)})
        with pytest.raises(RowsProblem, match="the key is empty"):
            read_within(body, ARROW, VISITS, UploadBounds(decoded_bytes=1))


def test_text_that_repeats_in_parquet_is_read_as_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """And other text is not, nor text in an encoding without one."""
    rows = 1000
    same, other = ["ann"] * rows, [f"person-{number}" for number in range(rows)]
    found: list[str] = []
    value_bytes = columnar._value_bytes

    def noted(array: pa.Array) -> Any:
        found.append(str(array.type))
        return value_bytes(array)

    monkeypatch.setattr(columnar, "_value_bytes", noted)
    for keys, options in ((same, {}), (other, {}), (same, DELTA)):
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": keys, "item": np.zeros(rows, dtype=np.int8)}), sink, **options)
        assert list(read(sink.getvalue(), PARQUET, VISITS).keys) == keys
    assert [kind.startswith("dictionary") for kind in found if kind != "int8"] == [True, False, False, False]


DELTA: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BYTE_ARRAY", "item": "PLAIN"}}


@pytest.mark.parametrize(("content_type", "written"), [(ARROW, arrow), (PARQUET, parquet)])
def test_nested_columns_are_refused_by_their_type(content_type: str, written: Any) -> None:
    """Before they are decoded."""
    [(row, column, message)] = problems(written({"id": ["a"], "item": [[1]]}), content_type, VISITS)
    assert (row, column) == (None, "item")
    assert "the column's type is not read" in message


@pytest.mark.parametrize("layout", ["dictionary", "runs"])
def test_text_that_is_not_utf8_is_named_in_its_first_row(layout: str) -> None:
    """Also where it stands once for several rows."""
    values = pa.array(["kka", "kkb"])
    keys = {
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 1], pa.int8()), values),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), values),
    }
    body = batch({"id": keys[layout], "item": pa.array([1, 2, 3, 4])}).replace(b"kkakkb", b"kkakk\xff")
    assert problems(body, ARROW, VISITS) == [(3, "id", "not valid UTF-8")]
