"""Written values: what is a number, an integer, a boolean, and where it ends up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.arrays import Mask
from service.engine.ingest.columns import code_column
from service.query.columns import coding_of
from service.query.schema import BooleanColumn, CategoryColumn, IntegerColumn, RealColumn

AGE = IntegerColumn(type="integer", lower=0, upper=120)
WIDE = IntegerColumn(type="integer", lower=-(2**53) + 1, upper=2**53 - 1)
SPEND = RealColumn(type="real", lower=-0.7, upper=0.1)
MEMBER = BooleanColumn(type="boolean")
ITEM = CategoryColumn(type="category", size=300)


class Reports(list[tuple[list[int], str]]):
    """The reports: rows and errors."""

    def __call__(self, wrong: Mask, message: str) -> None:
        if wrong.any():
            self.append((np.flatnonzero(wrong).tolist(), message))


def coded(column: BooleanColumn | CategoryColumn | IntegerColumn | RealColumn, *texts: str | None) -> list[int]:
    """Codes of written values with which nothing is wrong."""
    reports = Reports()
    codes = code_column(column, pa.array(texts, pa.string()), reports, is_text=True).codes
    assert reports == []
    return [int(code) for code in codes]


@pytest.mark.parametrize(
    "text", ["0x1F", "1.0", "1e3", "+5", " 5", "5 ", "1_000", "--1", "-", "", "½", "٣", "five", "5\n"]
)
def test_what_is_no_integer(text: str) -> None:
    """Decimal digits with perhaps a minus, and nothing else."""
    reports = Reports()
    code_column(AGE, pa.array([None, text, "7"], pa.string()), reports, is_text=True)
    assert reports == [([1], "not an integer")]


@pytest.mark.parametrize(
    "text", ["nan", "NaN", "inf", "-Infinity", "0x1p3", "1,5", "1.5.2", ".", "e5", " 1", "1d", "", "1e"]
)
def test_what_is_no_number(text: str) -> None:
    """A decimal with perhaps an exponent, and nothing else."""
    reports = Reports()
    code_column(SPEND, pa.array([None, text, "7"], pa.string()), reports, is_text=True)
    assert reports == [([1], "not a number")]


def test_a_number_beyond_a_double_is_not_clipped_but_refused() -> None:
    """1e400 would be infinity; 1e-400 is zero."""
    reports = Reports()
    code_column(SPEND, pa.array(["1e400", "-1e400", "1e-400"]), reports, is_text=True)
    assert reports == [([0, 1], "not a finite number")]


def test_integers_are_read_up_to_64_bits() -> None:
    """Beyond that they are refused, in whatever company."""
    assert coded(WIDE, "-0", "007", str(2**63 - 1), str(-(2**63))) == [2**53 - 1, 2**53 + 6, 2 * (2**53 - 1), 0]
    assert coded(AGE, "0" * 5000 + "7") == [7]
    reports = Reports()
    texts = [str(2**63), "7", str(-(2**63) - 1), "9" * 10_000, None, "-" + "0" * 30 + "5"]
    values = code_column(AGE, pa.array(texts), reports, is_text=True)
    assert reports == [([0, 2, 3], "does not fit in 64 bits")]
    assert values.codes[[1, 4, 5]].tolist() == [7, 121, 0]


def test_booleans_in_any_case() -> None:
    """Four words, and NULL."""
    assert coded(MEMBER, "true", "FALSE", "True", "1", "0", None) == [1, 0, 1, 1, 0, 2]
    reports = Reports()
    code_column(MEMBER, pa.array(["yes", "", None, "2", "tru"]), reports, is_text=True)
    assert [rows for rows, _ in reports] == [[0, 1, 3, 4]]


def test_numbered_categories_end_at_their_size() -> None:
    """Values out of the domain count in no category, and their number is reported."""
    column = code_column(ITEM, pa.array(["0", "299", "300", "-1", None]), Reports(), is_text=True)
    assert column.codes.tolist() == [0, 299, 300, 300, 300]
    assert (column.out_of_domain, column.nulls) == (2, 1)


def test_listed_categories_are_matched_by_their_text() -> None:
    """A number in the list is found by its digits; of two that read alike the first counts."""
    grade = CategoryColumn(type="category", categories=(3, "1", 1, "x"))
    assert coded(grade, "3", "1", "x", "03", None) == [0, 1, 3, 4, 4]
    whole = code_column(grade, pa.array([3, 1, 7]), Reports(), is_text=False)
    assert whole.codes.tolist() == [0, 1, 4]


@given(values=st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_numbers_are_coded_as_the_coding_says(values: list[float]) -> None:
    """The rule of Coding.code_of after clipping, whether written out or not."""
    coding = coding_of(SPEND)
    wanted = [coding.code_of(min(max(value, SPEND.lower), SPEND.upper)) for value in values]
    assert coded(SPEND, *map(repr, values)) == wanted
    column = code_column(SPEND, pa.array(values), Reports(), is_text=False)
    assert [int(code) for code in column.codes] == wanted
    assert column.clipped == sum(not SPEND.lower <= value <= SPEND.upper for value in values)


@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_are_coded_as_the_coding_says(values: list[int | None]) -> None:
    """Clipped, then counted from the lower bound."""
    coding = coding_of(WIDE)
    wanted = [coding.null_code if v is None else min(max(v, WIDE.lower), WIDE.upper) - WIDE.lower for v in values]
    assert coded(WIDE, *(None if value is None else str(value) for value in values)) == wanted
    assert code_column(WIDE, pa.array(values, pa.int64()), Reports(), is_text=False).codes.tolist() == wanted
