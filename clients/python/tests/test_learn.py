"""Regressions by private queries: against fits without privacy, broken off and run again, and refused."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sparing import (
    APIConnectionError,
    Client,
    InvalidRequestError,
    col,
    count,
    dbapi,
    feature,
    fold,
    one_hot,
    own,
    predict,
)
from sparing.learn import LinearRegression, LogisticRegression
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 100},
            "level": {"type": "real", "lower": -1, "upper": 1},
            "town": {"type": "category", "categories": ["Oslo", "Bergen", "Narvik"]},
            "member": {"type": "boolean"},
            "score": {"type": "real", "lower": -2, "upper": 2},
        },
    }
}
COUNT = 3000
FEATURES = [feature((col("age") - 50) * 0.02, fill=0), feature("level")]
AGE, LEVEL = 1.5, -1.0  # the coefficients that the people are made with


def people() -> dict[str, list[Any]]:
    """A table in which membership, town and score depend on age and level; an eighth has no age."""
    rng = np.random.default_rng(7)
    age, level = rng.integers(0, 101, COUNT), rng.uniform(-1, 1, COUNT).round(4)
    has = rng.random(COUNT) > 1 / 8
    scaled = np.where(has, (age - 50) * 0.02, 0)
    argument = AGE * scaled + LEVEL * level + 0.25
    utilities = np.stack([argument, -argument, np.zeros(COUNT)], axis=1) + rng.gumbel(size=(COUNT, 3))
    return {
        "person_id": list(range(COUNT)),
        "age": [int(each) if known else None for each, known in zip(age, has, strict=True)],
        "level": level.tolist(),
        "town": [["Oslo", "Bergen", "Narvik"][place] for place in utilities.argmax(axis=1)],
        "member": (rng.random(COUNT) < 1 / (1 + np.exp(-argument))).tolist(),
        "score": np.clip(0.5 * argument + rng.normal(0, 0.1, COUNT), -2, 2).tolist(),
    }


PEOPLE = people()


def rows_of(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """A table by rows."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """A service with noise, and a budget that leaves little of it."""
    with FakeService(noise=True, seed=3) as made:
        made.add_dataset("club", TABLES, rows={"people": rows_of(PEOPLE)}, rho=4000)
        yield made


@pytest.fixture
def client(fake: FakeService) -> Client:
    """A client of an analyst with an allowance, so that charges are counted."""
    return fake.client(api_key=fake.add_analyst(allowance_rho=4000))


def design() -> Any:
    """The features in numpy, the intercept last."""
    age = np.array([0 if each is None else (each - 50) * 0.02 for each in PEOPLE["age"]])
    return np.stack([age, PEOPLE["level"], np.ones(COUNT)], axis=1)


def without_privacy(errors: Any, parameters: Any, weights: float) -> Any:
    """A fit by steps along the same bound, until nothing changes."""
    rows = design()
    inverse = weights * np.linalg.inv(rows.T @ rows)
    for _ in range(3000):
        parameters = parameters - errors(rows @ parameters.T).T @ rows @ inverse
    return parameters


def test_a_logistic_regression_is_near_the_one_without_privacy(fake: FakeService, client: Client) -> None:
    """Coefficients, probabilities and classes; twelve queries, each of the same share."""
    model = LogisticRegression(FEATURES, "member").fit(client.dataset("club"), share=0.5)
    member = np.array(PEOPLE["member"], dtype=float)
    exact = without_privacy(lambda found: 1 / (1 + np.exp(-found)) - member, np.zeros(3), 4)
    assert model.coef_.shape == (1, 2)
    assert np.allclose(model.coef_[0], exact[:2], atol=0.08)
    assert np.allclose(model.intercept_, exact[2], atol=0.08)
    assert abs(model.n_individuals_ - COUNT) < 20
    assert model.feature_names_in_.tolist() == ["((age - 50) * 0.02)", "level"]
    assert len(fake.queries) == 12 == 1 + len(model.history_)
    assert {query["noise"]["share"] for query in fake.queries} == {0.5 / 12}
    assert {query["rule"] for query in fake.queries} == {"clip"}
    found = model.predict_proba(PEOPLE)
    assert np.allclose(found.sum(axis=1), 1)
    assert np.allclose(found[:, 1], 1 / (1 + np.exp(-design() @ exact)), atol=0.03)
    assert model.predict(PEOPLE).tolist() == (found[:, 1] > 0.5).tolist()
    assert np.array_equal(model.decision_function(PEOPLE) > 0, found[:, 1] > 0.5)


def test_a_multinomial_regression_is_near_the_one_without_privacy(client: Client) -> None:
    """A row of coefficients for each town, in the order in which they are declared."""
    model = LogisticRegression(FEATURES, col("town"), max_iter=23).fit(client.dataset("club"), share=0.9)
    own = np.array(
        [[town == each for each in TABLES["people"]["columns"]["town"]["categories"]] for town in PEOPLE["town"]]
    )

    def errors(found: Any) -> Any:
        odds = np.exp(found)
        return odds / odds.sum(axis=1, keepdims=True) - own

    exact = without_privacy(errors, np.zeros((3, 3)), 2)
    assert model.classes_ == ["Oslo", "Bergen", "Narvik"]
    assert model.coef_.shape == (3, 2)
    assert np.allclose(model.coef_, exact[:, :2], atol=0.15)
    assert set(model.predict(PEOPLE)) <= set(model.classes_)
    odds = np.exp(design() @ exact.T)
    assert np.allclose(model.predict_proba(PEOPLE), odds / odds.sum(axis=1, keepdims=True), atol=0.05)


def test_a_linear_regression_is_one_query(fake: FakeService, client: Client) -> None:
    """Least squares from the moments, with an intercept and without one."""
    rows, score = design(), np.array(PEOPLE["score"])
    club = client.dataset("club")
    model = LinearRegression(FEATURES, "score").fit(club, share=0.2)
    exact = np.linalg.lstsq(rows, score, rcond=None)[0]
    assert len(fake.queries) == 1
    assert np.allclose(model.coef_, exact[:2], atol=0.02)
    assert np.isclose(model.intercept_, exact[2], atol=0.02)
    assert np.allclose(model.predict(PEOPLE), rows @ exact, atol=0.05)
    through_zero = LinearRegression(FEATURES, col("score") * 0.5, fit_intercept=False).fit(club, share=0.2)
    exact = np.linalg.lstsq(rows[:, :2], score / 2, rcond=None)[0]
    assert np.allclose(through_zero.coef_, exact, atol=0.02)
    assert through_zero.intercept_ == 0


@pytest.mark.filterwarnings("ignore:The descent has not settled")
def test_individuals_are_those_of_a_condition_with_a_target(fake: FakeService, client: Client) -> None:
    """Both conditions are in every query; bins are classes, and without an intercept none is fitted."""
    target = col("age").bins([0, 50, 100])
    model = LogisticRegression([feature("level"), one_hot("town")], target, fit_intercept=False, max_iter=2, rule=None)
    model.fit(client.dataset("club"), where=col("member") == True, share=0.2)  # noqa: E712 - a literal
    known = sum(member and age is not None for member, age in zip(PEOPLE["member"], PEOPLE["age"], strict=True))
    assert abs(model.n_individuals_ - known) < 20
    assert model.classes_ == ["[0, 50)", "[50, 100]"]
    assert model.coef_.shape == (2, 4)
    assert model.intercept_.tolist() == [0, 0]
    for query in fake.queries:
        assert query["where"] == {"and": [{"not": {"is_null": {"col": "age"}}}, {"eq": [{"col": "member"}, True]}]}
        assert "rule" not in query


def spent(client: Client) -> Any:
    """The worst cases of the analyst's queries."""
    return client.allowances.list()[0].spent_rho


