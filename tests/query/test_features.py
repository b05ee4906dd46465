"""Features in whole steps: their size, order and names, and the refusal of those that rounding would lose."""

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.query.expressions_ast import Feature
from service.query.features import BITS_MAX, FeatureMap, Number, Vector, read_features
from service.query.query_columns import QueryColumns
from service.query.schema import Schema
from tests.query.samples import SCHEMA, refused

READER: TypeAdapter[Feature] = TypeAdapter(Feature)


def features(
    *asked: dict[str, Any], schema: Schema = SCHEMA, intercept: bool = False, bits: int = BITS_MAX, **form: bool
) -> FeatureMap:
    """The features of the table of individuals in steps."""
    read = [READER.validate_python(each) for each in asked]
    columns = QueryColumns(schema, "people")
    return read_features(read, columns, "select[0].moments", intercept=intercept).in_steps(bits, **form)


SCALED = {"of": {"mul": [{"col": "age"}, 0.01]}}
SMALL = "is small beside the other features; scale"


def test_the_step_is_the_power_of_two_of_which_the_largest_bound_has_up_to_2_11() -> None:
    """1.2 is above 1 and at most 2: steps of 2^-10; an intercept and a category are one."""
    found = features(SCALED, {"one_hot": "country"}, intercept=True)
    assert (found.step_log2, found.one, found.size) == (-10, 1024, 5)
    assert [part.largest for part in found.parts] == [1229, 1024]
    assert (found.peak, found.sum_max) == (1229, 1229 + 2 * 1024)
    assert found.squares_max == 1229**2 + 2 * 1024**2
    assert found.fourths_max == 1229**4 + 2 * 1024**4
    assert found.names == ["(age * 0.01)", "country = NO", "country = SE", "country = DK", "intercept"]


@given(bits=st.integers(7, BITS_MAX), factor=st.integers(1, 999))
def test_a_number_has_as_many_steps_as_its_bound(bits: int, factor: int) -> None:
    """At least half of 2^bits and at most that, whatever the unit."""
    found = features({"of": {"mul": [{"col": "age"}, factor / 1000]}}, bits=bits)
    (part,) = found.parts
    assert 2 ** (bits - 1) <= part.largest <= 2**bits
    step = Fraction(2) ** found.step_log2
    assert abs(part.largest * step - Fraction(120 * factor, 1000)) <= step


def test_a_fill_is_rounded_as_the_value_is() -> None:
    """In steps of 2^-10, half up."""
    for asked, fill in ((SCALED | {"fill": 0.3}, 307), (SCALED, None)):
        (part,) = features(asked).parts
        assert isinstance(part, Number)
        assert part.fill == fill


@pytest.mark.parametrize(
    ("asked", "intercept", "field", "message"),
    [
        ([{"of": {"col": "country"}}], False, "features[0].of", "'country' is a category; make it a one_hot"),
        ([{"of": {"col": "joined"}}], False, "features[0].of", "'joined' is not a number; subtract one from it"),
        ([{"of": {"col": "age"}}, SCALED], False, "features[1].of", f"{SMALL} it"),
        ([{"of": {"col": "age"}}, {"one_hot": "country"}], False, "features[1].one_hot", f"{SMALL} those"),
        ([{"of": {"col": "age"}}], True, "intercept", f"{SMALL} those"),
        ([SCALED, SCALED], False, "features[1]", "repeats features[0]"),
        ([SCALED | {"fill": -1.3}], False, "features[0].fill", "must not be larger than the value can be"),
        ([{"one_hot": "spend"}], False, "features[0].one_hot", None),
        ([{"of": {"mul": [{"col": "age"}, 0]}}], False, "features", "are always zero within the declared bounds"),
        ([{"of": {"col": "height"}}], False, "features[0].of.col", None),
    ],
)
def test_a_feature_that_will_not_do_is_refused_with_a_way_out(
    asked: list[dict[str, Any]], intercept: bool, field: str, message: str | None
) -> None:
    """By declared bounds alone."""
    found = refused(features, *asked, intercept=intercept)
    assert found[0] == f"select[0].moments.{field}"
    assert message is None or found[1] == message


def vector(length: int, upper: int, step_log2: int, lower: int = 0) -> dict[str, Any]:
    """A declaration."""
    return {"type": "vector", "length": length, "lower": lower, "upper": upper, "step_log2": step_log2}


VECTORS = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {
                "pixels": vector(784, 255, 0),
                "words": vector(3, 4096, -12, lower=-4096),
                "large": vector(2, 2**16 - 1, 30),
                "wide": vector(2**16, 2**16 - 1, 0),
                "bits": vector(8, 1, 0),
                "share": {"type": "real", "lower": 0, "upper": 1},
                "town": {"type": "category", "size": 2},
            },
        }
    }
)


