"""A running service of two workers with datasets of three people, and its clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import httpx

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import QUERY, analyst_of, asked, client, register
from tests.e2e.processes import Served, served
from tests.waiting import until

PRECISE = QUERY | {"noise": {"sigma": 2000.0}}
"""Thousands of them are within each budget."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A dataset of three people in a running service, its curator and its analyst."""

    served: Served
    curator_key: str
    analyst_key: str
    dataset: str = "survey"
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def parent(self) -> int:
        return self.served.process.pid

    @property
    def home(self) -> Path:
        return self.served.home

    @property
    def path(self) -> str:
        return f"/v1/datasets/{self.dataset}"

    def another(self) -> "Survey":
        """A dataset of its own in the same service."""
        name = f"survey-{next(self._numbers)}"
        register(self.served.url, self.curator_key, name)
        analyst_key = analyst_of(self.served.url, self.curator_key, name)
        return replace(self, dataset=name, analyst_key=analyst_key)

    def analyst(self) -> httpx.Client:
        return client(self.served.url, self.analyst_key)

    def curator(self) -> httpx.Client:
        return client(self.served.url, self.curator_key)

    def ask(self, analyst: httpx.Client, key: str) -> httpx.Response:
        """One query."""
        return asked(analyst, key, self.dataset, PRECISE)

    def insist(self, key: str) -> httpx.Response:
        """One query under one key, until it is answered, over a new connection each time."""
        answers: list[httpx.Response] = []

        def is_answered() -> bool:
            try:
                with self.analyst() as analyst:
                    answers.append(self.ask(analyst, key))
            except httpx.TransportError:
                return False
            return answers[-1].status_code == 200

        until(is_answered)
        return answers[-1]

    def sequences(self) -> list[int]:
        """The sequence of every entry in the ledger, as the curator reads it, page by page."""
        found: list[int] = []
        page: dict[str, int | str] = {"limit": 1000}
        with self.curator() as curator:
            while True:
                listed = curator.get(f"{self.path}/ledger", params=page).json()
                found += [row["sequence"] for row in listed["items"]]
                if listed["next"] is None:
                    return found[::-1]
                page["cursor"] = listed["next"]


@contextmanager
def surveyed(home: SurveyHome, **settings: str) -> Iterator[Survey]:
    """Two workers, one of which owns the dataset."""
    with served(home.path, "--workers", "2", **settings) as running:
        survey = Survey(served=running, curator_key=home.curator_key, analyst_key=home.analyst_key)
        assert survey.sequences() == []
        yield survey


def in_a_second() -> str:
    """An instant that the service still accepts as an expiry."""
    return (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
