"""One of two workers owns the dataset: what both answer, what the other holds, and how it takes over."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import uuid4

import httpx
import pytest

from service.workflows.replication.ownership import LEASE_S
from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import client
from tests.e2e.processes import sparing
from tests.e2e.surveys import Survey, ask, insist, surveyed
from tests.e2e.workers import await_that, clients_of_all, owner_of, workers_of
from tests.rotation import times

pytestmark = pytest.mark.slow

ASKING = 6
KILLS = times(2, 3)
TAKEN_OVER_S = 5.0
CSV = {"Content-Type": "text/csv"}


@pytest.fixture
def survey(survey_home: SurveyHome) -> Iterator[Survey]:
    """Two workers with metrics, which give a second of notice before they close the listener."""
    with surveyed(survey_home, SPARING_METRICS_PORT="0", SPARING_DRAIN_NOTICE_MS="1000") as opened:
        yield opened


@dataclass
class Crowd:
    """Analysts that ask on and on, each key until it is answered, over connections that may break."""

    survey: Survey
    answers: dict[str, list[httpx.Response]] = field(default_factory=dict)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    broken: int = 0
    answered_at: list[float] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def ask_on(self, number: int) -> None:
        """One of them."""
        asked = 0
        while not self.is_over.is_set():
            key = f"{number}-{asked}"
            while not self._is_answered(key):
                self.is_over.wait(0.05)
                if self.is_over.is_set():
                    return
            asked += 1

    def _is_answered(self, key: str) -> bool:
        try:
            with self.survey.analyst() as analyst:
                response = ask(analyst, key)
        except httpx.TransportError:
            self.broken += 1
            return False
        if response.status_code != 200:
            self.refusals.append((response.status_code, response.headers.get("retry-after", "")))
            return False
        self.answered_at.append(time.monotonic())
        self.answers.setdefault(key, []).append(response)
        return True


def metrics_urls(survey: Survey) -> list[str]:
    """Where each worker says what it counts; to be read once."""
    return [survey.served.process.stdout.readline().split()[1] for _ in range(2)]  # type: ignore[union-attr]


def metrics_of(urls: list[str]) -> list[dict[str, float]]:
    """The counters of each worker."""
    return [samples(httpx.get(url, trust_env=False).text) for url in urls]


def opened_in(urls: list[str]) -> list[float]:
    """How many datasets each worker has in memory, in ascending order."""
    return sorted(each["sparing_opened_datasets"] for each in metrics_of(urls))


def samples(text: str) -> dict[str, float]:
    """Name with labels to value."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_the_dataset_stays_in_one_workers_memory_for_every_request_to_the_other(survey: Survey) -> None:
    """Queries, reads, an upload, a pause and an erasure through both: the other worker commits nothing, holds nothing.

    So a poller sees no reload there: what changes the data is executed by the process that answers the poller.
    """
    with survey.curator() as curator:
        wish = {"role": "individual", "name": "ann", "dataset": "survey", "individual": "ann"}
        individual_key = curator.post("/v1/principals", json=wish).json()["key"]
    owner = owner_of(survey.home, survey.parent)
    for number, (key, role) in enumerate([(survey.analyst_key, "a"), (survey.curator_key, "c"), (individual_key, "i")]):
        with clients_of_all(survey.parent, lambda key=key: client(survey.served.url, key)) as clients:  # type: ignore[misc]
            assert owner in clients
            answers = [calls(each, role, number, place) for place, each in enumerate(clients.values())]
        assert answers[0] == answers[1]
    assert owner_of(survey.home, survey.parent) == owner

    urls = metrics_urls(survey)
    # Two uploads, two erasures, each with what is left to do in the ledger, and two pauses.
    await_that(lambda: max(each.get('sparing_commits_total{kind="act"}', 0) for each in metrics_of(urls)) == 8)
    other, own = sorted(metrics_of(urls), key=lambda each: each["sparing_opened_datasets"])
    assert (other["sparing_opened_datasets"], own["sparing_opened_datasets"]) == (0, 1)
    assert own['sparing_commits_total{kind="questions"}'] == 2
    assert [name for name in other if name.startswith("sparing_commits_total")] == []
    forwarded = sum(count for name, count in other.items() if 'route="forwarded"' in name)
    assert forwarded >= 9
    assert not [name for name in other if "/v1/datasets/{dataset}" in name or "/v1/me" in name]


def test_a_pause_through_one_worker_counts_in_the_next_query_through_the_other(survey: Survey) -> None:
    """And so does its end: the ledger says of each query whether everybody took part."""
    with survey.curator() as curator:
        wish = {"role": "individual", "name": "ann", "dataset": "survey", "individual": "ann"}
        key = curator.post("/v1/principals", json=wish).json()["key"]
        for number, (path, body) in enumerate([("lower", {"pause": True}), ("resume", None)]):
            with (
                clients_of_all(survey.parent, lambda: client(survey.served.url, key)) as individuals,
                clients_of_all(survey.parent, survey.analyst) as analysts,
            ):
                for worker, each in individuals.items():
                    assert each.post(f"/v1/me/budgets/survey/{path}", json=body).status_code == 200
                    (other,) = [analyst for place, analyst in analysts.items() if place != worker]
                    assert ask(other, f"{number}-{worker}").status_code == 200
                    row = curator.get("/v1/datasets/survey/ledger", params={"limit": 1}).json()["items"][0]
                    assert row["left_out"] == (path == "lower")


