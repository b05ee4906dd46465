"""The monitor's coefficients and noise: the square root of running sums, and a cost that never exceeds the reserve."""

from fractions import Fraction
from math import comb, floor, nextafter, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.monitor import (
    GRID_LOG2,
    TICKS_MAX,
    Monitor,
    NoiseTooLarge,
    coefficients,
    monitor_of,
    sigma_steps_of,
    squared_steps,
)
from service.core.charge import UNITS_PER_RHO
from service.core.noise import SIGMA_STEPS_MAX

ONE = 2**20
STATED: dict[str, Any] = {"rho": "0.001", "ticks": 1024, "share": 0.1}


def exact(n: int) -> Fraction:
    """The coefficient r_n."""
    return Fraction(comb(2 * n, n), 4**n)


def test_the_coefficients_are_rounded_to_the_nearest_step() -> None:
    """Against the formula, in fractions."""
    wanted = [floor(exact(n) * ONE + Fraction(1, 2)) for n in range(300)]
    assert coefficients(300).tolist() == wanted
    assert (coefficients(1).tolist(), 2.0**-GRID_LOG2) == ([ONE], ONE)


def test_they_fall_and_are_never_zero() -> None:
    """A later tick never tells more of an individual than an earlier one, up to the most ticks; they are shared."""
    steps = coefficients(TICKS_MAX)
    assert (np.diff(steps) <= 0).all()
    assert steps[-1] > 0
    assert not steps.flags.writeable
    assert coefficients(TICKS_MAX) is steps


def test_applied_twice_they_are_running_sums() -> None:
    """R R is the matrix of ones on and below the diagonal: the convolution of the coefficients with themselves."""
    assert {sum(exact(k) * exact(n - k) for k in range(n + 1)) for n in range(40)} == {1}


@pytest.mark.parametrize("ticks", [0, -1, TICKS_MAX + 1])
def test_as_many_ticks_as_there_may_be(ticks: int) -> None:
    """No fewer than one, no more than TICKS_MAX."""
    with pytest.raises(ValueError, match="ticks must be from 1"):
        coefficients(ticks)


@pytest.mark.parametrize(
    ("ticks", "total", "sigma", "error", "independent"),
    [
        (16, 1.943879, 31.1759, 43.467, 89.44),
        (256, 2.831050, 37.6235, 63.304, 357.8),
        (1024, 3.272554, 40.4509, 73.176, 715.5),
    ],
)
def test_the_values_of_the_theory(ticks: int, total: float, sigma: float, error: float, independent: float) -> None:
    """At a reserve of .001: sigma, the error of the last running count, and that of independent counts at the price."""
    found = sigma_steps_of(ticks, UNITS_PER_RHO // 1000) / ONE
    assert squared_steps(ticks) / ONE**2 == pytest.approx(total, abs=1e-6)
    assert found == pytest.approx(sigma, rel=1e-5)
    assert found * sqrt(sum(exact(n) ** 2 for n in range(ticks))) == pytest.approx(error, rel=1e-4)
    assert sqrt(ticks / 0.002) == pytest.approx(independent, rel=1e-3)


@settings(deadline=None)
@given(
    ticks=st.integers(1, 64) | st.sampled_from([1024, TICKS_MAX]),
    units=st.integers(UNITS_PER_RHO // 10**6, UNITS_PER_RHO * 10**6),
)
def test_the_noise_is_the_least_that_keeps_to_the_reserve(ticks: int, units: int) -> None:
    """In exact fractions; with the next smaller double the longest run would cost more."""
    sigma = sigma_steps_of(ticks, units)

    def cost(steps: float) -> Fraction:
        return Fraction(squared_steps(ticks) * UNITS_PER_RHO) / (2 * Fraction(steps) ** 2)

    assert cost(sigma) <= units < cost(nextafter(sigma, 0.0))


@settings(deadline=None)
@given(ticks=st.integers(1, 40), start=st.integers(0, 39), out=st.sets(st.integers(0, 39)))
def test_no_run_is_longer_than_the_first_column(ticks: int, start: int, out: set[int]) -> None:
    """Beginning at any tick, and with any of them missed."""
    steps = coefficients(ticks).tolist()
    run = [steps[tick - start] for tick in range(start, ticks) if tick not in out]
    assert sum(step**2 for step in run) <= squared_steps(ticks)


def test_a_monitor_from_its_document() -> None:
    """The reserve is rounded down, the share up; the document comes back."""
    monitor = monitor_of(STATED, budget_units=15)
    assert (monitor.reserve_units, monitor.threshold_units) == (UNITS_PER_RHO // 1000, 2)
    assert (monitor.sigma, monitor.sigma_steps) == (
        monitor.sigma_steps / ONE,
        sigma_steps_of(1024, UNITS_PER_RHO // 1000),
    )
    assert (monitor.document, monitor.grid_log2) == (STATED, GRID_LOG2)
    assert monitor_of(STATED | {"share": 0.2}, budget_units=15).threshold_units == 4  # the double .2 is above a fifth


@pytest.mark.parametrize("units", [0, -1])
def test_a_reserve_is_positive(units: int) -> None:
    """Nothing pays for nothing."""
    with pytest.raises(ValueError, match="must be positive"):
        Monitor(rho="0", reserve_units=units, ticks=1, share=0.5, threshold_units=1)


def test_a_reserve_whose_noise_cannot_be_drawn_is_refused() -> None:
    """Beyond sigma 4,096; and one for which that is enough is not."""
    least = -(-squared_steps(4) * UNITS_PER_RHO // (2 * int(SIGMA_STEPS_MAX) ** 2))
    assert sigma_steps_of(4, least) <= SIGMA_STEPS_MAX
    with pytest.raises(NoiseTooLarge, match="4096 is the largest"):
        sigma_steps_of(4, least - 1)
