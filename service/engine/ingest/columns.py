"""From a column's values to its public integer codes (service.query.columns): a batch at a time, no loop over rows.

Bounds clip. A list of categories makes NULL of a value that it does not hold. Only a value that cannot be one of the
column at all is reported. A number means the decimal that it is written or printed as. Dates and times become whole
days and seconds since 1970-01-01 in UTC. The budget column becomes whole units, rounded down, so that no limit is above
the written one.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.arrays import Codes, Integers, Mask, Reals
from service.core.charge import rho_of_units, units_down
from service.query.calendar import DAY_S, has_zone, seconds_of, written_day_of
from service.query.columns import Coding, coding_of
from service.query.schema import BooleanColumn, CategoryColumn, DateColumn, DatetimeColumn, IntegerColumn, RealColumn

Report = Callable[[Mask, str], None]
"""Takes a mask (n,) of the rows that are wrong, and a message."""
CodedColumn = BooleanColumn | CategoryColumn | IntegerColumn | RealColumn | DateColumn | DatetimeColumn
DATASET_BUDGET = -1
"""Stands for the dataset's own budget, where an individual has no limit in the upload."""
_UNITS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_INTEGER = r"^[+-]?[0-9]+(\.0+)?$"
_FRACTION = r"\.0+$"
_PLUS = r"^\+"
_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INT64_DIGITS_MAX = 19
_BOOLEANS = ("false", "true", "0", "1", "0.0", "1.0", "f", "t")
_DECIMAL = re.compile(_NUMBER, re.ASCII)
_CHARACTERS_MAX = 100
_DIFFERENT_MAX = 1000


class WrongType(TypeError):
    """The type of the column in the file can hold no value of the declared column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """A column's codes (n,), and the numbers of values that were clipped, not in the declared list, and missing."""

    codes: Codes
    clipped: int = 0
    out_of_domain: int = 0
    nulls: int
    nearest: Mapping[str, int] = field(default_factory=dict)  # of those out of the list, by the category they may mean
    has_no_zone: bool = False  # a time that does not say its zone


def code_column(column: CodedColumn, array: pa.Array, report: Report, *, is_text: bool) -> Coded:
    """Code a batch. With `is_text` the values are written out (CSV, NDJSON); otherwise the array's own type counts.

    A wrong value is passed to `report` and gets an arbitrary code. Raises WrongType.
    """
    coding = coding_of(column)
    if pa.types.is_null(array.type):
        array, is_text = pa.nulls(len(array), pa.string()), True
    match column:
        case CategoryColumn(categories=None):
            return _code_numbered(coding, array, report, is_text=is_text)
        case CategoryColumn():
            return _code_listed(column, coding, integers_of_doubles(array, report))
        case BooleanColumn():
            return _code_booleans(coding, array, report, is_text=is_text)
        case IntegerColumn():
            values, nulls = _integers(array, report, is_text=is_text)
            return _code_whole(coding, values, nulls)
        case DateColumn() | DatetimeColumn():
            is_date = isinstance(column, DateColumn)
            values, nulls = whole_times(array, report, is_date=is_date, is_text=is_text)
            return replace(_code_whole(coding, values, nulls), has_no_zone=not is_date and _has_no_zone(array))
        case RealColumn():
            return _code_reals(column, coding, array, report, is_text=is_text)


