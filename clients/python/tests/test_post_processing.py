"""The page docs/post-processing.md is right: its examples run and print what it shows, and its table is measured."""

import contextlib
import io
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from clients.python.tests.released import in_bins, rounded_noise
from sparing import bin_levels, consistent_histogram, ratios
from sparing._nested_counts import NestedCounts, NoisyLevel, WeightedSum

PAGE = (Path(__file__).parents[3] / "docs" / "post-processing.md").read_text(encoding="utf-8")
COUNTRIES = ["NO", "SE", "DK"]


@dataclass
class Shop:
    """A service that answers the queries of the page: counted numbers of made-up people, plus noise."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2026))
    asked: int = 0

    def __post_init__(self) -> None:
        """20,000 people, of whom 60 live in the last country and 300 are of no country."""
        rng = np.random.default_rng(1)
        self.country = rng.choice(4, 20_000, p=[0.6, 0.382, 0.003, 0.015])
        self.age = np.clip(np.rint(rng.gamma(6.0, 7.0, 20_000)), 0, 119)
        self.spend = np.clip(np.rint(rng.gamma(2.0, 40.0, 20_000) * 4) / 4, 0, 500)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """An answer, or a preview, whose worst case is that of the natural bound."""
        query = json.loads(request.content)
        groups = [self._group(key) for key in query.get("group_by", [])]
        (item,) = query["select"]
        title, numbers, bound = self._item(item)
        sigma, grid = query["noise"]["sigma"], 1.0 if title == "count" else 2.0**-10
        cells: list[tuple[dict[str, object], Any]] = [({}, self._selected(query.get("where")))]
        for column, members in groups:
            cells = [
                (label | {column: value}, rows & inside) for label, rows in cells for value, inside in members.items()
            ]
        preview = {"dimension": len(cells), "grid": grid, "sigma": sigma, "half_width_95": 2 * sigma}
        preview["worst_case_rho"] = str(bound**2 / (2 * sigma**2))
        if request.url.path.endswith("/preview"):
            return httpx.Response(200, json=preview)
        self.asked += 1
        noise = rounded_noise(self.rng, len(cells), sigma, grid)
        answer = {
            "id": f"answer-{self.asked}",
            "sequence": self.asked,
            "values": [float(numbers[rows].sum() + added) for (_, rows), added in zip(cells, noise, strict=True)],
            "labels": [label | {"select": title} for label, _ in cells],
            "axes": [*map(_axis, query.get("group_by", [])), {"select": [{"select": title, "offset": 0, "size": 1}]}],
            "coverage_certified": True,
            "reused": False,
            "epoch": 1,
            "released_at": "2026-11-21T09:00:00+00:00",
        }
        return httpx.Response(200, json=preview | answer)

    def _item(self, item: dict[str, Any]) -> tuple[str, Any, float]:
        match item:
            case {"count": {}}:
                return "count", np.ones(len(self.age)), 1
            case {"sum": {"column": "spend"}}:
                return "sum(spend)", self.spend, 500
            case {"sum": {"of": {"mul": [{"col": "spend"}, {"col": "spend"}]}}}:
                return "sum((spend * spend))", self.spend**2, 500**2
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
            case {"ge": [{"col": "age"}, int(bound)]}:
                return self.age >= bound
            case {"in": [{"col": "country"}, [*countries]]}:
                return np.isin(self.country, [COUNTRIES.index(country) for country in countries])
        raise ValueError(f"the page asks where {where}")


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


def test_the_intervals_of_the_page_hold_the_truth(shop: Shop) -> None:
    """So that the page does not show a lucky or broken draw: each at 99 in 100 or more."""
    _, found = run()
    means = {mean.label["country"]: mean.interval(0.99) for mean in ratios(found["spending"], found["people"])}
    for place, country in enumerate(COUNTRIES):
        assert np.mean(shop.spend[shop.country == place]) in means[country]
    assert np.var(shop.spend) in found["variance"].interval(0.99)
    assert np.sum(shop.age >= 40) in found["both"].interval(0.99)
    assert np.sum(shop.country < 3) in found["whole"].interval(0.99)
    assert np.sum((shop.age >= 18) & (shop.age < 65)) in found["adults"].interval(0.99)
    for probability in (0.1, 0.5, 0.9):
        interval = found["ages"].quantile(probability, confidence=0.99).interval
        assert interval.low <= np.quantile(shop.age, probability) <= interval.high


def deviation(bins: int, branching: int) -> tuple[int, float]:
    """The number of levels, and the root mean square deviation of the table, for a rho of 1/2 in all."""
    levels: list[Any] = [group.json["bin"] for group in bin_levels("age", range(bins + 1), branching=branching)]
    noisy = [
        NoisyLevel(bounds=tuple(level["edges"]), counts=(0.0,) * (len(level["edges"]) - 1), variance=float(len(levels)))
        for level in levels
    ]
    counts = NestedCounts(noisy)
    sums = [WeightedSum(cuts=(0, cut, bins), weights=(0.5, -0.5)) for cut in range(1, bins)]
    return len(levels), math.sqrt(math.fsum(map(counts.variance, sums)) / len(sums))


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
