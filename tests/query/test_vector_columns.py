"""Columns of vectors: their declaration, its refusals, and the codes of their numbers."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from service.query.columns import coding_of, codings_of
from service.query.cost import PublicCost, Speed, cost_of
from service.query.query_columns import QueryColumns
from service.query.schema import Schema, VectorColumn, extension_errors
from service.query.vector_columns import VectorCoding, numbers_of, vector_coding, vectors_of
from tests.query.samples import plan_of, refused

PIXELS: dict[str, Any] = {"type": "vector", "length": 3, "lower": 0, "upper": 255}


def schema(**columns: dict[str, Any]) -> Schema:
    """A table of individuals."""
    return Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": columns}})


@pytest.mark.parametrize(
    ("lower", "upper", "itemsize"),
    [(0, 1, 1), (0, 255, 1), (-128, 127, 1), (0, 256, 2), (-(2**15), 2**15 - 1, 2), (-65_535, 0, 2), (0, 65_535, 2)],
)
def test_a_number_takes_the_bytes_of_its_range(lower: int, upper: int, itemsize: int) -> None:
    """All codes of a byte stand for numbers: that a vector is missing stands in a place of its own."""
    column = VectorColumn(type="vector", length=5, lower=lower, upper=upper, step_log2=-3)
    coding = vector_coding(column)
    assert coding == VectorCoding(length=5, offset=lower, span=upper - lower, step_log2=-3)
    assert (coding.dtype.itemsize, coding.width, coding.row_bytes) == (itemsize, 6, 6 * itemsize)
    assert column.vector_bytes == 5 * itemsize
    assert coding.largest == max(-lower, upper)
    row = np.array([1, 0, coding.span, 0, 0, coding.span], dtype=coding.dtype)
    assert numbers_of(coding, row) == [lower, upper, lower, lower, upper]
    assert numbers_of(coding, coding.missing(1)[0]) is None


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"length": 0}, "length"),
        ({"length": 2**16 + 1}, "length"),
        ({"length": 2.0}, "length"),
        ({"lower": -65_536, "upper": -1}, "lower"),
        ({"upper": 65_536}, "upper"),
        ({"upper": 2.5}, "upper"),
        ({"step_log2": 101}, "step_log2"),
        ({"step_log2": -101}, "step_log2"),
        ({"categories": ["a"]}, "categories"),
        ({"lower": 255}, "vector"),
        ({"lower": -1, "upper": 65_535}, "vector"),
    ],
)
def test_a_declaration_that_is_none_is_refused_by_its_field(change: dict[str, Any], place: str) -> None:
    """The place of the error is the field, or the column where two of its fields disagree."""
    with pytest.raises(ValidationError) as refused:
        schema(pixels=PIXELS | change)
    assert [error["loc"][-1] for error in refused.value.errors()] == [place]
    assert "pixels" in refused.value.errors()[0]["loc"]


def test_events_have_no_vectors() -> None:
    """Their table refuses the type."""
    events = {"kind": "events", "key": "id", "columns": {"pixels": PIXELS}}
    people = {"kind": "individuals", "key": "id", "columns": {}}
    with pytest.raises(ValidationError) as refused:
        Schema.model_validate({"people": people, "visits": events})
    assert refused.value.errors()[0]["loc"][:4] == ("visits", "events", "columns", "pixels")


def test_a_vector_is_apart_from_columns_of_one_value() -> None:
    """It has no single code, and a schema knows how many bytes the vectors of one individual take."""
    found = schema(age={"type": "integer", "lower": 0, "upper": 9}, pixels=PIXELS, words=PIXELS | {"upper": 256})
    columns = found.tables["people"].columns
    assert list(codings_of(columns)) == ["age"]
    assert list(vectors_of(columns)) == ["pixels", "words"]
    assert found.vector_bytes == 3 + 6
    with pytest.raises(ValueError, match="no single code"):
        coding_of(columns["pixels"])


def test_a_declared_vector_cannot_be_changed() -> None:
    """Another one may be added."""
    old, larger = schema(pixels=PIXELS), schema(pixels=PIXELS | {"upper": 256})
    assert extension_errors(old, schema(pixels=PIXELS, more=PIXELS), capacity_old=1, capacity_new=1) == []
    errors = extension_errors(old, larger, capacity_old=1, capacity_new=1)
    assert [error.field for error in errors] == ["tables.people.columns.pixels"]


def test_a_vector_is_no_value_of_a_row() -> None:
    """A condition, a sum or a group of it is refused with what reads it."""
    field, message = refused(QueryColumns(schema(pixels=PIXELS), "people").named, "pixels", "group_by[0]")
    assert (field, "is a vector; only a feature reads it" in message) == ("group_by[0]", True)


def cost_of_vectors(length: int, classes: int) -> PublicCost:
    """The price of a gradient of so many classes by the numbers of a vector."""
    columns = {"pixels": PIXELS | {"length": length}, "digit": {"type": "category", "size": classes}}
    model = {
        "loss": "softmax",
        "target": "digit",
        "features": [{"vector": "pixels"}],
        "parameters": [[0.5] * length] * classes,
    }
    query = {"version": 1, "select": [{"gradient": model}], "noise": {"sigma": 1000}, "per_individual": {"l2_clip": 9}}
    plan = plan_of(query, schema(**columns), capacity=1000)
    return cost_of(plan, schema(**columns).tables["people"], capacity=1000, speed=Speed())


def test_a_longer_vector_has_a_higher_price() -> None:
    """In time and memory, as more classes have."""
    least, longer, more = cost_of_vectors(10, 2), cost_of_vectors(100, 2), cost_of_vectors(10, 5)
    assert 0 < least.time_ns < longer.time_ns
    assert least.time_ns < more.time_ns
    assert least.working_bytes < longer.working_bytes
    per_number = (longer.time_ns - least.time_ns) / (90 * 1000)
    assert per_number >= Speed().vector_number
