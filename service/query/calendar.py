"""Dates and times as integers: days and seconds since 1970-01-01, in UTC, read from and written as ISO 8601.

A date is `2026-03-31`; a time `2026-03-31T23:59:59Z`, with or without seconds, a fraction and an offset. A time without
an offset is in UTC, and of a fraction of a second the whole second counts.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, overload

DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def days_of(text: str) -> int | None:
    """The days of an ISO date, or None for other text."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def seconds_of(text: str) -> int | None:
    """The seconds of an ISO date or time, rounded down, or None for other text."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    whole = text if found.group(3) is None else text.replace(found.group(3), "", 1)
    try:
        parsed = datetime.fromisoformat(whole)
        at = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        return (at - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


def date_text(days: int) -> str:
    """The ISO date of days."""
    return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()


def time_text(seconds: int) -> str:
    """The ISO time of seconds, in UTC."""
    return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"


class Labels(Sequence[str | int]):
    """The labels of consecutive codes, made when they are read: `label_of(first)`, `label_of(first + 1)` and so on."""

    def __init__(self, label_of: Callable[[int], str | int], first: int, count: int) -> None:
        self._label_of, self._places = label_of, range(first, first + count)

    @overload
    def __getitem__(self, place: int) -> str | int: ...
    @overload
    def __getitem__(self, place: slice) -> "Labels": ...
    def __getitem__(self, place: int | slice) -> "str | int | Labels":
        if isinstance(place, slice):
            part = self._places[place]
            return Labels(self._label_of, part.start, len(part))
        return self._label_of(self._places[place])

    def __len__(self) -> int:
        return len(self._places)
