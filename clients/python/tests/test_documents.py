"""Queries of every form as documents: those with averages get them back."""

from typing import Any

import pytest

from sparing import Answer, APIStatusError, Client
from sparing._documents import checked
from sparing.testing import FakeService

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "town": {"type": "category", "categories": ["Oslo", "Bergen"]},
            "spend": {"type": "real", "lower": 0, "upper": 500},
        },
    }
}
ROWS = [{"id": n, "town": ("Oslo", "Bergen")[n % 2], "spend": 100.0 + n % 2} for n in range(400)]
MEDIANS = "SELECT town, MEDIAN(spend) FROM people GROUP BY town"


@pytest.fixture
def fake() -> Any:
    """A service with two towns and no noise."""
    with FakeService() as made:
        made.add_dataset("shop", TABLES, rows={"people": ROWS}, rho=100)
        yield made


def test_a_batch_takes_averages_beside_counts(fake: FakeService) -> None:
    """In steps and in SQL; each answer has what was asked of it."""
    client: Client = fake.client()
    shop = client.dataset("shop")
    medians = shop.sql(MEDIANS).noise(share=0.01)
    questions: Any = [medians, {"dataset": "shop", "sigma": 20}, shop.query().quantile("spend", 0.5).noise(share=0.02)]

    outcomes: list[Any] = list(client.queries.batch(questions, batch_size=2))

    assert [type(outcome) for outcome in outcomes] == [Answer] * 3, outcomes
    by_town, people, overall = outcomes
    assert [each.label["town"] for each in by_town.averages] == ["Oslo", "Bergen"]
    assert (people.value, people.averages) == (400, ())
    (median,) = overall.averages
    assert median.value == pytest.approx(100, abs=8)  # bins of 7.8
    assert [each.path for each in fake.requests] == ["/v1/datasets/shop/queries/batch"] * 2
    assert by_town.averages == medians.run().averages


def test_every_form_is_one_document() -> None:
    """A dictionary and steps."""
    with FakeService() as fake:
        shop = fake.client().dataset("shop")
        assert checked({"dataset": "shop", "sigma": 20}) == checked(shop.query().count().noise(sigma=20))
        medians = checked(shop.query().quantile("spend", 0.5).noise(share=0.01))
        assert medians.json["select"] == [{"quantile": {"column": "spend", "probability": 0.5}}]
        with pytest.raises(ValueError, match="exactly one of sigma"):
            checked({"dataset": "shop"})
        assert fake.requests == []


def test_a_refused_average_is_a_refusal(fake: FakeService) -> None:
    """In its place, as of every other query."""
    client: Client = fake.client(api_key=fake.add_analyst(allowance_rho=0.001))
    (outcome,) = client.queries.batch([client.dataset("shop").sql(MEDIANS).noise(share=0.01)])
    assert isinstance(outcome, APIStatusError)
    assert outcome.slug == "allowance-exceeded"