of_vectors = partial(features, schema=VECTORS)


def shared(factor: float) -> dict[str, Any]:
    """A feature that is a column of reals from 0 to 1, so many times."""
    return {"of": {"mul": [{"col": "share"}, factor]}}


def test_a_vector_alone_may_be_read_in_its_own_steps() -> None:
    """For any number of bits; an intercept or a category is a whole number of its steps, and counts once."""
    for bits in (7, BITS_MAX):
        found = of_vectors({"vector": "pixels"}, {"one_hot": "town"}, intercept=True, bits=bits, as_stored=True)
        assert (found.step_log2, found.one, found.size) == (0, 1, 787)
        (part, town) = found.parts
        assert isinstance(part, Vector)
        assert (part.size, part.offset, part.shift, part.largest, town.largest) == (784, 0, 0, 255, 1)
        assert (found.peak, found.sum_max) == (255, 784 * 255 + 2)
        assert (found.squares_max, found.fourths_max) == (784 * 255**2 + 2, 784 * 255**4 + 2)
        assert found.names[:2] == ["pixels[0]", "pixels[1]"]
        assert found.names[783:] == ["pixels[783]", "town = 0", "town = 1", "intercept"]


def test_a_one_beside_coarse_steps_makes_them_finer() -> None:
    """Steps of 2^30 would leave nothing of an intercept, and in finer ones the numbers would be too large."""
    assert of_vectors({"vector": "large"}, as_stored=True).step_log2 == 30
    field, message = refused(of_vectors, {"vector": "large"}, intercept=True, as_stored=True)
    assert field == "select[0].moments.features[0].vector"
    assert message.startswith("has numbers that are large beside the other features")


@pytest.mark.parametrize(
    ("asked", "bits", "step_log2", "shifts"),
    [
        ([{"vector": "pixels"}, shared(255)], 11, -3, [3]),
        ([{"vector": "pixels"}, shared(255)], 8, 0, [0]),
        ([{"vector": "pixels"}, shared(255)], 7, 0, [0]),
        ([{"vector": "words"}, {"of": {"col": "share"}}], 11, -12, [0]),
        ([{"vector": "bits"}, {"of": {"col": "share"}}], 11, -11, [11]),
        ([{"vector": "pixels"}, {"vector": "words"}], 11, -12, [12, 0]),
        ([{"vector": "pixels"}], 11, -3, [3]),
        ([{"vector": "pixels"}], 7, 0, [0]),
        ([{"vector": "bits"}, {"one_hot": "town"}], 8, -8, [8]),
    ],
)
def test_vectors_are_brought_to_a_common_step_by_shifts_to_the_left(
    asked: list[dict[str, Any]], bits: int, step_log2: int, shifts: list[int]
) -> None:
    """No number of a vector is rounded."""
    found = of_vectors(*asked, bits=bits)
    assert found.step_log2 == step_log2
    assert [part.shift for part in found.vectors] == shifts


@pytest.mark.parametrize(
    ("asked", "field", "message"),
    [
        ([{"vector": "pixels"}, shared(0.01)], "features[1].of", "is small beside"),
        ([{"vector": "pixels"}, {"vector": "pixels"}], "features[1]", "repeats features[0]"),
        ([{"vector": "share"}], "features[0].vector", "there is no column of vectors 'share'"),
        ([{"vector": "pixel"}], "features[0].vector", "there is no column of vectors 'pixel'; did you mean 'pixels'"),
        ([{"of": {"col": "pixels"}}], "features[0].of.col", "'pixels' is a vector; only a feature reads it, as"),
        ([{"one_hot": "pixels"}], "features[0].one_hot", "'pixels' is a vector; only a feature reads it, as"),
        ([{"vector": "wide"}, shared(2**20), {"vector": "words"}], "features[0].vector", "has numbers that are large"),
    ],
)
def test_a_vector_that_will_not_do_is_refused(asked: list[dict[str, Any]], field: str, message: str) -> None:
    """By its field."""
    found = refused(of_vectors, *asked)
    assert (found[0], found[1].startswith(message)) == (f"select[0].moments.{field}", True)


def test_a_squared_length_beyond_the_doubles_is_refused() -> None:
    """It is of 65,536 numbers, each shifted to 2^19 steps."""
    columns = {"wide": vector(2**16, 2**16 - 1, 0), "fine": vector(1, 15, -3)}
    schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": columns}})
    asked = [READER.validate_python({"vector": name}) for name in columns]
    read = read_features(asked, QueryColumns(schema, "people"), "select[0].gradient", intercept=False)
    field, message = refused(read.in_steps, BITS_MAX)
    assert field == "select[0].gradient.features"
    assert "too many large numbers for exact sums" in message
