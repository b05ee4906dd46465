"""Estimates of an answer: in the right groups, and worked out again from what the answer states."""

import json
from typing import Any

import numpy as np
import pytest

from service.query.estimated_items import ReleasedNumbers, in_groups, items_of, stated_estimates
from service.query.estimates import QUANTILE_95, Noisy
from service.query.plan import Plan
from tests.query.samples import plan_of, query

AGE = {"column": "age"}
ITEMS: list[dict[str, Any]] = [
    {"mean": AGE},
    {"count": {}},
    {"stddev": AGE},
    {"variance": AGE},
    {"quantile": {"column": "level", "probability": 0.5}},
    {"quantile": {"column": "level", "probability": 0.9}},
    {"ratio": {"of": {"sum": {"column": "spend"}}, "to": {"count": {}}}},
    {"difference": {"of": {"mean": AGE}, "by": "member", "from": False, "to": True}},
    {"difference": {"of": {"count": {}}, "by": "country", "from": "SE", "to": "NO"}},
    {"histogram": {"column": "grade"}},
]
PLAN = plan_of(query(select=ITEMS, group_by=["country", "member"], noise={"share": 0.5}))


def released(plan: Plan, numbers: np.random.Generator) -> ReleasedNumbers:
    """Random numbers as an answer of a plan states them, after JSON."""
    noise, axes = plan.noise, plan.layout.axes(has_places=bool(plan.scale.sigmas))
    stated = {"labels": plan.layout.labels(), "axes": axes, "sigma": noise.sigma, "grid": noise.grid}
    read = json.loads(json.dumps(stated))
    values = [float(each) for each in numbers.normal(1_000, 50, plan.dimension)]
    return ReleasedNumbers(values, read["labels"], read["axes"], read["sigma"], read["grid"])


def test_the_items_that_an_answer_states_are_those_of_its_plan() -> None:
    """So that a client has the same estimates at another confidence."""
    numbers = released(PLAN, np.random.default_rng(1))
    stated = json.loads(json.dumps(stated_estimates(PLAN.layout.estimated, numbers)))
    again = items_of(stated["items"], numbers.axes)

    assert tuple(again) == PLAN.layout.estimated
    assert json.loads(json.dumps(stated_estimates(again, numbers))) == stated


def test_estimates_stand_in_their_groups() -> None:
    """Groups in the order of the answer, items in that of the query; a difference at the group that is added."""
    numbers = released(PLAN, np.random.default_rng(2))
    rows = stated_estimates(PLAN.layout.estimated, numbers)["rows"]
    found = [row["label"] for row in rows]

    titles = [item.title for item in PLAN.layout.estimated]
    assert titles[-2:] == ["difference(mean(age), member false to true)", "difference(count, country SE to NO)"]
    expected = []
    for country in ("NO", "SE", "DK"):
        for member in (False, True):
            expected += [{"country": country, "member": member, "select": title} for title in titles[:-2]]
            if member:
                expected.append({"country": country, "select": titles[-2]})
            if country == "NO":
                expected.append({"member": member, "select": titles[-1]})
    assert found == expected


@pytest.mark.parametrize("place", range(len(PLAN.layout.estimated) - 2))
def test_an_estimate_is_of_the_numbers_of_its_group_and_item(place: int) -> None:
    """Found by their labels, one by one."""
    numbers = released(PLAN, np.random.default_rng(3))
    item = PLAN.layout.estimated[place]
    titles = [PLAN.layout.items[part].title for part in item.parts]
    for label, same, noisy in in_groups([item], numbers):
        assert same is item
        group = {name: value for name, value in label.items() if name != "select"}
        parts = [
            [
                value
                for value, each in zip(numbers.values, numbers.labels, strict=True)
                if each["select"] == title and group.items() <= each.items()
            ]
            for title in titles
        ]
        assert [len(part) for part in parts] == [PLAN.layout.items[part].size for part in item.parts]
        noise = {each["select"]: each["item"] for each in numbers.axes[-1]["select"]}
        sigmas, grids = ([np.array(of)[noise[title]] for title in titles] for of in (numbers.sigma, numbers.grid))
        assert noisy == [Noisy(tuple(part), *noise) for part, *noise in zip(parts, sigmas, grids, strict=True)]


def test_a_difference_is_the_second_group_less_the_first() -> None:
    """In each group of the other columns."""
    numbers = released(PLAN, np.random.default_rng(4))
    count = next(item for item in PLAN.layout.estimated if item.title == "count")
    counts = {(label["country"], label["member"]): each.values[0] for label, _, [each] in in_groups([count], numbers)}
    for label, item, noisy in in_groups([PLAN.layout.estimated[-1]], numbers):
        member = label["member"]
        estimate = item.estimator.of(noisy, QUANTILE_95)
        assert estimate.value == counts["NO", member] - counts["SE", member]


def test_a_number_that_is_none_is_null() -> None:
    """A mean of nobody, and the ends of a ratio whose denominator may be 0."""
    plan = plan_of(query(select=[{"mean": AGE}, ITEMS[6]], noise={"share": 0.5}))
    noise, axes = plan.noise, plan.layout.axes(has_places=True)
    numbers = ReleasedNumbers([0.0] * 4, plan.layout.labels(), axes, noise.sigma, noise.grid)
    mean, ratio = stated_estimates(plan.layout.estimated, numbers)["rows"]
    assert (mean["value"], mean["low"], mean["high"], mean["is_reliable"]) == (None, 0.0, 120.0, False)
    assert (ratio["value"], ratio["low"], ratio["high"]) == (None, None, None)


@pytest.mark.parametrize(
    "stated",
    [
        {"title": "x", "parts": [0]},
        {"title": "x", "parts": [0], "mean": {"low": 0}},
        {"title": "x", "parts": [99], "quantile": {"probability": 0.5, "low": 0, "high": 1, "is_whole": False}},
        {"parts": [0], "number": {}},
    ],
)
def test_an_item_that_is_none_is_refused(stated: dict[str, Any]) -> None:
    """So is any other damage of an answer."""
    with pytest.raises((LookupError, TypeError, ValueError)):
        items_of([stated], PLAN.layout.axes())