def test_a_fit_that_broke_off_goes_on_without_a_charge(fake: FakeService, client: Client) -> None:
    """Each answer is stored under its key; the result is that of a fit that was never broken off."""
    patient = client.with_options(max_retries=0)
    model = LogisticRegression(FEATURES, "member", max_iter=4)

    def broken(document: Any) -> None:
        if "gradient" in document["select"][0] and len(fake.queries) == 4:
            fake.answer(lambda _: None)
            raise RuntimeError

    fake.answer(broken)
    with pytest.raises(RuntimeError):
        model.fit(patient.dataset("club"), share=0.2, run="churn-1")
    assert len(model.history_) == 2
    before = spent(client)
    model.fit(client.dataset("club"), share=0.2, run="churn-1")
    assert len(model.history_) == 4
    keys = [each.idempotency_key for each in fake.requests if each.path.endswith("/queries")]
    assert keys == [f"churn-1-{number}" for number in (0, 1, 2, 3, 0, 1, 2, 3, 4)]
    whole = spent(client)
    assert whole > before
    first = model.coef_
    again = LogisticRegression(FEATURES, "member", max_iter=4).fit(client.dataset("club"), share=0.2, run="churn-1")
    assert np.array_equal(again.coef_, first)
    assert spent(client) == whole
    with pytest.raises(InvalidRequestError, match="used for another request"):
        model.fit(client.dataset("club"), share=0.1, run="churn-1")


