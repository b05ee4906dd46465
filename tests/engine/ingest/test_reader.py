"""One meaning in four formats; keys as Arrow holds them; every kind of mistake named by row and column."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.engine.ingest import PROBLEMS_MAX, Rows, RowsProblem
from service.engine.ingest.reader import read_rows
from service.query.columns import coding_of
from tests.engine.ingest.uploads import (
    ARROW,
    CSV,
    NDJSON,
    PARQUET,
    PEOPLE,
    VISITS,
    arrow,
    csv,
    ndjson,
    parquet,
    places,
    problems,
    read,
    stream,
    with_limits,
    written,
)

ROWS: list[tuple[Any, ...]] = [
    ("ann", "NO", 40, 12.5, True),
    ("bob", "XX", -3, 600.0, False),
    ("cid", None, None, None, None),
    ("ärla, the second", "SE", 120, 0.0, True),
    ("5", "SE", 121, -0.5, True),
]
COLUMNS = {name: [row[place] for row in ROWS] for place, name in enumerate(("id", "country", "age", "spend", "member"))}
SHUFFLED = {name: COLUMNS[name] for name in ("member", "spend", "id", "age", "country")}
BODIES = {
    CSV: csv(
        "ann,NO,40,12.5,true",
        'bob,"XX",-3,6e2,FALSE',
        "cid,,,,",
        '"ärla, the second",SE,120,0,1',
        '5,SE,121,-.5,"True"',
    ),
    NDJSON: ndjson(*ROWS),
    PARQUET: parquet(COLUMNS),
    ARROW: arrow(SHUFFLED),
}


def content(rows: Rows) -> tuple[Any, ...]:
    """All of it, comparable."""
    codes = {name: (codes.tolist(), codes.dtype.name) for name, codes in sorted(rows.codes.items())}
    limits = None if rows.limits is None else rows.limits.tolist()
    return list(rows.keys), codes, limits, rows.clipped, rows.out_of_domain, rows.nulls


@pytest.mark.parametrize("content_type", BODIES)
def test_every_format_says_the_same(content_type: str) -> None:
    """Clipped, unknown and missing values are coded and counted alike; columns come in any order."""
    rows = read(BODIES[content_type], content_type)
    assert list(rows.keys) == ["ann", "bob", "cid", "ärla, the second", "5"]
    assert rows.codes["country"].tolist() == [0, 2, 2, 1, 1]
    assert rows.codes["age"].tolist() == [40, 0, 121, 120, 120]
    assert rows.codes["member"].tolist() == [1, 0, 2, 1, 1]
    coding = coding_of(PEOPLE.columns["spend"])
    assert rows.codes["spend"].tolist() == [coding.code_of(12.5), coding.span, coding.null_code, 0, 0]
    assert [codes.dtype.name for codes in rows.codes.values()] == ["uint8", "uint8", "uint64", "uint8"]
    assert rows.limits is None
    assert rows.clipped == {"country": 0, "age": 2, "spend": 2, "member": 0}
    assert rows.out_of_domain == {"country": 1, "age": 0, "spend": 0, "member": 0}
    assert rows.nulls == {"country": 1, "age": 1, "spend": 1, "member": 1}
    assert content(rows) == content(read(BODIES[CSV]))


@pytest.mark.parametrize(
    ("content_type", "body"),
    [(CSV, csv()), (CSV, csv().rstrip()), (NDJSON, b""), (PARQUET, parquet({name: pa.nulls(0) for name in COLUMNS}))],
)
def test_no_rows_are_rows(content_type: str, body: bytes) -> None:
    """An upload of nothing is empty, in the dtypes of its columns."""
    rows = read(body, content_type)
    assert list(rows.keys) == []
    assert {name: codes.dtype.name for name, codes in rows.codes.items()} == {
        "country": "uint8",
        "age": "uint8",
        "spend": "uint64",
        "member": "uint8",
    }


@pytest.mark.parametrize("content_type", [CSV, NDJSON, PARQUET, ARROW])
def test_columns_are_the_declared_ones(content_type: str) -> None:
    """A missing column and an unknown one are both named."""
    names = ("id", "country", "age", "spend", "color")
    body = written(content_type, [("a", "NO", 1, 1, "red")], names)
    assert {column for _, column in places(body, content_type)} == {"member", "color"}


@pytest.mark.parametrize("content_type", [CSV, PARQUET, ARROW])
def test_a_column_that_comes_twice_is_refused(content_type: str) -> None:
    """Which of the two should count is not for us to guess."""
    if content_type == CSV:
        body = csv("a,NO,1,1,1,1", header="id,country,age,age,spend,member")
    else:
        table = pa.table(
            [["a"], ["NO"], [1], [1], [1.0], [True]], names=["id", "country", "age", "age", "spend", "member"]
        )
        sink = io.BytesIO()
        pa.parquet.write_table(table, sink)
        body = sink.getvalue() if content_type == PARQUET else stream(table)
    assert places(body, content_type) == [(None, "age")]


@pytest.mark.parametrize("content_type", [CSV, NDJSON, ARROW])
def test_a_key_names_one_row_of_the_individuals_and_many_events(content_type: str) -> None:
    """The second row of an individual is named, in whatever batch it comes."""
    keys = ["a", "b", "c", "b", "a"]
    people = written(content_type, [(key, None, None, None, None) for key in keys])
    assert places(people, content_type) == [(4, "id"), (5, "id")]
    assert "row 2" in problems(people, content_type)[0][2]
    events = written(content_type, [(key, 7) for key in keys], ("id", "item"))
    assert list(read(events, content_type, VISITS).keys) == keys


def test_keys_are_text_that_a_database_can_hold() -> None:
    """Not empty, at most 256 characters (not bytes), no NUL."""
    body = csv(f"{'ä' * 256},,,,", f"{'a' * 257},,,,", ",,,,", "x\0y,,,,")
    assert places(body) == [(2, "id"), (3, "id"), (4, "id")]
    assert list(read(csv(f"{'ä' * 256},,,,")).keys) == ["ä" * 256]


@pytest.mark.parametrize("content_type", [NDJSON, PARQUET, ARROW])
def test_whole_numbers_are_keys_by_their_decimal_text(content_type: str) -> None:
    """7 and "7" are the same individual."""
    body = written(content_type, [(7, 1), (-12, 2)], ("id", "item"))
    assert list(read(body, content_type, VISITS).keys) == ["7", "-12"]


def test_only_the_first_problems_are_reported_in_order_of_row() -> None:
    """A thousand wrong rows make a reply of twenty lines."""
    found = problems(csv(*(f"p{row},NO,x,{row},1" for row in range(1000))))
    assert [row for row, _, _ in found] == list(range(1, PROBLEMS_MAX + 1))


def test_a_value_is_never_repeated_in_a_message() -> None:
    """The content of an upload belongs in no log."""
    found = problems(csv("secret,secret,secret,secret,secret", "secret,secret,secret,secret,secret"))
    assert len(found) > 3
    assert not any("secret" in message for _, _, message in found)


def test_a_csv_problem_gives_the_line_of_the_file() -> None:
    """Quoted line breaks and blank lines part lines from rows."""
    body = csv('"a\nb\nc",NO,1,1,1', "", "d,NO,x,1,1")
    assert problems(body) == [(2, "age", "not an integer (line 6 of the file)")]


def test_rows_beyond_a_batch_are_numbered_on() -> None:
    """Row numbers count through the batches of a large file."""
    lines = [f"p{row},NO,{row % 100},1.5,true" for row in range(300_000)]
    lines[299_990] = "p,NO,oops,1.5,true"
    assert places(csv(*lines)) == [(299_991, "age")]
    body = ndjson(*((f"p{row}", 1000 if row < 100_000 else "x") for row in range(100_001)), names=("id", "item"))
    assert places(body, NDJSON, VISITS) == [(100_001, "item")]


def test_limits_are_read_beside_the_data() -> None:
    """Units rounded down; NULL is the dataset's budget."""
    rows = read(csv("a,0.5", "b,", "c,1", header="id,rho"), table=with_limits())
    assert rows.limits is not None
    assert rows.limits.tolist() == [2**39, -1, 2**40]
    assert rows.limits.dtype == np.int64
    assert rows.codes == {}


def test_an_unknown_content_type_is_the_callers_mistake() -> None:
    """The API checks the type; here an unknown one is a bug."""
    with pytest.raises(ValueError, match="content type") as caught:
        read_rows(io.BytesIO(b""), "text/html", PEOPLE, budget_units=1)
    assert not isinstance(caught.value, RowsProblem)
