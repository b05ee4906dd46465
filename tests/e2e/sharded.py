"""A served dataset that is divided, and the calls that its tests make."""

import httpx

from tests.e2e.http_calls import CSV, DATASET, ask, client
from tests.waiting import until

PEOPLE = 2**16 + 500
"""On two pages, of which each shard has one."""


def register(url: str, curator_key: str) -> None:
    """A dataset of more than 2^20 people at most, so that it is divided."""
    with client(url, curator_key) as curator:
        curator.post("/v1/datasets", json=DATASET | {"capacity": 2**21}).raise_for_status()
        rows = "person_id,age\n" + "".join(f"p{number},{number % 100}\n" for number in range(PEOPLE))
        sent = curator.post("/v1/datasets/survey/tables/people/rows", content=rows.encode(), headers=CSV)
        assert sent.json()["individuals"] == PEOPLE


def insist(url: str, analyst_key: str, key: str) -> httpx.Response:
    """The answer under a key, asked for until it comes."""
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        answers.append(ask(url, analyst_key, key))
        if answers[-1].status_code == 503:
            assert int(answers[-1].headers["Retry-After"]) >= 1
            return False
        assert answers[-1].status_code == 200, answers[-1].text
        return True

    until(is_answered)
    return answers[-1]


def health(url: str, curator_key: str) -> dict[str, object]:
    """The shards as a curator's probe is shown them."""
    with client(url, curator_key) as curator:
        shown: dict[str, dict[str, object]] = curator.get("/readyz").json()["shards"]
    return shown["survey"]
