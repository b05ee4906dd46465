"""The wall clock, limited to the years in which this version can run; at any other time the service does nothing.

A wrong clock would end keys and sign-ins, and its dates would stay in the ledger for good. The years are fixed. They
are not derived from the newest date in the database, because one date of a wrong clock would move them.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from service.ledger.model.errors import ClockImplausible

EARLIEST: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The beginning of this version's year."""
LATEST: Final = datetime(2076, 1, 1, tzinfo=UTC)

log = logging.getLogger("sparing.clock")
log.addHandler(logging.NullHandler())  # commands tell of a wrong clock by themselves


class PlausibleClock:
    """Tells the time of another clock, and logs when it becomes wrong or right.

    Raises ClockImplausible at a time outside the years.
    """

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
        """Tell whether the other clock's time is within the years."""
        try:
            self()
        except ClockImplausible:
            return False
        return True


def fault_of(now: datetime) -> str:
    """The fault of a time outside the years, for the operator."""
    years = f"{EARLIEST.year} to {LATEST.year - 1}"
    return f"the clock of this machine shows {now:%Y-%m-%d}, outside the years {years}: nothing is answered; set it"
