"""One of two workers owns the dataset: what both answer, what the other holds, and how it takes over."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import uuid4

import httpx
import pytest

from tests.e2e.homes import Homes
from tests.e2e.http_calls import CSV, client, get
from tests.e2e.processes import sparing
from tests.e2e.surveys import Survey, surveyed
from tests.e2e.workers import await_end_of_lease, clients_of_all, owner_of, workers_of
from tests.rotation import times
from tests.waiting import PATIENCE_S, until

ASKING = 6
KILLS = times(1, 3)
PAUSE_S = 0.05
"""Between two requests of an analyst: each key that was answered is asked again in the end."""


@pytest.fixture(scope="module")
def service(homes: Homes) -> Iterator[Survey]:
    """Two workers with metrics, which give a second of notice before they close the listener."""
    with surveyed(homes.surveyed(), SPARING_METRICS_PORT="0", SPARING_DRAIN_NOTICE_MS="1000") as opened:
        yield opened


@pytest.fixture(scope="module")
def urls(service: Survey) -> list[str]:
    """The addresses at which the workers serve their metrics; the successor of a worker has its port."""
    assert service.served.process.stdout is not None
    return [service.served.process.stdout.readline().split()[1] for _ in range(2)]


@pytest.fixture
def survey(service: Survey) -> Survey:
    """A dataset of the test's own, once both workers take connections."""
    until(lambda: len(workers_of(service.parent)) == 2)
    with clients_of_all(service.parent, service.analyst):
        pass
    return service.another()


@dataclass
class Crowd:
    """Analysts that ask on and on, each key until it is answered, over connections that may break."""

    survey: Survey
    answers: dict[str, httpx.Response] = field(default_factory=dict)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def ask_on(self, number: int) -> None:
        """One of them."""
        asked = 0
        while not self.is_over.is_set():
            asked += self._is_answered(f"{number}-{asked}")
            self.is_over.wait(PAUSE_S)

    def _is_answered(self, key: str) -> bool:
        try:
            with self.survey.analyst() as analyst:
                response = self.survey.ask(analyst, key)
        except httpx.TransportError:
            return False
        if response.status_code != 200:
            self.refusals.append((response.status_code, response.headers.get("retry-after", "")))
            return False
        self.answers[key] = response
        return True

    def await_more(self) -> None:
        """Wait until each analyst has had another few, of which one at most was under way."""
        goal = len(self.answers) + 3 * ASKING
        until(lambda: len(self.answers) >= goal)


def counted(url: str) -> dict[str, float]:
    """The counters of a worker: name with labels to value."""
    text = get(url).text
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def opened_in(urls: list[str]) -> list[float]:
    """How many datasets each worker has in memory."""
    return [counted(url)["sparing_opened_datasets"] for url in urls]


def grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """The counters that have changed, and by how much."""
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)}


def test_the_dataset_stays_in_one_workers_memory_for_every_request_to_the_other(
    survey: Survey, urls: list[str]
) -> None:
    """Queries, reads, an upload, a pause and an erasure through both: the other worker commits nothing, holds nothing.

    So a poller sees no reload there: what changes the data is executed by the process that answers the poller.
    """
    keys = [(survey.analyst_key, "a"), (survey.curator_key, "c"), (individual_key(survey), "i")]
    with survey.analyst() as analyst:
        survey.ask(analyst, "first").raise_for_status()
    owner = owner_of(survey.home, survey.parent, survey.dataset)
    before = [counted(url) for url in urls]
    for number, (key, role) in enumerate(keys):
        with clients_of_all(survey.parent, lambda key=key: client(survey.served.url, key)) as clients:  # type: ignore[misc]
            assert owner in clients
            answers = [calls(survey, each, role, f"p{number}-{place}") for place, each in enumerate(clients.values())]
        assert answers[0] == answers[1]
    assert owner_of(survey.home, survey.parent, survey.dataset) == owner

    def work() -> list[dict[str, float]]:
        """The counts of both workers since then, the owner's last."""
        done = [grown(earlier, counted(url)) for earlier, url in zip(before, urls, strict=True)]
        return sorted(done, key=lambda each: each.get('sparing_commits_total{kind="act"}', 0))

    # Two uploads, two erasures, each with what is left to do in the ledger, and two pauses.
    until(lambda: work()[1].get('sparing_commits_total{kind="act"}') == 8)
    other, own = work()
    assert "sparing_opened_datasets" not in other.keys() | own.keys()
    assert own['sparing_commits_total{kind="questions"}'] == 2
    assert [name for name in other if name.startswith("sparing_commits_total")] == []
    assert sum(count for name, count in other.items() if 'route="forwarded"' in name) >= 9
    assert not [name for name in other if "/v1/datasets/{dataset}" in name or "/v1/me" in name]


def individual_key(survey: Survey) -> str:
    """The key of an individual."""
    with survey.curator() as curator:
        wish = {"role": "individual", "name": "ann", "dataset": survey.dataset, "individual": "ann"}
        return str(curator.post("/v1/principals", json=wish).json()["key"])


