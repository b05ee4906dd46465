"""Averages of an answer: right numbers in the right groups, and intervals that hold what was counted."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from clients.python.tests.released import Numbers, item_axis, released, standard_error
from sparing import Answer, col, count, histogram
from sparing._average_answers import averaged
from sparing._averages import LinearQuery, linear_query, mean, quantile, stddev, variance
from sparing._query import question_json

DRAWS = 2_000
RESULTS = ["value", "half_width_95", "low_95", "high_95", "coverage_certified"]
LOW, HIGH = 0.0, 120.0
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": int(LOW), "upper": int(HIGH)},
            "town": {"type": "category", "categories": ["a", "b"]},
        },
    }
}
MIDDLE, HALF = 60.0, 60.0


def answered(
    query: LinearQuery, groups: list[Numbers], *, rho: float, rng: np.random.Generator | None = None
) -> Answer:
    """The answer to a query of sums, where each group has these values; nan is NULL."""
    weights = np.array(query.request.get("weights", [1.0]), dtype=float)
    items = query.request["select"]
    values: list[list[float]] = []
    axes: list[dict[str, object]] = []
    sigmas: list[float] = []
    for item, part in zip(items, weights / weights.sum(), strict=True):  # type: ignore[arg-type]
        title, of, bound = _item(item.json)
        axes.append(item_axis(title, offset=len(axes)))
        sigmas.append(bound / math.sqrt(2 * rho * part))
        values.append([of(ages) for ages in groups])
    noise = np.zeros((len(sigmas), len(groups))) if rng is None else rng.normal(0, 1, (len(sigmas), len(groups)))
    numbers = np.array(values) + noise * np.array(sigmas)[:, np.newaxis]
    labels = [{"group": group, "select": axis["select"]} for group in range(len(groups)) for axis in axes]
    shown = ({"column": "group", "size": len(groups)}, {"select": axes})
    grid = tuple(sigma * 2.0**-28 for sigma in sigmas)
    return released(numbers.T.reshape(-1), labels, axes=shown, sigma=tuple(sigmas), grid=grid)


def _item(item: Any) -> tuple[str, Any, float]:
    match item:
        case {"count": {}}:
            return "count", len, 1.0
        case {"sum": {"of": {"clip": [_, 1, 1]}}}:
            return "ones", lambda ages: float(np.sum(~np.isnan(ages))), 1.0
        case {"sum": {"of": {"sub": [{"col": "age"}, 60]}}}:
            return "sum", lambda ages: float(np.nansum(ages - MIDDLE)), HALF
        case {"sum": {"of": {"sub": [{"mul": _}, 1800]}}}:
            return "squares", lambda ages: float(np.nansum((ages - MIDDLE) ** 2 - 1800)), 1800.0
    raise ValueError(f"the test has no item {item}")


def asked(*items: Any, **more: Any) -> LinearQuery:
    """The linear query of these items."""
    return linear_query(items, {"dataset": "d", "share": 0.1, **more}, TABLES)  # type: ignore[typeddict-item]


def test_averages_are_those_of_the_values_without_noise() -> None:
    """In the order of the groups and then of the items, with NULL in none of them but a count of rows."""
    groups = [np.array([10.0, 20.0, 90.0, math.nan]), np.array([50.0, 52.0])]
    query = asked(mean("age"), count(), stddev("age"), variance("age"))
    found = averaged(answered(query, groups, rho=1.0), query).averages

    assert [each.value for each in found] == pytest.approx(
        [each for ages in groups for each in (np.nanmean(ages), len(ages), np.nanstd(ages), np.nanvar(ages))]
    )
    assert [dict(each.label) for each in found] == [
        {"group": group, "select": item}
        for group in (0, 1)
        for item in ("mean(age)", "count", "stddev(age)", "variance(age)")
    ]


def test_intervals_keep_to_what_is_possible() -> None:
    """A group of hardly anyone has a mean between the bounds, and a variance from 0 to the square of their half."""
    query = asked(mean("age"), variance("age"), stddev("age"))
    few, variances, deviations = averaged(answered(query, [np.array([110.0])], rho=0.01), query).averages

    assert (few.interval().low, few.interval().high) == (LOW, HIGH)
    assert (variances.interval().low, variances.interval().high) == (0, HALF**2)
    assert (deviations.interval().low, deviations.interval().high) == (0, HALF)
    assert few.half_width() == 110 - LOW
    with pytest.raises(ValueError, match="confidence"):
        few.interval(1)


@pytest.mark.parametrize("sums", [-100_000.0, 100_000.0])
def test_an_interval_beyond_a_bound_begins_there_and_keeps_its_width(sums: float) -> None:
    """One of width 0 would be a certainty, which the noise does not leave."""
    query = asked(mean("age"))
    axes = ({"select": [item_axis(item, offset=place) for place, item in enumerate(("sum", "ones"))]},)
    beyond = released(
        [sums, 1000.0], [{"select": item} for item in ("sum", "ones")], axes=axes, sigma=(60.0, 1.0), grid=(0.0, 0.0)
    )
    (found,) = averaged(beyond, query).averages
    around = found.interval()

    assert found.value == (LOW if sums < 0 else HIGH)
    assert found.value in {around.low, around.high}
    assert 0 < around.high - around.low < 1


def test_a_variance_that_the_noise_makes_negative_has_a_deviation_of_0() -> None:
    """And one of nobody has none."""
    query = asked(variance("age"), stddev("age"))
    negative = released(
        [0.0, 100.0, -190_000.0, 0.0, 0.0, 0.0],
        [{"group": group, "select": item} for group in (0, 1) for item in ("sum", "ones", "squares")],
        axes=(
            {"column": "group", "size": 2},
            {"select": [item_axis(item, offset=place) for place, item in enumerate(("sum", "ones", "squares"))]},
        ),
        sigma=(60.0, 1.0, 1800.0),
        grid=(0.0, 0.0, 0.0),
    )
    values = [each.value for each in averaged(negative, query).averages]

    assert values[:2] == [-100, 0]
    assert all(map(math.isnan, values[2:]))


@pytest.mark.parametrize("people", [150, 2_000])
@pytest.mark.parametrize("ages", [(35.0, 20.0), (110.0, 4.0)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_hold_the_averages_as_often_as_they_say(
    people: int, ages: tuple[float, float], confidence: float
) -> None:
    """In groups of noisy counts and of precise ones, near the middle and near a bound, with a fifth of them NULL.

    Intervals of nine tenths of the width hold them less often than is said: the test can fail.
    """
    rng = np.random.default_rng(people)
    one = np.clip(np.rint(rng.normal(*ages, people)), LOW, HIGH)
    one[: people // 5] = math.nan
    query = asked(mean("age"), variance("age"), stddev("age"))
    found = averaged(answered(query, [one] * DRAWS, rho=0.02, rng=rng), query).averages
    truths = [np.nanmean(one), np.nanvar(one), np.nanstd(one)]
    allowed = 3 * standard_error(confidence, DRAWS)

    narrow = []
    for place, truth in enumerate(truths):
        around = [each.interval(confidence) for each in found[place::3]]
        assert np.mean([truth in each for each in around]) > confidence - allowed
        narrow.append(np.mean([abs(truth - (e.low + e.high) / 2) <= 0.45 * (e.high - e.low) for e in around]))
    if people == 2_000:
        assert narrow[0] < confidence - allowed


def in_age_bins(groups: list[Numbers], edges: list[int], sigma: float, rng: np.random.Generator) -> Answer:
    """Counts of each group by age."""
    counts = [np.histogram(ages, edges)[0] + rng.normal(0, sigma, len(edges) - 1) for ages in groups]
    bins = [f"[{low}, {high})" for low, high in pairwise(edges)]
    labels = [{"town": town, "age": each, "select": "count"} for town in range(len(groups)) for each in bins]
    axes = ({"column": "town", "size": len(groups)}, {"column": "age", "size": len(bins), "edges": edges})
    return released(np.concatenate(counts), labels, axes=(*axes, {"select": [item_axis("count")]}), sigma=sigma)


def test_quantiles_of_each_group_hold_as_often_as_they_say() -> None:
    """Several from one answer, in each town."""
    rng = np.random.default_rng(3)
    edges = list(range(0, 121, 2))
    query = asked(quantile("age", 0.5), quantile("age", 0.9), group_by="town")
    towns = [rng.gamma(6.0, 7.0, 3_000).clip(0, 119.9), rng.uniform(0, 100, 3_000)]
    truths = [np.quantile(ages, p) for ages in towns for p in (0.5, 0.9)]
    draws = [averaged(in_age_bins(towns, edges, 20.0, rng), query).averages for _ in range(100)]

    assert [dict(each.label) for each in draws[0]] == [
        {"town": town, "select": f"quantile(age, {p})"} for town in (0, 1) for p in (0.5, 0.9)
    ]
    for place, truth in enumerate(truths):
        assert np.mean([truth in draw[place].interval() for draw in draws]) > 0.95 - 3 * standard_error(0.95, 100)
        assert np.mean([draw[place].value for draw in draws]) == pytest.approx(truth, abs=2)
    wide, narrow = draws[0][0].interval(0.999), draws[0][0].interval(0.5)
    assert wide.low <= narrow.low < narrow.high <= wide.high
    assert wide != narrow


@pytest.mark.parametrize(
    ("low", "high", "ages"), [(1, 5, [5] * 9), (1, 5, [5] * 6 + [4] * 4), (0, 1, [1] * 9), (0, 1, [0] * 9)]
)
def test_a_quantile_of_few_whole_numbers_is_one_of_them(low: int, high: int, ages: list[int]) -> None:
    """Each has its own bin, so the largest is not counted with the one before it."""
    column = {"type": "integer", "lower": low, "upper": high}
    tables = {"people": {**TABLES["people"], "columns": {"age": column}}}
    query = linear_query([quantile("age", 0.5)], {"dataset": "d", "rho": 1.0}, tables)
    sent: dict[str, Any] = question_json(query.request)
    (bins,) = sent["group_by"]
    edges: list[int] = bins["bin"]["edges"]
    counts = np.histogram(ages, edges)[0].astype(float)
    labels = [{"age": f"[{start}, {end})", "select": "count"} for start, end in pairwise(edges)]
    axes = ({"column": "age", "size": len(labels), "edges": edges}, {"select": [item_axis("count")]})

    (median,) = averaged(released(counts, labels, axes=axes, sigma=0.25), query).averages
    assert median.value == sorted(ages)[len(ages) // 2]
    assert (median.interval().low, median.interval().high) == (median.value, median.value)


def test_an_item_of_several_numbers_stays_beside_an_average() -> None:
    """A histogram and functionals, which have a label for each number."""
    query = asked(histogram("town"), mean("age"))
    titles = ("histogram(town)", "histogram(town)", "sum", "ones")
    labels = [{"select": title, **({"town": "ab"[place]} if place < 2 else {})} for place, title in enumerate(titles)]
    axes = [item_axis("histogram(town)", size=2), item_axis("sum", offset=2), item_axis("ones", offset=3)]
    answer = released(
        [5.0, 3.0, -80.0, 8.0], labels, axes=({"select": axes},), sigma=(1.0, 60.0, 1.0), grid=(2.0**-28,) * 3
    )
    answer = averaged(answer, query)

    assert [each.value for each in answer.averages] == [5, 3, 50]
    assert answer.averages[1].label == {"select": "histogram(town)", "town": "b"}
    assert answer.averages[1].half_width() == pytest.approx(1.96, abs=1e-3)


def test_the_answer_shows_its_averages_and_says_what_was_asked() -> None:
    """In one line, in a notebook and in frames; values and labels stay those of the linear items."""
    query = asked(mean(col("age")), count())
    answer = averaged(answered(query, [np.full(400, 30.0), np.full(900, 50.0)], rho=0.5), query)

    assert repr(answer).startswith("Answer(30.00 ± 0.63, 400.0 ± 2.8, 50.00 ± 0.24, ..., averages=4, dimension=6, id=")
    assert answer.labels[0] == {"group": 0, "select": "sum"}
    frame = answer.to_pandas()
    assert list(frame.columns) == ["group", "select", *RESULTS]
    assert frame["select"].tolist() == ["mean(age)", "count"] * 2
    assert (frame["low_95"] < frame["value"]).all()
    assert (frame["value"] < frame["high_95"]).all()
    page = answer._repr_html_()
    assert page.count("<tr><td>") == 4
    assert "<td>1, mean(age)</td><td>50.00</td>" in page
    axes = answer.plot()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [
        "0, mean(age)",
        "0, count",
        "1, mean(age)",
        "1, count",
    ]
