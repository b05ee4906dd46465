"""Problems of an upload: the first are named, and all are counted."""

import numpy as np
import pytest

from service.engine.ingest import PROBLEMS_MAX, ErrorGroup, RowsProblem
from service.engine.ingest.problems import BROKEN_ROWS_MAX, GROUPS_MAX, ErrorCounts, Problems
from tests.engine.ingest.uploads import CSV, NDJSON, PARQUET, PEOPLE, csv, read, written


def counts(body: bytes, content_type: str = CSV) -> ErrorCounts:
    """The problems of a body in numbers."""
    with pytest.raises(RowsProblem) as refused:
        read(body, content_type, PEOPLE)
    assert refused.value.counts is not None
    return refused.value.counts


def test_all_wrong_rows_are_counted_and_grouped() -> None:
    """Beyond those that are named, across batches; a row with two problems is one wrong row in two groups."""
    bad = [f"p{row},NO,{'x' if row % 2 else 1},{'y' if row % 3 == 0 else 1},1" for row in range(6000)]
    found = counts(csv(*bad))
    assert found.rows_wrong == sum(row % 2 == 1 or row % 3 == 0 for row in range(6000))
    assert found.groups == (
        ErrorGroup(column="age", message="not an integer", rows=3000, first_rows=(2, 4, 6, 8, 10)),
        ErrorGroup(column="spend", message="not a number", rows=2000, first_rows=(1, 4, 7, 10, 13)),
    )
    assert found.is_complete


@pytest.mark.parametrize("content_type", [CSV, NDJSON, PARQUET])
def test_every_format_counts_alike(content_type: str) -> None:
    """Empty keys, in a file of each format."""
    rows = [("" if row % 4 == 0 else f"p{row}", "NO", 1, 1.0, True) for row in range(400)]
    found = counts(written(content_type, rows), content_type)
    assert (found.rows_wrong, found.groups[0].rows, found.groups[0].first_rows) == (100, 100, (1, 5, 9, 13, 17))


def test_repeated_keys_are_one_group() -> None:
    """Each error names the first row of its key; the group says how many rows repeat a key."""
    with pytest.raises(RowsProblem) as refused:
        read(csv(*(f"p{row % 7},NO,1,1,1" for row in range(100))))
    errors, found = refused.value.errors, refused.value.counts
    assert [(error.row, error.message.split(" (")[0]) for error in errors[:2]] == [
        (8, "the same key as in row 1"),
        (9, "the same key as in row 2"),
    ]
    assert len(errors) == PROBLEMS_MAX
    assert found is not None
    (group,) = found.groups
    assert (group.message, group.rows, found.rows_wrong) == ("the same key as in an earlier row", 93, 93)


def test_rows_of_the_wrong_length_are_counted_until_the_file_is_no_csv() -> None:
    """Beyond ten thousand reading ends, and the numbers say that they are not all."""
    found = counts(csv(*["a,b"] * 300))
    assert (found.rows_wrong, found.groups[0].rows, found.is_complete) == (300, 300, True)
    given_up = counts(csv(*["a,b"] * (BROKEN_ROWS_MAX + 5)))
    assert (given_up.rows_wrong, given_up.is_complete) == (BROKEN_ROWS_MAX, False)


def test_rows_after_a_broken_one_are_counted_and_not_numbered() -> None:
    """The parser skips a broken row, so that the numbers of later rows are not known."""
    found = counts(csv("a,NO,x,1,1", "b,NO,1,1", "c,NO,x,1,1"))
    assert found.rows_wrong == 3
    assert [(group.column, group.rows, group.first_rows) for group in found.groups] == [
        ("age", 2, (1,)),
        (None, 1, (2,)),
    ]


def test_groups_are_bounded_and_rows_are_counted_beyond_them() -> None:
    """A file of lines with ever other members has no more than a hundred groups."""
    problems = Problems()
    for number in range(3 * GROUPS_MAX):
        problems.add("the column is not declared", row=number + 1, column=f"column {number}")
    found = problems.counts()
    assert (len(found.groups), found.rows_wrong) == (GROUPS_MAX, 3 * GROUPS_MAX)


def test_a_batch_without_problems_leaves_no_group() -> None:
    """No empty group, no wrong row."""
    problems = Problems()
    problems.add_where(np.zeros(5, dtype=np.bool_), "wrong", column="age")
    problems.raise_if_any()
    assert problems.counts().rows_wrong == 0
