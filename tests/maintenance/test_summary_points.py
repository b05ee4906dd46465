"""Points of the budget summary: when they are made, that they are kept and thinned, and the alarm."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.ledger.ports.store import BudgetAlarm, SummaryPoint
from service.maintenance import summary_points
from service.maintenance.summary_points import (
    POINT_EVERY_S,
    POINTS_KEPT_WHOLE,
    POINTS_MAX,
    WATCHED_EVERY_S,
    SummaryPoints,
)
from service.metrics import PrometheusTelemetry
from service.workflows.replica import Replica, ReplicaOptions
from tests.factories import CLOCK, analyst, ask, open_replica
from tests.logged import lines_of
from tests.memory.store import MemoryStore
from tests.waiting import until

EVERY = timedelta(seconds=POINT_EVERY_S)


class World:
    """A replica with three people, its points stepped by hand, and a clock that can be moved."""

    def __init__(self, replica: Replica, store: MemoryStore) -> None:
        self.replica, self.store, self.now = replica, store, CLOCK
        self.record = replica.registry.record("survey")
        self.telemetry = PrometheusTelemetry()
        self.points = SummaryPoints(store, clock=self._clock, telemetry=self.telemetry)
        writer = replica.registry.writer(self.record)
        writer.catch_up()
        self.points.writer_opened(self.record, writer.guard, writer)
        self.who = analyst(replica)
        self.asked = 0

    def _clock(self) -> datetime:
        return self.now

    def ask(self, **query: Any) -> None:
        """One more query."""
        self.asked += 1
        ask(self.replica, self.who, str(self.asked), reuse=False, **query)

    def alarms(self) -> float | None:
        """The number of alarms that /metrics shows."""
        return self.telemetry.registry.get_sample_value("sparing_budget_alarms_total")

    def after(self, seconds: float) -> list[int]:
        """The sequences of the points, after some time and a look."""
        self.now += timedelta(seconds=seconds)
        self.points.step()
        return [point.seq for point in self.store.summaries.points(self.record.id)]


@pytest.fixture
def world(replica: Replica, store: MemoryStore) -> World:
    """A replica whose points the test makes."""
    return World(replica, store)


def test_a_point_is_made_where_the_ledger_has_moved_and_not_too_often(world: World) -> None:
    """One at first; then none within ten seconds, and none without a query."""
    assert world.after(0) == [0]
    assert world.after(POINT_EVERY_S) == [0]
    world.ask()
    assert world.after(0) == [0, 1]
    world.ask()
    assert world.after(POINT_EVERY_S - 1) == [0, 1]
    assert world.after(1) == [0, 1, 2]


def test_a_clock_that_is_put_back_makes_no_point_wait(world: World) -> None:
    """It was 500 years ahead; alarms ring with points."""
    years_500 = 500 * 365 * 86_400
    assert world.after(years_500) == [0]
    world.ask()
    assert world.after(-years_500) == [0, 1]


def test_points_are_made_more_often_while_a_curator_watches(world: World) -> None:
    """Until the last one has gone."""
    world.after(0)
    with world.points.watching(world.record.id), world.points.watching(world.record.id):
        pass
    with world.points.watching(world.record.id):
        world.ask()
        assert world.after(WATCHED_EVERY_S) == [0, 1]
    world.ask()
    assert world.after(WATCHED_EVERY_S) == [0, 1]


def test_a_point_says_what_the_summary_says(world: World) -> None:
    """At the same sequence, the same numbers."""
    world.ask()
    world.after(0)
    told = world.replica.overview.summary("survey")
    history = world.replica.overview.history("survey")
    point = history.points[-1]
    assert (point.seq, point.individuals, point.exhausted, point.paused) == (1, 3, told.exhausted, told.paused)
    assert dict(zip(map(str, history.quantiles), point.quantiles, strict=True)) == told.quantiles
    assert told.typical_query is not None
    assert point.cannot_afford == told.typical_query.cannot_afford
    assert told.typical_query.words == "count of people, σ 3"


def test_many_points_are_thinned_but_for_the_newest(world: World) -> None:
    """The first stays too, so that the history keeps its beginning."""
    for seq in range(-POINTS_MAX, 0):
        world.store.summaries.add_point(world.record.id, _point(seq))
    found = world.after(0)
    assert len(found) < POINTS_MAX
    assert found[0] == -POINTS_MAX
    assert found[-POINTS_KEPT_WHOLE:] == [*range(1 - POINTS_KEPT_WHOLE, 1)]


def _point(seq: int) -> SummaryPoint:
    return SummaryPoint(seq=seq, at=CLOCK, individuals=1, exhausted=0, paused=0, cannot_afford=None, quantiles=(1.0,))


def test_the_alarm_rings_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """When the share is reached; its line names the dataset and no number of people. Set anew, it rings again.

    The operator's metric counts each.
    """
    with caplog.at_level(logging.WARNING, logger="sparing.alarm"):
        world.replica.overview.set_alarm("survey", 1.0)
        world.ask(noise={"sigma": 3.0})
        world.after(POINT_EVERY_S)
        assert (lines_of(caplog, "sparing.alarm"), world.alarms()) == ([], 0)
        for _ in range(8):
            world.ask(noise={"sigma": 3.0})
        world.after(POINT_EVERY_S)
        assert lines_of(caplog, "sparing.alarm") == ["the budget alarm of dataset survey has rung at sequence 9"]
        assert world.replica.overview.alarm("survey") == BudgetAlarm(share=1.0, rang_seq=9)
        world.ask()
        world.after(POINT_EVERY_S)
        assert (len(lines_of(caplog, "sparing.alarm")), world.alarms()) == (1, 1)
        world.replica.overview.set_alarm("survey", 0.5)
        world.ask()
        world.after(POINT_EVERY_S)
        assert (len(lines_of(caplog, "sparing.alarm")), world.alarms()) == (2, 2)
        assert world.replica.overview.set_alarm("survey", None) is None
        assert world.replica.overview.alarm("survey") is None


def test_one_absurd_query_does_not_ring_the_alarm(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Neither one that nobody could ever pay nor one that was paid and cannot be paid again by anybody."""
    with caplog.at_level(logging.WARNING, logger="sparing.alarm"):
        world.replica.overview.set_alarm("survey", 0.1)
        world.ask(noise={"sigma": 0.5})
        world.after(POINT_EVERY_S)
        for sigma in (20.0, 1.1, 20.0):
            world.ask(noise={"sigma": sigma})
            world.after(POINT_EVERY_S)
        assert lines_of(caplog, "sparing.alarm") == []
        points = world.store.summaries.points(world.record.id)
        assert [point.cannot_afford for point in points] == [None, 0, 0, 0]


def test_an_error_over_one_dataset_is_an_incident_and_the_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again after as long as a point would be."""
    calls = []

    def fail(*_: object) -> None:
        calls.append(1)
        raise RuntimeError("broken")

    monkeypatch.setattr(summary_points, "all_accounts", fail)
    assert world.after(0) == []
    assert world.after(1) == []
    assert len(calls) == 1
    assert "summary of survey" in caplog.text
    monkeypatch.undo()
    assert world.after(POINT_EVERY_S) == [0]


def test_the_thread_makes_points_until_it_is_closed(replica: Replica, store: MemoryStore) -> None:
    """Through the replica, as a serving process has it; closing the replica ends the thread."""
    replica.close()
    points = SummaryPoints(store, clock=lambda: CLOCK)
    with open_replica(store, options=ReplicaOptions(points=points)) as pointing:
        pointing.overview.summary("survey")
        with pointing.overview.watching("survey"):
            until(lambda: len(pointing.overview.history("survey").points) == 1)
        (thread,) = points._threads
        assert thread.is_alive()
    assert not thread.is_alive()
