"""The page docs/post-processing.md is right: its examples run and print what it shows, and its table is measured."""

import contextlib
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from clients.python.tests.levels import deviation
from clients.python.tests.released import in_bins, rounded_noise
from service.query.items.centred_value import MEAN_PARTS as PARTS_OF_COST
from sparing import consistent_histogram, ratios
from sparing._rooms.fake import GAUSSIAN, UNITS_PER_RHO

PAGE = (Path(__file__).parents[3] / "docs" / "post-processing.md").read_text(encoding="utf-8")
COUNTRIES = ["NO", "SE", "DK"]
BUDGET_UNITS = GAUSSIAN.budget_units(epsilon=Decimal(1), delta=Decimal("1e-6"))
MEAN = {"mean": {"column": "spend"}}
MEAN_PARTS = [{"sum": {"of": {"sub": [{"col": "spend"}, 250]}}}, {"sum": {"of": {"clip": [{"col": "spend"}, 1, 1]}}}]
BOUNDS = {"low": 0.0, "middle": 250.0, "high": 500.0}
ESTIMATES = {"items": [{"title": "mean(spend)", "parts": [0, 1], "mean": BOUNDS}]}


@dataclass
class Shop:
    """A service that answers the queries of the page: counted numbers of made-up people, plus noise."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2026))
    asked: int = 0
    worst_case_rho: float = 0.0  # of all answers

    def __post_init__(self) -> None:
        """20,000 people, of whom 60 live in the last country, 300 are of no country and an eighth has no `spend`."""
        rng = np.random.default_rng(1)
        self.country = rng.choice(4, 20_000, p=[0.6, 0.382, 0.003, 0.015])
        self.age = np.clip(np.rint(rng.gamma(6.0, 7.0, 20_000)), 0, 119)
        self.spend = np.clip(np.rint(rng.gamma(2.0, 40.0, 20_000) * 4) / 4, 0, 500)
        self.spend[rng.random(20_000) < 1 / 8] = np.nan

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """An answer, or a preview, whose worst case is that of the natural bound."""
        query = json.loads(request.content)
        estimates = {"estimates": ESTIMATES} if query["select"] == [MEAN] else {}
        if estimates:
            query |= {"select": MEAN_PARTS, "noise": query["noise"] | {"weights": [7, 4]}}
        groups = [self._group(key) for key in query.get("group_by", [])]
        titles, numbers, bounds = zip(*map(self._item, query["select"]), strict=True)
        sigma, grid = _noise(query["noise"], titles, bounds)
        cells: list[tuple[dict[str, object], Any]] = [({}, self._selected(query.get("where")))]
        for column, members in groups:
            cells = [
                (label | {column: value}, rows & inside) for label, rows in cells for value, inside in members.items()
            ]
        count = len(cells) * len(titles)
        preview = {"dimension": count, "grid": grid, "sigma": sigma, "half_width_95": np.multiply(2, sigma).tolist()}
        worst_case_rho = float(np.sum(np.divide(bounds, sigma) ** 2 / 2))
        preview["worst_case_rho"] = str(worst_case_rho)
        if request.url.path.endswith("/preview"):
            return httpx.Response(200, json=preview)
        self.asked += 1
        self.worst_case_rho += worst_case_rho
        noise = rounded_noise(self.rng, (len(cells), len(titles)), np.array(sigma), np.array(grid))
        counted = [[float(np.nansum(each[rows])) for each in numbers] for _, rows in cells]
        items = [{"select": title, "offset": place, "size": 1} for place, title in enumerate(titles)]
        answer = {
            "id": f"answer-{self.asked}",
            "sequence": self.asked,
            "values": (np.array(counted) + noise).reshape(-1).tolist(),
            "labels": [label | {"select": title} for label, _ in cells for title in titles],
            "axes": [*map(_axis, query.get("group_by", [])), {"select": items}],
            "coverage_certified": True,
            "reused": False,
            "epoch": 1,
            "released_at": "2026-11-21T09:00:00+00:00",
            "table": query.get("from", "people"),
        }
        return httpx.Response(200, json=preview | answer | estimates)

    def _item(self, item: dict[str, Any]) -> tuple[str, Any, float]:
        match item:
            case {"count": {}}:
                return "count", np.ones(len(self.age)), 1
            case {"sum": {"column": "spend"}}:
                return "sum(spend)", self.spend, 500
            case {"sum": {"of": {"mul": [{"col": "spend"}, {"col": "spend"}]}}}:
                return "sum((spend * spend))", self.spend**2, 500**2
            case {"sum": {"of": {"sub": [{"col": "spend"}, 250]}}}:
                return "sum((spend - 250))", self.spend - 250, 250
            case {"sum": {"of": {"clip": [{"col": "spend"}, 1, 1]}}}:
                return "sum(clip(spend, 1, 1))", np.clip(self.spend, 1, 1), 1
        raise ValueError(f"the page asks for {item}")

    def _group(self, key: Any) -> tuple[str, dict[str, Any]]:
        if key == "country":
            return key, {name: self.country == place for place, name in enumerate(COUNTRIES)}
        edges = key["bin"]["edges"]
        ends = [*edges[1:-1], edges[-1] + 1]
        return "age", {
            f"[{low}, {high}{']' if high == edges[-1] else ')'}": (self.age >= low) & (self.age < end)
            for low, high, end in zip(edges, edges[1:], ends, strict=False)
        }

    def _selected(self, where: dict[str, Any] | None) -> Any:
        match where:
            case None:
                return np.ones(len(self.age), dtype=bool)
            case {"not": {"is_null": {"col": "spend"}}}:
                return ~np.isnan(self.spend)
            case {"ge": [{"col": "age"}, int(bound)]}:
                return self.age >= bound
            case {"in": [{"col": "country"}, [*countries]]}:
                return np.isin(self.country, [COUNTRIES.index(country) for country in countries])
        raise ValueError(f"the page asks where {where}")


def _noise(noise: Any, titles: Sequence[str], bounds: Sequence[float]) -> tuple[Any, Any]:
    """Sigma and grid: of one item, or lists where a share of the budget is divided among several."""
    if "sigma" in noise:
        return noise["sigma"], 1.0 if titles == ("count",) else 2.0**-10
    parts = np.array(noise["weights"]) / sum(noise["weights"])
    sigmas = np.array(bounds) / np.sqrt(2 * noise["share"] * BUDGET_UNITS / UNITS_PER_RHO * parts)
    return sigmas.tolist(), (sigmas * 2.0**-28).tolist()


def _axis(key: Any) -> dict[str, object]:
    if key == "country":
        return {"column": key, "size": len(COUNTRIES), "categories": COUNTRIES}
    return {"column": "age", "size": len(key["bin"]["edges"]) - 1, "edges": key["bin"]["edges"]}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop that every client reaches."""
    found = Shop()
    monkeypatch.setenv("SPARING_URL", "https://sparing.test")
    monkeypatch.setenv("SPARING_API_KEY", "k")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: found(request))
    return found


