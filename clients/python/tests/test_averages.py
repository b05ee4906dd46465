"""Averages become linear items whose parts of the cost make them precise; what cannot be averaged is refused."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import Column, Item, Value, col, count, sum_
from sparing._averages import AverageItem, linear_query, mean, quantile, stddev, variance
from sparing._query import question_json

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "income": {"type": "real", "lower": 0, "upper": 250.5},
            "balance": {"type": "real", "lower": -50, "upper": 50},
            "town": {"type": "category", "categories": ["a", "b"]},
            "one": {"type": "integer", "lower": 1, "upper": 1},
        },
    },
    "buys": {"kind": "events", "key": "id", "columns": {"price": {"type": "real", "lower": 0, "upper": 100}}},
}


def document(*items: Item | AverageItem, **asked: Any) -> dict[str, Any]:
    """The document that is sent for these items, without the version."""
    noise = {} if asked.keys() & {"rho", "sigma"} else {"share": 0.1}
    query = linear_query(items, {"dataset": "d", **noise, **asked}, TABLES)  # type: ignore[typeddict-item]
    sent = question_json(query.request)
    assert sent.pop("version") == 1
    return sent


def test_a_mean_is_a_sum_from_the_middle_over_a_count_of_values() -> None:
    """With 7 and 4 parts of the cost. Rows without a value are in neither."""
    assert document(mean("age")) == {
        "select": [{"sum": {"of": {"sub": [{"col": "age"}, 60]}}}, {"sum": {"of": {"clip": [{"col": "age"}, 1, 1]}}}],
        "noise": {"share": 0.1, "weights": [7, 4]},
    }
    balanced = document(mean(col("balance")), from_="people", group_by="town", rho=0.5)
    assert balanced["select"][0] == {"sum": {"column": "balance"}}


def test_a_variance_has_squares_from_the_middle_of_their_own() -> None:
    """Between minus and plus 60^2 / 2; a standard deviation is made from the same items."""
    step = {"abs": {"sub": [{"col": "age"}, 60]}}
    found = document(variance("age"))

    assert found["select"][2] == {"sum": {"of": {"sub": [{"mul": [step, step]}, 1800]}}}
    assert found["noise"]["weights"] == [12, 7, 5]
    assert document(stddev("age")) == found


def test_items_share_what_they_have_in_common() -> None:
    """Weights are by what was asked for, and divided within; a count of rows is not one of values."""
    found = document(count(), mean("age"), stddev("age"), mean("income"), weights=[3, 1, 1, 0.5])

    titles = [next(iter(item)) for item in found["select"]]
    assert titles == ["count", "sum", "sum", "sum", "sum", "sum"]
    parts = np.array([3, 7 / 11 + 12 / 24, 4 / 11 + 7 / 24, 5 / 24, 0.5 * 7 / 11, 0.5 * 4 / 11])
    weights = np.array(found["noise"]["weights"])
    assert weights / weights.sum() == pytest.approx(parts / parts.sum())
    assert all(isinstance(weight, int) for weight in found["noise"]["weights"])


def test_columns_of_events_and_of_their_people_have_their_own_bounds() -> None:
    """And calculated values those that follow."""
    value = (col("price") - 20).clip(-10, 30) * abs(col("people.balance")) + 7
    found = document(mean(value), from_="buys", rows=5)

    assert found["select"][0]["sum"]["of"]["sub"][1] == 507  # from -500 + 7 to 1500 + 7
    assert found["per_individual"] == {"rows": 5}


def test_quantiles_are_counts_in_bins() -> None:
    """All of a column share them; of many whole numbers each ends between two of these."""
    found = document(quantile("age", 0.5), quantile("age", 0.9), group_by=["town"], share=0.2)
    assert found == {
        "select": [{"count": {}}],
        "group_by": ["town", {"bin": {"column": "age", "edges": [age - 0.5 for age in range(0, 123, 2)]}}],
        "noise": {"share": 0.2},
    }
    (bins,) = document(quantile("one", 0.5))["group_by"]
    assert bins["bin"]["edges"] == [1, 2]
    (bins,) = document(quantile(col("income"), 0.5))["group_by"]
    assert bins["bin"]["edges"] == pytest.approx(np.linspace(0, 250.5, 65))
    (bins,) = document(quantile("income", 0.5, edges=np.array([0, 10, 250.5])))["group_by"]
    assert bins["bin"]["edges"] == [0, 10, 250.5]


@pytest.mark.parametrize(
    ("items", "asked", "message"),
    [
        ([mean("age")], {"sigma": 5}, "stated by share or rho"),
        ([mean("age")], {"rho": 5, "half_width": 5}, "stated by share or rho"),
        ([mean("age")], {"l2_clip": 5}, "takes rows and no l2_clip"),
        ([mean("age"), count()], {"weights": [1]}, "weights must be one for each of 2 items, not 1"),
        ([mean("town")], {}, r"mean\(town\): town must be a number; it is of type category"),
        ([mean("size")], {}, r"mean\(size\): there is no column size"),
        ([mean(col("age") - col("town"))], {}, r"mean\(\(age - town\)\): town must be a number"),
        ([mean("price")], {}, "there is no column price"),
        ([variance("one")], {}, "its bounds allow one number"),
        ([quantile("age", 0.5), count()], {}, "in a query of their own, all of one column"),
        ([quantile("age", 0.5), quantile("income", 0.5)], {}, "in a query of their own, all of one column"),
        ([quantile("age", 0.5), mean("age")], {}, "in a query of their own, all of one column"),
        ([AverageItem("quantile", (col("age") * 2).json, 0.5)], {}, "must be of a column"),
    ],
)
def test_what_cannot_be_averaged_is_refused(items: Any, asked: dict[str, Any], message: str) -> None:
    """By name, before anything is sent."""
    with pytest.raises(ValueError, match=message):
        document(*items, **asked)


@pytest.mark.parametrize("probability", [0, 1, 1.5, True, "0.5"])
def test_a_quantile_has_a_probability(probability: Any) -> None:
    """Above 0 and below 1."""
    with pytest.raises(ValueError, match="probability of a quantile"):
        quantile("age", probability)


def test_titles_word_values_as_the_service_does() -> None:
    """In the labels of the averages."""
    value = abs((col("price") * 2.5).clip(1, 30) + col("people.age"))
    assert mean(value).title == "mean(abs((clip((price * 2.5), 1, 30) + people.age)))"
    assert quantile("age", 0.25).title == "quantile(age, 0.25)"


# The bounds of a value hold every value of its columns

NUMBERS = st.integers(-20, 20) | st.floats(-20, 20)


def operations(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    """A value that is calculated from others."""
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner | NUMBERS),
        st.builds(lambda a, b: a - b, inner, inner | NUMBERS),
        st.builds(lambda a, b: a * b, inner, inner | NUMBERS),
        inner.map(abs),
        st.builds(lambda a, ends: a.clip(*sorted(ends)), inner, st.tuples(NUMBERS, NUMBERS)),
    )


VALUES = st.recursive(st.sampled_from(["age", "balance"]).map(Column), operations, max_leaves=4)


def calculated(value: Any, row: dict[str, float]) -> float:
    """The value of a row."""
    if not isinstance(value, dict):
        return float(value)
    ((word, inner),) = value.items()
    if word == "col":
        return row[inner]
    if word == "abs":
        return abs(calculated(inner, row))
    a, b, *more = (calculated(each, row) for each in inner)
    if word == "clip":
        return min(max(a, b), more[0])
    return {"add": a + b, "sub": a - b, "mul": a * b}[word]


@given(VALUES, st.integers(0, 120), st.floats(-50, 50))
def test_the_bounds_of_a_value_hold_it(value: Value, age: int, balance: float) -> None:
    """Bounds hold for every value that it may be calculated from."""
    try:
        ((_, span, _),) = linear_query([mean(value)], {"dataset": "d", "share": 0.1}, TABLES).selected
    except ValueError:
        return
    assert span is not None
    found = calculated(value.json, {"age": float(age), "balance": balance})
    slack = 1e-9 * (abs(span.low) + abs(span.high))
    assert span.low - slack <= found <= span.high + slack
    assert span.middle == pytest.approx((span.low + span.high) / 2)


# How the parts are divided


def mean_error(parts: tuple[float, float], u: Any) -> Any:
    """The square of a mean's error, by the delta method, with the mean u half distances from the middle."""
    of_sum, of_count = (part / sum(parts) for part in parts)
    return 1 / of_sum + u**2 / of_count