def test_before_a_fit_nothing_is_predicted(fake: FakeService, client: Client) -> None:
    """Nor after one that could not begin."""
    model = LogisticRegression(FEATURES, "member", max_iter=4)
    fake.break_connection()
    with pytest.raises(APIConnectionError):
        model.fit(client.with_options(max_retries=0).dataset("club"))
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="fit the model first"):
        model.predict(PEOPLE)


def test_a_plan_states_what_a_fit_costs(fake: FakeService, client: Client) -> None:
    """Nothing is asked; the noise of a step is no larger than previewed, and with a clip of one's own as previewed."""
    club = client.dataset("club")
    plan = LogisticRegression(FEATURES, "member").plan(club, share=0.2)
    assert fake.queries == []
    assert plan.gradient is not None
    assert (plan.steps, plan.moments.dimension, plan.gradient.dimension) == (11, 6, 3)
    assert 0.19 < plan.worst_case_share <= 0.2
    model = LogisticRegression(FEATURES, "member").fit(club, share=0.2)
    assert model.history_[0].answer.sigma < plan.gradient.sigma  # type: ignore[operator]
    assert sum(each.answer.worst_case_share or 0 for each in model.history_) <= plan.worst_case_share
    given = LogisticRegression(FEATURES, "town", l2_clip=0.5, max_iter=1, fit_intercept=False)
    plan = given.plan(club, where=col("age") > 40)
    assert plan.gradient is not None
    assert (plan.gradient.dimension, plan.gradient.l2_clip) == (6, 0.5)
    with pytest.warns(dbapi.Warning, match="has not settled"):
        given.fit(club, where=col("age") > 40)
    assert given.history_[0].answer.sigma == plan.gradient.sigma
    plan = LinearRegression(FEATURES, "score").plan(club, share=0.2)
    assert (plan.steps, plan.gradient, plan.moments.dimension) == (0, None, 10)
    assert 0.19 < plan.worst_case_share <= 0.2


def test_where_noise_hides_the_moments_the_natural_clip_is_taken() -> None:
    """The number of individuals came out below zero; the fit ends all the same."""
    with FakeService() as fake:
        fake.add_dataset("club", TABLES, rows={"people": rows_of(PEOPLE)[:3]}, rho=1)
        fake.answer([-5, 0, 0, -5, 0, -9])
        model = LogisticRegression(FEATURES, "member", max_iter=1)
        with pytest.warns(dbapi.Warning, match="No more than noise is seen along all 3 directions"):
            model.fit(fake.client().dataset("club"))
        assert "per_individual" not in fake.queries[1]
        assert np.isfinite(model.coef_).all()