def run() -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """The shown and the true output of each example, in order, and the names that they leave."""
    names: dict[str, Any] = {}
    outputs = []
    for code, shown in re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "post-processing.md", "exec"), names)  # noqa: S102 - our own page
        outputs.append((shown, printed.getvalue()))
    return outputs, names


def test_every_example_prints_what_the_page_shows(shop: Shop) -> None:
    """In order, against a service whose people and noise are drawn with fixed seeds."""
    outputs, _ = run()

    assert len(outputs) == PAGE.count("```python\n") >= 6
    for shown, printed in outputs:
        assert printed == shown


def test_nobody_is_left_out_of_any_query_of_the_page(shop: Shop) -> None:
    """The worst cases of all answers together are within the budget of the promise that it names."""
    run()
    assert "epsilon 1 at delta 1e-6" in PAGE
    assert 0 < shop.worst_case_rho < BUDGET_UNITS / UNITS_PER_RHO


def test_the_intervals_of_the_page_hold_the_truth(shop: Shop) -> None:
    """So that the page does not show a lucky or broken draw: each at 99 in 100 or more."""
    _, found = run()
    means = {mean.label["country"]: mean.interval(0.99) for mean in ratios(found["spending"], found["spenders"])}
    averages = {mean.label["country"]: mean.interval(0.99) for mean in found["spent"].averages}
    for place, country in enumerate(COUNTRIES):
        assert np.nanmean(shop.spend[shop.country == place]) in means[country]
        assert np.nanmean(shop.spend[shop.country == place]) in averages[country]
    divided_by_all, *_ = ratios(found["spending"], found["people"])  # those without a value too
    assert np.nanmean(shop.spend[shop.country == 0]) not in divided_by_all.interval(0.99)
    assert np.nanvar(shop.spend) in found["variance"].interval(0.99)
    assert np.sum(shop.age >= 40) in found["both"].interval(0.99)
    assert np.sum(shop.country < 3) in found["whole"].interval(0.99)
    assert np.sum((shop.age >= 18) & (shop.age < 65)) in found["adults"].interval(0.99)
    for probability in (0.1, 0.5, 0.9):
        interval = found["ages"].quantile(probability, confidence=0.99).interval
        assert interval.low <= np.quantile(shop.age, probability) <= interval.high


