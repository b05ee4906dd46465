"""Dates and times as integers: days and seconds since 1970-01-01, in UTC, read from and written as ISO 8601.

A date is `2026-03-31`, a time `2026-03-31T23:59:59Z`. Seconds, a fraction of them and a zone may be left out. A zone is
`Z`, `UTC`, or an offset such as `+02:00`, `+0200` or `+02`, with or without a blank before it. A time without a zone is
in UTC. Data are whole seconds, and a literal of a query keeps its fraction.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import floor
from typing import Final, overload

DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([T ](?P<clock>[0-9]{2}:[0-9]{2}(:[0-9]{2}(?P<fraction>\.[0-9]{1,9})?)?)"
    r"( ?(?P<zone>Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?"
)


def days_of(text: str) -> int | None:
    """The days since 1970-01-01 of an ISO date, or None for other text."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def instant_of(text: str) -> Fraction | None:
    """The seconds since 1970-01-01 of an ISO date or time, exactly, or None for other text."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    fraction = found["fraction"] or ""
    clock, zone = (found["clock"] or "00:00").removesuffix(fraction), (found["zone"] or "Z").replace("UTC", "Z")
    try:
        since = datetime.fromisoformat(f"{found['day']}T{clock}{zone}") - _EPOCH
    except (ValueError, OverflowError):
        return None
    return since // timedelta(seconds=1) + Fraction(f"0{fraction}")


def written_day_of(text: str) -> int | None:
    """The days of the date with which an ISO date or time begins, whatever its zone, or None for other text."""
    found = _TIME.fullmatch(text)
    return None if found is None or instant_of(text) is None else days_of(found["day"])


def has_zone(text: str) -> bool:
    """Tell whether a time says its zone."""
    found = _TIME.fullmatch(text)
    return found is not None and found["zone"] is not None


def seconds_of(text: str) -> int | None:
    """The whole seconds of an ISO date or time, rounded down, or None for other text."""
    instant = instant_of(text)
    return None if instant is None else floor(instant)


def date_text(days: int) -> str:
    """The ISO date of a number of days."""
    return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()


def time_text(seconds: int) -> str:
    """The ISO time of a number of seconds, in UTC."""
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
