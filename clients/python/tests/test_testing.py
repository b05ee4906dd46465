"""The fake service as analysts' tests use it; that it answers as the real one does is shown beside the service."""

import datetime as dt
import re
import statistics
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sparing import APIStatusError, col, count, sum_
from sparing.testing import FakeService

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "member": {"type": "boolean"},
            "joined": {"type": "date", "lower": "2020-01-01", "upper": "2026-12-31"},
            "limit_rho": {"type": "budget"},
        },
    },
    "visits": {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": 3,
        "columns": {
            "item": {"type": "category", "size": 9},
            "at": {"type": "datetime", "lower": "2026-01-01", "upper": "2026-12-31T23:59:59Z"},
        },
    },
}
PEOPLE: list[dict[str, Any]] = [
    {"person_id": "a", "town": "Oslo", "age": 40, "spend": 12.5, "member": True, "joined": dt.date(2021, 5, 1)},
    {"person_id": "b", "town": "Bergen", "age": 30, "spend": 600, "member": False},
    {"person_id": "c", "town": "Narvik", "age": None},
]
VISITS: list[dict[str, Any]] = [
    {"person_id": "a", "item": 3, "at": dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=1)))},
    {"person_id": "a", "item": 4, "at": "2026-03-01T11:00:00Z"},
    {"person_id": "b", "item": 9, "at": None},
]
SHOP: dict[str, Any] = {"people": PEOPLE, "visits": VISITS}


@pytest.fixture
def fake() -> Iterator[FakeService]:
    """A fake service with a dataset and rows."""
    with FakeService() as made:
        made.add_dataset("shop", TABLES, rows=SHOP, rho=100)
        yield made


