"""Answers counted through a running service: counts of one individual, until the service leaves that individual out."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from service.run.serve import serving
from service.settings.settings import Settings
from sparing import Client
from sparing._query import QueryRequest

__all__ = ["Served", "answers_until_left_out", "served"]

BATCH: Final = 256
ENVIRONMENT: Final = {"SPARING_RELEASE_SLOT_MS": "0", "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_LOG": "json"}
"""Settings for a service whose timing nobody attacks, and whose end no load balancer has to notice."""
TABLES: Final = {"people": {"kind": "individuals", "key": "person_id", "columns": {}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running service: its address, a curator's key, and the settings with which its store can be opened."""

    url: str
    key: str
    settings: Settings


@contextmanager
def served() -> Iterator[Served]:
    """A service with its own servers and its own home, which are removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sparing-papers-"))
    folder.chmod(0o711)  # as root, another account runs the database and passes through here
    try:
        settings = Settings.of(ENVIRONMENT, home=folder / "home")
        with serving(settings, host="127.0.0.1", port=0) as (url, replica):
            _, key = replica.principals.create(role="curator", name="figures")
            yield Served(url=url, key=key, settings=settings)
    finally:
        rmtree(folder, ignore_errors=True)


def answers_until_left_out(
    found: Served,
    promised: Sequence[Mapping[str, Any]],
    *,
    sigma: float,
    tell: Callable[[float], None] = lambda _: None,
) -> list[int]:
    """The number of counts that one individual pays for in a dataset of each guarantee. Raises SparingError.

    A guarantee has `epsilon`, `delta` and `accounting`, as a registration states them.
    """
    with Client(base_url=found.url, api_key=found.key) as curator:
        made = curator.principals.create(role="analyst", name="figures")
        with Client(base_url=found.url, api_key=made.key) as analyst:
            counted = []
            for number, each in enumerate(promised):
                name = f"figures-{number}"
                _register(curator, name, each)
                counted.append(_answers(curator, analyst, name, sigma))
                tell((number + 1) / len(promised))
    return counted


def _register(curator: Client, name: str, promised: Mapping[str, Any]) -> None:
    curator.datasets.create(name=name, tables=TABLES, capacity=1, **promised)
    curator.datasets.upload(dataset=name, table="people", data={"person_id": ["p0"]})


def _answers(curator: Client, analyst: Client, name: str, sigma: float) -> int:
    """Ask until a query leaves the individual out, and return how many have charged it. All queries are equal."""
    question: QueryRequest = {"dataset": name, "sigma": sigma, "reuse": False}
    while True:
        for answer in analyst.queries.batch([question] * BATCH):
            if isinstance(answer, Exception):
                raise answer
        account = curator.datasets.account(dataset=name, individual="p0")
        if account.queries_left_out:
            return account.queries_charged