def calls(survey: Survey, each: httpx.Client, role: str, name: str) -> list[int]:
    """The statuses of one principal's requests through one worker."""
    path = survey.path
    match role:
        case "a":
            done = [survey.ask(each, name), each.get(path), each.get("/v1/queries")]
        case "c":
            rows = f"person_id,age\n{name},3\n".encode()
            done = [each.post(f"{path}/tables/people/rows", content=rows, headers=CSV)]
            done += [each.delete(f"{path}/individual?individual={name}")]
            done += [each.get(f"{path}/budgets"), each.get(f"{path}/ledger")]
        case _:
            done = [each.post(f"/v1/me/budgets/{survey.dataset}/lower", json={"pause": True})]
            done += [each.get("/v1/me/budgets"), each.get("/v1/me/receipts")]
    statuses = [response.status_code for response in done]
    assert set(statuses) <= {200, 204}
    return statuses


def test_a_pause_through_one_worker_counts_in_the_next_query_through_the_other(survey: Survey) -> None:
    """And so does its end: the ledger says of each query whether everybody took part."""
    key = individual_key(survey)
    with (
        survey.curator() as curator,
        clients_of_all(survey.parent, lambda: client(survey.served.url, key)) as individuals,
        clients_of_all(survey.parent, survey.analyst) as analysts,
    ):
        for path, body in [("lower", {"pause": True}), ("resume", None)]:
            for worker, each in individuals.items():
                assert each.post(f"/v1/me/budgets/{survey.dataset}/{path}", json=body).status_code == 200
                (other,) = [analyst for place, analyst in analysts.items() if place != worker]
                assert survey.ask(other, f"{path}-{worker}").status_code == 200
                row = curator.get(f"{survey.path}/ledger", params={"limit": 1}).json()["items"][0]
                assert row["left_out"] == (path == "lower")


def test_a_killed_owner_is_followed_by_the_other_and_no_key_is_charged_twice(survey: Survey) -> None:
    """Kill -9 of the owner under load, again and again: answers go on; every key has one entry."""
    crowd = Crowd(survey)
    with ThreadPoolExecutor(ASKING) as pool:
        asking = [pool.submit(crowd.ask_on, number) for number in range(ASKING)]
        try:
            for _ in range(KILLS):
                until(lambda: len(workers_of(survey.parent)) == 2)
                with clients_of_all(survey.parent, survey.analyst):  # the one that follows takes connections by now
                    crowd.await_more()
                os.kill(owner_of(survey.home, survey.parent, survey.dataset), signal.SIGKILL)
                crowd.await_more()
        finally:
            crowd.is_over.set()
        for each in asking:
            each.result(timeout=PATIENCE_S)
    assert set(crowd.refusals) <= {(503, "1")}
    answers = {key: each.content for key, each in crowd.answers.items()}
    assert {key: survey.insist(key).content for key in answers} == answers
    check_ledger(survey, {each.json()["sequence"] for each in crowd.answers.values()})


def test_an_owner_that_drains_hands_over_and_no_request_fails(survey: Survey) -> None:
    """SIGTERM to the owner alone: clients of the other worker see answers and nothing else."""
    answers: list[httpx.Response] = []
    is_over = threading.Event()
    with clients_of_all(survey.parent, survey.analyst) as clients:
        survey.ask(next(iter(clients.values())), "first").raise_for_status()
        owner = owner_of(survey.home, survey.parent, survey.dataset)
        (other,) = [each for pid, each in clients.items() if pid != owner]

        def keep_asking() -> None:
            while not is_over.is_set():
                answers.append(survey.ask(other, uuid4().hex))

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(keep_asking)
            until(lambda: len(answers) > 5)
            os.kill(owner, signal.SIGTERM)
            until(lambda: owner not in workers_of(survey.parent))
            before = len(answers)
            until(lambda: len(answers) > before + 20)
            is_over.set()
            asking.result(timeout=PATIENCE_S)
        assert {answer.status_code for answer in answers} == {200}
        assert owner_of(survey.home, survey.parent, survey.dataset) != owner
    check_ledger(survey, {answer.json()["sequence"] for answer in answers})


def test_an_owner_that_hangs_is_followed_when_its_lease_has_run_out_and_forwards_when_it_wakes(
    survey: Survey, urls: list[str]
) -> None:
    """SIGSTOP: nothing is released and no session ends. After SIGCONT it frees its memory, and charges nothing."""
    with clients_of_all(survey.parent, survey.analyst) as clients:
        answers = [survey.ask(each, f"before-{pid}") for pid, each in clients.items()]
        owner = owner_of(survey.home, survey.parent, survey.dataset)
        (other,) = [each for pid, each in clients.items() if pid != owner]
        opened = opened_in(urls)
        os.kill(owner, signal.SIGSTOP)
        try:
            await_end_of_lease(survey.home, survey.dataset)
            answers.append(survey.ask(other, "meanwhile"))
        finally:
            os.kill(owner, signal.SIGCONT)
        answers += [survey.insist(f"after-{number}") for number in range(10)]
        assert {answer.status_code for answer in answers} == {200}
        assert owner_of(survey.home, survey.parent, survey.dataset) != owner
    until(lambda: any(now < before for now, before in zip(opened_in(urls), opened, strict=True)))
    check_ledger(survey, {answer.json()["sequence"] for answer in answers})


def check_ledger(survey: Survey, seen: set[int]) -> None:
    """Every sequence that was seen is there, each once, and the whole ledger can be replayed."""
    sequences = survey.sequences()
    assert sequences == list(range(1, len(sequences) + 1))
    assert seen <= set(sequences)
    verified = sparing("ledger", "verify", home=survey.home)
    assert verified.returncode == 0
    told = rf"^{survey.dataset}: {len(sequences)} entries, .* verified, 0 findings$"
    assert re.search(told, verified.stdout, re.MULTILINE)
