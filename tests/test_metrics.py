"""`/metrics`: what is counted, under which labels, and where it is served."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.metrics import LABELS, OPERATOR, PUBLIC, TIMED, PrometheusTelemetry, metrics_served


@pytest.fixture
def telemetry() -> PrometheusTelemetry:
    """Everything has happened once, twice or thrice."""
    made = PrometheusTelemetry()
    made.watch(waiting=lambda: 7, fenced=lambda: 2, opened=lambda: 3, ready=lambda: True, shards=dict)
    made.request_began()
    made.request_began()
    made.request_ended("GET /v1/queries/{query_id}", 200)
    made.request_began()
    made.request_ended("GET /readyz", 503)
    made.slot_overrun()
    made.connection_closed("slow")
    made.batched(3)
    made.committed("questions")
    made.committed("act")
    made.commit_unclear()
    made.alarm_rang()
    with made.checkpointing():
        pass
    return made


def samples(text: str) -> dict[str, float]:
    """Name with labels to value."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_everything_told_is_shown(telemetry: PrometheusTelemetry) -> None:
    """Each number under its name."""
    shown = samples(telemetry.text())
    assert shown['sparing_requests_total{route="GET /v1/queries/{query_id}",status="200"}'] == 1
    assert shown['sparing_other_requests_total{route="GET /readyz",status="503"}'] == 1
    assert shown["sparing_requests_in_flight"] == 1
    assert shown["sparing_slot_overruns_total"] == 1
    assert shown['sparing_closed_connections_total{kind="slow"}'] == 1
    assert shown['sparing_batch_questions_bucket{le="2.0"}'] == 0
    assert shown['sparing_batch_questions_bucket{le="4.0"}'] == 1
    assert shown['sparing_commits_total{kind="questions"}'] == shown['sparing_commits_total{kind="act"}'] == 1
    assert shown["sparing_unclear_commits_total"] == 1
    assert shown["sparing_budget_alarms_total"] == 1
    assert shown["sparing_checkpoint_seconds_count"] == 1
    assert shown["sparing_queue_length"] == 7
    assert shown["sparing_fenced_datasets"] == 2
    assert shown["sparing_opened_datasets"] == 3
    assert shown["sparing_ready"] == 1


def test_nothing_else_is_shown(telemetry: PrometheusTelemetry) -> None:
    """No processor time, no memory, no instants: they follow the length of the evaluations."""
    names = {re.split(r"[{ ]", name)[0] for name in samples(telemetry.text())}
    assert all(name.startswith("sparing_") for name in names)
    assert not [name for name in names if re.search("created|cpu|python|process|info", name)]
    assert {name for name in names if "seconds" in name} == {f"{name}_{part}" for name in TIMED for part in PARTS}


PARTS = ("bucket", "count", "sum")


def test_every_metric_says_whom_it_is_for(telemetry: PrometheusTelemetry) -> None:
    """Each is on one of two lists, and its HELP text begins with the list's word."""
    assert not set(PUBLIC) & set(OPERATOR)
    helped = dict(re.findall(r"^# HELP (\w+?)(?:_total)? (Public|Operator only): ", telemetry.text(), re.MULTILINE))
    assert helped == dict.fromkeys(PUBLIC, "Public") | dict.fromkeys(OPERATOR, "Operator only")
    assert telemetry.text().count("# HELP") == len(helped)


def test_the_table_for_operators_has_every_metric(telemetry: PrometheusTelemetry) -> None:
    """Under the name by which it is read, and with its readers."""
    operations = (Path(__file__).parents[1] / "docs/watching.md").read_text()
    table = dict(re.findall(r"^\| `(sparing_\w+)` \| (public|operator only) \|", operations, re.MULTILINE))
    helped = re.findall(r"^# HELP (\w+) (Public|Operator only): ", telemetry.text(), re.MULTILINE)
    assert table == {name: word.lower() for name, word in helped}


def test_every_label_is_allowed(telemetry: PrometheusTelemetry) -> None:
    """A label that is not on the list may hold a person."""
    assert set(re.findall(r'(\w+)="', telemetry.text())) <= LABELS


def test_two_replicas_do_not_share_their_counts() -> None:
    """Nothing is kept in the library's own registry."""
    one, other = PrometheusTelemetry(), PrometheusTelemetry()
    one.commit_unclear()
    assert samples(one.text())["sparing_unclear_commits_total"] == 1
    assert samples(other.text())["sparing_unclear_commits_total"] == 0


@pytest.fixture
def url(telemetry: PrometheusTelemetry) -> Iterator[str]:
    """The address at which metrics are served."""
    with metrics_served(telemetry, host="127.0.0.1", port=0) as served:
        yield served


def test_they_are_served_on_a_port_of_their_own(telemetry: PrometheusTelemetry, url: str) -> None:
    """They are text that Prometheus reads; the port is free again afterwards."""
    response = httpx.get(url, trust_env=False)
    assert response.headers["content-type"].startswith("text/plain")
    assert samples(response.text) == samples(telemetry.text())
    port = int(url.split(":")[2].split("/", maxsplit=1)[0])
    with pytest.raises(OSError, match="in use"), metrics_served(telemetry, host="127.0.0.1", port=port):
        pass