def variance_error(parts: tuple[float, float, float], u: Any, v: Any) -> Any:
    """The same of a variance, where the variance is v square half distances."""
    of_sum, of_count, of_squares = (part / sum(parts) for part in parts)
    return 0.25 / of_squares + 4 * u**2 / of_sum + (u**2 + 0.5 - v) ** 2 / of_count


def test_no_other_division_is_better_on_average() -> None:
    """Over means from bound to bound, and over the variances that such a mean allows; to a part in a thousand."""
    u = np.linspace(-1, 1, 2001)
    others = [float(np.mean(mean_error((of_sum, 1), u))) for of_sum in np.geomspace(0.1, 10, 100)]
    assert np.mean(mean_error((7, 4), u)) <= min(others) * 1.001
    worst = mean_error((7, 4), u) / (1 + abs(u)) ** 2
    assert worst[-1] < 1.081
    assert max(worst) < 1.58

    v = np.linspace(0, 1, 101)[:, np.newaxis] * (1 - u**2)
    grid = np.geomspace(0.3, 5, 15)
    others = [float(np.mean(variance_error((s, n, 1), u, v))) for s in grid for n in grid]
    assert np.mean(variance_error((12, 7, 5), u, v)) <= min(others) * 1.001
    assert np.mean(variance_error((1, 1, 1), u, v)) > min(others) * 1.05


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=2))
def test_weights_keep_their_proportions(weights: list[float]) -> None:
    """Weights are whole numbers, or stay as they are."""
    found = document(count(), sum_("age"), mean("income"), weights=[*weights, 1])["noise"]["weights"]
    assert found[0] / found[1] == pytest.approx(weights[0] / weights[1])
    assert math.fsum(found[2:]) / found[0] == pytest.approx(1 / weights[0])
