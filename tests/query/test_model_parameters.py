"""Parameters as numbers: which arrays a query names, in which shape, and how they are found and filled in."""

from typing import Any

import numpy as np
import pytest

from service.query.model_parameters import UNKNOWN_HASH, each_once, parameter_rows
from service.query.parameters_ast import HashedParameters, KnownNumbers, with_kept
from service.query.parse import query_of
from service.query.problems import QueryProblem

ROWS = np.array([[1.0, 2.0], [3.0, -4.0]])
GIVEN = HashedParameters.of(ROWS)
SHA256 = GIVEN.sha256


def predicted(parameters: Any) -> dict[str, Any]:
    """A value."""
    return {"predict": {"link": "identity", "features": [{"one_hot": "country"}], "parameters": parameters}}


def asked(parameters: Any, *, length: int = 3) -> Any:
    """A query with parameters in many of its places, and literals beside them."""
    value = predicted(parameters)
    listed = {"in": [{"add": [1, value]}, list(range(length))]}
    return query_of(
        {
            "version": 1,
            "select": [{"count": {}}, {"sum": {"of": {"clip": [value, 0, 1]}}}],
            "where": {"or": [{"not": {"is_null": value}}, listed, *({"ge": [value, n]} for n in range(40))]},
            "group_by": ["country", {"bin": {"of": {"abs": value}, "edges": [0, 1]}}],
            "noise": {"sigma": 1},
        }
    )


@pytest.mark.parametrize("length", [3, 1000])
def test_parameters_are_found_wherever_they_stand(length: int) -> None:
    """In items, conditions and groups; long lists of literals are passed over."""
    assert [each.sha256 for each in asked({"sha256": SHA256}, length=length).hashed] == [SHA256] * 44
    assert asked([1, 2]).hashed == []


def test_what_is_kept_is_filled_in_wherever_it_is_lacking() -> None:
    """All else is the very same; where nothing is lacking so is the query."""
    query = asked({"sha256": SHA256})
    filled = with_kept(query, {SHA256: ((2, 2), ROWS.tobytes())})
    assert all(each.source == KnownNumbers(ROWS.tobytes()) for each in filled.hashed)
    assert filled == asked({"sha256": SHA256, "shape": [2, 2]})
    assert filled.noise is query.noise
    assert with_kept(query, {}) is query
    assert with_kept(filled, {SHA256: ((4,), b"")}) is filled


def test_parameters_are_the_same_by_hash_and_shape() -> None:
    """Wherever their numbers come from; another shape is another model."""
    alone = HashedParameters(sha256=SHA256, shape=(2, 2))
    assert (alone, hash(alone)) == (GIVEN, hash(GIVEN))
    assert alone != HashedParameters(sha256=SHA256, shape=(4,))
    assert alone != SHA256
    assert each_once([alone, GIVEN, HashedParameters.of(ROWS.ravel())]) == (alone,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (HashedParameters(sha256=SHA256), UNKNOWN_HASH),
        (GIVEN, "must have the shape 3 x 2, and has 2 x 2, of 4 numbers"),
        (HashedParameters.of(np.full((3, 2), 1e31)), "must be numbers from -1e+30 to 1e+30"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(given: HashedParameters, message: str) -> None:
    """By the field that names it."""
    with pytest.raises(QueryProblem) as refused:
        parameter_rows(given, 3, 2, field="v.predict.parameters", of="softmax")
    (error,) = refused.value.errors
    assert (error.field, error.message) == ("v.predict.parameters", message)


def test_an_array_has_a_row_for_each_class() -> None:
    """Or one row without classes, as lists have."""
    assert np.array_equal(parameter_rows(GIVEN, 2, 2, field="f", of="softmax"), ROWS)
    row = HashedParameters.of(ROWS.ravel())
    assert np.array_equal(parameter_rows(row, None, 4, field="f", of="logistic"), ROWS.reshape(1, 4))
