"""Quotients against fractions: truncated toward zero, exactly, at every size that a plan lets through."""

from fractions import Fraction
from math import ldexp, trunc

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from service.query.item_steps import STEPS_MAX, quotient_for, quotients

SIZES = st.one_of(
    st.floats(min_value=2.0**-70, max_value=2.0**40, allow_subnormal=False),
    st.integers(1, 10_000).map(lambda sigma: ldexp(sigma / 10, -28)),
    st.integers(-60, 30).map(lambda exponent: 2.0**exponent),
)
VALUES = st.integers(-(2**60) + 1, 2**60 - 1)


@given(value=VALUES, step_log2=st.integers(-70, 10), size=SIZES)
@example(value=3, step_log2=0, size=ldexp(0.1, -28))
@example(value=-(2**60) + 1, step_log2=-59, size=1 / 3)
def test_a_quotient_is_the_fraction_truncated_toward_zero(value: int, step_log2: int, size: float) -> None:
    """One by one in integers of any size, and side by side in 64 bits."""
    wanted = trunc(Fraction(value) * Fraction(2) ** step_log2 / Fraction(size))
    quotient = quotient_for(step_log2=step_log2, size=size)
    assert quotient.of(value) == wanted
    assume(abs(wanted) <= STEPS_MAX)
    largest = quotient.of(abs(value))
    assert quotient.of_all(np.array([value, -value, 0])).tolist() == [wanted, -wanted, 0]
    assert abs(wanted) == largest


@given(size=SIZES, number=st.integers(1, 2**28), off=st.sampled_from([-1, 0, 1]))
def test_a_multiple_of_the_step_is_exact_and_its_neighbours_are_not(size: float, number: int, off: int) -> None:
    """The estimate in doubles is corrected on both sides of a whole number."""
    quotient = quotient_for(step_log2=-30, size=size)
    value = trunc(Fraction(size) * number * 2**30) + off
    assume(0 < value < 2**60)
    wanted = trunc(Fraction(value) / 2**30 / Fraction(size))
    assume(wanted <= STEPS_MAX)
    assert quotient.of_all(np.array([value])).tolist() == [wanted]


def test_quotients_stand_side_by_side() -> None:
    """Each row of values has its own."""
    values = np.array([[10, -10, 7], [10, -10, 7], [1000, -1000, 2**59]])
    each = [quotient_for(step_log2=step_log2, size=size) for step_log2, size in ((0, 3.0), (0, 1.0), (-4, 0.75))]
    assert quotients(each)(values).tolist() == [[3, -3, 2], [10, -10, 7], [83, -83, 2**59 // 12]]


def test_a_step_is_known_by_its_odd_part() -> None:
    """So that the divisor is as small as can be."""
    assert (quotient_for(step_log2=0, size=0.75).shift, quotient_for(step_log2=0, size=0.75).divisor) == (2, 3)
    assert quotient_for(step_log2=-3, size=40.0).divisor == 5