class LimitReader:
    """Reads limits. Each text is read only once, because most individuals share a limit."""

    def __init__(self, budget_units: int) -> None:
        self._budget_units = budget_units
        self._known: dict[str, int] = {}

    def units(self, array: pa.Array, report: Report) -> Integers:
        """Units (n,) of a batch of text or numbers, DATASET_BUDGET where missing. Raises WrongType."""
        encoded = _written(array).dictionary_encode()
        places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        units, wrong = [], {}
        for place, text in enumerate(encoded.dictionary.to_pylist()):
            try:
                units.append(self._of(text))
            except _WrongLimit as reason:
                wrong[place] = str(reason)
                units.append(DATASET_BUDGET)
        for place, message in wrong.items():
            report(places == place, message)
        units_at = np.array([*units, DATASET_BUDGET], dtype=np.int64)
        return units_at[np.asarray(places, dtype=np.int64)]

    def _of(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = _units(text, self._budget_units)
        return self._known[text]


def whole_times(array: pa.Array, report: Report, *, is_date: bool, is_text: bool) -> tuple[Integers, Mask]:
    """Days or seconds (n,), rounded down, 0 where missing or wrong; and which are missing. Raises WrongType.

    Text is ISO 8601. An array of times with a zone holds instants, which count in UTC. An array of times without a zone
    is in UTC. The day of a time is the day that is written, or the day that an array shows in its own zone.
    """
    kind = array.type
    if is_text or pa.types.is_string(kind):
        return _of_text(array, report, is_date=is_date)
    nulls = nulls_of(array)
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return days if is_date else days * DAY_S, nulls
    if pa.types.is_timestamp(kind):
        array = pc.local_timestamp(array) if is_date and kind.tz else array
        counts = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return counts // (_UNITS_A_SECOND[kind.unit] * (DAY_S if is_date else 1)), nulls
    raise WrongType(f"the column holds {kind}, not {'dates' if is_date else 'times'}")


def integers_of_doubles(array: pa.Array, report: Report) -> pa.Array:
    """Doubles as the integers that they stand for, NaN as missing; an array of another type as it is.

    Data frames write an integer column with missing values as doubles. A double that is no integer is reported.
    """
    if not pa.types.is_floating(array.type):
        return array
    values = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    missing = np.isnan(values)
    wrong = ~missing & (values != np.trunc(values))
    report(wrong, "not an integer")
    too_large = ~missing & ~wrong & ((values < -(2.0**63)) | (values >= 2.0**63))
    report(too_large, "does not fit in 64 bits")
    left_out = missing | wrong | too_large
    return pa.array(np.where(left_out, 0.0, values).astype(np.int64), mask=left_out)


def text_of(array: pa.Array) -> pa.Array:
    """Text as it is, integers as their decimal text. Raises WrongType for anything else."""
    if pa.types.is_null(array.type) or pa.types.is_integer(array.type):
        return array.cast(pa.string())
    if not pa.types.is_string(array.type):
        raise WrongType(f"the column holds {array.type}, not text")
    return array


def nulls_of(array: pa.Array) -> Mask:
    """The mask of missing values, (n,)."""
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _of_text(text: pa.Array, report: Report, *, is_date: bool) -> tuple[Integers, Mask]:
    """Days or seconds (n,) of text, 0 where missing or wrong; and which are missing. Each different text is read once.

    A column of a million days holds a few thousand different days.
    """
    read: Callable[[str], int | None] = written_day_of if is_date else seconds_of
    encoded = pc.dictionary_encode(text)
    values = [read(each) for each in encoded.dictionary.to_pylist()]
    numbers = pa.array(values, type=pa.int64()).take(encoded.indices)
    nulls = nulls_of(text)
    wrong = nulls_of(numbers) & ~nulls
    report(wrong, f"not a {'date: write it as 2026-03-31' if is_date else 'time: write it as 2026-03-31T23:59:59Z'}")
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), nulls


def _has_no_zone(array: pa.Array) -> bool:
    """Tell whether a column has a time that does not state its zone."""
    if pa.types.is_timestamp(array.type):
        return bool(array.type.tz is None)
    if not pa.types.is_string(array.type):
        return bool(len(array) > array.null_count)
    return not all(has_zone(each) for each in pc.unique(array.drop_null()).to_pylist())


def _code_listed(column: CategoryColumn, coding: Coding, array: pa.Array) -> Coded:
    """Code categories by their text; if 1 and "1" are both declared, the first of them counts.

    An integer may be written as 1.0, as data frames with missing values write it.
    """
    codes_by_text: dict[str, int] = {}
    for category, code in column.codes.items():
        codes_by_text.setdefault(str(category), code)
    for category, code in column.codes.items():
        if isinstance(category, int):
            codes_by_text.setdefault(f"{category}.0", code)
    places = pc.index_in(text_of(array), value_set=pa.array(codes_by_text, type=pa.string()))
    unknown = len(codes_by_text)
    code_at = np.array([*codes_by_text.values(), coding.null_code], dtype=coding.dtype)
    codes = code_at[places.fill_null(unknown).to_numpy(zero_copy_only=False)]
    outside = places.null_count - array.null_count
    nearest = _nearest(text_of(array).filter(pc.is_null(places)).drop_null(), codes_by_text) if outside else {}
    return Coded(codes=codes, nulls=array.null_count, out_of_domain=outside, nearest=nearest)


