"""The alert rules for Prometheus: their grammar, their metrics, and whether they tell a fault from none."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

from service.metrics import OPERATOR, PUBLIC
from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import asked, client, get
from tests.e2e.processes import Served, children_of, served
from tests.e2e.promql import Scrapes, evaluated, selectors
from tests.waiting import until

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((Path(__file__).parents[2] / "docs/reference/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
METRICS = PUBLIC.keys() | OPERATOR.keys()
INTERVAL_S = 15.0
"""Between scrapes, as their instants are written down: Prometheus' own default is a minute."""


def firing(scrapes: Scrapes) -> set[str]:
    """The rules whose condition holds at the last scrape; how long it must hold is Prometheus' own affair."""
    return {rule["alert"] for rule in RULES if evaluated(promql.parse(rule["expr"]), scrapes)}


def test_every_rule_is_whole() -> None:
    """Six, each with a duration that Prometheus reads, a severity and a summary; only metrics that are served."""
    assert len({rule["alert"] for rule in RULES}) == len(RULES) == 6
    for rule in RULES:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert promql.parse_duration(rule["for"]).total_seconds() >= 60
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]
        assert {each.name.removesuffix("_total") for each in selectors(promql.parse(rule["expr"]))} <= METRICS


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
            statuses.add(asked(analyst, f"{name}{number}").status_code)
            if is_over.is_set():
                break
    return statuses


def test_rules_tell_a_fault_from_none(survey_home: SurveyHome) -> None:
    """No alert fires while all is well; then Postgres stands still, a connection is cut, and the witness is missing."""
    home, key = survey_home.path, survey_home.analyst_key
    cut = {"CHAOS": "1", "CHAOS_AT": "before-commit:drop:2", "SPARING_METRICS_PORT": "0"}
    with served(home, **cut) as running, ThreadPoolExecutor(8) as pool:
        url = metrics_url(running)

        def scrape(number: int) -> tuple[float, str]:
            return number * INTERVAL_S, get(url).text

        def seen() -> Scrapes:
            return Scrapes(texts=[*scrapes.texts, scrape(2)])

        is_over = threading.Event()
        is_over.set()
        assert asked_until(is_over, running, key, "first") == {200}  # a metric by route begins with its first request
        scrapes = Scrapes(texts=[scrape(0), scrape(1)])
        named = {each.name for rule in RULES for each in selectors(promql.parse(rule["expr"]))}
        assert named <= scrapes.names()
        assert firing(scrapes) == set()

        is_over.clear()
        answers = [pool.submit(asked_until, is_over, running, key, name) for name in "abcdefgh"]
        until(lambda: "SparingUnclearCommits" in firing(seen()))
        stopped: set[int] = set()
        while begun := set(postgres_of(running)) - stopped:  # the pool replaces the cut connection meanwhile
            for pid in begun:
                os.kill(pid, signal.SIGSTOP)
            stopped |= begun
        is_over.set()
        try:
            until(lambda: "SparingNotReady" in firing(seen()))
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        # A queue that stands for minutes is not made here: its sample alone is another one.
        long = [
            (at, text.replace("sparing_queue_length 0.0", "sparing_queue_length 3.0")) for at, text in scrapes.texts
        ]
        assert firing(Scrapes(texts=long)) == {"SparingQueueStuck"}
        at, text = scrapes.texts[-1]  # no more is an alarm, which comes with a summary of many queries
        rang = text.replace("sparing_budget_alarms_total 0.0", "sparing_budget_alarms_total 1.0")
        assert firing(Scrapes(texts=[scrapes.texts[0], (at, rang)])) == {"SparingBudgetAlarm"}
        assert set().union(*(answer.result() for answer in answers)) <= {200, 503}
        until(lambda: "SparingNotReady" not in firing(seen()))
        assert firing(seen()) == {"SparingLateResponses", "SparingUnclearCommits"}

    (home / "witness").rename(home / "moved")
    with served(home, SPARING_METRICS_PORT="0") as running:
        text = get(metrics_url(running)).text
        assert firing(Scrapes(texts=[(0.0, text)])) == {"SparingNotReady", "SparingDatasetClosed"}
