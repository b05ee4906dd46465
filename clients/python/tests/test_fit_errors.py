"""Noise in fits: hidden directions, descents that have not settled, and errors of coefficients that hold as stated."""

import warnings
from collections.abc import Iterator
from math import comb, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparing import col, dbapi, feature, one_hot
from sparing._fit_errors import LeastSquares, Summary, drift, floor_of, last_steps, raised_in
from sparing.learn import LinearRegression, LogisticRegression
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "level": {"type": "real", "lower": -1, "upper": 1},
            "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
            "sex": {"type": "category", "categories": ["f", "m"]},
            "score": {"type": "real", "lower": -4, "upper": 4},
            "member": {"type": "boolean"},
        },
    }
}
COUNT = 2000
FAILING = 1e-6
"""The chance at which a statistical test may fail for a right law, on each side of each number."""


def people() -> list[dict[str, Any]]:
    """A score with the slope 2 and the deviation 1/2, and members of whom the log-odds have the slope 1."""
    rng = np.random.default_rng(3)
    level = rng.uniform(-1, 1, COUNT).round(4)
    score = np.clip(2 * level + rng.normal(0, 0.5, COUNT) - 0.5, -4, 4)
    member = rng.random(COUNT) < 1 / (1 + np.exp(-level))
    towns, sexes = rng.integers(0, 2, COUNT), rng.integers(0, 2, COUNT)
    return [
        {
            "id": key,
            "level": float(level[key]),
            "town": ["Oslo", "Bergen"][towns[key]],
            "sex": "fm"[sexes[key]],
            "score": float(score[key]),
            "member": bool(member[key]),
        }
        for key in range(COUNT)
    ]


PEOPLE = people()


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """A service with noise."""
    with FakeService(noise=True, seed=5) as made:
        made.add_dataset("club", TABLES, rows={"people": PEOPLE}, rho=40, capacity=COUNT)
        yield made


def least_squares(moments: Any, products: Any, squares: float, count: float, sigma: float) -> LeastSquares:
    """A regression from noisy numbers, with the floor of a fit."""
    parameters = np.linalg.solve(moments, products)
    floor = floor_of(len(moments), sigma)
    given: Any = {"moments": moments, "products": products, "squares": squares, "count": count}
    return LeastSquares(**given, variance=sigma**2, floor=floor, parameters=parameters)


def summary_of(fit: LeastSquares) -> Summary:
    """The summary of a fit of which nothing else is to be said."""
    labels = [{"feature": place} for place in range(len(fit.parameters))]
    return fit.summary(labels, 0.95, coverage_certified=True, notes=())


# Errors of coefficients


