"""An analyst that asks and repeats, kills of embedded servers, and what must hold of its answers afterwards."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Self

import httpx
import redis

from service.embedded import EmbeddedValkey
from service.embedded.home import data_directories, find_home
from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import QUERY, asked, client
from tests.e2e.processes import sparing
from tests.waiting import until

PRECISE = QUERY | {"noise": {"sigma": 400.0}}  # hundreds of them are within each budget
CHARGE_UNITS = 3_435_974  # 2^40 / (2 * 400^2), rounded up
RETRIED_S = 0.05
THINKS_S = 0.05
"""Between an answer and the next query: every answer is asked for again in the end."""


class Asking:
    """An analyst that asks one query after another, each under its key until it is answered."""

    def __init__(self, urls: list[str], analyst_key: str) -> None:
        self.urls = urls  # the first that is reached answers
        self.answers: dict[str, bytes] = {}
        self.failures: list[int] = []
        self._analyst_key = analyst_key
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Ask no more, once the query under way is answered."""
        self._is_closing.set()
        self._thread.join()

    def await_more(self, answers: int) -> None:
        """Wait until so many more queries have been answered."""
        goal = len(self.answers) + answers
        until(lambda: len(self.answers) >= goal)

    def repeat(self, key: str) -> bytes:
        """The body of the response to a query that is sent until it is answered."""
        while True:
            for url in list(self.urls):
                try:
                    with client(url, self._analyst_key) as analyst:
                        response = asked(analyst, key, query=PRECISE)
                except httpx.TransportError:
                    continue
                if response.status_code == 200:
                    return response.content
                self.failures.append(response.status_code)
                time.sleep(RETRIED_S)

    def _ask(self) -> None:
        while not self._is_closing.is_set():
            key = f"q-{len(self.answers)}"
            self.answers[key] = self.repeat(key)
            self._is_closing.wait(THINKS_S)


def kill_servers(home: Path) -> None:
    """Kill -9 of the Postgres and the Valkey that run in a home, once both have come back from the kill before."""
    found = find_home(home)
    assert found is not None
    until(lambda: EmbeddedValkey(home).attach() is not None)
    with redis.Redis.from_url(str(EmbeddedValkey(home).attach())) as cache:
        cache_pid = int(cache.info("server")["process_id"])
    os.kill(int((data_directories(found.state)[0] / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    os.kill(cache_pid, signal.SIGKILL)


def check_answers(asking: Asking, url: str, survey: SurveyHome, **environ: str) -> None:
    """Each key still has its one answer, the ledger has one entry for each, and it verifies."""
    assert {key: asking.repeat(key) for key in asking.answers} == asking.answers
    with client(url, survey.curator_key) as curator:
        budgets = curator.get("/v1/datasets/survey/budgets").json()["items"]
    assert {row["spent_units"] for row in budgets} == {CHARGE_UNITS * len(asking.answers)}
    verified = sparing("ledger", "verify", home=survey.path, **environ)
    entries = len(asking.answers)
    assert verified.stdout.startswith(f"survey: {entries} entries, {entries} answers, "), verified
    assert verified.stdout.endswith(", 0 findings\n"), verified
