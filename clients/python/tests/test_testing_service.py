"""Datasets, keys, faults and records of the fake service."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from sparing import APIConnectionError, Client, RateLimitedError, UnavailableError, count, sum_
from sparing.testing import FakeService

PEOPLE: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}, "town": {"type": "category", "size": 3}},
    }
}
ROWS = {"people": [{"id": number, "age": 40 + number, "town": number % 3} for number in range(6)]}


@pytest.fixture
def fake() -> FakeService:
    """A fake service with a dataset and rows."""
    made = FakeService()
    made.add_dataset("shop", PEOPLE, rows=ROWS)
    return made


def test_every_request_is_recorded(fake: FakeService) -> None:
    """Method, path, parameters, body and idempotency key; never the API key."""
    client = fake.client()
    client.queries.ask(dataset="shop", sigma=20, idempotency_key="k")
    client.queries.preview(dataset="shop", sigma=21)
    list(client.queries.batch([{"dataset": "shop", "sigma": 22}, {"dataset": "shop", "sigma": 23}]))
    list(client.queries.list(page_size=7))
    assert [(each.method, each.path) for each in fake.requests] == [
        ("POST", "/v1/datasets/shop/queries"),
        ("POST", "/v1/datasets/shop/queries/preview"),
        ("POST", "/v1/datasets/shop/queries/batch"),
        ("GET", "/v1/queries"),
    ]
    assert fake.requests[0].idempotency_key == "k"
    assert fake.requests[3].params == {"limit": "7"}
    assert [query["noise"]["sigma"] for query in fake.queries] == [20, 22, 23]
    assert fake.api_key not in repr(fake.requests)


def test_a_lost_reply_is_fetched_and_not_charged_again(fake: FakeService) -> None:
    """The client asks again with its key, and gets the answer of the first try."""
    fake.break_connection(after=True)
    client = fake.client()
    answer = client.queries.ask(dataset="shop", rho=0.25)
    assert [each.idempotency_key for each in fake.requests] == [answer.idempotency_key] * 2
    assert client.allowances.list()[0].spent_rho == answer.worst_case_rho


def test_a_broken_connection_carries_nothing_out(fake: FakeService) -> None:
    """After all tries the client gives up, with the key."""
    fake.break_connection(times=5)
    client = fake.client()
    with pytest.raises(APIConnectionError, match="unreachable") as failure:
        client.queries.ask(dataset="shop", sigma=20, idempotency_key="mine")
    assert failure.value.idempotency_key == "mine"
    assert client.allowances.list()[0].spent_rho == 0


def test_a_refusal_is_as_often_as_stated(fake: FakeService) -> None:
    """A 503 is tried again after the wait that it asks for."""
    waits: list[float] = []
    fake.refuse(503, "unavailable", times=2, retry_after_s=3)
    client = fake.client(sleep=waits.append, rng=lambda: 0.0)
    assert client.queries.ask(dataset="shop", sigma=20).value == 6
    assert waits == [3, 3]
    fake.refuse(429, "rate-limited", detail="Not so fast.")
    with pytest.raises(RateLimitedError, match="Not so fast") as refusal:
        fake.client(max_retries=0).datasets.get(dataset="shop")
    assert refusal.value.slug == "rate-limited"
    fake.refuse(503, "unavailable")
    with pytest.raises(UnavailableError):
        fake.client(max_retries=0).datasets.get(dataset="shop")


def test_a_preview_tells_what_is_left_of_an_allowance(fake: FakeService) -> None:
    """The allowance less what was spent."""
    sparse = fake.client(api_key=fake.add_analyst(allowance_rho="0.002"))
    spent = sparse.queries.ask(dataset="shop", rho=0.001).worst_case_rho
    left = sparse.queries.preview(dataset="shop", sigma=1).allowance_left_rho
    assert left is not None
    assert float(left + spent) == pytest.approx(0.002)


def test_an_epoch_ends_reuse(fake: FakeService) -> None:
    """Within one, an identical query is answered from the ledger."""
    client = fake.client()
    reused = [client.queries.ask(dataset="shop", sigma=20).reused for _ in range(2)]
    fake.open_epoch("shop")
    answer = client.queries.ask(dataset="shop", sigma=20)
    assert [*reused, answer.reused, answer.epoch] == [False, True, False, 2]


def test_releases_are_listed_page_by_page(fake: FakeService) -> None:
    """Newest first."""
    client = fake.client()
    asked = [client.queries.ask(dataset="shop", sigma=sigma).id for sigma in range(10, 17)]
    assert [row.id for row in client.queries.list(page_size=3)] == asked[::-1]
    assert len([each for each in fake.requests if each.path == "/v1/queries"]) == 3
    assert client.queries.get(query=asked[2]).sigma == 12


def test_a_dataset_of_a_real_service_is_taken_as_it_is_described() -> None:
    """Everything but the rows."""
    with FakeService() as first, FakeService() as second:
        first.add_dataset("shop", PEOPLE, epsilon=1, delta="1e-6", capacity=1234, limit_floor_rho="0.001")
        described = first.client().datasets.get(dataset="shop")
        second.add_dataset(described, rows=ROWS)
        assert second.client().datasets.get(dataset="shop") == described
        assert second.client().queries.ask(dataset="shop", share=0.1).value == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tables": None}, "give the tables"),
        ({"epsilon": 1}, "give epsilon and delta, or rho"),
        ({"epsilon": 1, "delta": 1}, "delta must be above 0 and below 1"),
        ({"rho": "1e-13"}, "smaller than 2\\^-40"),
        ({"tables": {}}, "at least 1 item"),
        ({"tables": {"people": {"kind": "persons"}}}, "tables.people: Input tag 'persons'"),
        ({"tables": {"people": {"kind": "individuals"}}}, "tables.people.individuals.key: Field required"),
        (
            {"tables": {"people": {"kind": "individuals", "key": "id", "columns": {"select": {"type": "boolean"}}}}},
            "'select' cannot be a column",
        ),
        (
            {"tables": {"people": {"kind": "individuals", "key": "id", "columns": {"a": {"type": "text"}}}}},
            "tables.people.individuals.columns.a: Input tag 'text'",
        ),
        (
            {"tables": {"people": {"kind": "individuals", "key": "id", "columns": {"a": {"type": "category"}}}}},
            "declare either categories or size",
        ),
        (
            {
                "tables": {
                    "people": {
                        "kind": "individuals",
                        "key": "id",
                        "columns": {"a": {"type": "date", "lower": "2026-02-30", "upper": "2027-01-01"}},
                    }
                }
            },
            "lower must be a date, such as 2026-03-31",
        ),
    ],
)
def test_a_wrong_dataset_is_refused(arguments: dict[str, Any], message: str) -> None:
    """The error comes where it is added."""
    with FakeService() as fake, pytest.raises(ValueError, match=message):
        fake.add_dataset("shop", **{"tables": PEOPLE, **arguments})


def test_a_name_is_taken_once(fake: FakeService) -> None:
    """The second dataset of a name is refused."""
    with pytest.raises(ValueError, match="there is a dataset 'shop' already"):
        fake.add_dataset("shop", PEOPLE)


async def test_an_asynchronous_client_is_served(fake: FakeService) -> None:
    """By the same transport."""
    client = fake.async_client()
    answers = await asyncio.gather(*(client.queries.ask(dataset="shop", sigma=sigma) for sigma in range(10, 15)))
    fake.break_connection()
    again = await client.queries.ask(dataset="shop", sigma=10)
    await client.aclose()
    assert {answer.value for answer in answers} == {6}
    assert again.reused


def test_threads_may_share_it(fake: FakeService) -> None:
    """Every query has a sequence of its own."""
    client = fake.client()
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda sigma: client.queries.ask(dataset="shop", sigma=sigma), range(10, 50))]
    assert sorted(answer.sequence for answer in answers) == list(range(1, 41))


def test_any_client_of_httpx_is_served(fake: FakeService) -> None:
    """With a key of its own; the address does not matter."""
    with Client(base_url="http://elsewhere", api_key=fake.api_key, transport=fake.transport, environ={}) as client:
        answer = client.queries.ask(dataset="shop", select=[count(), sum_("age")], sigma=[256, 2**15])
    assert list(answer.values) == [6, 255]
    with httpx.Client(transport=fake.transport, base_url=fake.url) as raw:
        assert raw.get("/v1/datasets").status_code == 401
