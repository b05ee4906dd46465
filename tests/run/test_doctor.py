"""The checks of `sparing doctor` that need no deployment; all of them on one are in `tests/e2e/test_doctor.py`."""

from datetime import UTC, datetime

from service.run.doctor import machine_clock


def test_a_clock_that_is_wrong_by_years_has_failed() -> None:
    """A right one is no line."""
    assert list(machine_clock(datetime(2026, 11, 28, tzinfo=UTC))) == []
    (found,) = machine_clock(datetime(2526, 11, 28, tzinfo=UTC))
    told = "the clock of this machine shows 2526-11-28, outside the years 2026 to 2075: nothing is answered; set it"
    assert (found.check, found.state, found.found) == ("clock", "failed", told)
