"""Predictions as values: each link beside a reference in fractions, missing values, fills, events and empty slots."""

from fractions import Fraction
from math import exp, floor
from typing import Any

import numpy as np
import pytest

from service.engine import predictions as engine
from service.engine.predictions import logistic, softmax
from service.query.predictions import Predicted
from tests.engine.worlds import VISIT, Row, memory_of, plan_of, query_of, vectors

COUNTRIES = ("NO", "SE", "DK")
ROWS: dict[int, Row] = {
    slot: {
        "country": [*COUNTRIES, None][slot % 4],
        "area": slot % 5,
        "level": [-2, None, 3, 0, 1][slot % 5],
        "spend": [0, 13.5, 500, 250][slot % 4],
        "balance": 0,
        "member": slot % 3 == 0,
        "born": None,
        "sketch": None if slot % 7 == 3 else [slot % 11 - 4, slot % 250, 17 * slot % 251],
    }
    for slot in [*range(70), 4095, 4096, 65_530, 65_540]
}
MEMORY = memory_of(ROWS, [[(slot, VISIT) for slot in ROWS for _ in "ab"]])
FEATURES: list[dict[str, Any]] = [
    {"of": {"col": "level"}},
    {"of": {"mul": [{"col": "spend"}, 0.01]}},
    {"one_hot": "country"},
]
WEIGHTS = [[0.5, -0.7, 0.25, -1.5, 0.125, 0.3], [-0.1, 0.4, 0.6, 0.6, -0.8, 0.0], [0.0, 0.1, -2.0, 1.0, 0.5, 0.2]]


def prediction(link: str, **more: Any) -> dict[str, Any]:
    """A prediction by the three features and an intercept."""
    weights = WEIGHTS if link == "softmax" else WEIGHTS[0]
    model = {"features": FEATURES, "intercept": True, "link": link, "parameters": weights}
    return {"predict": model | ({"target": "country"} if link == "softmax" else {}) | more}


def selected(where: dict[str, Any], **more: Any) -> list[int]:
    """The slots for which a condition holds."""
    return [*vectors(plan_of(query_of(where=where, **more)), MEMORY)]


def values(value: dict[str, Any]) -> dict[int, int]:
    """The value of every individual, in grid steps where that is not zero."""
    return {
        slot: entries[0] for slot, (_, entries) in vectors(plan_of(query_of({"sum": {"of": value}})), MEMORY).items()
    }


def arguments(slot: int, link: str) -> list[Fraction] | None:
    """The arguments of one individual, of the rounded features and parameters; None without a level."""
    row, formula = ROWS[slot], formula_of(link)
    if row["level"] is None:
        return None
    step = Fraction(2) ** formula.features.step_log2
    numbers = [Fraction(row["level"]), Fraction(row["spend"]) / 100]
    steps = [floor(number / step + Fraction(1, 2)) for number in numbers]
    one = floor(1 / step + Fraction(1, 2))
    steps += [one * (row["country"] == country) for country in COUNTRIES] + [one]
    return products(steps, formula)


def products(steps: list[int], formula: Predicted) -> list[Fraction]:
    """The arguments of features in steps."""
    unit = Fraction(2) ** formula.unit_log2
    rows = formula.parameters.tolist()
    return [unit * sum(h * theta for h, theta in zip(steps, each, strict=True)) for each in rows]


def formula_of(link: str, **more: Any) -> Predicted:
    """The model of the plan."""
    value = prediction(link, **more)
    asked = query_of({"sum": {"of": value}})
    if link == "softmax":
        asked = query_of(where={"eq": [value, {"col": "country"}]})
    (formula,) = (
        column.formula for column in plan_of(asked).rows.columns.values() if isinstance(column.formula, Predicted)
    )
    return formula


def known(link: str) -> dict[int, list[Fraction]]:
    """The arguments of all that have one."""
    return {slot: found for slot in ROWS if (found := arguments(slot, link)) is not None}


@pytest.mark.parametrize("threshold", [0.25, 0.5, 0.75])
def test_a_probability_is_that_of_the_argument(threshold: float) -> None:
    """A table of arguments by 2^-10 keeps it within 2^-12, and no threshold is nearer to one of these people."""
    expected = [slot for slot, (each,) in known("logistic").items() if 1 / (1 + exp(-each)) >= threshold]
    nearest = min(abs(1 / (1 + exp(-each)) - threshold) for (each,) in known("logistic").values())
    assert nearest > 2**-12
    assert selected({"ge": [prediction("logistic"), threshold]}) == expected
    assert 0 < len(expected) < len(known("logistic"))


def test_a_number_is_exact() -> None:
    """In the argument's own steps, rounded to the grid of the query."""
    grid = Fraction(2) ** plan_of(query_of({"sum": {"of": prediction("identity")}})).scale.grid_log2
    expected = {slot: floor(each / grid + Fraction(1, 2)) for slot, (each,) in known("identity").items()}
    assert values(prediction("identity")) == {slot: steps for slot, steps in expected.items() if steps != 0}


def test_the_likeliest_value_is_the_first_of_the_largest_arguments() -> None:
    """It is a value of the column, and compares with that column and with its categories."""
    best = {slot: COUNTRIES[found.index(max(found))] for slot, found in known("softmax").items()}
    right = [slot for slot, country in best.items() if ROWS[slot]["country"] == country]
    assert selected({"eq": [prediction("softmax"), {"col": "country"}]}) == right
    for country in COUNTRIES:
        assert selected({"eq": [prediction("softmax"), country]}) == [slot for slot in best if best[slot] == country]
    zeros = prediction("softmax", parameters=[[0] * 6] * 3)
    assert selected({"eq": [zeros, "NO"]}) == [*known("softmax")]


