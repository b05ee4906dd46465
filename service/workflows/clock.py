"""The wall clock within the years in which this version can run; at any other time nothing is done.

A wrong clock ends keys and sign-ins, and what is dated by it stays in the ledger for good. The years are fixed, and not
taken from the newest date in the database: one date of a wrong clock there would move them.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from service.ledger.model.errors import ClockImplausible

EARLIEST: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The year of this version."""
LATEST: Final = datetime(2076, 1, 1, tzinfo=UTC)

log = logging.getLogger("sparing.clock")
log.addHandler(logging.NullHandler())  # commands tell of a wrong clock by themselves


class PlausibleClock:
    """Tells the time of another clock. Raises ClockImplausible at a time outside the years; a change is logged."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._is_wrong = False

    def __call__(self) -> datetime:
        """The time now."""
        now = self._clock()
        is_wrong = not EARLIEST <= now < LATEST
        if is_wrong != self._is_wrong:
            self._is_wrong = is_wrong
            log.warning("%s", fault_of(now) if is_wrong else "the clock of this machine is right again")
        if is_wrong:
            raise ClockImplausible
        return now

    def is_right(self) -> bool:
        """Tell whether it tells the time now."""
        try:
            self()
        except ClockImplausible:
            return False
        return True


def fault_of(now: datetime) -> str:
    """The fault of a time outside the years, for the operator."""
    years = f"{EARLIEST.year} to {LATEST.year - 1}"
    return f"the clock of this machine shows {now:%Y-%m-%d}, outside the years {years}: nothing is answered; set it"