def test_the_table_of_levels_is_right() -> None:
    """Worked out from the variances of consistent counts, which `test_nested_counts.py` holds against least squares."""
    (table,) = re.findall(r"^\| finest bins .*\n\|[-|]+\|\n((?:\|.*\|\n)+)", PAGE, re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]

    assert len(rows) == 5
    for bins, one, levels, error in rows:
        count = int(bins.replace(",", ""))
        assert deviation(count, count)[1] == pytest.approx(float(one), abs=0.005)
        assert deviation(count, 4)[0] == int(levels)
        assert deviation(count, 4)[1] == pytest.approx(float(error), abs=0.005)


PEOPLE, RHO, DRAWS = 20_000, 0.05, 4_000


def median_errors(values: Any, low: float, high: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Errors of a mean from a sum and a count with one sigma, from both in equal parts, and from `.mean`, at RHO."""
    largest, truth = max(abs(low), abs(high)), float(np.mean(values))

    def error(sigma_sum: float, sigma_count: float, middle: float) -> float:
        sums = np.sum(values - middle) + rng.normal(0, sigma_sum, DRAWS)
        return float(np.median(np.abs(middle + sums / (PEOPLE + rng.normal(0, sigma_count, DRAWS)) - truth)))

    one = math.sqrt((1 + largest**2) / (2 * RHO))
    middle, half = (low + high) / 2, (high - low) / 2
    parts = np.array(PARTS_OF_COST) / np.sum(PARTS_OF_COST)
    sigmas = np.array([half, 1]) / np.sqrt(2 * RHO * parts)
    return (
        error(one, one, 0),
        error(largest / math.sqrt(RHO), 1 / math.sqrt(RHO), 0),
        error(sigmas[0], sigmas[1], middle),
    )


def test_the_table_of_means_is_measured() -> None:
    """To the digits that it shows, but for the chance of the draws."""
    (table,) = re.findall(r"^\| values .*\n\|[-|]+\|\n((?:\|.*\|\n)+)", PAGE, re.MULTILINE)
    rng = np.random.default_rng(2)
    ages = np.clip(np.rint(rng.gamma(6.0, 7.0, PEOPLE)), 0, 120)
    incomes = np.clip(rng.lognormal(math.log(36_000), 0.6, PEOPLE), 0, 200_000)
    temperatures = np.clip(rng.normal(36.8, 0.4, PEOPLE), 34, 42)
    drawn = [(ages, 0, 120), (incomes, 0, 200_000), (temperatures, 34, 42)]
    rows = [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in table.splitlines()]

    assert len(rows) == len(drawn)
    for (_, bounds, truth, *shown), (values, low, high) in zip(rows, drawn, strict=True):
        assert bounds == f"{low} to {high}"
        assert float(truth) == pytest.approx(np.mean(values), rel=0.01)
        assert [float(each) for each in shown] == pytest.approx(median_errors(values, low, high, rng), rel=0.1)


@pytest.mark.parametrize(("steps", "percent"), [(10, 94.4), (3, 92.8), (1, 90.3)])
def test_the_coverage_of_single_numbers_on_a_coarse_grid_is_as_stated(steps: float, percent: float) -> None:
    """The least from so many grid steps up, from the law of the rounded noise; it is no larger than stated."""
    least = 1.0
    for whole in range(100):
        sigma = math.sqrt(max((whole / 1.959964) ** 2 - 1 / 12, 0)) * (1 - 1e-6)  # the interval is just below a step
        if sigma < steps:
            continue
        histogram = consistent_histogram([in_bins([0.0], [0, 1], sigma=sigma, grid=1.0)])
        within = math.floor(histogram.between(0, 1).interval(0.95).high)
        least = min(least, math.erf((within + 0.5) / sigma / math.sqrt(2)))

    assert f"{percent} %" in PAGE
    assert percent <= 100 * least < percent + 0.1
