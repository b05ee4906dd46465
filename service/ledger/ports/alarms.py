"""The receiver of alarms, which are in the log besides."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmNotice:
    """An alarm that has rung: of which dataset, at which sequence, and the share that was set. No number of people."""

    id: UUID
    dataset: str
    sequence: int
    share: float
    rang_at: datetime


class NotDelivered(Exception):
    """The receiver has not taken a notice; the text says why and holds neither address nor secret."""


class AlarmReceiver(Protocol):
    """Takes notices, one at a time, from a thread that may wait."""

    def deliver(self, notice: AlarmNotice) -> None:
        """Hand over a notice, once more under the same id after a failure. Raises NotDelivered."""