class TestAnswersFromRows:
    """Exact, row by row."""

    @pytest.mark.parametrize(
        "frame", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=["pandas", "polars", "arrow"]
    )
    def test_rows_may_be_a_frame(self, frame: Any) -> None:
        """Its missing values are NULL, and its scalars are Python's own."""
        rows = frame(
            [{"person_id": 1, "age": 40.0, "spend": np.float64(1)}, {"person_id": 2, "age": None, "spend": 2.0}]
        )
        with FakeService() as fake:
            fake.add_dataset("shop", TABLES, rows={"people": rows})
            query = fake.client().dataset("shop").query().noise(sigma=900)
            assert query.where(~col("age").is_null()).count().run().value == 1
            assert query.sum("spend").run().value == pytest.approx(3)

    @pytest.mark.parametrize(
        ("table", "rows", "message"),
        [
            ("people", [{"person_id": "d", "agee": 3}], "people, row 1: the column agee is not declared"),
            ("people", [{"age": 3}], "people, row 1: the key person_id is missing"),
            ("people", [{"person_id": "d"}, {"person_id": " a"}], "people, row 2: the key begins or ends with a blank"),
            ("people", [{"person_id": "a"}], "people, row 1: 'a' has a row already"),
            ("people", [{"person_id": "d", "age": "old"}], "people, row 1: age must be an integer, not 'old'"),
            ("people", [{"person_id": "d", "age": 1.5}], "age must be an integer, not 1.5"),
            ("people", [{"person_id": "d", "spend": float("inf")}], "spend must be a number, not inf"),
            ("people", [{"person_id": "d", "member": "yes"}], "member must be true or false, not 'yes'"),
            ("people", [{"person_id": "d", "joined": "May"}], "joined must be a date, not 'May'"),
            (
                "visits",
                [{"person_id": "x", "item": 1}],
                "there is no individual 'x'; add the table of individuals first",
            ),
            ("visits", [{"person_id": "b"}] * 3, "visits, row 3: 'b' has more than 3 rows"),
            ("buys", [], "there is no table 'buys'; the dataset has people, visits"),
        ],
    )
    def test_a_wrong_row_is_named(self, fake: FakeService, table: str, rows: Any, message: str) -> None:
        """The error comes where it is added, since it is the test that is wrong."""
        with pytest.raises(ValueError, match=re.escape(message)):
            fake.add_rows("shop", table, rows)

    def test_rows_of_unknown_individuals_are_dropped_where_the_table_says_so(self) -> None:
        """They bring no individual, and do not count."""
        visits = {**TABLES["visits"], "unknown_individuals": "drop"}
        with FakeService() as fake:
            fake.add_dataset("shop", {**TABLES, "visits": visits}, rows={"people": [{"person_id": "a"}]})
            fake.add_rows("shop", "visits", [{"person_id": "x", "item": 1}, {"person_id": "a", "item": 2}])
            query = fake.client().dataset("shop").query("visits").noise(sigma=900).clip(3)
            assert query.count().run().value == 1

    def test_rows_are_mappings(self, fake: FakeService) -> None:
        """Nothing else is taken for them."""
        with pytest.raises(TypeError, match="a list of mappings"):
            fake.add_rows("shop", "people", PEOPLE[0])

    def test_an_individual_that_cannot_pay_is_left_out(self, fake: FakeService) -> None:
        """By the accounts of the service: each answer costs each of the three 0.25 of their limits."""
        rows = [{"person_id": number, "limit_rho": limit} for number, limit in enumerate([None, "0.6", 0.25])]
        fake.add_dataset("limits", TABLES, rows={"people": rows}, rho=1)
        client = fake.client()
        answers = [client.queries.ask(dataset="limits", rho=0.25, reuse=False) for _ in range(5)]
        assert [answer.value for answer in answers] == [3, 2, 1, 1, 0]
        assert {answer.coverage_certified for answer in answers} == {False}  # limits may be anything
        fake.add_dataset("equal", {"people": {**TABLES["people"], "columns": {}}}, rows={"people": [{"person_id": 1}]})
        certified = [client.queries.ask(dataset="equal", rho=0.4, reuse=False) for _ in range(3)]
        assert [(answer.value, answer.coverage_certified) for answer in certified] == [(1, True), (1, True), (0, False)]

    def test_the_active_are_counted_anew_each_time(self, fake: FakeService) -> None:
        """By what each of the three has left, of which each answer takes 0.25: half of the budget, or a quarter."""
        for share, counted in ((0.5, [2, 1, 1, 0, 0]), (0.25, [3, 2, 1, 1, 0])):
            rows = [{"person_id": number, "limit_rho": limit} for number, limit in enumerate([None, "0.6", 0.25])]
            fake.add_dataset(f"limits {share}", TABLES, rows={"people": rows}, rho=1)
            query = fake.client().dataset(f"limits {share}").query().active(share=share).noise(rho=0.25)
            assert [query.run().value for _ in range(5)] == counted

    def test_limits_are_between_the_floor_and_the_budget(self, fake: FakeService) -> None:
        """The bounds are those of an upload."""
        fake.add_dataset("limits", TABLES, rho=1, limit_floor_rho="0.5")
        for limit, message in [("0.4", "limit_floor_rho"), (2, "limit_floor_rho"), (-1, "limit_rho must be a rho")]:
            with pytest.raises(ValueError, match=message):
                fake.add_rows("limits", "people", [{"person_id": "a", "limit_rho": limit}])

    def test_the_capacity_is_kept(self, fake: FakeService) -> None:
        """And of rows that are refused none is kept."""
        fake.add_dataset("small", TABLES, capacity=2)
        with pytest.raises(ValueError, match="the dataset's capacity is 2 individuals"):
            fake.add_rows("small", "people", PEOPLE)
        fake.add_rows("small", "people", PEOPLE[:2])
        assert fake.client().queries.ask(dataset="small", sigma=20).value == 2


def spread(values: list[float], sigma: float) -> float:
    """How many standard errors the spread of Gaussian values is from sigma."""
    return (statistics.pstdev(values, mu=0) / sigma - 1) * sqrt(2 * len(values))


class TestNoise:
    """Only where it is asked for."""

    @pytest.mark.parametrize(("group_by", "dimension"), [([], 1), (["age", "joined"], 121 * 2557)])
    def test_without_it_answers_are_exact(self, fake: FakeService, group_by: list[str], dimension: int) -> None:
        """At any sigma and any dimension."""
        for sigma in (0.5, 3e9):
            answer = fake.client().queries.ask(dataset="shop", group_by=group_by, sigma=sigma)
            assert (answer.dimension, sum(answer.values)) == (dimension, 1 if group_by else 3)

    def test_it_has_the_spread_that_the_answer_states(self) -> None:
        """Within four standard errors, and a sigma that is a tenth larger would be noticed."""
        with FakeService(noise=True, seed=7) as fake:
            fake.add_dataset("shop", TABLES, rows={"visits": [], "people": [{"person_id": 1}]})
            answer = fake.client().queries.ask(
                dataset="shop",
                group_by=[col("age").bins(width=0.0625)],
                select=[count(), sum_("spend")],
                sigma=[70, 9e4],
            )
        assert answer.dimension == 3840
        assert answer.sigmas[:2] == (70, 9e4)
        for place, sigma in enumerate(answer.sigmas[:2]):
            assert abs(spread(list(answer.values[place::2]), sigma)) < 4
            assert abs(spread(list(answer.values[place::2]), 1.1 * sigma)) > 4

    def test_a_seed_gives_the_same_noise(self) -> None:
        """And another one other noise."""
        found = []
        for seed in (1, 1, 2):
            with FakeService(noise=True, seed=seed) as fake:
                fake.add_dataset("shop", TABLES, rows=SHOP)
                found.append(fake.client().queries.ask(dataset="shop", group_by="age", sigma=20).values)
        assert found[0] == found[1] != found[2]
        assert all(value == int(value) for value in found[0])


