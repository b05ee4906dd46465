"""Predictions as values: codings, names, and refusals that name the field."""

from typing import Any

import pytest

from service.query.columns import QueryColumn
from service.query.expressions_ast import Predict
from service.query.predictions import Predicted, argument_max, prediction_column
from service.query.query_columns import QueryColumns
from service.query.schema import Schema
from tests.query.samples import column_of, refused

NUMBER = {"type": "integer", "lower": 0, "upper": 9}
AGE = {"of": {"mul": [{"col": "age"}, 0.01]}}
MODEL: dict[str, Any] = {"features": [AGE, {"one_hot": "country"}], "intercept": True}


def model(**more: Any) -> dict[str, Any]:
    """A prediction."""
    return {"predict": MODEL | more}


def test_a_probability_is_a_number_from_0_to_1() -> None:
    """In steps of 2^-16."""
    column = column_of(model(link="logistic", parameters=[1, 2, 3, 4, 5]))
    assert (column.kind, column.coding.offset, column.coding.span, column.coding.step_log2) == ("real", 0, 2**16, -16)


def test_the_bounds_of_a_number_are_what_the_features_can_add_up_to() -> None:
    """One of the one-hot features at a time."""
    column = column_of(model(link="identity", parameters=[1, 2, -3, 1, 0.5]))
    formula, coding = column.formula, column.coding
    assert isinstance(formula, Predicted)
    assert coding.span == -2 * coding.offset == 2 * argument_max(formula.features, formula.parameters[0])
    largest = formula.features.parts[0].largest * 2.0**formula.features.step_log2
    assert -coding.offset * 2.0**coding.step_log2 == pytest.approx(largest + 3 + 0.5, rel=1e-9)


def test_parameters_of_zero_have_one_value() -> None:
    """Zero."""
    column = column_of(model(link="identity", parameters=[0] * 5))
    assert (column.coding.offset, column.coding.span) == (0, 0)


def test_the_likeliest_value_is_of_the_target() -> None:
    """With its categories."""
    column = column_of(model(link="softmax", target="country", parameters=[[0.5] * 5] * 3))
    assert column.kind == "category"
    assert column.coding == column_of({"col": "country"}).coding


def test_different_models_have_different_names() -> None:
    """The name is that of the column in a plan."""
    names = {column_of(model(link="logistic", parameters=[1, 2, 3, 4, n])).name for n in range(5)}
    assert len(names) == 5


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (model(link="logistic", parameters=[1]), "parameters", "must have 5 numbers"),
        (model(link="logistic", target="country", parameters=[1] * 5), "target", "must not be given"),
        (model(link="softmax", parameters=[[1] * 5] * 3), "target", "is required for softmax"),
        (model(link="softmax", target="spend", parameters=[[1] * 5] * 3), "target", "is a real column"),
        (model(link="softmax", target="country", parameters=[[1] * 5] * 2), "parameters", "must be 3 lists"),
        (model(features=[{"of": {"col": "country"}}], link="identity", parameters=[1, 2]), "of", "one_hot"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(body: dict[str, Any], field: str, words: str) -> None:
    """With the place in the query."""
    found, message = refused(column_of, body)
    assert found.startswith("v.predict.")
    assert found.endswith(field)
    assert words in message


PIXELS = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"pixels": {"type": "vector", "length": 2, "lower": -8, "upper": 255, "step_log2": -6}},
        },
        "visits": {"kind": "events", "key": "id", "rows_per_individual": 3, "columns": {"n": NUMBER}},
    }
)


def on_pixels(table: str = "people", **more: Any) -> QueryColumn:
    """The column of a prediction by a vector."""
    model = {"features": [{"vector": "pixels"}], "link": "identity", "parameters": [1, -2]} | more
    return prediction_column(Predict.model_validate({"predict": model}), QueryColumns(PIXELS, table), "v.predict")


def test_the_bounds_of_a_prediction_by_a_vector_are_those_of_all_its_numbers() -> None:
    """Each of them may be as large as any, in the vector's own steps."""
    column = on_pixels()
    assert isinstance(column.formula, Predicted)
    assert (column.formula.features.step_log2, column.formula.sources) == (-6, ())
    assert -column.coding.offset * 2.0**column.coding.step_log2 == 3 * 255 / 64


def test_an_event_has_no_vector() -> None:
    """Refused by the feature's place."""
    field, message = refused(on_pixels, "visits")
    assert field == "v.predict.features[0].vector"
    assert message.startswith("there is no column of vectors")
