"""A running service of two workers with a dataset of three people, and its clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import client
from tests.e2e.processes import Served, served
from tests.e2e.workers import await_that

QUERY = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 2000.0}, "reuse": False}


@dataclass
class Survey:
    """A running service with three people and an analyst."""

    served: Served
    curator_key: str
    analyst_key: str

    @property
    def parent(self) -> int:
        return self.served.process.pid

    @property
    def home(self) -> Path:
        return self.served.home

    def analyst(self) -> httpx.Client:
        return client(self.served.url, self.analyst_key)

    def curator(self) -> httpx.Client:
        return client(self.served.url, self.curator_key)

    def sequences(self) -> list[int]:
        """Of the ledger, as the curator reads it: every page."""
        found: list[int] = []
        page: dict[str, int | str] = {"limit": 1000}
        with self.curator() as curator:
            while True:
                listed = curator.get("/v1/datasets/survey/ledger", params=page).json()
                found += [row["sequence"] for row in listed["items"]]
                if listed["next"] is None:
                    return found[::-1]
                page["cursor"] = listed["next"]


@contextmanager
def surveyed(home: SurveyHome, **settings: str) -> Iterator[Survey]:
    """Two workers, one of which owns the dataset."""
    with served(home.path, "--workers", "2", **settings) as running:
        survey = Survey(running, home.curator_key, home.analyst_key)
        assert survey.sequences() == []
        yield survey


def ask(analyst: httpx.Client, key: str) -> httpx.Response:
    """One query."""
    return analyst.post("/v1/datasets/survey/queries", json=QUERY, headers={"Idempotency-Key": key})


def insist(survey: Survey, key: str) -> httpx.Response:
    """One query under one key, until it is answered, over a new connection each time."""
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        try:
            with survey.analyst() as analyst:
                answers.append(ask(analyst, key))
        except httpx.TransportError:
            return False
        return answers[-1].status_code == 200

    await_that(is_answered)
    return answers[-1]


def spent_units(url: str, curator_key: str) -> list[int]:
    """The spent total of each individual."""
    with client(url, curator_key) as curator:
        rows = curator.get("/v1/datasets/survey/budgets").raise_for_status().json()["items"]
    return [row["spent_units"] for row in rows]