def test_parameters_of_the_constructor_go_round() -> None:
    """A pipeline of scikit-learn copies an estimator so."""
    model = LogisticRegression(FEATURES, "member", max_iter=3, l2_clip=2.0)
    params = model.get_params()
    assert params == {
        "features": FEATURES,
        "target": "member",
        "fit_intercept": True,
        "rule": "clip",
        "max_iter": 3,
        "l2_clip": 2.0,
    }
    assert type(model)(**params).get_params(deep=False) == params
    assert model.set_params(max_iter=5, rule=None) is model
    assert (model.max_iter, model.rule, model.l2_clip) == (5, None, 2.0)
    assert repr(LinearRegression(["level"], "score")).startswith("LinearRegression(features=['level'], target='score'")
    with pytest.raises(ValueError, match="LogisticRegression has no parameter 'steps'; it has features, target"):
        model.set_params(steps=4)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LinearRegression([], "score"), ValueError, "features is a list of at least one feature"),
        (LinearRegression("level", "score"), ValueError, "features is a list of at least one feature"),
        (LinearRegression([feature("levl")], "score"), ValueError, "no column 'levl'"),
        (LinearRegression(["level"], "town"), InvalidRequestError, "town"),
        (LinearRegression(["age", "level"], "score"), InvalidRequestError, "is small beside the other features"),
        (LogisticRegression(["level"], "member", max_iter=0), ValueError, "max_iter must be at least 1, got 0"),
        (LogisticRegression(["level"], "membr"), ValueError, "no column 'membr'"),
        (LogisticRegression(["level"], "score"), ValueError, "score: classes and one-hot features"),
        (LogisticRegression(["level"], col("age").bins([0, 100])), ValueError, "the target has one value"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused(client: Client, model: Any, error: Any, message: str) -> None:
    """By the public schema alone, and before anything is charged."""
    with pytest.raises(error, match=message):
        model.fit(client.dataset("club"))
    with pytest.raises(error, match=message):
        model.plan(client.dataset("club"))
    assert spent(client) == 0


def test_a_dataset_is_one_of_a_client(client: Client) -> None:
    """Neither its name nor a query of it."""
    for wrong in ("club", client.dataset("club").query(), count()):
        with pytest.raises(TypeError, match=r"fit takes client\.dataset\(name\)"):
            LinearRegression(["level"], "score").fit(wrong)  # type: ignore[arg-type]


# Judged by counts


def test_a_binary_model_is_judged_by_one_count(fake: FakeService, client: Client) -> None:
    """Accuracy and the area under the curve are those of the predictions, within their errors and the bins' width."""
    club = client.dataset("club")
    model = LogisticRegression(FEATURES, "member", max_iter=4).fit(club, share=0.4)
    before = len(fake.queries)
    found = model.evaluate(club, share=0.2, run="judge")
    member, likely = np.array(PEOPLE["member"]), model.predict_proba(PEOPLE)[:, 1]
    right = np.mean((likely >= 0.5) == member)
    pairs = np.sign(likely[member][:, np.newaxis] - likely[~member])
    area = np.mean(0.5 + pairs / 2)
    assert len(fake.queries) == before + 1
    assert abs(found.n_individuals - COUNT) < 50
    assert abs(found.accuracy - right) < 0.02
    assert found.auc is not None
    assert found.auc_se is not None
    assert abs(found.auc - area) < 0.02
    assert 0.005 < found.accuracy_se < 0.02
    assert 0.005 < found.auc_se < 0.02
    assert found.calibration is not None
    assert found.calibration.shape == (32, 2)
    assert abs(found.calibration[:, 1].sum() - member.sum()) < 50


@pytest.mark.filterwarnings("ignore:The descent has not settled")
@pytest.mark.parametrize("shift", [0.0, 3.5, 6.0], ids=["half", "five per cent", "half a per cent"])
def test_the_area_of_a_rare_target_is_not_that_of_one_bin(shift: float) -> None:
    """The model's log-odds lie close together, far from 0; bins are where they are, and there is an edge at 0."""
    rng = np.random.default_rng(2)
    values = rng.uniform(-1, 1, 20_000).round(3)
    target = rng.random(20_000) < 1 / (1 + np.exp(shift - 2 * values))
    tables: Any = {
        "people": {
            "kind": "individuals",
            "key": "id",
            "columns": {"u": {"type": "real", "lower": -1, "upper": 1}, "y": {"type": "boolean"}},
        }
    }
    with FakeService() as fake:
        rows = [{"id": key, "u": values[key], "y": bool(target[key])} for key in range(20_000)]
        fake.add_dataset("rare", tables, rows={"people": rows}, rho=1000, capacity=20_000)
        dataset = fake.client().dataset("rare")
        found = LogisticRegression([feature("u")], "y", max_iter=2).fit(dataset, share=0.4).evaluate(dataset, share=0.2)
    pairs = np.argsort(np.argsort(values))[target].sum() - target.sum() * (target.sum() - 1) / 2
    assert found.auc == pytest.approx(pairs / (target.sum() * (~target).sum()), abs=0.01)
    assert found.accuracy == pytest.approx(
        np.mean((values > 0) == target) if shift == 0 else np.mean(~target), abs=0.02
    )


def test_a_model_of_classes_is_judged_by_two_counts(fake: FakeService, client: Client) -> None:
    """Those who are predicted rightly, and all who have a prediction; a part judges where it is asked for."""
    club = client.dataset("club")
    model = LogisticRegression(FEATURES, "town", max_iter=4).fit(club, share=0.4)
    found = model.evaluate(club, share=0.2)
    right = np.mean(model.predict(PEOPLE) == np.array(PEOPLE["town"]))
    assert abs(found.accuracy - right) < 0.03
    assert (found.auc, found.auc_se, found.calibration) == (None, None, None)
    kept = fold("judges", of=4, parts=[0])
    part = model.evaluate(club, where=kept, share=0.2)
    assert 0.2 * COUNT < part.n_individuals < 0.3 * COUNT
    assert all(kept.json in query["where"]["and"] for query in fake.queries[-2:])


def test_a_model_that_cannot_be_judged_says_so(client: Client) -> None:
    """Before a fit, by a target in bins, and by an odd number of bins."""
    club = client.dataset("club")
    with pytest.raises(ValueError, match="fit the model first"):
        LogisticRegression(FEATURES, "member").evaluate(club)
    binned = LogisticRegression([feature("level")], col("age").bins([0, 50, 100]), max_iter=1).fit(club, share=0.2)
    with pytest.raises(ValueError, match="bins of a target"):
        binned.evaluate(club)
    with pytest.raises(ValueError, match="an even number from 4 up, got 5"):
        binned.evaluate(club, bins=5)


@pytest.mark.filterwarnings("ignore:The descent has not settled")
async def test_an_asynchronous_client_fits_and_judges_alike(fake: FakeService) -> None:
    """The queries and their keys are the same; the other kind of client is refused."""
    key = fake.add_analyst(allowance_rho=4000)
    model = LogisticRegression(FEATURES, "member", max_iter=2)
    async with fake.async_client(api_key=key) as client:
        await model.fit_async(client.dataset("club"), share=0.2, run="a")
        judged = await model.evaluate_async(client.dataset("club"), share=0.1, run="b")
        with pytest.raises(TypeError, match="fit takes client"):
            model.fit(client.dataset("club"))  # type: ignore[arg-type]
    keys = [each.idempotency_key for each in fake.requests if each.path.endswith("/queries")]
    assert keys == ["a-0", "a-1", "a-2", "b-0"]
    with fake.client(api_key=key) as client_that_waits:
        again = LogisticRegression(FEATURES, "member", max_iter=2)
        again.fit(client_that_waits.dataset("club"), share=0.2, run="a")
        assert again.evaluate(client_that_waits.dataset("club"), share=0.1, run="b").auc == judged.auc
        with pytest.raises(TypeError, match="fit_async takes client"):
            await again.fit_async(client_that_waits.dataset("club"))  # type: ignore[arg-type]
    assert np.array_equal(again.coef_, model.coef_)


# Features that no frame has


EVENTS: dict[str, Any] = {
    "kind": "events",
    "key": "person_id",
    "rows_per_individual": 10,
    "columns": {"minutes": {"type": "integer", "lower": 0, "upper": 60}},
}


@pytest.mark.filterwarnings("ignore:The descent has not settled")
def test_own_events_are_features_that_the_service_alone_works_out() -> None:
    """A fit and its judgement need no frame; a prediction of a frame says what to ask instead."""
    visits = [{"person_id": n, "minutes": 30} for n in range(COUNT) for _ in range(n % 5)]
    late = own("visits", clip=(0, 8))
    features = [feature((late - 2) * 0.5), one_hot(late.bins([0, 2, 9]))]
    with FakeService(noise=True, seed=4) as fake:
        rows = {"people": rows_of(PEOPLE), "visits": visits}
        fake.add_dataset("club", TABLES | {"visits": EVENTS}, rows=rows, rho=4000)
        club = fake.client().dataset("club")
        model = LogisticRegression(features, "member", max_iter=1).fit(club, share=0.2)
        level = predict(["level"], [2.0])
        stacked = LogisticRegression([feature(level)], "member", max_iter=1).fit(club, share=0.2)
        assert 0 < model.evaluate(club, share=0.1).accuracy < 1
        with pytest.raises(ValueError, match=r"own events are in no frame: ask the service, with model.as_value\(\)"):
            model.predict(PEOPLE)
        with pytest.raises(ValueError, match="predictions of another model are in no frame"):
            stacked.predict(PEOPLE)
        with pytest.raises(ValueError, match="need edges in a model"):
            LogisticRegression([one_hot(late.bins(width=2))], "member").plan(club)