def _nearest(unknown: pa.Array, categories: Iterable[str]) -> dict[str, int]:
    """For each category, how many undeclared texts differ from it only in case, blanks or forms of letters."""
    meant = {folded(each): each for each in categories}
    found = Counter[str]()
    for each in pc.value_counts(unknown)[:_DIFFERENT_MAX].to_pylist():
        category = meant.get(folded(each["values"]))
        if category is not None:
            found[category] += each["counts"]
    return found


def folded(text: str) -> str:
    """A text without differences that are easily made in writing: case, blanks and compatibility forms."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def _code_numbered(coding: Coding, array: pa.Array, report: Report, *, is_text: bool) -> Coded:
    values, nulls = _integers(array, report, is_text=is_text)
    outside = ((values < 0) | (values > coding.span)) & ~nulls
    codes = np.where(outside | nulls, coding.null_code, values).astype(coding.dtype)
    return Coded(codes=codes, nulls=int(nulls.sum()), out_of_domain=int(outside.sum()))


def _code_booleans(coding: Coding, array: pa.Array, report: Report, *, is_text: bool) -> Coded:
    array = integers_of_doubles(array, report)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if is_text or pa.types.is_integer(array.type):
        places = pc.index_in(pc.utf8_lower(text_of(array)), value_set=pa.array(_BOOLEANS))
        missing, nulls = nulls_of(places), nulls_of(array)
        report(missing & ~nulls, "not a boolean: write true, false, 1 or 0")
        values = places.fill_null(0).to_numpy(zero_copy_only=False) % 2
        return Coded(codes=_with_nulls(values, missing, coding), nulls=int(nulls.sum()))
    raise WrongType(f"the column holds {array.type}, not booleans")


def _code_whole(coding: Coding, values: Integers, nulls: Mask) -> Coded:
    lower, upper = coding.offset, coding.offset + coding.span
    clipped = ((values < lower) | (values > upper)) & ~nulls
    codes = np.clip(values, lower, upper) - lower
    return Coded(codes=_with_nulls(codes, nulls, coding), clipped=int(clipped.sum()), nulls=int(nulls.sum()))


def _code_reals(column: RealColumn, coding: Coding, array: pa.Array, report: Report, *, is_text: bool) -> Coded:
    values, nulls = _reals(array, report, is_text=is_text)
    clipped = ((values < column.lower) | (values > column.upper)) & ~nulls
    # Scaling by a power of two is exact and rint rounds each number by itself: the rule of Coding.code_of.
    steps = np.rint(np.ldexp(np.clip(values, column.lower, column.upper), -coding.step_log2)).astype(np.int64)
    codes = _with_nulls(steps - coding.offset, nulls, coding)
    return Coded(codes=codes, clipped=int(clipped.sum()), nulls=int(nulls.sum()))


def _advice(array: pa.Array) -> str:
    return "; declare the column as date or datetime" if pa.types.is_temporal(array.type) else ""


def _with_nulls(codes: Integers, nulls: Mask, coding: Coding) -> Codes:
    coded: Codes = codes.astype(coding.dtype)
    coded[nulls] = coding.null_code
    return coded


def _integers(array: pa.Array, report: Report, *, is_text: bool) -> tuple[Integers, Mask]:
    """Values (n,), 0 where missing or wrong, and which are missing."""
    array = integers_of_doubles(array, report)
    if pa.types.is_decimal(array.type):
        array, is_text = _printed(array), True
    nulls = nulls_of(array)
    if is_text:
        array = _integers_of_text(_matching(_plainly_whole(array), _INTEGER, "not an integer", report), report)
    elif not pa.types.is_integer(array.type):
        raise WrongType(f"the column holds {array.type}, not integers{_advice(array)}")
    elif pa.types.is_uint64(array.type):
        too_large = array.fill_null(0).to_numpy(zero_copy_only=False) > np.iinfo(np.int64).max
        report(too_large, "does not fit in 64 bits")
        array = pc.if_else(pa.array(too_large), None, array)
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return values, nulls


def _plainly_whole(text: pa.Array) -> pa.Array:
    """Text with whole numbers that have an exponent, such as 1e+05, written in digits; other text as it is."""
    if not pc.any(pc.match_substring_regex(text, "[0-9][eE]")).as_py():
        return text
    encoded = text.dictionary_encode()
    return pa.array(map(_in_digits, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


def _in_digits(text: str) -> str:
    if len(text) > _CHARACTERS_MAX or not _DECIMAL.fullmatch(text):
        return text
    number = Decimal(text)
    is_whole = 0 <= number.adjusted() <= _INT64_DIGITS_MAX and number == number.to_integral_value()
    return f"{number:f}" if is_whole else text


def _integers_of_text(text: pa.Array, report: Report) -> pa.Array:
    for mark, pattern in ((".", _FRACTION), ("+", _PLUS)):
        if pc.any(pc.match_substring(text, mark)).as_py():
            text = pc.replace_substring_regex(text, pattern, "")
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:
        values = [None if digits is None else _int64_of(digits) for digits in text.to_pylist()]
        too_large = np.array([value is None for value in values], dtype=np.bool_) & ~nulls_of(text)
        report(too_large, "does not fit in 64 bits")
        return pa.array(values, type=pa.int64())


def _int64_of(digits: str) -> int | None:
    """The integer, or None if it does not fit. The length is checked first, because int() is quadratic in it."""
    if len(digits.lstrip("-0")) > _INT64_DIGITS_MAX:
        return None
    value = int(f"{'-' if digits.startswith('-') else ''}{digits.lstrip('-0') or '0'}")
    return value if -(2**63) <= value < 2**63 else None


def _reals(array: pa.Array, report: Report, *, is_text: bool) -> tuple[Reals, Mask]:
    """Numbers (n,), 0 where missing or wrong; and which are missing. NaN is missing, and an infinite value is wrong."""
    nulls, kind = nulls_of(array), array.type
    if is_text:
        array = _matching(array, _NUMBER, _no_number(array), report)
    elif pa.types.is_decimal(kind) or (pa.types.is_floating(kind) and not pa.types.is_float64(kind)):
        array = _printed(array)
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise WrongType(f"the column holds {kind}, not numbers{_advice(array)}")
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    report(infinite, "not a finite number")
    return np.where(np.isfinite(values), values, 0.0), nulls if is_text else np.isnan(values)


def _printed(array: pa.Array) -> pa.Array:
    """Short floats and decimals as the text that they are printed as: 36.6 in 32 bits means 36.6, not 36.59999847."""
    if pa.types.is_float16(array.type):
        shown = array.fill_null(np.float16(np.nan)).to_numpy(zero_copy_only=False).astype(np.str_)
        return pa.array(shown, pa.string())
    return array.cast(pa.string())


def _no_number(text: pa.Array) -> str:
    """The message for text that is no number; it names the parameter if some numbers have a comma for a point."""
    has_commas = pc.any(pc.match_substring_regex(text, _COMMA)).as_py()
    return "not a number; of numbers such as 1,5 state decimal=','" if has_commas else "not a number"


def _matching(text: pa.Array, pattern: str, message: str, report: Report) -> pa.Array:
    """Text of the pattern; other text is reported and becomes NULL. Arrow's own parsers also take 0x1F, nan and inf."""
    right = pc.match_substring_regex(text, pattern)
    wrong = pc.invert(right).fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    if not wrong.any():
        return text
    report(wrong, message)
    return pc.if_else(right, text, None)


class _WrongLimit(ValueError):
    """The text is no limit; the message says why."""


def _units(text: str, budget_units: int) -> int:
    """Whole units of a decimal. Huge exponents are compared, never expanded."""
    try:
        rho = Decimal(text) if len(text) <= _CHARACTERS_MAX and _DECIMAL.fullmatch(text) else None
    except InvalidOperation:
        rho = None
    if rho is None:
        raise _WrongLimit("not a decimal number of rho")
    if rho < 0:
        raise _WrongLimit("a limit must not be negative")
    if rho >= rho_of_units(budget_units + 1):
        raise _WrongLimit("the limit is above the dataset's budget")
    return 0 if rho < rho_of_units(1) else units_down(Fraction(rho))


def _written(array: pa.Array) -> pa.Array:
    """Numbers as the shortest decimal that reads back as the same number, which is the decimal that was written."""
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        return array.cast(pa.string())
    return text_of(array)