def calls(each: httpx.Client, role: str, number: int, place: int) -> list[int]:
    """The statuses of one principal's requests through one worker."""
    name, path = f"p{number}-{place}", "/v1/datasets/survey"
    match role:
        case "a":
            done = [ask(each, name), each.get(path), each.get("/v1/queries")]
        case "c":
            rows = f"person_id,age\n{name},3\n".encode()
            done = [each.post(f"{path}/tables/people/rows", content=rows, headers=CSV)]
            done += [each.delete(f"{path}/individual?individual={name}")]
            done += [each.get(f"{path}/budgets"), each.get(f"{path}/ledger")]
        case _:
            done = [each.post("/v1/me/budgets/survey/lower", json={"pause": True})]
            done += [each.get("/v1/me/budgets"), each.get("/v1/me/receipts")]
    statuses = [response.status_code for response in done]
    assert set(statuses) <= {200, 204}
    return statuses


def test_a_killed_owner_is_followed_by_the_other_and_no_key_is_charged_twice(survey: Survey) -> None:
    """Kill -9 of the owner under load, again and again: answers go on within five seconds; every key has one entry."""
    crowd = Crowd(survey)
    with ThreadPoolExecutor(ASKING) as pool:
        asking = [pool.submit(crowd.ask_on, number) for number in range(ASKING)]
        try:
            for _ in range(KILLS):
                await_that(lambda: len(workers_of(survey.parent)) == 2)
                with clients_of_all(survey.parent, survey.analyst):  # the one that follows takes connections by now
                    await_answers(crowd)
                os.kill(owner_of(survey.home, survey.parent), signal.SIGKILL)
                killed_at = time.monotonic()
                await_that(lambda at=killed_at: any(each > at + 0.1 for each in crowd.answered_at))  # type: ignore[misc]
                assert next(each for each in crowd.answered_at if each > killed_at + 0.1) - killed_at < TAKEN_OVER_S
            await_answers(crowd)
        finally:
            crowd.is_over.set()
        for each in asking:
            each.result(timeout=60)
    assert set(crowd.refusals) <= {(503, "1")}
    assert all(len(answers) == 1 for answers in crowd.answers.values())
    again = {key: insist(survey, key).content for key in crowd.answers}
    assert again == {key: answers[0].content for key, answers in crowd.answers.items()}
    check_ledger(survey, {answers[0].json()["sequence"] for answers in crowd.answers.values()})


def test_an_owner_that_drains_hands_over_and_no_request_fails(survey: Survey) -> None:
    """SIGTERM to the owner alone: clients of the other worker see answers and nothing else."""
    owner = owner_of(survey.home, survey.parent)
    answers: list[httpx.Response] = []
    is_over = threading.Event()
    with clients_of_all(survey.parent, survey.analyst) as clients:
        (other,) = [each for pid, each in clients.items() if pid != owner]

        def keep_asking() -> None:
            while not is_over.is_set():
                answers.append(ask(other, uuid4().hex))

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(keep_asking)
            await_that(lambda: len(answers) > 5)
            os.kill(owner, signal.SIGTERM)
            await_that(lambda: owner not in workers_of(survey.parent))
            before = len(answers)
            await_that(lambda: len(answers) > before + 20)
            is_over.set()
            asking.result(timeout=60)
        assert {answer.status_code for answer in answers} == {200}
        assert owner_of(survey.home, survey.parent) != owner
    check_ledger(survey, {answer.json()["sequence"] for answer in answers})


def test_an_owner_that_hangs_is_followed_when_its_lease_has_run_out_and_forwards_when_it_wakes(survey: Survey) -> None:
    """SIGSTOP: nothing is released and no session ends. After SIGCONT it frees its memory, and charges nothing."""
    owner = owner_of(survey.home, survey.parent)
    with clients_of_all(survey.parent, survey.analyst) as clients:
        answers = [ask(each, f"before-{pid}") for pid, each in clients.items()]
        (other,) = [each for pid, each in clients.items() if pid != owner]
        os.kill(owner, signal.SIGSTOP)
        try:
            time.sleep(LEASE_S + 1)
            answers.append(ask(other, "meanwhile"))
        finally:
            os.kill(owner, signal.SIGCONT)
        answers += [insist(survey, f"after-{number}") for number in range(10)]
        assert {answer.status_code for answer in answers} == {200}
        assert owner_of(survey.home, survey.parent) != owner
    urls = metrics_urls(survey)
    await_that(lambda: opened_in(urls) == [0, 1])
    check_ledger(survey, {answer.json()["sequence"] for answer in answers})


def await_answers(crowd: Crowd) -> None:
    """Wait until each analyst has had another few."""
    before = len(crowd.answered_at)
    await_that(lambda: len(crowd.answered_at) > before + 3 * ASKING)


def check_ledger(survey: Survey, seen: set[int]) -> None:
    """Every sequence that was seen is there, each once, and the whole ledger can be replayed."""
    sequences = survey.sequences()
    assert sequences == list(range(1, len(sequences) + 1))
    assert seen <= set(sequences)
    verified = sparing("ledger", "verify", home=survey.home)
    assert verified.returncode == 0
    assert re.search(rf"^survey: {len(sequences)} entries, .* verified, 0 findings$", verified.stdout, re.MULTILINE)
