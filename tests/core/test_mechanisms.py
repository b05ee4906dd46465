"""Noise of any size: the least sigma that keeps to a price or to a half width."""

from math import nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.charge import worst_case_units
from service.core.half_widths import sigma_steps_within
from service.core.laws import Gaussian
from service.core.mechanisms import GAUSSIAN_NOISE


def test_a_gaussian_has_its_law_at_any_size() -> None:
    """And is priced by the norm of a vector."""
    assert GAUSSIAN_NOISE.at(20.0) == Gaussian(20.0)
    assert (GAUSSIAN_NOISE.name, GAUSSIAN_NOISE.law, GAUSSIAN_NOISE.of_one_number) == ("gaussian", Gaussian, False)
    assert GAUSSIAN_NOISE.size_within(48, 0.95) == sigma_steps_within(48, 0.95)


@given(st.integers(1, 2**61), st.integers(1, 2**61))
@example(2, 15)  # the float estimate is too small by a little
def test_a_worst_case_gives_the_smallest_sigma_that_keeps_to_it(clip_squared_steps: int, units: int) -> None:
    """By the ledger's own arithmetic: the next smaller double would be charged a unit more than was offered."""
    sigma = GAUSSIAN_NOISE.size_for(clip_squared_steps, units)

    assert worst_case_units(clip_squared_steps, sigma) <= units
    assert worst_case_units(clip_squared_steps, nextafter(sigma, 0)) > units


@given(st.integers(1, 2**61), st.integers(1, 2**61))
def test_the_estimate_is_the_sigma_to_a_few_parts_in_10_to_the_15(clip_squared_steps: int, units: int) -> None:
    """So the grid is chosen by the sigma that will be used."""
    exact = GAUSSIAN_NOISE.size_for(clip_squared_steps, units)
    assert GAUSSIAN_NOISE.estimate_for(clip_squared_steps, units) == pytest.approx(exact, rel=1e-14)
