"""Dates and times in ISO 8601, there and back, and everything that is neither."""

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.calendar import Labels, date_text, days_of, instant_of, seconds_of, time_text


@given(st.dates())
def test_a_date_is_its_days(day: date) -> None:
    """Also before 1970, and in the years 1 and 9999."""
    assert days_of(day.isoformat()) == (day - date(1970, 1, 1)).days
    assert date_text((day - date(1970, 1, 1)).days) == day.isoformat()


@given(st.datetimes(timezones=st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))))
def test_a_time_is_its_whole_seconds_in_utc(at: datetime) -> None:
    """With any offset; a fraction is cut off, also before 1970."""
    expected = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    assert seconds_of(at.isoformat()) == expected


@given(st.datetimes())
def test_a_time_without_an_offset_is_in_utc(at: datetime) -> None:
    """And is written with a Z."""
    seconds = (at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    assert seconds_of(at.isoformat()) == seconds_of(f"{at.isoformat(sep=' ')}Z") == seconds
    assert time_text(seconds) == f"{at.replace(microsecond=0).isoformat()}Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_keeps_its_fraction(at: datetime) -> None:
    """A fraction has up to nine digits."""
    since = Fraction((at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), 10**6)
    assert instant_of(at.isoformat()) == since
    assert instant_of(f"{at:%Y-%m-%dT%H:%M:%S}".zfill(19) + ".000000001Z") == floor(since) + Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-03-31", "2026-03-31T00:00:00Z"),
        ("2026-03-31T10:15", "2026-03-31T10:15:00Z"),
        ("2026-03-31 10:15:00 UTC", "2026-03-31T10:15:00Z"),
        ("2026-03-31 10:15:00 +0230", "2026-03-31T10:15:00+02:30"),
        ("2026-03-31 10:15:00-03", "2026-03-31T10:15:00-03:00"),
    ],
)
def test_parts_that_are_left_out_are_zero(text: str, same: str) -> None:
    """A date is its midnight."""
    assert seconds_of(text) == seconds_of(same)


@pytest.mark.parametrize(
    "text",
    ["", "2026-3-31", "2026-02-30", "20260331", "2026-W14-2", "31.03.2026", "2026-03-31 ", "٢٠٢٦-٠٣-٣١", "0000-01-01"],
)
def test_other_text_is_no_date_and_no_time(text: str) -> None:
    """No guesses."""
    assert days_of(text) is None
    assert seconds_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-31T24:00:00Z",
        "2026-03-31T10",
        "2026-03-31T10:15:60Z",
        "2026-03-31T10:15:00+2",
        "2026-03-31T10:15:00 ",
        "2026-03-31t10:15:00z",
    ],
)
def test_other_text_is_no_time(text: str) -> None:
    """Nor is a date with a time a date."""
    assert seconds_of(text) is None
    assert days_of("2026-03-31T00:00:00Z") is None


def test_labels_are_made_when_they_are_read() -> None:
    """A domain of a million days costs nothing until it is listed."""
    labels = Labels(date_text, 0, 3)
    assert (len(labels), labels[-1], list(labels[1:])) == (3, "1970-01-03", ["1970-01-02", "1970-01-03"])
    assert len(Labels(str, 0, 2**40)) == 2**40
    with pytest.raises(IndexError):
        labels[3]
