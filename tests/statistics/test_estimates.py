"""Estimates on real tables: intervals hold the exact numbers as often as they say.

The tables are those of the RAND Health Insurance Experiment (docs/notebooks/data) and of the demo: people, their years,
and visits to a web site. The exact numbers are those of pandas. The service's fake answers, with noise of its own law.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from sparing.testing import FakeService

Frame = Any
DRAWS = 120
ROOT = Path(__file__).parents[2]
SHARES = [0, 25, 50, 95, 100]
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person",
        "columns": {
            "coinsurance": {"type": "category", "categories": SHARES},
            "female": {"type": "boolean"},
            "age": {"type": "integer", "lower": 0, "upper": 65},
        },
    },
    "years": {
        "kind": "events",
        "key": "person",
        "rows_per_individual": 5,
        "columns": {
            "year": {"type": "integer", "lower": 1, "upper": 5},
            "visits": {"type": "integer", "lower": 0, "upper": 100},
            "dollars": {"type": "real", "lower": 0, "upper": 50_000},
        },
    },
}
AREAS = ["1008", "1034", "1004"]
SITE: dict[str, Any] = {
    "visitors": {"kind": "individuals", "key": "visitor", "columns": {}},
    "visits": {
        "kind": "events",
        "key": "visitor",
        "rows_per_individual": 64,
        "columns": {"area": {"type": "category", "categories": AREAS}},
    },
}


@cache
def people() -> Frame:
    """Those of the experiment."""
    return pd.read_csv(ROOT / "docs" / "notebooks" / "data" / "people.csv.gz").drop(columns="site")


@cache
def years() -> Frame:
    """Their years in it."""
    return pd.read_csv(ROOT / "docs" / "notebooks" / "data" / "years.csv.gz")


@cache
def visits() -> Frame:
    """The visits to three areas of the site."""
    path = ROOT / "clients" / "demo" / "src" / "sparing_demo" / "data" / "visits.csv.gz"
    read = pd.read_csv(path, dtype=str).rename(columns={"person_id": "visitor"})
    return read[read["area"].isin(AREAS)]


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeService]:
    """The tables in two datasets, whose limits pay for everything."""
    with FakeService(noise=True) as made:
        rows = {"people": people().to_dict("records"), "years": years().to_dict("records")}
        made.add_dataset("rand", TABLES, rows=rows, rho=1e5)
        visitors = [{"visitor": each} for each in visits()["visitor"].unique()]
        made.add_dataset("site", SITE, rows={"visitors": visitors, "visits": visits().to_dict("records")}, rho=1e5)
        yield made


def drawn(fake: FakeService, case: str) -> Iterator[list[dict[str, Any]]]:
    """The rows of the estimates of so many answers, each with noise of its own."""
    dataset, query, _ = CASES[case]
    headers = {"Authorization": f"Bearer {fake.api_key}"}
    with httpx.Client(transport=fake.transport, base_url=fake.url, headers=headers) as client:
        for number in range(DRAWS):
            key = {"Idempotency-Key": f"{case} {number}"}
            body = {"version": 1, "reuse": False, **query}
            answered = client.post(f"/v1/datasets/{dataset}/queries", json=body, headers=key)
            assert answered.status_code == 200, answered.text
            yield answered.json()["estimates"]["rows"]


def ages(group: Frame) -> dict[str, float]:
    """The exact numbers of a group of people."""
    return {
        "count": len(group),
        "mean(age)": group["age"].mean(),
        "stddev(age)": group["age"].std(ddof=0),
        "variance(age)": group["age"].var(ddof=0),
        "quantile(age, 0.5)": group["age"].sort_values().iloc[math.ceil(len(group) / 2) - 1],
    }


def weighed(rows: int) -> dict[str, float]:
    """The exact numbers of years of which a person's count as so many at most, each with a part of the weight."""
    each = years()
    count = each.groupby("person")["visits"].transform("size")
    weight = (rows / count).clip(upper=1)
    mean = (weight * each["visits"]).sum() / weight.sum()
    return {
        "mean(visits)": mean,
        "stddev(visits)": math.sqrt((weight * (each["visits"] - mean) ** 2).sum() / weight.sum()),
        "sum(dollars) / count": (weight * each["dollars"]).sum() / weight.sum(),
    }


def exact_by_share() -> dict[str, float]:
    """By the share of the bill that a person pays."""
    return {f"{share} {title}": value for share in SHARES for title, value in ages(of_share(share)).items()}


def of_share(share: int) -> Frame:
    """The people with this share."""
    return people()[people()["coinsurance"] == share]


def exact_of_women() -> dict[str, float]:
    """The difference of women's and men's mean age, by the share of the bill."""
    title = "difference(mean(age), female false to true)"
    means = people().groupby(["coinsurance", "female"])["age"].mean()
    return {f"{share} {title}": means[share, True] - means[share, False] for share in SHARES}


def exact_visits() -> dict[str, float]:
    """The visits for each visitor of an area; a visitor comes to an area once."""
    each = visits().groupby("visitor").size()
    return {"count / count_individuals": each.sum() / len(each)}


AGE: dict[str, Any] = {"column": "age"}
COUNT: dict[str, Any] = {"count": {}}
CASES: dict[str, tuple[str, dict[str, Any], Callable[[], dict[str, float]]]] = {
    "people in groups": (
        "rand",
        {
            "select": [
                COUNT,
                *({kind: AGE} for kind in ("mean", "stddev", "variance")),
                {"quantile": AGE | {"probability": 0.5}},
            ],
            "group_by": ["coinsurance"],
            "noise": {"rho": 0.01},
            "rule": "clip",
        },
        exact_by_share,
    ),
    "a difference of groups": (
        "rand",
        {
            "select": [{"difference": {"of": {"mean": AGE}, "by": "female", "from": False, "to": True}}],
            "group_by": ["coinsurance", "female"],
            "noise": {"rho": 0.01},
        },
        exact_of_women,
    ),
    "years with rows": (
        "rand",
        {
            "from": "years",
            "select": [
                {"mean": {"column": "visits"}},
                {"stddev": {"column": "visits"}},
                {"ratio": {"of": {"sum": {"column": "dollars"}}, "to": COUNT}},
            ],
            "per_individual": {"rows": 2},
            "noise": {"rho": 0.02},
        },
        lambda: weighed(2),
    ),
    "visits of visitors": (
        "site",
        {
            "from": "visits",
            "select": [{"ratio": {"of": COUNT, "to": {"count_individuals": {}}}}],
            "per_individual": {"rows": 3},
            "noise": {"rho": 1e-5},
        },
        exact_visits,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_the_exact_numbers_as_often_as_they_say(fake: FakeService, case: str) -> None:
    """By item over groups and draws; intervals of six tenths of the width hold them less often than is said."""
    *_, exactly = CASES[case]
    exact, held, narrowly = exactly(), defaultdict[str, list[bool]](list), list[bool]()
    for rows in drawn(fake, case):
        for row in rows:
            group = [str(value) for name, value in row["label"].items() if name != "select"]
            truth = exact[" ".join([*group, row["label"]["select"]])]
            low, high = row["low"], row["high"]
            held[row["label"]["select"]].append(low <= truth <= high)
            if not row["label"]["select"].startswith("quantile"):
                narrowly.append(abs(truth - (low + high) / 2) <= 0.3 * (high - low))
    for title, each in held.items():
        allowed = 3 * math.sqrt(0.95 * 0.05 / len(each))
        assert sum(each) / len(each) > 0.95 - allowed - 0.005, title
    assert sum(narrowly) / len(narrowly) < 0.9
