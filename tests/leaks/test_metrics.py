"""Public metrics are the same, to the last digit, in worlds that differ in one person."""

import re
from functools import cache

import pytest

from service.api.routes import analyst
from service.metrics import LABELS, OPERATOR, PUBLIC, PrometheusTelemetry, of_analysts
from tests.leaks.worlds import KINDS, QUIET, World, lived

MAY_DIFFER = {
    "sparing_checkpoint_seconds": "writing pages really takes as long as it takes",
    "sparing_commits": "the one person's own acts are commits",
}
"""The metrics for the operator alone that may differ in these worlds; nothing waits, fails or is late here."""


def samples(text: str, *names: str) -> list[str]:
    """The samples of these metrics."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line for line in lines if any(_is_of(line, name) for name in names)]


def _is_of(line: str, name: str) -> bool:
    return re.fullmatch(rf"{name}(_total|_bucket|_sum|_count)?[{{ ].*", line) is not None


@cache
def metrics_of(kind: str) -> tuple[World, str]:
    """One world's whole life, and what was counted of it."""
    telemetry = PrometheusTelemetry()
    return lived("p39", kind, telemetry), telemetry.text()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "absent"])
def test_one_person_moves_no_public_metric(kind: str) -> None:
    """For every record and act of the person; and of the operator's own metrics only the listed ones differ."""
    (world, ours), (_, theirs) = metrics_of(kind), metrics_of("absent")
    assert samples(ours, *PUBLIC) == samples(theirs, *PUBLIC)
    assert len(world.exchanges) > 40
    assert re.search(r'sparing_requests_total\{route="POST /v1/datasets/{dataset}/queries",status="200"\} 3\d\.0', ours)
    alike = [name for name in OPERATOR if name not in MAY_DIFFER]
    assert samples(ours, *alike) == samples(theirs, *alike)
    commits = samples(ours, "sparing_commits"), samples(theirs, "sparing_commits")
    assert (commits[0] == commits[1]) is (kind in QUIET)
    assert re.search(r'sparing_commits_total\{kind="questions"\} [234]\d\.0', ours)


def test_what_may_differ_is_for_the_operator_alone() -> None:
    """And every sample is of one metric, on one of the two lists."""
    assert set(MAY_DIFFER) < set(OPERATOR)
    text = PrometheusTelemetry().text()
    shown = [line for line in text.splitlines() if not line.startswith("#")]
    assert sorted(samples(text, *PUBLIC) + samples(text, *OPERATOR)) == sorted(shown)


def test_public_requests_are_those_of_routes_that_only_analysts_have() -> None:
    """A person's own act would move the count of its route."""
    routes = [*analyst.hot_router.routes, *analyst.router.routes]
    own = {f"{method} {route.path}" for route in routes for method in getattr(route, "methods", ())}  # type: ignore[attr-defined]
    assert len(own) >= 5
    assert all(map(of_analysts, own))
    others = [
        "POST /v1/me/budgets/{dataset}/lower",
        "POST /v1/me/budgets/{dataset}/resume",
        "DELETE /v1/datasets/{dataset}/individual",
        "unmatched",
    ]
    assert not any(map(of_analysts, others))
    telemetry = PrometheusTelemetry()
    before = samples(telemetry.text(), *PUBLIC)
    for route in others:
        telemetry.request_began()
        telemetry.request_ended(route, 200)
    assert samples(telemetry.text(), *PUBLIC) == before


def test_no_person_and_no_dataset_stands_in_a_metric() -> None:
    """Neither a key, nor a dataset's or an analyst's name, nor a label beyond the list."""
    _, text = metrics_of("present")
    assert set(re.findall(r'(\w+)="', text)) <= LABELS
    assert not re.search(r"\bp\d+\b|survey|ana\b", text)


def test_the_comparison_sees_a_number_of_people() -> None:
    """A seeded leak: a public metric of charged people would not be equal."""
    readings = []
    for kind in ("present", "absent"):
        telemetry = PrometheusTelemetry()
        for entry in lived("p39", kind, telemetry).entries:
            for _ in range(entry.charged_count):
                telemetry.request_ended("GET /v1/queries", 200)
        readings.append(samples(telemetry.text(), *PUBLIC))
    assert readings[0] != readings[1]
