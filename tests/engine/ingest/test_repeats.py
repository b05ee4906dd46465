"""Rows that an upload holds twice, and keys that differ by little."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.ingest import Duplicates, RowsProblem, repeats
from service.engine.ingest.repeats import repeated_rows
from tests.engine.ingest.uploads import ARROW, CSV, NDJSON, PARQUET, VISITS, csv, problems, read, written

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(-1, 1)), max_size=30)


def repeated(rows: list[tuple[str, int, int]]) -> list[bool]:
    """The marks of repeated rows, among rows of a key, a code and a limit."""
    keys = pa.chunked_array([[row[0] for row in rows[:5]], [row[0] for row in rows[5:]]], type=pa.string())
    codes = np.array([row[1] for row in rows], dtype=np.uint8)
    limits = np.array([row[2] for row in rows], dtype=np.int64)
    found: list[bool] = repeated_rows(keys, [codes, limits]).tolist()
    return found


@given(ROWS)
def test_a_row_is_repeated_if_an_earlier_one_is_the_same(rows: list[tuple[str, int, int]]) -> None:
    """In key and all values, against plain Python."""
    assert repeated(rows) == [row in rows[:place] for place, row in enumerate(rows)]


@given(rows=ROWS)
def test_rows_that_share_a_mixed_number_are_compared(rows: list[tuple[str, int, int]]) -> None:
    """The number only finds candidates: with one number for all rows the outcome is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_mixed", lambda columns: np.zeros(columns[0].size, dtype=np.uint64))
        assert repeated(rows) == [row in rows[:place] for place, row in enumerate(rows)]


@given(ROWS, st.sampled_from("abc"))
def test_rows_of_others_decide_nothing(rows: list[tuple[str, int, int]], key: str) -> None:
    """Which rows of an individual are repeated is the same without the rows of all others."""
    own = [(row, is_repeated) for row, is_repeated in zip(rows, repeated(rows), strict=True) if row[0] == key]
    assert repeated([row for row, _ in own]) == [is_repeated for _, is_repeated in own]


@pytest.mark.parametrize("content_type", [CSV, NDJSON, PARQUET, ARROW])
def test_repeated_rows_are_counted_dropped_or_refused(content_type: str) -> None:
    """Kept if nothing else is said; a row that is wrong anyway is reported as before."""
    body = written(content_type, [("a", 1), ("b", 1), ("a", 1), ("a", 2), ("a", 1)], ("id", "item"))
    kept, dropped = (read(body, content_type, VISITS, duplicates=wish) for wish in ("keep", "drop"))
    assert (list(kept.keys), kept.repeated) == (["a", "b", "a", "a", "a"], 2)
    assert (list(dropped.keys), dropped.codes["item"].tolist(), dropped.repeated) == (["a", "b", "a"], [1, 1, 2], 2)
    assert dropped.places is not None
    assert dropped.places.tolist() == [0, 1, 3]
    with pytest.raises(RowsProblem) as refused:
        read(body, content_type, VISITS, duplicates="reject")
    lines = {CSV: (" (line 4 of the file)", " (line 6 of the file)")}.get(content_type, ("", ""))
    assert [(error.row, error.message) for error in refused.value.errors] == [
        (row, f"the same row as an earlier one{line}") for row, line in zip((3, 5), lines, strict=True)
    ]


@pytest.mark.parametrize("duplicates", ["keep", "drop", "reject"])
def test_no_rows_are_repeated_among_none(duplicates: Duplicates) -> None:
    """An upload of nothing stays one."""
    rows = read(csv(header="id,item"), CSV, VISITS, duplicates=duplicates)
    assert (list(rows.keys), rows.repeated) == ([], 0)


def test_an_individual_with_the_same_row_twice_is_one_where_repeats_are_dropped() -> None:
    """With another value it is refused all the same, by the number of the row in the file."""
    body = csv("a,NO,1,1,1", "b,NO,1,1,1", "a,NO,1,1,1")
    assert problems(body) == [(3, "id", "the same key as in row 1 (line 4 of the file)")]
    assert list(read(body, duplicates="drop").keys) == ["a", "b"]
    with pytest.raises(RowsProblem) as refused:
        read(csv("a,NO,1,1,1", "a,NO,1,1,1", "a,SE,1,1,1"), duplicates="drop")
    assert [error.row for error in refused.value.errors] == [3]
