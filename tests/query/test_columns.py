"""The public integer coding of a column."""

from decimal import Decimal
from fractions import Fraction
from math import log10
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.columns import Coding, coding_of, meant_by
from service.query.schema import BudgetColumn, CategoryColumn, IntegerColumn, RealColumn
from tests.query.samples import PEOPLE


@st.composite
def real_columns(draw: st.DrawFn) -> RealColumn:
    """Real columns over sixty orders of magnitude."""
    lower, upper = sorted(draw(st.tuples(*[st.floats(-1e30, 1e30) | st.floats(-10, 10)] * 2)))
    if lower == upper or max(abs(lower), abs(upper)) < 1e-30:
        lower, upper = 0.0, 1.0
    return RealColumn(type="real", lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("name", "coding", "dtype"),
    [
        ("country", Coding(offset=0, span=2, step_log2=0), np.uint8),
        ("area", Coding(offset=0, span=4, step_log2=0), np.uint8),
        ("age", Coding(offset=0, span=120, step_log2=0), np.uint8),
        ("level", Coding(offset=-2, span=5, step_log2=0), np.uint8),
        ("member", Coding(offset=0, span=1, step_log2=0), np.uint8),
        ("spend", Coding(offset=0, span=500 * 2**43, step_log2=-43), np.uint64),
    ],
)
def test_each_kind_of_column_has_its_coding(name: str, coding: Coding, dtype: type[Any]) -> None:
    """Offsets and steps are those of the declared domain, in the smallest unsigned integers."""
    found = coding_of(PEOPLE.columns[name])

    assert found == coding
    assert found.dtype == dtype
    assert found.null_code == coding.span + 1


def test_a_budget_has_no_coding() -> None:
    """Limits are not data."""
    with pytest.raises(ValueError, match="budget"):
        coding_of(BudgetColumn(type="budget"))


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(254, np.uint8), (255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, np.uint32), (2**31, np.uint32)],
)
def test_the_dtype_holds_the_code_of_null(size: int, dtype: type[Any]) -> None:
    """A domain of 255 values and NULL fits a byte; one of 256 does not."""
    assert coding_of(CategoryColumn(type="category", size=size)).dtype == dtype


def test_the_widest_integer_column_fits_64_bits() -> None:
    """All the integers that JSON can name are one column."""
    coding = coding_of(IntegerColumn(type="integer", lower=-(2**53) + 1, upper=2**53 - 1))

    assert coding.span == 2**54 - 2
    assert coding.dtype == np.uint64
    assert coding.code_of(2**53 - 1) == coding.span


@given(real_columns())
def test_a_real_bound_spans_more_than_half_of_2_to_the_52_steps(column: RealColumn) -> None:
    """So a step is below 2^-51 of the larger bound, and every decoded value is exactly a double."""
    coding = coding_of(column)
    step = Fraction(2) ** coding.step_log2
    largest = Fraction(max(abs(column.lower), abs(column.upper))) / step

    assert 2**51 < largest <= 2**52
    assert max(abs(coding.offset), abs(coding.offset + coding.span)) <= 2**52
    assert (coding.code_of(column.lower), coding.code_of(column.upper)) == (0, coding.span)


@given(real_columns(), st.data())
def test_an_array_is_coded_as_its_numbers_are(column: RealColumn, data: st.DataObject) -> None:
    """`rint` of the scaled doubles is the exact rule, so that data and literals meet in the same code."""
    coding = coding_of(column)
    values = data.draw(st.lists(st.floats(column.lower, column.upper), min_size=1, max_size=20))
    coded = np.rint(np.ldexp(np.array(values), -coding.step_log2)).astype(np.int64) - coding.offset

    assert coded.tolist() == [coding.code_of(value) for value in values]


@given(real_columns(), st.data())
def test_a_code_is_shown_as_its_shortest_decimal(column: RealColumn, data: st.DataObject) -> None:
    """The shown number has the code; a decimal whose last place is above ten steps is shown as it was written."""
    coding = coding_of(column)
    value = data.draw(st.floats(column.lower, column.upper))
    places = int(-coding.step_log2 * log10(2)) - data.draw(st.integers(1, 20))
    written = round(value, places)

    assert coding.code_of(coding.decimal_of(coding.code_of(value))) == coding.code_of(value)
    assert coding.decimal_of(coding.code_of(written)) == written


def test_a_price_is_shown_as_it_was_written() -> None:
    """Not as the double that its code stands for."""
    coding = coding_of(PEOPLE.columns["spend"])

    assert [coding.decimal_of(coding.code_of(price)) for price in (19.61, 0.07, 499.99)] == [19.61, 0.07, 499.99]


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60))
def test_a_literal_means_its_shortest_decimal(number: float) -> None:
    """And a whole number itself."""
    assert meant_by(number) == Fraction(Decimal(str(number)))


@given(st.integers(-(2**53), 2**53), st.integers(-100, 100))
def test_a_number_that_is_a_multiple_of_the_step_keeps_its_value(steps: int, step_log2: int) -> None:
    """Decoding gives back what was coded, for steps below and above 1."""
    coding = Coding(offset=7, span=1, step_log2=step_log2)

    assert coding.code_of(float(Fraction(steps) * Fraction(2) ** step_log2)) == steps - 7
    assert Coding(offset=7, span=1, step_log2=0).code_of(steps) == steps - 7


def test_a_tie_goes_to_the_even_step() -> None:
    """`rint` does so too."""
    coding = Coding(offset=0, span=10, step_log2=1)

    assert [coding.code_of(value) for value in (1, 3, 5, -1, -3)] == [0, 2, 2, 0, -2]
