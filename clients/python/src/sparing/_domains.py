"""The values of one column, and a declaration that fits them."""

import datetime as dt
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

CATEGORIES_MAX = 1000
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_DIGITS = re.compile(r"-?[0-9]{1,100}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*")
_COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)?")
_PADDED = re.compile(r"-?0[0-9]+")
_BOOLEANS = frozenset({"true", "false"})
_WHOLE_MAX = 2**53


class Seen:
    """The counted values of a column; if they are text of CSV, they are read as the service would read them."""

    def __init__(self, values: Iterable[object], *, is_text: bool) -> None:
        """Count the values. Decimals become doubles; NaN, NaT and empty fields of CSV are missing values."""
        self._is_text, self.rows = is_text, 0
        self.counts: Counter[Any] = Counter()
        for value in values:
            self.add(value)

    def add(self, value: object) -> None:
        """Count one more value."""
        value = float(value) if isinstance(value, Decimal) else value
        self.rows += 1
        if type(value).__name__ == "NAType":  # of pandas, which compares with nothing
            return
        try:
            missing = value is None or value != value or (self._is_text and value == "")  # noqa: PLR0124 - NaN
            if not missing:
                self.counts[value] += 1
        except (TypeError, ValueError):  # a list or an array
            self.counts[type(value)] += 1

    @property
    def may_be_key(self) -> bool:
        """Tell whether every row has a value, a text or a whole number, that may be a key."""
        are_keys = all(isinstance(value, str | int) and not isinstance(value, bool) for value in self.counts)
        return are_keys and sum(self.counts.values()) == self.rows and not self._are_booleans()

    @property
    def spread(self) -> str:
        """The number of different values and the number of rows that hold one, in words."""
        return f"{len(self.counts)} in {sum(self.counts.values())} rows"

    @property
    def has_commas(self) -> bool:
        """Tell whether the column has numbers with decimal commas."""
        texts = list(map(str, self.counts)) if self._is_text else []
        return any("," in text for text in texts) and all(map(_COMMA.fullmatch, texts))

    def obstacle(self) -> str | None:
        """The reason for which no declaration fits, or None."""
        if not self.counts:
            return "it holds no value"
        if self._times() is not None:
            return None
        if self._are_long():
            return "it holds whole numbers beyond 2^53: number them and declare a size, or make categories of them"
        if any(isinstance(value, dt.time | dt.timedelta) for value in self.counts):
            return "it holds times of day or durations: write them as numbers"
        if self._numbers() is None and not self._are_booleans():
            if not all(isinstance(value, str) for value in self.counts):
                return "it holds neither numbers, nor text, nor booleans"
            if not all(text.isprintable() and text.strip(" ") for text in self.counts):
                return "it holds texts with characters that cannot be seen, which no category has"
            if len(self.counts) > CATEGORIES_MAX:
                return f"it holds {len(self.counts)} different texts: number the categories and declare a size"
        return None

    def column(self) -> dict[str, Any]:
        """The declaration of the column. A domain that is read off the data is marked by `confirm`."""
        if self._are_booleans():
            return {"type": "boolean"}
        times = self._times()
        if times is not None:
            return _of_times(times)
        numbers = self._numbers()
        if numbers is None:
            categories = sorted(self.counts)
            return {"type": "category", "categories": categories, "confirm": _confirm("categories were")}
        lower, upper = _rounded(min(0, *numbers)), _rounded(max(0, *numbers))
        if all(isinstance(number, int) for number in numbers):
            return {"type": "integer", "lower": int(lower), "upper": int(upper), "confirm": _confirm("bounds were")}
        upper = upper if upper > lower else lower + 1
        return {"type": "real", "lower": float(lower), "upper": float(upper), "confirm": _confirm("bounds were")}

    def _are_booleans(self) -> bool:
        if self._is_text:
            return {str(value).lower() for value in self.counts} <= _BOOLEANS
        return all(isinstance(value, bool) for value in self.counts)

    def _times(self) -> list[dt.date] | None:
        """The distinct values as dates, or as times in UTC if any has a time of day; None if any is neither."""
        values = [_time(value) if isinstance(value, str) else value for value in self.counts]
        times = [value for value in values if isinstance(value, dt.date)]
        if not times or len(times) < len(values):
            return None
        return list(map(_in_utc, times)) if any(isinstance(value, dt.datetime) for value in times) else times

    def _numbers(self) -> list[int | float] | None:
        """The distinct values as numbers, as integers if all are whole; None if any is no number."""
        if self._is_text:
            texts = list(map(str, self.counts))
            if any(map(_PADDED.fullmatch, texts)):  # such as postcodes, which are names
                return None
            if self.has_commas:
                return [float(text.replace(",", ".")) for text in texts]
            if all(map(_INTEGER.fullmatch, texts)):
                return list(map(int, texts))
            return list(map(float, texts)) if all(map(_NUMBER.fullmatch, texts)) else None
        values = list(self.counts)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            return None
        return [int(value) for value in values] if all(float(value).is_integer() for value in values) else values

    def _are_long(self) -> bool:
        """Tell whether the values are whole numbers of which some are beyond 2^53, the limit of a bound."""
        if self._is_text:
            texts = list(map(str, self.counts))
            return all(map(_DIGITS.fullmatch, texts)) and any(abs(int(text)) >= _WHOLE_MAX for text in texts)
        return any(isinstance(value, int) and abs(value) >= _WHOLE_MAX for value in self.counts)


def plain_name(name: str) -> str:
    """The name in a form that a schema takes: lower case, without accents, words joined by underscores."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", ascii_name).lower()).strip("_")
    named = words if words[:1].isalpha() else f"c_{words}".rstrip("_")
    return named[:63]


def _time(text: str) -> dt.date | None:
    try:
        if _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
        return dt.datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def _in_utc(value: dt.date) -> dt.datetime:
    at = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return at.replace(tzinfo=dt.UTC) if at.tzinfo is None else at.astimezone(dt.UTC)


def _of_times(times: list[dt.date]) -> dict[str, Any]:
    """The declaration of a column of dates or times, with bounds in whole years."""
    first, last = min(times).year, max(times).year
    if isinstance(times[0], dt.datetime):
        bounds = {"lower": f"{first:04}-01-01T00:00:00Z", "upper": f"{last:04}-12-31T23:59:59Z"}
        return {"type": "datetime", **bounds, "confirm": _confirm("bounds were")}
    return {
        "type": "date",
        "lower": f"{first:04}-01-01",
        "upper": f"{last:04}-12-31",
        "confirm": _confirm("bounds were"),
    }


def _confirm(what: str) -> str:
    return f"must not be read off the data: the {what}; state them from elsewhere, or accept them, and remove this line"


def _rounded(bound: float) -> float:
    """The bound, rounded away from zero to 1, 2 or 5 times a power of ten."""
    if bound == 0 or not math.isfinite(bound):
        return 0
    size = abs(bound)
    power = 10.0 ** math.floor(math.log10(size))
    step = next(step for step in (1, 2, 5, 10, 20) if step * power >= size)
    return math.copysign(step * power, bound)
