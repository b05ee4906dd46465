"""Numbers with as many digits as their half width leaves."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing._rounding import rounded, with_half_widths


@pytest.mark.parametrize(
    ("number", "half_width", "text"),
    [
        (3466.70384, 12.3, "3467"),
        (3466.70384, 9.9, "3466.7"),
        (3466.70384, 0.98, "3466.70"),
        (131.4, 391_013.0, "131"),
        (-0.2, 39.0, "0"),
        (0.001234567, 0.00034, "0.00123"),
        (41.53125, 0.0, "41.53125"),
        (1e20, 39.0, "1e+20"),
        (math.inf, 39.0, "inf"),
    ],
)
def test_two_digits_of_the_half_width_decide(number: float, half_width: float, text: str) -> None:
    """Whole numbers from ten on; a half width of 0, of an exact number, and numbers beyond doubles take none away."""
    assert rounded(number, half_width) == text


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e9))
def test_what_is_left_out_is_below_a_tenth_of_the_half_width(number: float, half_width: float) -> None:
    """For any number and any half width."""
    assert abs(float(rounded(number, half_width)) - number) <= 0.05 * half_width * (1 + 1e-9)
    assert float(rounded(number, half_width, mark=",").replace(",", "")) == float(rounded(number, half_width))


def test_one_half_width_stands_once() -> None:
    """Several stand beside their numbers."""
    assert with_half_widths([139.27, 27.0], [16.0, 16.0], rest=", ...") == "139, 27, ... ± 16"
    assert with_half_widths([139.27, 551_120.4], [16.0, 5200.0]) == "139 ± 16, 551120 ± 5200"
