"""Files as data frames write them: integers with missing values, categoricals, indexes, and Arrow's many layouts."""

import io
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.columns import coding_of
from service.query.schema import Schema
from tests.engine.ingest.uploads import ARROW, PARQUET, PEOPLE, VISITS, arrow, parquet, problems, read

NAN = float("nan")
ROWS: dict[str, list[Any]] = {
    "id": ["a", "b", "c"],
    "country": ["NO", None, "XX"],
    "age": [1, None, 130],
    "spend": [0.5, None, 2.0],
    "member": [True, None, False],
}


def codes(name: str, body: bytes, content_type: str) -> list[int]:
    """The codes of one column."""
    return [int(code) for code in read(body, content_type).codes[name]]


def frame_of_pandas() -> pd.DataFrame:
    """The frame that a curator has: doubles for the integers, a categorical, an index."""
    frame = pd.DataFrame(ROWS).astype({"country": "category", "age": "float64"})
    frame.index = pd.Index([7, 9, 8])
    return frame


def sent(kind: str) -> tuple[bytes, str]:
    """The rows as a library writes them."""
    sink = io.BytesIO()
    if kind == "pandas parquet":
        frame_of_pandas().to_parquet(sink)
        return sink.getvalue(), PARQUET
    polars = pl.DataFrame(ROWS).with_columns(
        pl.col("country").cast(pl.Categorical), pl.col("age").cast(pl.Float64).fill_null(NAN)
    )
    if kind == "polars parquet":
        polars.write_parquet(sink)
        return sink.getvalue(), PARQUET
    polars.write_ipc_stream(sink)
    return sink.getvalue(), ARROW


@pytest.mark.parametrize("kind", ["pandas parquet", "polars parquet", "polars stream"])
def test_what_libraries_write_is_read(kind: str) -> None:
    """The rows are the same, whatever the layout."""
    body, content_type = sent(kind)
    plain, found = read(parquet(ROWS), PARQUET), read(body, content_type)
    assert list(found.keys) == ["a", "b", "c"]
    for name, expected in plain.codes.items():
        assert found.codes[name].tolist() == expected.tolist()
    assert (found.nulls, found.clipped, found.out_of_domain) == (plain.nulls, plain.clipped, plain.out_of_domain)


@pytest.mark.parametrize("content_type", [ARROW, PARQUET])
def test_doubles_stand_for_integers_categories_and_booleans(content_type: str) -> None:
    """Whole ones, NaN and NULL for a missing value."""
    write = arrow if content_type == ARROW else parquet
    body = write(ROWS | {"age": [44.0, NAN, None], "member": [1.0, 0.0, NAN]})
    age, member = coding_of(PEOPLE.columns["age"]), coding_of(PEOPLE.columns["member"])
    assert codes("age", body, content_type) == [44, age.null_code, age.null_code]
    assert codes("member", body, content_type) == [1, 0, member.null_code]
    assert read(body, content_type).nulls["age"] == 2
    visits = read(write({"id": ["a", "a"], "item": [5.0, NAN]}), content_type, VISITS)
    assert (visits.codes["item"][0], visits.nulls) == (5, {"item": 1})


def test_listed_numbers_may_come_as_doubles() -> None:
    """A category 2 is 2.0 in a column with missing values."""
    table = Schema.model_validate(
        {"people": {"kind": "individuals", "key": "id", "columns": {"k": {"type": "category", "categories": [1, 2]}}}}
    ).tables["people"]
    found = read(arrow({"id": ["a", "b", "c"], "k": [2.0, NAN, 3.0]}), ARROW, table)
    assert (int(found.codes["k"][0]), found.nulls["k"], found.out_of_domain["k"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("age", [1.5, 1.0, 2.0], "not an integer"),
        ("age", [float("inf"), 1.0, 2.0], "does not fit in 64 bits"),
        ("age", [2.0**63, 1.0, 2.0], "does not fit in 64 bits"),
        ("member", [0.5, 1.0, 0.0], "not an integer"),
        ("member", [2.0, 1.0, 0.0], "not a boolean: write true, false, 1 or 0"),
        ("country", [0.5, 1.0, 0.0], "not an integer"),
    ],
)
def test_a_double_that_is_no_whole_number_is_named(name: str, values: list[float], message: str) -> None:
    """By row and column, once."""
    assert problems(arrow(ROWS | {name: values}), ARROW) == [(1, name, message)]


def test_times_are_refused_with_advice() -> None:
    """A column of numbers holds none."""
    times = pa.array(np.array(["2026-01-01", "2026-01-02", "NaT"], dtype="datetime64[us]"))
    [(row, column, message)] = problems(parquet(ROWS | {"age": times}), PARQUET)
    assert (row, column) == (None, "age")
    assert message.endswith("not integers; declare the column as date or datetime")


@given(st.lists(st.one_of(st.none(), st.integers(-(2**53), 2**53)), min_size=1, max_size=20))
def test_integers_as_doubles_are_the_integers(values: list[int | None]) -> None:
    """Up to 2^53, where doubles begin to leave integers out, the codes are those of the integers themselves."""
    keys = [f"p{number}" for number in range(len(values))]
    rest = {name: [None] * len(values) for name in ("country", "spend", "member")}
    whole = arrow({"id": keys, "age": pa.array(values, pa.int64())} | rest)
    doubles = arrow({"id": keys, "age": pa.array(values, pa.float64())} | rest)
    assert codes("age", doubles, ARROW) == codes("age", whole, ARROW)