class TestRegisteredAnswers:
    """Numbers that a test states."""

    def test_they_are_sent_in_their_order(self, fake: FakeService) -> None:
        """One for each fresh query; then rows answer."""
        fake.answer(41)
        fake.answer([1, 2], sigma=5)
        client = fake.client()
        assert client.queries.ask(dataset="shop", sigma=20).value == 41
        assert client.queries.ask(dataset="shop", sigma=20).value == 41  # reused
        second = client.queries.ask(dataset="shop", group_by="town", sigma=20)
        assert (second.values, second.sigma, second.half_width_95) == ((1, 2), 5, 10)
        assert client.queries.ask(dataset="shop", sigma=21).value == 3

    def test_numbers_of_each_item_are_on_its_own_grid(self, fake: FakeService) -> None:
        """The sigmas of such a query are those that it asks for."""
        fake.answer([41, 512.5])
        query = fake.client().dataset("shop").query()
        answer = query.count(sigma=600).sum("spend", sigma=3e5).run()
        assert answer.values == pytest.approx((41, 512.5), abs=1e-3)
        assert all(value % grid == 0 for value, grid in zip(answer.values, answer.grids, strict=True))
        fake.answer([41, 512.5], sigma=5)
        with pytest.raises(ValueError, match="a sigma for each item"):
            query.count(sigma=601).sum("spend", sigma=3e5).run()

    def test_a_function_of_the_query_answers_all(self, fake: FakeService) -> None:
        """It gets the canonical form; where it returns None, rows answer."""
        fake.answer(lambda query: None if query["where"] is None else query["where"]["ge"][1])
        query = fake.client().dataset("shop").query().count().noise(sigma=20)
        assert [query.where(col("age") >= age).run().value for age in (40, 50)] == [40, 50]
        assert query.run().value == 3
        with pytest.raises(ValueError, match="sigma goes with values"):
            fake.answer(lambda _: 1, sigma=3)

    @pytest.mark.parametrize(
        ("values", "message"), [([1, 2], "has 2 values, and the query 1"), (1.5, "whole numbers, not \\[1.5\\]")]
    )
    def test_a_wrong_one_is_the_mistake_of_the_test(self, fake: FakeService, values: Any, message: str) -> None:
        """It is raised through the client as it is."""
        fake.answer(values)
        with pytest.raises(ValueError, match=message):
            fake.client().queries.ask(dataset="shop", sigma=20)

    def test_values_are_on_the_grid(self, fake: FakeService) -> None:
        """The values of the service are, too."""
        fake.answer(0.1)
        answer = fake.client().queries.ask(dataset="shop", l2_clip=0.5, sigma=20)
        assert answer.grids[0] < 1
        assert answer.value == pytest.approx(0.1)
        assert answer.value % answer.grids[0] == 0

    def test_without_rows_and_answers_the_fake_says_so(self) -> None:
        """With 501, naming the dataset and what to do."""
        with FakeService() as fake:
            fake.add_dataset("shop", TABLES)
            with pytest.raises(APIStatusError, match="'shop' has no rows and no answer is registered") as refusal:
                fake.client().queries.ask(dataset="shop", sigma=20)
        assert (refusal.value.status, refusal.value.slug) == (501, "not-in-fake")


def test_the_examples_of_the_readme_pass() -> None:
    """Run as an analyst's own tests."""
    (example,) = [each for each in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "FakeService" in each]
    found: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), found)  # noqa: S102 - our own README
    tests = [name for name in found if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        found[name]()
