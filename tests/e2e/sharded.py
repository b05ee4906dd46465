"""A served dataset that is divided, and the calls that its tests make."""

import time

import httpx

from tests.e2e.http_calls import DATASET, QUERY, client

PEOPLE = 2**16 + 500
"""On two pages, of which each shard has one."""


def register(url: str, curator_key: str) -> None:
    """A dataset of more than 2^20 people at most, so that it is divided."""
    with client(url, curator_key) as curator:
        curator.post("/v1/datasets", json=DATASET | {"capacity": 2**21}).raise_for_status()
        rows = "person_id,age\n" + "".join(f"p{number},{number % 100}\n" for number in range(PEOPLE))
        sent = curator.post(
            "/v1/datasets/survey/tables/people/rows", content=rows.encode(), headers={"Content-Type": "text/csv"}
        )
        assert sent.json()["individuals"] == PEOPLE


def ask(url: str, analyst_key: str, key: str) -> httpx.Response:
    """A count of everybody that no answer before is sent for."""
    with client(url, analyst_key) as analyst:
        headers = {"Idempotency-Key": key}
        return analyst.post("/v1/datasets/survey/queries", json=QUERY | {"reuse": False}, headers=headers)


def insist(url: str, analyst_key: str, key: str) -> httpx.Response:
    """The answer under a key, asked for until it comes."""
    until = time.monotonic() + 30
    while (answered := ask(url, analyst_key, key)).status_code == 503 and time.monotonic() < until:
        assert int(answered.headers["Retry-After"]) >= 1
        time.sleep(0.1)
    assert answered.status_code == 200, answered.text
    return answered


def health(url: str, curator_key: str) -> dict[str, object]:
    """The shards as a curator's probe is shown them."""
    with client(url, curator_key) as curator:
        shown: dict[str, dict[str, object]] = curator.get("/readyz").json()["shards"]
    return shown["survey"]
