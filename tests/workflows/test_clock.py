"""No time outside the years of this version is told."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from service.ledger.model.errors import ClockImplausible
from service.workflows.clock import EARLIEST, LATEST, PlausibleClock
from tests.logged import lines_of

INSTANT = timedelta(microseconds=1)


@pytest.mark.parametrize("now", [EARLIEST, LATEST - INSTANT])
def test_a_time_within_the_years_is_told(now: datetime) -> None:
    """To its first and its last instant."""
    clock = PlausibleClock(lambda: now)
    assert clock() == now
    assert clock.is_right()


@pytest.mark.parametrize(
    "now",
    [EARLIEST - INSTANT, LATEST, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    ids=["before", "after", "first", "last"],
)
def test_a_time_outside_the_years_is_refused(now: datetime) -> None:
    """At either end, and at the ends of what a date can say."""
    clock = PlausibleClock(lambda: now)
    with pytest.raises(ClockImplausible, match="wrong by years"):
        clock()
    assert not clock.is_right()


def test_a_change_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With the wrong date; a clock that is right from the start says nothing."""
    times = [EARLIEST, LATEST, LATEST, EARLIEST, EARLIEST]
    clock = PlausibleClock(lambda: times.pop(0))
    with caplog.at_level(logging.INFO, logger="sparing.clock"):
        assert [clock.is_right() for _ in range(5)] == [True, False, False, True, True]
    assert lines_of(caplog, "sparing.clock") == [
        "the clock of this machine shows 2076-01-01, outside the years 2026 to 2075: nothing is answered; set it",
        "the clock of this machine is right again",
    ]