def test_the_noise_of_coefficients_is_that_of_the_released_entries() -> None:
    """To first order they are linear in these; each entry above the diagonal is two of the matrix."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 4))
    moments, at = rows.T @ rows, rng.normal(size=4)
    fit = least_squares(moments, moments @ at, 0.0, 50.0, 0.25)
    step, slopes = 1e-6, []
    for place in zip(*np.triu_indices(4), strict=True):
        moved = moments.copy()
        moved[place] += step
        moved[place[::-1]] = moved[place]
        slopes.append((np.linalg.solve(moved, fit.products) - at) / step)
    slopes += list(np.linalg.inv(moments))
    expected = 0.25**2 * np.array(slopes).T @ np.array(slopes)
    assert np.allclose(fit.noise_covariance, expected, rtol=1e-4, atol=1e-9)


def test_the_residual_variance_is_that_of_the_rows() -> None:
    """The mean over the rows less the parameters; it is never below 0, and not known of too few individuals."""
    rng = np.random.default_rng(2)
    rows, target = rng.normal(size=(40, 3)), rng.normal(size=40)
    sums = rows.T @ rows, rows.T @ target, float(target @ target)
    fit = least_squares(*sums, 40.0, 0.1)
    residuals = target - rows @ fit.parameters
    assert fit.residual_variance == pytest.approx(float(residuals @ residuals) / 37)
    assert np.allclose(fit.sampling_covariance(2.0), 2 * np.linalg.inv(rows.T @ rows))
    assert least_squares(*sums[:2], 0.0, 40.0, 0.1).residual_variance == 0
    too_few = least_squares(*sums, 3.0, 0.1)
    assert too_few.residual_variance is None
    shown = summary_of(too_few)
    assert shown.rows[0].noise is not None
    assert shown.rows[0].population is None
    assert shown.notes == ("No interval for the population: noise hides the number of individuals.",)


REPETITIONS = 400


def bounds(chance: float) -> tuple[int, int]:
    """The least and the greatest number of hits of which fewer and more have each at most the chance `FAILING`."""
    law = [comb(REPETITIONS, k) * chance**k * (1 - chance) ** (REPETITIONS - k) for k in range(REPETITIONS + 1)]
    below, above = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    return int(np.argmax(below > FAILING)), REPETITIONS - int(np.argmax(above[::-1] > FAILING))


@pytest.mark.parametrize("sigma", [1.0, 6.0, 30.0], ids=["sampling", "both", "noise, twice the floor"])
def test_intervals_hold_as_often_as_they_say(sigma: float) -> None:
    """Around the coefficients without noise and those of the population, beside either error; others do not.

    Intervals of half the standard error hold too seldom, and those of twice the standard error too often. Intervals of
    the noise alone do not hold those of the population where sampling counts.
    """
    rng = np.random.default_rng(4)
    truth, names = np.array([1.0, -0.5, 0.25, 0.5]), ("noise", "population", "half", "twice", "without sampling")
    hits = {name: np.zeros(4, dtype=int) for name in names}
    for _ in range(REPETITIONS):
        rows = rng.uniform(-1, 1, (4000, 4))
        rows[:, 1], rows[:, 3] = (rows[:, 0] + rows[:, 1]) / 2, 1
        target = rows @ truth + rng.normal(0, 0.6, 4000)
        exact = np.linalg.lstsq(rows, target, rcond=None)[0]
        noise = np.triu(rng.normal(0, sigma, (4, 4)))
        moments = rows.T @ rows + noise + np.triu(noise, 1).T
        products, squares = rows.T @ target + rng.normal(0, sigma, 4), target @ target + rng.normal(0, sigma)
        found = summary_of(least_squares(moments, products, squares, moments[3, 3], sigma))
        assert found.notes == ()
        for place, row in enumerate(found.rows):
            assert row.noise is not None
            assert row.population is not None
            hits["noise"][place] += exact[place] in row.noise.interval
            hits["population"][place] += truth[place] in row.population.interval
            hits["without sampling"][place] += truth[place] in row.noise.interval
            off = abs(row.value - truth[place]) / row.population.standard_error
            hits["half"][place] += off <= 1.96 / 2
            hits["twice"][place] += off <= 1.96 * 2
    least, most = bounds(0.95)
    for name in ("noise", "population"):
        assert all(least <= each <= most for each in hits[name]), (name, hits[name], least, most)
    assert all(each < least for each in hits["half"])
    assert all(each > most for each in hits["twice"])
    assert sigma > 1 or all(each < least for each in hits["without sampling"])


def test_a_summary_has_both_errors_of_each_coefficient(fake: FakeService) -> None:
    """Around the coefficients that the service would fit without noise, and as a table."""
    model = LinearRegression(["level"], "score").fit(fake.client().dataset("club"), share=0.5)
    found = model.summary()
    rows = np.array([[each["level"], 1.0, each["score"]] for each in PEOPLE])
    exact = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
    assert [row.label for row in found.rows] == [{"feature": "level"}, {"feature": "intercept"}]
    assert [row.value for row in found.rows] == [model.coef_[0], model.intercept_]
    for row, value in zip(found.rows, exact, strict=True):
        assert row.noise is not None
        assert row.population is not None
        assert value in row.noise.interval
        assert row.noise.standard_error < row.population.standard_error
    assert found.residual_variance == pytest.approx(0.25, rel=0.1)
    assert (found.notes, found.confidence) == ((), 0.95)
    narrow = model.summary(confidence=0.5).rows[0].noise
    assert narrow is not None
    assert found.rows[0].noise is not None
    assert narrow.interval.low > found.rows[0].noise.interval.low
    assert str(found).splitlines() == [
        "feature    coefficient  se, noise       95 % interval  se, population     95 % interval",
        "level           2.0143     0.0090    (1.9966, 2.0320)           0.022    (1.972, 2.057)",
        "intercept      -0.5024     0.0031  (-0.5085, -0.4963)           0.012  (-0.526, -0.479)",
        "",
        "2,000 individuals",
    ]
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1, got 95"):
        model.summary(confidence=95)
    with pytest.raises(ValueError, match="fit the model first"):
        LinearRegression(["level"], "score").summary()


def test_one_hot_features_have_intervals_without_an_intercept(fake: FakeService) -> None:
    """Beside one they add up to it, which is no fault of the noise: it is in the notes, and nothing warns."""
    club = fake.client().dataset("club")
    alone = LinearRegression([one_hot("town")], "score", fit_intercept=False).fit(club, share=0.2)
    assert all(row.population is not None for row in alone.summary().rows)
    for features, intercept in ((["level", one_hot("town")], True), ([one_hot("town"), one_hot("sex")], False)):
        model = LinearRegression(features, "score", fit_intercept=intercept).fit(club, share=0.2)  # type: ignore[arg-type]
        assert (model.n_eigenvalues_raised_, model.caveats_) == (0, ())
        shown = model.summary()
        assert all(row.noise is None and row.population is None for row in shown.rows)
        assert [note[:60] for note in shown.notes] == ["No interval: an eigenvalue of the moments was raised to the "]
        assert "interval" not in str(shown).splitlines()[0]


@pytest.mark.filterwarnings("error")
def test_where_people_may_be_missing_the_population_has_no_interval(fake: FakeService) -> None:
    """The noise is known all the same."""
    club = fake.client().dataset("club")
    first = LinearRegression(["level"], "score").fit(club, share=0.6)
    second = LinearRegression([feature(col("level") * 0.5)], "score").fit(club, share=0.6)
    assert (first.coverage_certified_, second.coverage_certified_) == (True, False)
    shown = second.summary()
    assert all(row.noise is not None and row.population is None for row in shown.rows)
    assert shown.notes[-1] == "No interval for the population: people may be missing, or be shortened by the rule clip."
    assert "People may be missing" in shown.notes[0]


def test_a_logistic_regression_has_no_interval(fake: FakeService) -> None:
    """A row for each class and feature, and words on the missing columns."""
    club = fake.client().dataset("club")
    shown = LogisticRegression(["level"], "member").fit(club, share=0.5).summary()
    assert [row.label for row in shown.rows] == [{"feature": "level"}, {"feature": "intercept"}]
    assert shown.notes == ("No interval: those of logistic regressions are not measured.",)
    model = LogisticRegression(["level"], "town", fit_intercept=False).fit(club, share=0.4)
    shown = model.summary()
    assert [row.label["class"] for row in shown.rows] == ["Oslo", "Bergen"]
    assert [row.value for row in shown.rows] == model.coef_[:, 0].tolist()
    assert all(row.noise is None for row in shown.rows)
    with pytest.raises(ValueError, match="fit the model first"):
        LogisticRegression(["level"], "member").summary()


# Directions that noise hides


def test_directions_below_the_floor_are_hidden() -> None:
    """Those that are 0 by construction are neither hidden nor seen."""
    floor = floor_of(4, 10.0)
    assert floor == 40
    assert raised_in(np.diag([50.0, 39.0, 41.0, -3.0]), 10.0, []) == (2, 4)
    indicators = np.eye(2)[np.arange(1000) % 2]
    rows = np.hstack([np.linspace(-1, 1, 1000)[:, None], indicators, np.ones((1000, 1))])
    assert raised_in(rows.T @ rows, 1.0, []) == (1, 4)
    assert raised_in(rows.T @ rows, 1.0, [slice(1, 3), slice(3, 4)]) == (0, 3)
    assert raised_in(rows.T @ rows, 1000.0, [slice(1, 3), slice(3, 4)]) == (3, 3)


@pytest.mark.parametrize(
    ("answer", "hidden", "words"),
    [
        # The upper triangle of level, score and intercept, or of level and intercept.
        (
            [0.5, 0, 0, 100, 5, 1000],
            1,
            "No more than noise is seen along 1 of 2 directions of the features: coefficients along",
        ),
        (
            [0.5, 0, 0, 1000, 5, 0.1],
            2,
            "No more than noise is seen along all 2 directions of the features: this fit is noise.",
        ),
    ],
    ids=["some", "all"],
)
def test_a_fit_that_is_noise_says_so(answer: list[float], hidden: int, words: str) -> None:
    """By a number, its text and its summary; where all is noise, by a warning where it is called too."""
    with FakeService() as fake, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", dbapi.Warning)
        fake.add_dataset("club", TABLES, rows={"people": PEOPLE[:5]}, rho=1000)
        fake.answer(answer, sigma=1)
        model = LinearRegression(["level"], "score").fit(fake.client().dataset("club"), share=0.5)
    warned = [(Path(each.filename).name, str(each.message).startswith(words)) for each in found]
    assert warned == ([(Path(__file__).name, True)] if hidden == 2 else [])
    assert model.n_eigenvalues_raised_ == hidden
    assert words in repr(model)
    shown = model.summary()
    assert shown.notes[0].startswith(words)
    assert all(row.noise is None for row in shown.rows)


async def test_an_asynchronous_fit_that_is_noise_says_so() -> None:
    """The warning is where the fit is awaited; 143 people under an epsilon of 0.1 leave nothing but noise."""
    with FakeService(noise=True, seed=1) as fake:
        fake.add_dataset("club", TABLES, rows={"people": PEOPLE[:143]}, epsilon=0.1, delta="1e-5", capacity=143)
        model = LogisticRegression(["level"], "member")
        async with fake.async_client() as client:
            with pytest.warns(dbapi.Warning, match="No more than noise is seen along all 2 directions") as found:
                await model.fit_async(client.dataset("club"), share=0.5)
    assert [Path(each.filename).name for each in found] == [Path(__file__).name]


# Descents that have not settled


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 12])
def test_the_last_gradients_of_a_settled_descent_vary_no_more_than_is_assumed(steps: int) -> None:
    """The variance of their sum under the stationary law, from the covariances of all pairs of them."""
    for contraction in np.linspace(0.001, 1.5, 60):
        keep, of_place = 1 - contraction, 1 / (contraction * (2 - contraction))  # with noise of variance 1 and D = 1
        whole = 0.0
        for first in range(steps):
            for second in range(steps):
                apart = abs(first - second)
                whole += contraction**2 * of_place * keep**apart  # of the places, H x
                whole += 1 if apart == 0 else -contraction * keep ** (apart - 1)  # of the noise, and of it in places
        assert whole == pytest.approx(2 * (1 - keep**steps) * of_place, abs=1e-9)
        assert whole <= max(steps, 4) + 1e-9


def test_a_settled_descent_is_seldom_called_unsettled() -> None:
    """A descent in noise around its end is not; one that is still on its way is."""
    rng = np.random.default_rng(6)
    moments, count = np.diag([300.0, 500.0, 1000.0]), 1000.0
    direction = 6 * np.linalg.inv(moments)
    curvature = moments / 4
    called = 0
    for begin in (np.zeros(3), np.full(3, 50.0)):
        for _ in range(500):
            at, gradients = begin, []
            for _ in range(11):
                gradients.append((curvature @ at + rng.normal(0, 40, 3))[None])
                at = at - gradients[-1][0] @ direction
            called += drift(np.array(gradients[-3:]), 1600.0, direction, moments, count) is not None
    assert called <= 6  # of 1,000, with a chance of at most 0.001 each: 7 or more have a chance of 1e-4
    slow = curvature / 20
    at, gradients = np.full(3, 4.0), []
    for _ in range(11):
        gradients.append((slow @ at + rng.normal(0, 1, 3))[None])
        at = at - gradients[-1][0] @ direction
    moved = drift(np.array(gradients[-3:]), 1.0, direction, moments, count)
    assert moved is not None
    change = np.sum(gradients[-3:], axis=0)[0] @ direction
    assert moved == pytest.approx(sqrt(change @ moments @ change / count))
    assert drift(np.array(gradients[-3:]) / 32, 1.0 / 1024, direction, moments, count) is None  # it hardly moves
    assert drift(np.array(gradients[-3:]), 1e6, direction, moments, count) is None  # noise moves it


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (4, 1), (5, 2), (11, 3), (12, 3)])
def test_the_last_quarter_of_the_steps_counts(steps: int, expected: int) -> None:
    """Rounded up."""
    assert last_steps(steps) == expected


def test_a_descent_that_has_not_settled_says_so(fake: FakeService) -> None:
    """By a member, a warning and its text; eleven steps towards a common target have settled."""
    rare = [{**each, "member": key % 100 == 0} for key, each in enumerate(PEOPLE)]
    fake.add_dataset("rare", TABLES, rows={"people": rare}, rho=4000, capacity=COUNT)
    club = fake.client().dataset("rare")
    for steps, last in ((1, "its last step moved"), (11, "its last 3 steps moved")):
        short = LogisticRegression(["level"], "member", max_iter=steps)
        with pytest.warns(dbapi.Warning, match=f"The descent has not settled: {last} log-odds by .* by max_iter."):
            short.fit(club, share=0.1)
        assert not short.has_settled_
        assert "has not settled" in repr(short)
        assert "has not settled" in short.summary().notes[0]
    common = fake.client().dataset("club")
    long = LogisticRegression(["level"], "member").fit(common, share=0.2)
    assert (long.has_settled_, long.caveats_) == (True, ())
    assert "caveats_" not in repr(long)