def test_a_missing_feature_has_no_prediction_and_a_fill_has_one() -> None:
    """An empty slot has none, though its features would be filled."""
    assert selected({"is_null": prediction("logistic")}) == [slot for slot in ROWS if ROWS[slot]["level"] is None]
    filled = prediction("logistic", features=[each | {"fill": 1} for each in FEATURES[:2]] + FEATURES[2:])
    assert selected({"ge": [filled, 0]}) == [*ROWS]


def test_probabilities_are_counted_in_bins() -> None:
    """Beside the target: accuracy, calibration and the curve are one count of norm 1."""
    bins = {"bin": {"of": prediction("logistic"), "width": 0.25}}
    plan = plan_of(query_of(group_by=["member", bins]))
    expected = {
        slot: 4 * bool(ROWS[slot]["member"]) + min(int(4 / (1 + exp(-each))), 3)
        for slot, (each,) in known("logistic").items()
    }
    assert vectors(plan, MEMORY) == {slot: (1, {place: 1}) for slot, place in expected.items()}
    assert (plan.dimension, plan.scale.charged_squared_steps) == (8, plan_of(query_of()).scale.charged_squared_steps)


def test_an_event_has_the_prediction_of_its_individual() -> None:
    """By the individual's own columns."""
    features = [{"of": {"col": "people.level"}}, {"of": {"mul": [{"col": "amount"}, 0.5]}}]
    model = {"predict": {"features": features, "link": "identity", "parameters": [1, 2]}}
    asked = {"from": "visits", "per_individual": {"rows": 2}}
    expected = [slot for slot, row in ROWS.items() if row["level"] is not None and row["level"] + 1 >= 1.5]
    assert selected({"ge": [model, 1.5]}, **asked) == expected


def test_a_feature_may_be_a_prediction() -> None:
    """A model of a model."""
    stacked = prediction("identity", features=[{"of": prediction("logistic")}], intercept=False, parameters=[2])
    likely = selected({"ge": [prediction("logistic"), 0.5]})
    assert selected({"ge": [stacked, 1]}) == likely


def test_blocks_and_tables_change_no_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows are cut."""
    whole = values(prediction("identity")), selected({"ge": [prediction("logistic"), 0.4]})
    monkeypatch.setattr(engine, "rows_in_products", lambda _: 3)
    assert (values(prediction("identity")), selected({"ge": [prediction("logistic"), 0.4]})) == whole


ON_VECTORS: dict[str, Any] = {
    "features": [{"of": {"mul": [{"col": "spend"}, 0.001]}}, {"vector": "sketch"}],
    "intercept": True,
    "parameters": [0.7, -1.25, 0.5, 0.3, -0.9],
}


def of_vectors(link: str, **more: Any) -> dict[int, list[Fraction]]:
    """The arguments of all that have a vector, by the vector as stored."""
    formula, found = formula_of(link, **ON_VECTORS | more), {}
    step = Fraction(2) ** formula.features.step_log2
    for slot, row in ROWS.items():
        if row["sketch"] is not None:
            spend = floor(Fraction(row["spend"]) / 1000 / step + Fraction(1, 2))
            steps = [spend, *(int(number * Fraction(1, 64) / step) for number in row["sketch"]), int(1 / step)]
            found[slot] = products(steps, formula)
    return found


def test_a_prediction_reads_vectors_as_they_are_stored() -> None:
    """Exactly, in a sum, a condition and bins; without a vector there is none."""
    known = of_vectors("identity")
    assert selected({"is_null": prediction("identity", **ON_VECTORS)}) == [slot for slot in ROWS if slot not in known]
    positive = [slot for slot, (each,) in known.items() if each >= Fraction(1, 2)]
    assert 0 < len(positive) < len(known)
    assert selected({"ge": [prediction("identity", **ON_VECTORS), 0.5]}) == positive
    likely = [slot for slot, (each,) in of_vectors("logistic").items() if each >= 0]
    assert selected({"ge": [prediction("logistic", **ON_VECTORS), 0.5]}) == likely


def test_the_likeliest_value_is_of_vectors_too() -> None:
    """With parameters of each value."""
    rows = {"parameters": [[0.1, 2, -1, 0.5, 2], [0, -0.25, 1, 0.5, 0.1], [1, 0, 0, 1.25, -2]]}
    best = {slot: found.index(max(found)) for slot, found in of_vectors("softmax", **rows).items()}
    assert {*best.values()} == {0, 1, 2}
    right = [slot for slot, place in best.items() if ROWS[slot]["country"] == COUNTRIES[place]]
    assert selected({"eq": [prediction("softmax", **ON_VECTORS | rows), {"col": "country"}]}) == right


def test_listed_rows_have_the_vectors_of_their_own_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by an index, and passed in pieces of any size."""
    value = prediction("identity", **ON_VECTORS)
    asked = {"and": [{"eq": [{"col": "area"}, 1]}, {"ge": [value, 0]}]}
    expected = [slot for slot, (each,) in of_vectors("identity").items() if each >= 0 and slot % 5 == 1]
    assert selected(asked) == expected
    whole = values(value)
    monkeypatch.setattr(engine, "rows_in_products", lambda _: 3)
    assert (selected(asked), values(value)) == (expected, whole)


def test_links_are_those_of_the_books() -> None:
    """Within the table's steps; far arguments are certain."""
    steps = np.array([-40.0, -2.0, 0.0, 0.5, 40.0]) * 2**10
    assert np.allclose(logistic(steps, -10), 1 / (1 + np.exp(-steps / 2**10)), atol=1e-13)
    both = np.stack([steps, np.zeros(5)])
    assert np.allclose(softmax(both, -10)[0], logistic(steps, -10), atol=1e-13)
