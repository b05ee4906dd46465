"""The alert rules for Prometheus: their grammar, their metrics, and whether they tell a fault from none."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import promql_parser as promql
import pytest
import yaml

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import QUERY, client
from tests.e2e.processes import Served, children_of, served
from tests.e2e.promql import Scrapes, evaluated, selectors

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((Path(__file__).parents[2] / "docs/reference/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
BUSY_S = 1.5
STOPPED_S = 0.5
PATIENCE_S = 30.0


def firing(scrapes: Scrapes) -> set[str]:
    """The rules whose condition holds at the last scrape; how long it must hold is Prometheus' own affair."""
    return {rule["alert"] for rule in RULES if evaluated(promql.parse(rule["expr"]), scrapes)}


def test_every_rule_is_whole() -> None:
    """Five, each with a duration that Prometheus reads, a severity and a summary; only metrics of ours."""
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 5
    for rule in RULES:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert promql.parse_duration(rule["for"]).total_seconds() >= 60
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]
        assert all(each.name.startswith("sparing_") for each in selectors(promql.parse(rule["expr"])))


def metrics_url(running: Served) -> str:
    """The line after `ready`."""
    assert running.process.stdout is not None
    word, _, url = running.process.stdout.readline().strip().partition(" ")
    assert word == "metrics"
    return url


def postgres_of(running: Served) -> list[int]:
    """Every process of the embedded Postgres."""
    pids = [pid for pid, _ in children_of(running.process.pid)]
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"]


def asked_until(is_over: threading.Event, running: Served, key: str, name: str) -> set[int]:
    """New queries one after another that are not reused; their statuses."""
    statuses = set()
    with client(running.url, key) as analyst:
        for number in count():
            headers = {"Idempotency-Key": f"{name}{number}"}
            reply = analyst.post("/v1/datasets/survey/queries", json=QUERY | {"reuse": False}, headers=headers)
            statuses.add(reply.status_code)
            if is_over.is_set():
                break
    return statuses


@pytest.mark.slow
def test_rules_tell_a_fault_from_none(survey_home: SurveyHome) -> None:
    """None while all is well; then Postgres stands still, a connection is cut, and the witness is missing."""
    home, key = survey_home.path, survey_home.analyst_key
    cut = {"CHAOS": "1", "CHAOS_AT": "before-commit:drop:2", "SPARING_METRICS_PORT": "0"}
    with served(home, **cut) as running, ThreadPoolExecutor(8) as pool:
        url = metrics_url(running)

        def scrape() -> tuple[float, str]:
            return time.monotonic(), httpx.get(url, timeout=30).text

        is_over = threading.Event()
        is_over.set()
        assert asked_until(is_over, running, key, "first") == {200}  # a metric by route begins with its first request
        scrapes = Scrapes(texts=[scrape(), scrape()])
        named = {each.name for rule in RULES for each in selectors(promql.parse(rule["expr"]))}
        assert named <= scrapes.names()
        assert firing(scrapes) == set()

        is_over.clear()
        answers = [pool.submit(asked_until, is_over, running, key, name) for name in "abcdefgh"]
        time.sleep(BUSY_S)  # the first commits; one of them loses its connection
        stopped = postgres_of(running)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        is_over.set()
        try:
            time.sleep(STOPPED_S)
            stuck = Scrapes(texts=[scrape()])
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert "SparingNotReady" in firing(stuck)
        # A queue that stands for minutes is not made here: its sample alone is another one.
        long = [
            (at, text.replace("sparing_queue_length 0.0", "sparing_queue_length 3.0")) for at, text in scrapes.texts
        ]
        assert firing(Scrapes(texts=long)) == {"SparingQueueStuck"}
        assert set().union(*(answer.result() for answer in answers)) <= {200, 503}
        end = time.monotonic() + PATIENCE_S
        while "SparingNotReady" in firing(scraped := Scrapes(texts=[*scrapes.texts, scrape()])):
            assert time.monotonic() < end, "it is not ready again"
        assert firing(scraped) == {"SparingLateResponses", "SparingUnclearCommits"}

    (home / "witness").rename(home / "moved")
    with served(home, SPARING_METRICS_PORT="0") as running:
        text = httpx.get(metrics_url(running), timeout=30).text
        assert firing(Scrapes(texts=[(0.0, text)])) == {"SparingNotReady", "SparingDatasetClosed"}
