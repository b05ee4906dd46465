"""The features of a frame are those that the service reads of the same records."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sparing import col, feature, moments, one_hot, vector
from sparing._design import Design, levels_of
from sparing.testing import FakeService

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "rooms": {"type": "integer", "lower": 2, "upper": 4},
    "level": {"type": "real", "lower": -0.75, "upper": 1.5},
    "member": {"type": "boolean"},
    "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
    "code": {"type": "category", "size": 3},
    "joined": {"type": "date", "lower": "2020-01-01", "upper": "2026-12-31"},
}
TABLES: dict[str, Any] = {"people": {"kind": "individuals", "key": "person_id", "columns": COLUMNS}}
ROWS: list[dict[str, Any]] = [
    {"age": 17, "rooms": 2, "level": 0.25, "member": True, "town": "Oslo", "code": 0},
    {"age": 140, "rooms": 9, "level": -0.75, "member": False, "town": "Bergen", "code": 2},
    {"age": None, "rooms": None, "level": None, "member": None, "town": "Narvik", "code": None},
    {"age": 65, "rooms": 3, "level": 1.5, "member": None, "town": None, "code": 1},
]
FEATURES = [
    feature((col("age") - 60) * 0.015625, fill=-0.5),
    feature(abs(col("level")) + 0.5, fill=0),
    feature((1 - col("level")).clip(0, 0.75), fill=0.125),
    feature("member", fill=0),
    one_hot("town"),
    one_hot("code"),
    one_hot("rooms"),
    one_hot("member"),
    one_hot(col("age").bins([0, 18, 65, 120])),
    one_hot(col("level").bins(width=0.5)),
]


def frames() -> list[Any]:
    """The rows as frames of every kind."""
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    return [columns, pd.DataFrame(ROWS), pd.DataFrame(ROWS).convert_dtypes(), pl.DataFrame(ROWS), pa.table(columns)]


def test_the_numbers_of_a_one_hot_feature_have_known_places() -> None:
    """Beside numbers, vectors and other one-hot features."""
    given = [feature("age"), vector("sketch"), one_hot("town"), one_hot(col("age").bins([0, 18, 65, 120]))]
    assert Design(given, COLUMNS | SKETCHES).one_hots == [slice(3, 5), slice(5, 8)]
    assert Design([feature("age")], COLUMNS).one_hots == []


@pytest.mark.parametrize("place", range(5))
def test_products_of_its_columns_are_the_moments_of_the_service(place: int) -> None:
    """Missing values, bounds, categories that are not declared, and both ends of bins; to the service's rounding."""
    matrix = Design(FEATURES, COLUMNS).matrix(frames()[place])
    with FakeService() as fake:
        people = [{"person_id": number, **row} for number, row in enumerate(ROWS)]
        fake.add_dataset("club", TABLES, rows={"people": people}, rho=10_000)
        found = fake.client().queries.ask(dataset="club", select=moments(FEATURES), sigma=1)
    assert matrix.shape == (4, len(found.matrix)) == (4, 22)
    assert np.allclose(found.matrix, matrix.T @ matrix, atol=4e-3)
    titles = found.axes[-1]["select"][0]["features"]  # type: ignore[index]
    names = [str(name) for each in FEATURES[4:] for name in levels_of(each.json["one_hot"], COLUMNS).names]
    assert [title.rpartition(" = ")[2] for title in titles[4:]] == names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (feature("agee"), "no column 'agee'"),
        (one_hot("agee"), "no column 'agee'"),
        (one_hot(col("agee").bins(width=5)), "no column 'agee'"),
        (one_hot("joined"), "joined: classes and one-hot features are of categories"),
        (one_hot("level"), "level: classes and one-hot features are of categories"),
        (one_hot(col("joined").by("year")), "joined: classes and one-hot features are of columns or of bins"),
        (one_hot(col("joined").bins(["2020-01-01", "2022-01-01"])), "of columns or of bins of numbers"),
    ],
)
def test_a_feature_that_no_frame_has_is_refused_at_once(given: Any, message: str) -> None:
    """Before a query is asked."""
    with pytest.raises(ValueError, match=message):
        Design([given], COLUMNS)


def test_a_missing_number_needs_a_fill() -> None:
    """The row and the column are named; and so is a column that the frame does not have."""
    design = Design([feature(col("age") * 0.01)], COLUMNS)
    with pytest.raises(ValueError, match="row 2 has no value of age, and the feature no fill"):
        design.matrix({"age": [1, None]})
    with pytest.raises(ValueError, match="the frame has no column 'age'"):
        design.matrix({"Age": [1]})


SKETCHES = {"sketch": {"type": "vector", "length": 2, "lower": -4, "upper": 8, "step_log2": -2}}


@pytest.mark.parametrize("rows", [[[1, 2], [-9, 100]], np.array([[1, 2], [-9, 100]])])
def test_vectors_of_a_frame_are_in_the_units_of_the_service(rows: Any) -> None:
    """Within their bounds, times the step; beside the intercept, as `matrix` of the service has them."""
    found = Design([vector("sketch")], SKETCHES).matrix({"sketch": rows})
    assert found[:, :2].tolist() == [[0.25, 0.5], [-1, 2]]


def test_a_frame_without_a_vector_is_refused() -> None:
    """By its row; and a column that holds none at once."""
    design = Design([vector("sketch")], SKETCHES)
    for rows in ([[1, 2], None], [[1, 2], [1]]):
        with pytest.raises(ValueError, match="row 2 has no list of 2 numbers in 'sketch'"):
            design.matrix({"sketch": rows})
    with pytest.raises(ValueError, match="'age' is no column of vectors"):
        Design([vector("age")], COLUMNS)
