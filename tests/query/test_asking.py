"""Coverage and the longest vector that the smallest limit pays for, both of public numbers.

Refusals and warnings are compared with the fake's in clients/python/tests/test_fake_and_service.py.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.laplace_prices import laplace_prices_of
from service.core.charge import UNITS_PER_RHO, charge_units, worst_case_units
from service.core.laplace import laplace_worst_case_units
from service.core.laws import Gaussian, Laplace
from service.core.renyi_filter import Accounts, Touched
from service.query.asking import countable_norm, coverage_certified


def test_the_floor_itself_is_covered_and_a_unit_more_is_not() -> None:
    """`<=`, as in the filter."""
    assert coverage_certified([3, 4], 7)
    assert not coverage_certified([3, 5], 7)
    assert coverage_certified([], 0)


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.floats(0.3, 1e4)), min_size=1, max_size=8),
    st.integers(0, 2**50),
    st.data(),
)
def test_no_individual_is_left_out_while_coverage_is_certified(
    queries: list[tuple[int, float]], floor: int, data: st.DataObject
) -> None:
    """For all vectors within the clip, on every path that public numbers certify."""
    nobody = np.zeros(4, dtype=np.bool_)
    accounts = Accounts.of(spent=np.zeros(4, dtype=np.int64), limits=np.full(4, floor, dtype=np.int64), paused=nobody)
    touched = Touched(np.arange(4))
    prices: list[int] = []
    for clip, sigma in queries:
        prices.append(worst_case_units(clip**2, sigma))
        if not coverage_certified(prices, floor):
            break
        norms = np.array([data.draw(st.integers(0, clip**2)) for _ in range(4)], dtype=np.int64)
        charges = charge_units(norms, sigma)
        active = accounts.active(touched, charges)
        assert active.all()
        accounts.debit(touched, active, charges)


@pytest.mark.parametrize("sigma", [100.0, 30.0])
def test_the_first_answers_of_theory_are_covered(sigma: float) -> None:
    """floor(2 B sigma^2 / C^2) of them, for B = 1/4 and C = 2: 1250 at sigma 100, 112 at sigma 30."""
    price, floor = worst_case_units(4, sigma), 2**38
    certified = int(sigma**2) // 8 - (sigma == 100.0)  # the price is rounded up
    assert coverage_certified([price] * certified, floor)
    assert not coverage_certified([price] * (certified + 1), floor)


def test_negative_worst_cases_are_a_mistake() -> None:
    """Mistakes of the caller's."""
    with pytest.raises(ValueError, match="negative"):
        coverage_certified([1, -1], 5)
    with pytest.raises(ValueError, match="negative"):
        coverage_certified([], -1)


@given(st.floats(1e-3, 1e9), st.integers(1, 2**50))
def test_the_largest_countable_norm_costs_the_floor(sigma: float, floor_units: int) -> None:
    """Its charge is the floor, to rounding."""
    norm = countable_norm(Gaussian(sigma), 0, l2_clip=1.0, floor_units=floor_units)
    charge = Fraction(norm) ** 2 / (2 * Fraction(sigma) ** 2) * UNITS_PER_RHO
    assert abs(charge - floor_units) <= floor_units * Fraction(1, 10**12)


def test_a_floor_of_zero_counts_nothing() -> None:
    """Only the empty vector is free."""
    assert countable_norm(Gaussian(5.0), 0, l2_clip=1.0, floor_units=0) == 0


def test_with_laplace_noise_it_is_the_largest_number_that_the_floor_pays_for() -> None:
    """The floor of a pure accounting is epsilon, which pays for that many scales; a step more costs more."""
    prices, floor = laplace_prices_of("pure"), UNITS_PER_RHO // 2
    law = Laplace.priced(640.0, "pure", prices)
    norm = countable_norm(law, -6, l2_clip=1.0, floor_units=floor)
    assert norm == 5.0
    steps = int(norm * 2**6)
    assert laplace_worst_case_units(steps**2, 640.0, prices) <= floor
    assert laplace_worst_case_units((steps + 1) ** 2, 640.0, prices) > floor


def test_a_negative_floor_is_a_mistake() -> None:
    """The mistake is the caller's."""
    with pytest.raises(ValueError, match="negative"):
        countable_norm(Gaussian(1.0), 0, l2_clip=1.0, floor_units=-1)
