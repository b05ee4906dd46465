"""What the operator's metrics say of two worlds that differ in one person: the same, to the last digit."""

import re

import pytest

from service.metrics import LABELS, TIMED, PrometheusTelemetry
from tests.leaks.test_neighbours import World, lived


def public_part(text: str) -> list[str]:
    """Every sample but those of the listed durations, of which only the number is public."""
    timed = tuple(f"{name}_{part}" for name in TIMED for part in ("bucket", "sum"))
    return [line for line in text.splitlines() if not line.startswith(timed)]


def metrics_of(kind: str, telemetry: PrometheusTelemetry) -> tuple[World, str]:
    """One world's whole life, and what was counted of it."""
    world = lived("p39", kind, telemetry)
    return world, telemetry.text()


@pytest.mark.slow
def test_one_person_moves_no_metric() -> None:
    """Requests, batches, commits, doubts, overruns: equal; only how long a checkpoint took may differ."""
    (world, ours), (_, theirs) = (metrics_of(each, PrometheusTelemetry()) for each in ("present", "absent"))
    assert public_part(ours) == public_part(theirs)
    assert len(world.exchanges) > 40
    assert re.search(r'sparing_commits_total\{kind="questions"\} 1\d\.0', ours)
    assert re.search(r'sparing_requests_total\{route="POST /v1/datasets/{dataset}/queries",status="200"\} 1\d\.0', ours)


@pytest.mark.slow
def test_no_person_and_no_dataset_stands_in_a_metric() -> None:
    """Neither a key, nor a dataset's or an analyst's name, nor a label beyond the list."""
    _, text = metrics_of("present", PrometheusTelemetry())
    assert set(re.findall(r'(\w+)="', text)) <= LABELS
    assert not re.search(r"\bp\d+\b|survey|ana\b", text)


@pytest.mark.slow
def test_the_comparison_sees_a_number_of_people() -> None:
    """A seeded leak: an adapter that counted whom a session charged would not be equal."""
    readings = []
    for kind in ("present", "absent"):
        telemetry = PrometheusTelemetry()
        world, _ = metrics_of(kind, telemetry)
        for entry in world.entries:
            telemetry.batched(entry.charged_count)
        readings.append(public_part(telemetry.text()))
    assert readings[0] != readings[1]
