"""Alarms on their way to a receiver: tried at once, and again after longer and longer pauses.

One thread tries them, so that no query and no summary waits for a receiver. Notices wait in memory alone: a process
that ends drops them, and the line in the log is all that is left of the alarm.
"""

import logging
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from service.background import Background, lower_priority
from service.incidents import report_incident
from service.ledger.ports.alarms import AlarmNotice, AlarmReceiver, NotDelivered

log = logging.getLogger("sparing.alarm")

TRIES_MAX: Final = 12
FIRST_PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 600.0
"""The pause doubles with each try: the last of twelve comes after more than half an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    notice: AlarmNotice
    due_s: float
    tries: int = 0


class AlarmDelivery(Background):
    """Delivers notices. One caller of `step` at a time; `open` starts a thread of low priority that calls it."""

    def __init__(
        self,
        receiver: AlarmReceiver,
        *,
        first_pause_s: float = FIRST_PAUSE_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock_s` counts seconds from any instant on."""
        super().__init__()
        self._receiver, self._first_pause_s, self._clock_s = receiver, first_pause_s, clock_s
        self._arrived: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._waiting: list[_Waiting] = []

    def open(self) -> None:
        """Start the thread."""
        self._begin_thread(self._run, "alarms")

    def close(self) -> None:
        """End after the try that is under way; what waits is dropped."""
        self._closed.set()
        self._arrived.put(None)
        super().close()

    def put(self, notice: AlarmNotice) -> None:
        """Deliver a notice as soon as possible. Never waits."""
        self._arrived.put(_Waiting(notice=notice, due_s=self._clock_s()))

    def step(self) -> None:
        """Wait until a notice arrives or is due, and try those that are due."""
        try:
            arrived = self._arrived.get(timeout=self._pause_s())
        except queue.Empty:
            arrived = None
        self._waiting += [] if arrived is None else [arrived]
        now_s = self._clock_s()
        due = [each for each in self._waiting if each.due_s <= now_s]
        self._waiting = [each for each in self._waiting if each.due_s > now_s]
        for each in due:
            if not self._closed.is_set():
                self._try(each)

    def _pause_s(self) -> float | None:
        """How long nothing is due; None without a notice that waits."""
        due_s = min((each.due_s for each in self._waiting), default=None)
        return None if due_s is None else max(due_s - self._clock_s(), 0.0)

    def _try(self, waiting: _Waiting) -> None:
        notice, tries = waiting.notice, waiting.tries + 1
        try:
            self._receiver.deliver(notice)
        except NotDelivered as failure:
            reason = str(failure)
        except Exception as error:  # noqa: BLE001 - the other alarms must be delivered
            report_incident(error, f"alarm of {notice.dataset}", dataset=notice.dataset)
            reason = "an incident"
        else:
            log.info("the budget alarm of dataset %s was delivered", notice.dataset)
            return
        if tries == TRIES_MAX:
            log.error("the budget alarm of dataset %s was not delivered in %d tries: %s", notice.dataset, tries, reason)
            return
        log.warning("the budget alarm of dataset %s was not delivered yet: %s", notice.dataset, reason)
        pause_s = min(self._first_pause_s * 2**waiting.tries, PAUSE_S_MAX)
        self._waiting.append(replace(waiting, due_s=self._clock_s() + pause_s, tries=tries))

    def _run(self) -> None:
        lower_priority()
        while not self._closed.is_set():
            self.step()
