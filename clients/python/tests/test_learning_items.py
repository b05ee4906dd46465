"""Features, moments and gradients: their JSON, and the matrices and labels of their answers."""

import sys
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from sparing import (
    Answer,
    Client,
    col,
    count,
    feature,
    fold,
    gradient,
    histogram,
    moments,
    one_hot,
    own,
    predict,
    scaled,
    vector,
)
from sparing._labels import Labels
from sparing._matrices import matrix_of
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 128},
            "town": {"type": "category", "categories": ["Oslo", "Bergen", "Narvik"]},
            "member": {"type": "boolean"},
        },
    }
}
PEOPLE = [
    {"person_id": 1, "age": 64, "town": "Oslo", "member": True},
    {"person_id": 2, "age": 96, "town": "Bergen", "member": False},
    {"person_id": 3, "age": None, "town": "Oslo", "member": True},
]
ABOUT_AGE = (col("age") - 64) * 0.015625
FEATURES = [feature(ABOUT_AGE, fill=0), one_hot("town")]
ROWS = np.array([[0, 1, 0, 0, 1], [0.5, 0, 1, 0, 1], [0, 1, 0, 0, 1]])
MEMBER: dict[str, Any] = {"target": "member", "features": FEATURES, "intercept": True}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a dataset with three people."""
    with FakeService() as fake:
        fake.add_dataset("club", TABLES, rows={"people": PEOPLE}, rho=10_000)
        yield fake.client()


def asked(client: Client, item: Any, **more: Any) -> Answer:
    """An answer that everybody can afford."""
    return client.queries.ask(dataset="club", select=item, sigma=1, **more)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 128, (col("age") - 64) * 0.015625),
        (-1, 2, (col("age") - 0.5) * (1 / 1.5)),
        (-0.25, 0.25, (col("age") - 0) * 4.0),
    ],
    ids=str,
)
def test_a_scaled_column_is_at_most_one(lower: float, upper: float, expected: Any) -> None:
    """From -1 at the lower bound to 1 at the upper one, as a value for features and targets."""
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {"age": {"type": "real"}}}}
    tables["people"]["columns"]["age"] |= {"lower": lower, "upper": upper}  # type: ignore[index]
    with FakeService() as fake:
        fake.add_dataset(
            "club", tables, rows={"people": [{"id": 1, "age": lower}, {"id": 2, "age": upper}]}, rho=10_000
        )
        club = fake.client().dataset("club")
        value = scaled("age", club.describe())
        assert value.json == expected.json
        found = club.query().moments([value], intercept=True).noise(sigma=1).run().matrix
    assert np.allclose(found, [[2, 0], [0, 2]], atol=1e-3)


def test_a_column_without_bounds_is_not_scaled(client: Client) -> None:
    """Nor one that is not declared."""
    club = client.dataset("club").describe()
    for name in ("town", "member"):
        with pytest.raises(ValueError, match=f"'{name}' is no number between two declared bounds"):
            scaled(name, club)
    with pytest.raises(ValueError, match="the table of individuals has no column 'agge'"):
        scaled("agge", club)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (feature("age"), {"of": {"col": "age"}}),
        (feature(col("age"), fill=np.float64(0.5)), {"of": {"col": "age"}, "fill": 0.5}),
        (feature(abs(col("age")), fill=0), {"of": {"abs": {"col": "age"}}, "fill": 0}),
        (one_hot("town"), {"one_hot": "town"}),
        (one_hot(col("town")), {"one_hot": "town"}),
        (one_hot(col("age").bins(width=16)), {"one_hot": {"bin": {"column": "age", "width": 16}}}),
        (
            one_hot(own("visits", clip=(0, 9)).bins(width=3)),
            {"one_hot": {"bin": {"of": {"own": {"from": "visits", "clip": [0, 9], "count": {}}}, "width": 3}}},
        ),
        (
            feature(own("visits", clip=(0, 9), sum_="minutes", where=col("day") > 3)),
            {
                "of": {
                    "own": {
                        "from": "visits",
                        "clip": [0, 9],
                        "sum": {"col": "minutes"},
                        "where": {"gt": [{"col": "day"}, 3]},
                    }
                }
            },
        ),
        (
            feature(predict(["age"], np.array([0.5, 1]), intercept=True)),
            {
                "of": {
                    "predict": {
                        "link": "logistic",
                        "features": [{"of": {"col": "age"}}],
                        "intercept": True,
                        "parameters": [0.5, 1],
                    }
                }
            },
        ),
        (
            feature(predict([one_hot("town")], [[1, 2, 3]], link="softmax", target="town")),
            {
                "of": {
                    "predict": {
                        "link": "softmax",
                        "features": [{"one_hot": "town"}],
                        "parameters": [[1, 2, 3]],
                        "target": "town",
                    }
                }
            },
        ),
    ],
)
def test_a_feature_is_its_json(given: Any, expected: dict[str, Any]) -> None:
    """Features of a column, a value, a bin; a fill of 0 is one."""
    assert given.json == expected


def test_items_are_their_json() -> None:
    """Columns and values stand for features; parameters are lists or arrays of one or two dimensions."""
    assert moments(["age", abs(col("age")), one_hot("town")]).json == {
        "moments": {"features": [{"of": {"col": "age"}}, {"of": {"abs": {"col": "age"}}}, {"one_hot": "town"}]}
    }
    assert moments(["age"], intercept=True).json == {
        "moments": {"features": [{"of": {"col": "age"}}], "intercept": True}
    }
    plain = gradient("logistic", target=col("member"), features=["age"], parameters=np.array([0.5])).json
    assert plain == {
        "gradient": {
            "loss": "logistic",
            "target": {"col": "member"},
            "features": [{"of": {"col": "age"}}],
            "parameters": [0.5],
        }
    }
    rows: Any = gradient(
        "softmax", target=col("age").bins([0, 64, 128]), features=["age"], parameters=np.eye(2), intercept=True
    ).json["gradient"]
    assert rows["target"] == {"bin": {"column": "age", "edges": [0, 64, 128]}}
    assert rows["parameters"] == [[1, 0], [0, 1]]
    assert rows["intercept"] is True
    mixed: Any = gradient(
        "squared", target="age", features=["age"], parameters=[np.array([1.0]), [np.float32(2)]], residual_clip=4
    ).json["gradient"]
    assert (mixed["parameters"], mixed["target"], mixed["residual_clip"]) == ([[1.0], [2.0]], "age", 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: moments("age"), "features is a list"),
        (lambda: moments(4), "features is a list"),  # type: ignore[arg-type]
        (lambda: moments([4]), "a feature is made by feature, one_hot or vector, not of 4"),  # type: ignore[list-item]
        (lambda: gradient("logistic", target="member", features=["age"], parameters="12"), "parameters are a list"),
        (lambda: gradient("logistic", target="member", features=["age"], parameters=1.5), "parameters are a list"),
    ],
)
def test_a_wrong_argument_names_itself(wrong: Any, message: str) -> None:
    """Before anything is sent."""
    with pytest.raises(TypeError, match=message):
        wrong()


def test_moments_are_a_symmetric_matrix(client: Client) -> None:
    """The features in their order, the intercept last: its own entry is the number of individuals."""
    found = asked(client, moments(FEATURES, intercept=True))
    assert found.matrix.tolist() == (ROWS.T @ ROWS).tolist()
    assert found.labels[4] == {"select": "moments", "feature": "((age - 64) * 0.015625)", "with": "intercept"}
    frame = found.to_pandas()
    assert list(frame.columns) == ["select", "feature", "with", "value", "half_width_95", "coverage_certified"]


@pytest.mark.parametrize(
    ("loss", "target", "error"),
    [
        ("logistic", "member", [-0.5, 0.5, -0.5]),
        ("softmax", "town", np.full((3, 3), 1 / 3) - [[1, 0, 1], [0, 1, 0], [0, 0, 0]]),
    ],
)
def test_a_gradient_has_the_shape_of_its_parameters(client: Client, loss: Any, target: str, error: Any) -> None:
    """At zero the prediction is the same for everybody; of several classes a row for each."""
    parameters = np.zeros((3, 5)) if loss == "softmax" else np.zeros(5)
    item = gradient(loss, target=target, features=FEATURES, parameters=parameters, intercept=True)
    found = asked(client, item).matrix
    assert found.shape == parameters.shape
    assert np.allclose(found, np.array(error) @ ROWS, atol=1e-4)


def test_a_squared_loss_is_cut_at_its_residual(client: Client) -> None:
    """The individuals with a target count."""
    step = (
        client.dataset("club")
        .query()
        .gradient("squared", target="age", features=[one_hot("town")], parameters=[0, 0, 0], residual_clip=80)
    )
    assert step.noise(sigma=100).run().matrix.tolist() == [-64, -80, 0]


def test_an_answer_of_other_items_is_no_matrix(client: Client) -> None:
    """A count, several items, and an answer without axes."""
    for select in (count(), histogram("town"), [count(), histogram("town")]):
        with pytest.raises(ValueError, match="neither of moments nor of a gradient"):
            _ = asked(client, select).matrix
    with pytest.raises(ValueError, match="neither of moments nor of a gradient"):
        matrix_of([1.0], [], np)


def test_steps_of_the_builder_are_these_items(client: Client) -> None:
    """With a precision of their own and the rule clip."""
    query = client.dataset("club").query()
    assert query.moments(FEATURES, intercept=True, sigma=9).json == {
        "version": 1,
        "select": [dict(moments(FEATURES, intercept=True).json)],
        "noise": {"sigma": 9},
    }
    step = query.gradient("logistic", parameters=[0] * 5, **MEMBER).rule("clip").noise(share=0.01)
    assert step.json["select"] == [dict(gradient("logistic", parameters=[0] * 5, **MEMBER).json)]
    assert step.json["rule"] == "clip"
    assert step.preview().dimension == 5


AXES: list[dict[str, Any]] = [
    {"select": "moments", "size": 6, "features": ["a", "b", "c"]},
    {"select": "moments", "size": 6},
    {"select": "gradient", "size": 3, "features": ["a", "b", "c"]},
    {"select": "gradient", "size": 3},
    {"select": "gradient", "size": 6, "features": ["a", "b", "c"], "classes": ["x", "y"]},
    {"select": "gradient", "size": 6, "features": ["a", "b", "c"]},
    {"select": "gradient", "size": 6, "classes": ["x", "y"]},
]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_long_answers_are_labelled_from_their_axes(axis: dict[str, Any]) -> None:
    """The service labels short ones so; features and classes that are not listed are numbered."""
    labels = Labels([{"select": [axis]}])
    features, classes = axis.get("features", [0, 1, 2]), axis.get("classes", [0, 1])
    if axis["select"] == "moments":
        pairs = [(j, k) for place, j in enumerate(features) for k in features[place:]]
        wanted: list[Any] = [{"select": "moments", "feature": j, "with": k} for j, k in pairs]
        shape: tuple[int, ...] = (3, 3)
    elif axis["size"] == 3:
        wanted = [{"select": "gradient", "feature": name} for name in features]
        shape = (3,)
    else:
        wanted = [{"select": "gradient", "class": each, "feature": name} for each in classes for name in features]
        shape = (2, 3)
    assert list(labels) == [labels[place] for place in range(len(labels))] == wanted
    assert labels.columns() == {name: [label[name] for label in wanted] for name in wanted[0]}
    assert matrix_of(range(axis["size"]), [{"select": [axis]}], np).shape == shape


def test_the_labels_are_those_that_the_service_sends(client: Client) -> None:
    """Moments, a gradient, and one of several classes."""
    for item in (
        moments(FEATURES),
        gradient("logistic", parameters=[0] * 5, **MEMBER),
        gradient("softmax", target="town", features=FEATURES, parameters=np.zeros((3, 4))),
    ):
        sent = asked(client, item)
        assert list(Labels(sent.axes)) == list(sent.labels)


def test_without_numpy_a_matrix_says_what_is_missing(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package to install is named."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    body = answer | {"labels": [], "axes": [{"select": [{"select": "gradient", "size": 1}]}]}
    with Client(
        base_url="https://sparing.test",
        api_key="k",
        transport=httpx.MockTransport(lambda _: httpx.Response(200, json=body)),
        environ={},
    ) as client:
        found = client.queries.get(query="0190-a")
    with pytest.raises(ImportError, match="pip install numpy"):
        _ = found.matrix


def test_folds_divide_the_individuals(client: Client) -> None:
    """Each is in one part; the fake divides as the service does."""
    asked = [fold("churn", of=3, parts=[part]) for part in range(3)]
    assert asked[1].json == {"fold": {"seed": "churn", "of": 3, "in": [1]}}
    assert (~asked[1]).json == {"not": asked[1].json}
    counted = [client.queries.ask(dataset="club", select=count(), where=each, sigma=0.5).values[0] for each in asked]
    assert abs(sum(counted) - 3) < 6


IMAGES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "pixels": {"type": "vector", "length": 2, "lower": -4, "upper": 10},
            "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
        },
    }
}


def test_vectors_are_features_of_the_fake_as_of_the_service() -> None:
    """Lists and arrays of numbers, clipped; a missing one adds nothing; and the answer names each number."""
    rows = [
        {"person_id": 1, "pixels": [3, 900], "town": "Oslo"},
        {"person_id": 2, "pixels": np.array([-5, 2]), "town": "Bergen"},
        {"person_id": 3, "pixels": None, "town": "Oslo"},
    ]
    assert vector("pixels").json == {"vector": "pixels"}
    with FakeService() as fake:
        fake.add_dataset("images", IMAGES, rows={"people": rows}, rho=100_000)
        client = fake.client()
        answer = client.queries.ask(dataset="images", select=moments([vector("pixels")], intercept=True), sigma=1)
        expected = np.array([[25, 22, -1], [22, 104, 12], [-1, 12, 2]])
        assert np.allclose(answer.matrix, expected, atol=8)
        item = gradient("softmax", target="town", features=[vector("pixels")], parameters=np.zeros((2, 2)))
        step = client.queries.ask(dataset="images", select=item, sigma=1)
        assert [label["feature"] for label in step.labels] == ["pixels[0]", "pixels[1]"] * 2
        assert np.allclose(step.matrix, [[-3.5, -4], [3.5, 4]], atol=8)


@pytest.mark.parametrize("pixels", [[1], [1, 2, 3], [1, 2.5], "12", [1, None], [True, False]])
def test_a_list_that_is_no_vector_is_named(pixels: Any) -> None:
    """By table, row and column."""
    with FakeService() as fake, pytest.raises(ValueError, match="people, row 1: pixels must be a list of whole"):
        fake.add_dataset("images", IMAGES, rows={"people": [{"person_id": 1, "pixels": pixels}]}, rho=1)
